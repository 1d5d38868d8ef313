"""Formulas: drawn where the library can, else their source; within a line as letters."""

from __future__ import annotations

import pytest
from pytestqt.qtbot import QtBot

from desktop_host.ui.formula_drawing import HIGHEST, WEIGHT, WIDEST, draw, weight
from desktop_host.ui.formula_text import plain_formula
from desktop_host.ui.theme import theme
from desktop_host.ui.widgets.formula import FormulaView
from desktop_host.ui.widgets.formula_line import sources_in
from desktop_host.ui.widgets.message import MarkdownView
from desktop_host.ui.widgets.prose import Prose


def shown(qtbot: QtBot, text: str) -> MarkdownView:
    theme.apply("light", 100)
    view = MarkdownView()
    qtbot.addWidget(view)
    view.resize(600, 400)
    view.show()
    view.show_text(text, finished=True)
    return view


def test_a_block_is_drawn_and_copy_still_takes_its_source(qtbot: QtBot) -> None:
    view = shown(qtbot, "Look:\n\n$$x = \\frac{a}{b}$$\n")
    frame = view.segments[1]
    formula = frame.findChild(FormulaView)
    assert formula is not None
    qtbot.waitUntil(lambda: formula.shown and formula.isVisible(), timeout=20_000)
    assert not frame.text.isVisible()
    assert "\\frac{a}{b}" in formula.accessibleDescription()
    frame.copy_button.click()
    from PySide6.QtGui import QGuiApplication

    assert QGuiApplication.clipboard().text() == "x = \\frac{a}{b}"


def test_it_is_drawn_anew_in_the_colours_of_another_look(qtbot: QtBot) -> None:
    view = shown(qtbot, "$$y^2$$\n")
    formula = view.findChild(FormulaView)
    qtbot.waitUntil(lambda: formula.shown, timeout=20_000)
    first = formula._picture
    theme.apply("dark", 100)
    qtbot.waitUntil(lambda: formula._picture is not first, timeout=20_000)
    theme.apply("light", 100)


@pytest.mark.parametrize("source", ["\\frac{a}{", "", "x" * 900, "\\def\\a{\\a\\a}\\a", "a & < b"])
def test_what_cannot_be_drawn_stays_as_it_was_written(source: str) -> None:
    drawn = draw(source, "#000000")
    assert drawn is None or drawn.svg.startswith(b"<svg")


def test_a_broken_formula_keeps_its_lines(qtbot: QtBot) -> None:
    view = shown(qtbot, "$$\\frac{a}{$$\n")
    frame = view.segments[0]
    qtbot.wait(50)
    assert frame.text.isVisible()
    assert frame.code == "\\frac{a}{"


@pytest.mark.parametrize(
    ("tex", "letters"),
    [
        ("E = mc^2", "E = mc²"), ("\\alpha_1 \\le \\beta", "α₁ ≤ β"), ("\\frac{a}{b+1}", "a/(b+1)"),
        ("\\sqrt{x^2+1}", "√(x²+1)"), ("x^{q}", None), ("\\mathbb{R}^n", "ℝⁿ"), ("\\{1, 2\\}", "{1, 2}"),
        ("\\begin{x}", None), ("\\sin\\theta", "sin θ"),
    ],
)  # fmt: skip
def test_short_formulas_read_as_letters(tex: str, letters: str | None) -> None:
    assert plain_formula(tex) == letters


def pictures(view: MarkdownView) -> list[str]:
    """Sources of the formulas that stand as pictures in the first stretch of prose."""
    document = view.segments[0].document()
    return sources_in(document, 0, document.characterCount())


