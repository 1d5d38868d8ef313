"""Formulas: drawn where the library can, else their source; within a line as letters."""

from __future__ import annotations

import pytest
from pytestqt.qtbot import QtBot

from desktop_host.ui.formula_text import plain_formula
from desktop_host.ui.theme import theme
from desktop_host.ui.widgets.formula import FormulaView, svg_of
from desktop_host.ui.widgets.message import MarkdownView


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
    drawn = svg_of(source, "#000000")
    assert drawn is None or drawn.startswith(b"<svg")


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
