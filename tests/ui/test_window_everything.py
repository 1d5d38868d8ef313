"""Every tool of server-everything in the real window: called by a model, allowed by a click, its card looked at."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFileDialog, QLabel, QLineEdit

from desktop_host.core.messages import EmbeddedResource, Image, Outcome, ResourceLink, Text
from desktop_host.ui.widgets.ask_card import FormCard, UrlCard
from desktop_host.ui.widgets.code import CodeFrame
from desktop_host.ui.widgets.image_view import ImageView
from desktop_host.ui.widgets.sampling_card import ReplyCard, SamplingCard
from desktop_host.ui.widgets.tool_card import ToolCard
from tests.ui.window_kit import Window, browser, call, npm, script

pytestmark = [pytest.mark.live, pytest.mark.slow]


def words(card: ToolCard) -> str:
    """All that a card says."""
    return "\n".join(one.text() for one in card.findChildren(QLabel) if not one.isHidden())


def unfolded(window: Window, tool: str) -> ToolCard:
    """A tool's card with its body open, by a click where it is not."""
    card = window.card(tool)
    if not card.fold_button.isChecked():
        window.click(card.fold_button)
    return card


def test_every_tool_that_the_server_lists_is_called_and_its_card_shows_what_it_gave(
    real_window: Window, tmp_path: Path
) -> None:
    """Hazards I97, I100: each kind of content has its view, errors of none are hidden."""
    window = real_window
    window.add(npm("mcp-server-everything"), "everything")

    async def listed(servers: Any) -> set[str]:
        return {tool.name for tool in servers.tools("everything")}

    calls = {
        "echo": {"message": "over stdio"},
        "get-annotated-message": {"messageType": "success", "includeImage": True},
        "get-env": {},
        "get-resource-links": {"count": 3},
        "get-resource-reference": {"resourceType": "Blob", "resourceId": 2},
        "get-roots-list": {},
        "get-structured-content": {"location": "Chicago"},
        "get-sum": {"a": 20, "b": 22},
        "get-tiny-image": {},
        "gzip-file-as-resource": {"name": "hi.txt.gz", "data": "data:text/plain,hello", "outputType": "resourceLink"},
        "simulate-research-query": {"topic": "tea"},
        "toggle-simulated-logging": {},
        "toggle-subscriber-updates": {},
        "trigger-long-running-operation": {"duration": 0.5, "steps": 5},
    }
    asking = {  # how these are answered has tests of its own
        "trigger-elicitation-request": {},
        "trigger-sampling-request": {"prompt": "one word", "maxTokens": 10},
        "trigger-url-elicitation": {"url": "https://example.com/sign", "message": "Sign, please"},
    }
    assert window.of_host(listed) == calls.keys() | asking.keys(), "a new version has other tools: call them here, too"
    lines = script(
        tmp_path / "script.json",
        [call(f"everything.{name}", **arguments) for name, arguments in calls.items()],
        *([call(f"everything.{name}", **arguments)] for name, arguments in asking.items()),
        [{"text": "Every tool answered."}],
        sampling=[[{"text": "Sampled."}]],
    )
    window.say("Call every tool", lines)
    window.click(window.asked(FormCard).decline)
    window.click(window.asked(SamplingCard).send)
    window.click(window.asked(ReplyCard).send)
    window.click(window.asked(UrlCard).decline)
    window.approve_all()
    assert window.said() == "Every tool answered."

    cards = {card.entry.tool: card for card in window.cards}
    assert cards.keys() == calls.keys() | asking.keys()
    assert {name for name, card in cards.items() if card.entry.outcome is not Outcome.OK} == set()
    assert all(card.state_text.startswith("Done · ") for card in cards.values())
    assert "everything · Echo Tool" in words(cards["echo"]), "the title, not the name"
    said = {
        "echo": "Echo: over stdio",
        "get-roots-list": "The client supports roots",
        "get-sum": "The sum of 20 and 22 is 42.",
        "simulate-research-query": "# Research Report: tea",
        "toggle-simulated-logging": "Started simulated, random-leveled logging",
        "toggle-subscriber-updates": "Started simulated resource updated notifications",
        "trigger-elicitation-request": "User declined",
        "trigger-long-running-operation": "Long running operation completed. Duration: 0.5 seconds, Steps: 5.",
        "trigger-sampling-request": '"text": "Sampled."',
        "trigger-url-elicitation": "User declined to open the URL",
    }
    texts = {n: "\n".join(b.text for b in c.entry.content if isinstance(b, Text)) for n, c in cards.items()}
    assert {name for name, text in said.items() if text not in texts[name]} == set()
    window.picture("everything-cards")


def test_each_kind_of_content_has_its_view_and_its_annotations_are_told(real_window: Window, tmp_path: Path) -> None:
    """Hazard I98: a link is read through its server only when the person wants it."""
    window = real_window
    window.add(npm("mcp-server-everything"), "everything")
    lines = script(
        tmp_path / "script.json",
        [
            call("everything.get-annotated-message", messageType="debug", includeImage=True),
            call("everything.get-structured-content", location="Chicago"),
            call("everything.get-resource-reference", resourceType="Text", resourceId=1),
            call("everything.gzip-file-as-resource", name="hi.gz", data="data:text/plain,hello"),
        ],
        [{"text": "Seen: ${last_result}"}],
    )
    window.say("Show me", lines)
    window.approve_all()

    card = unfolded(window, "get-annotated-message")
    assert [type(b) for b in card.entry.content] == [Text, Image]
    assert "For the model · Priority 0.3" in words(card) and "For you · Priority 0.5" in words(card)
    assert len(card.findChildren(ImageView)) == 1

    card = unfolded(window, "get-structured-content")
    assert card.entry.structured == {"temperature": 36, "conditions": "Light rain / drizzle", "humidity": 82}
    window.click(card.raw_button)
    assert any("structuredContent" in frame.source for frame in card.findChildren(CodeFrame) if frame.source)

    card = unfolded(window, "get-resource-reference")
    assert EmbeddedResource in {type(b) for b in card.entry.content}
    assert "This is a plaintext resource" in words(card)

    card = unfolded(window, "gzip-file-as-resource")
    (link,) = card.entry.content
    assert isinstance(link, ResourceLink) and link.uri == "demo://resource/session/hi.gz"
    with browser("file") as opened:
        window.press("Open: hi.gz", card)
        window.until(lambda: opened.urls)
    made = Path(opened.urls[0].removeprefix("file://"))
    assert made.suffix == ".gz" and made.read_bytes()[:2] == b"\x1f\x8b"
    assert made.is_relative_to(window.home), "kept in the profile"
    window.press("Save…: hi.gz", card)
    window.until(lambda: window.window.findChildren(QFileDialog))
    (dialog,) = window.window.findChildren(QFileDialog)
    name = dialog.findChildren(QLineEdit)[0]
    window.until(name.isVisible)
    assert name.text().endswith(".gz"), "a name is proposed"
    name.setText(str(tmp_path / "kept.gz"))
    window.qtbot.keyClick(name, Qt.Key.Key_Return)
    window.until(lambda: (tmp_path / "kept.gz").exists())
    assert (tmp_path / "kept.gz").read_bytes() == made.read_bytes()
    window.picture("everything-content")