def test_a_formula_within_a_line_is_drawn_on_the_line_and_copied_as_its_source(qtbot: QtBot) -> None:
    view = shown(qtbot, "The mean $\\bar{x} = \\frac{1}{n}\\sum_{i=1}^{n} x_i$ and $\\sqrt{2}$ are *here*, $5 is not.")
    qtbot.waitUntil(lambda: len(pictures(view)) == 2, timeout=20_000)
    prose = view.segments[0]
    assert prose.toPlainText() == "The mean \ufffc and \ufffc are here, $5 is not."
    prose.selectAll()
    assert prose.createMimeDataFromSelection().text() == (
        "The mean $\\bar{x} = \\frac{1}{n}\\sum_{i=1}^{n} x_i$ and $\\sqrt{2}$ are here, $5 is not."
    )


def test_letters_stand_in_until_a_formula_is_drawn_and_what_is_marked_stays_marked(qtbot: QtBot) -> None:
    view = shown(qtbot, "Marked words. Then $\\frac{a_7}{b_7}$ and the rest.")
    prose = view.segments[0]
    at = prose.textCursor()
    at.setPosition(0)
    at.setPosition(6, at.MoveMode.KeepAnchor)
    prose.setTextCursor(at)
    qtbot.waitUntil(lambda: pictures(view) == ["\\frac{a_7}{b_7}"], timeout=20_000)
    assert prose.textCursor().selectedText() == "Marked"
    assert prose.toPlainText().endswith("and the rest.")


def test_what_follows_a_formula_that_is_drawn_late_goes_on_behind_it(qtbot: QtBot) -> None:
    """The place where the open block begins moves with the pictures before it."""
    theme.apply("light", 100)
    prose = Prose()
    qtbot.addWidget(prose)
    prose.resize(500, 100)
    prose.show()
    prose.commit("First $\\frac{x_1}{y_1} + \\frac{x_2}{y_2}$ said.")
    prose.set_tail("Second")
    document = prose.document()
    qtbot.waitUntil(lambda: len(sources_in(document, 0, document.characterCount())) == 1, timeout=20_000)
    prose.set_tail("Second line")
    prose.commit("Second line is done.")
    assert prose.toPlainText().split("\n") == ["First \ufffc said.", "Second line is done."]


@pytest.mark.parametrize(
    "source",
    [
        "\\frac{" * 20 + "1" + "}{2}" * 20, "x^{" * 30 + "y" + "}" * 30, "{" * 60 + "x" + "}" * 60,
        "\\left(" * 12 + "x" + "\\right)" * 12, "\\sqrt{" * 40 + "x" + "}" * 40,
    ],
)  # fmt: skip
def test_nesting_that_would_take_the_library_for_ever_is_not_drawn(source: str) -> None:
    """The library takes twice as long for each level: twenty fractions would take an hour."""
    assert weight(source) > WEIGHT and draw(source, "#000000") is None


@pytest.mark.parametrize("source", ["\\rule{99999em}{99999em}", "\\hspace{100000000em}x", "a+" * 399])
def test_what_is_drawn_is_no_larger_than_a_page(source: str) -> None:
    drawn = draw(source, "#000000", inline=True)
    assert drawn is None or (drawn.width <= WIDEST and drawn.ascent + drawn.descent <= HIGHEST)


@pytest.mark.parametrize(
    "source",
    [
        "\\lim_{x\\to 0}\\frac{\\sin x}{x}=1",
        "\\frac{-b \\pm \\sqrt{b^2-4ac}}{2a}",
        "\\binom{n}{k} = \\frac{n!}{k!(n-k)!}",
    ],
)
def test_what_people_write_is_light_enough(source: str) -> None:
    assert weight(source) < WEIGHT / 10 and draw(source, "#000000", inline=True) is not None


@pytest.mark.parametrize("address", ["formula:zz", "formula:ff", "formula:", "https://example.com"])
def test_an_address_that_only_looks_like_a_formula_stays_a_link_or_text(qtbot: QtBot, address: str) -> None:
    view = shown(qtbot, f"See [this]({address}) there.")
    qtbot.wait(50)
    assert view.segments[0].toPlainText() == "See this there."
