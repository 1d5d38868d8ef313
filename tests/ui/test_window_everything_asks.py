"""What server-everything asks the person, answered in the real window by clicks and keys."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication, QCheckBox, QComboBox, QLabel, QLineEdit

from desktop_host.core.messages import Text
from desktop_host.ui.widgets.ask_card import AskCard, FormCard, UrlCard
from desktop_host.ui.widgets.sampling_card import ReplyCard, SamplingCard
from tests.ui.window_kit import Opened, Window, browser, call, npm, script

pytestmark = [pytest.mark.live, pytest.mark.slow]
FIELDS = (
    "name", "check", "firstLine", "email", "homepage", "birthdate", "integer", "number", "untitledSingleSelectEnum",
    "untitledMultipleSelectEnum", "titledSingleSelectEnum", "titledMultipleSelectEnum", "legacyTitledEnum",
)  # fmt: skip
"""The 13 kinds of fields, in their order."""
TAB, DOWN, SPACE, ENTER = Qt.Key.Key_Tab, Qt.Key.Key_Down, Qt.Key.Key_Space, Qt.Key.Key_Return


@pytest.fixture
def window(real_window: Window) -> Window:
    real_window.add(npm("mcp-server-everything"), "everything")
    return real_window


@pytest.fixture
def opened() -> Iterator[Opened]:
    with browser("https", "http") as caught:
        yield caught


def result(window: Window, tool: str) -> str:
    """What a call gave, as text."""
    return "\n".join(block.text for block in window.card(tool).entry.content if isinstance(block, Text))


def answer(window: Window, tool: str) -> dict[str, Any]:
    """What reached the server, by its own account."""
    made: dict[str, Any] = json.loads(result(window, tool).partition("Raw result: ")[2])
    return made


def words(card: AskCard) -> str:
    return "\n".join(one.text() for one in card.findChildren(QLabel) if not one.isHidden())


def test_a_sampling_request_is_changed_and_sent_and_its_reply_changed_and_given_back(
    window: Window, tmp_path: Path
) -> None:
    lines = script(
        tmp_path / "script.json",
        [call("everything.trigger-sampling-request", prompt="Name a colour", maxTokens=25)],
        [{"text": "It knows a colour."}],
        sampling=[[{"text": "Blue."}]],
    )
    window.say("Let it ask", lines)
    card = window.asked(SamplingCard)
    said = words(card)
    assert "everything" in card.title.text() and "You are a helpful test server." in said
    assert f"script:{lines}" in card.model.box.currentText(), "the model it goes to"
    assert "everything.trigger-sampling-request" in said and "At most 25 tokens" in said
    assert card.edit is not None and card.edit.toPlainText().endswith("context: Name a colour")
    window.picture("sampling")
    window.click(card.edit)
    window.key(Qt.Key.Key_End, Qt.KeyboardModifier.ControlModifier)
    window.type(", a warm one")
    window.click(card.send)
    reply = window.asked(ReplyCard)
    window.picture("sampling-reply")
    assert reply.edit is not None and reply.edit.toPlainText() == "Blue."
    window.click(reply.edit)
    window.key(Qt.Key.Key_A, Qt.KeyboardModifier.ControlModifier)
    window.type("Orange.")
    window.click(reply.send)
    window.approve_all()
    assert '"text": "Orange."' in result(window, "trigger-sampling-request")

    async def asked(servers: Any) -> list[Any]:
        return [f.message for f in servers.trace("everything")]

    requests = [m for m in window.of_host(asked) if m.get("method") == "sampling/createMessage"]
    assert len(requests) == 1


def test_a_refused_sampling_request_ends_that_call_and_the_turn_goes_on(window: Window, tmp_path: Path) -> None:
    """Hazard K119: refusal is error -1."""
    lines = script(
        tmp_path / "script.json",
        [call("everything.trigger-sampling-request", prompt="x")],
        [{"text": "Went on."}],
    )
    window.say("Let it ask", lines)
    card = window.asked(SamplingCard)
    window.until(card.hasFocus)
    window.type("d")  # the key named on the button
    window.approve_all()
    assert window.said() == "Went on."
    assert "MCP error -1" in result(window, "trigger-sampling-request")


def test_a_form_with_every_kind_of_field_is_filled_by_the_keyboard_and_checked_in_place(
    window: Window, tmp_path: Path
) -> None:
    """Hazard M128: defaults, limits, formats, single and multiple choices, titled and not."""
    tool = "trigger-elicitation-request"
    lines = script(tmp_path / "script.json", [call(f"everything.{tool}")], [{"text": "Filled."}])
    window.say("Ask me", lines)
    card = window.asked(FormCard)
    form = card.form
    assert tuple(row.field.name for row in form.rows) == FIELDS
    fields = {row.field.name: row for row in form.rows}
    window.until(fields["name"].widgets[0].hasFocus)
    view = window.workspace.chat.view
    window.until(lambda: 0 <= card.mapTo(view.viewport(), card.rect().topLeft()).y() < 100)  # read from its top
    window.picture("form-empty")
    assert words(card).count("Your full, legal name") == 1

    window.key(ENTER)  # sends: the name lacks
    window.until(lambda: not fields["name"].error.isHidden())
    assert fields["name"].error.text() == "This is required." and fields["name"].widgets[0].hasFocus()
    window.type("Ada Lovelace")
    assert fields["name"].error.isHidden(), "the complaint goes as soon as it is mended"

    def at(name: str, which: int = 0) -> None:
        window.key(TAB)
        assert QApplication.focusWidget() is fields[name].widgets[which], name

    def over(text: str) -> None:
        window.key(Qt.Key.Key_A, Qt.KeyboardModifier.ControlModifier)
        window.type(text)

    at("check")
    window.key(SPACE)
    at("firstLine")
    assert isinstance(line := fields["firstLine"].widgets[0], QLineEdit)
    assert line.text() == "It was a dark and stormy night."
    at("email")
    window.type("ada at home")
    at("homepage")
    window.type("not an address")
    at("birthdate")
    window.type("10.12.1815")
    at("integer")
    over("101")
    at("number")
    over("many")
    at("untitledSingleSelectEnum")
    window.key(DOWN)
    at("untitledMultipleSelectEnum")
    window.key(SPACE)  # Guitar, the default, off: fewer than one is left
    for which in range(1, 5):
        at("untitledMultipleSelectEnum", which)
    at("titledSingleSelectEnum")
    window.key(DOWN)
    window.key(DOWN)
    at("titledMultipleSelectEnum")
    at("titledMultipleSelectEnum", 1)
    window.key(SPACE)
    at("titledMultipleSelectEnum", 2)
    at("legacyTitledEnum")
    assert isinstance(pets := fields["legacyTitledEnum"].widgets[0], QComboBox)
    assert pets.currentText() == "Cats", "names, not values"
    window.key(DOWN)

    window.click(card.accept)
    wrong = {name for name, row in fields.items() if not row.error.isHidden()}
    assert wrong == {"email", "homepage", "birthdate", "integer", "number", "untitledMultipleSelectEnum"}
    assert "From 1 to 100" in fields["integer"].error.text()
    assert fields["email"].widgets[0].hasFocus() and not card.done, "the first that is wrong has the focus"
    window.until(lambda: not fields["email"].visibleRegion().isEmpty())
    assert view.viewport().rect().contains(fields["email"].mapTo(view.viewport(), fields["email"].rect().center()))
    window.picture("form-errors")
    for name, text in (
        ("email", "ada@example.org"), ("homepage", "https://example.org/ada"), ("birthdate", "1815-12-10"),
        ("integer", "7"), ("number", "2.5"),
    ):  # fmt: skip
        fields[name].widgets[0].setFocus()
        over(text)
    piano = fields["untitledMultipleSelectEnum"].widgets[1]
    assert isinstance(piano, QCheckBox)
    piano.setFocus()
    window.key(SPACE)
    assert {name for name, row in fields.items() if not row.error.isHidden()} == set()
    window.click(card.accept)
    window.approve_all()
    assert answer(window, tool) == {
        "action": "accept",
        "content": {
            "name": "Ada Lovelace",
            "check": True,
            "firstLine": "It was a dark and stormy night.",
            "email": "ada@example.org",
            "homepage": "https://example.org/ada",
            "birthdate": "1815-12-10",
            "integer": 7,
            "number": 2.5,
            "untitledSingleSelectEnum": "Rachel",
            "untitledMultipleSelectEnum": ["Piano"],
            "titledSingleSelectEnum": "hero-3",
            "titledMultipleSelectEnum": ["fish-1", "fish-2"],
            "legacyTitledEnum": "pet-2",
        },
    }


def test_a_form_is_declined_or_cancelled_and_the_server_is_told_which(window: Window, tmp_path: Path) -> None:
    tool = "trigger-elicitation-request"
    lines = script(
        tmp_path / "script.json",
        [call(f"everything.{tool}")],
        [{"text": "${last_result}"}, call(f"everything.{tool}")],
        [{"text": "${last_result}"}],
    )
    window.say("Ask me", lines)
    window.click(window.asked(FormCard).decline)
    window.until(lambda: "User declined to provide" in window.said())
    window.click(window.asked(FormCard).cancel)
    window.approve_all()
    assert "User cancelled the elicitation dialog" in window.said()


def test_a_page_opens_only_after_the_whole_address_was_seen_and_allowed(
    window: Window, tmp_path: Path, opened: Opened
) -> None:
    """A name in another script is told, the host stands out."""
    tool = "trigger-url-elicitation"
    url = "https://xn--exmple-cua.example.org/sign?state=" + "a1" * 40
    lines = script(
        tmp_path / "script.json",
        [call(f"everything.{tool}", url=url, message="Sign here", elicitationId="e-1")],
        [{"text": "Opened."}],
    )
    window.say("Sign me in", lines)
    card = window.asked(UrlCard)
    assert card.address.accessibleName() == url and "Sign here" in words(card)
    assert "exämple.example.org" in words(card), "what the name looks like to a reader"
    assert "<b" in card.address.text() and opened.urls == []
    window.picture("url")
    window.click(card.open)
    window.approve_all()
    assert opened.urls == [url]
    assert "User completed the URL elicitation flow" in result(window, tool)


def test_a_call_that_needs_a_page_first_is_tried_again_after_it_was_opened(
    window: Window, tmp_path: Path, opened: Opened
) -> None:
    """Error -32042: the page of the error, then the call once more, which asks for its own."""
    tool = "trigger-url-elicitation"
    lines = script(
        tmp_path / "script.json",
        [call(f"everything.{tool}", url="https://example.com/then", message="Then this", errorPath=True)],
        [{"text": "Both opened."}],
    )
    window.say("Sign me in", lines)
    first = window.asked(UrlCard)
    assert first.address.accessibleName() == "https://modelcontextprotocol.io"
    window.click(first.open)
    window.until(lambda: opened.urls)
    second = window.asked(UrlCard)
    assert second.address.accessibleName() == "https://example.com/then"
    window.click(second.open)
    window.approve_all()
    assert len(opened.urls) == 2 and "User completed" in result(window, tool)
