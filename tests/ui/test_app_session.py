"""The host's side of a server's page: what it is told, what it may ask for, and what it is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest
from PySide6.QtCore import QObject
from pytestqt.qtbot import QtBot

from desktop_host.core.apps import AppPage, policy
from desktop_host.core.errors import UserFault
from desktop_host.core.exchange import ToolOutcome
from desktop_host.core.messages import Outcome, Text
from desktop_host.core.transcript import ToolEntry
from desktop_host.core.values import freeze
from desktop_host.ui.viewmodels.app_session import HIGHEST, LARGEST, AppSession

PAGE = AppPage("clock", "face", "ui://clock/face", "<p>", *policy(None))
DONE = ToolEntry(
    "k", 1, "c", "clock", "face", arguments=freeze({"zone": "UTC"}), outcome=Outcome.OK, content=(Text("nine"),),
    structured=freeze({"hour": 9}),
)  # fmt: skip


class Apps:
    """A host's pages: remembers what was called."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []

    async def call(self, *words: Any) -> ToolOutcome:
        self.calls.append(words)
        if words[2] == "gone":
            raise UserFault("not_found", "there is no such tool")
        raw = freeze({"content": [{"type": "text", "text": "ran"}], "structuredContent": {"a": 1}})
        return ToolOutcome(Outcome.OK, (Text("ran"),), raw=raw)


class Near(QObject):
    """A bridge whose host is here."""

    def __init__(self) -> None:
        super().__init__()
        self.apps = Apps()

    def then(self, make: Any, done: Any, failed: Any, _owner: Any = None) -> None:
        work = make(self)
        try:
            work.send(None)
        except StopIteration as end:
            done(end.value)
        except UserFault as fault:
            failed(fault)


class Talk:
    """A session and all that it said."""

    def __init__(self, entry: ToolEntry = DONE) -> None:
        self.bridge = Near()
        self.session = AppSession(self.bridge, "s1", PAGE, entry, lambda: True)  # type: ignore[arg-type]
        self.said: list[dict[str, Any]] = []
        self.session.send.connect(lambda text: self.said.append(json.loads(text)))

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        self.session.receive(json.dumps({"jsonrpc": "2.0", "id": 7, "method": method, "params": params}))
        return self.said[-1]

    def note(self, method: str, **params: Any) -> None:
        self.session.receive(json.dumps({"jsonrpc": "2.0", "method": method, "params": params}))


def test_a_page_is_greeted_and_given_its_call_and_result(qtbot: QtBot) -> None:
    talk = Talk()
    hello = talk.ask("ui/initialize", protocolVersion="2026-01-26")["result"]
    assert (hello["protocolVersion"], hello["hostContext"]["theme"]) == ("2026-01-26", "dark")
    assert len(talk.said) == 1, "nothing is told before the page is ready"
    talk.note("ui/notifications/initialized")
    assert talk.said[1:] == [
        {"jsonrpc": "2.0", "method": "ui/notifications/tool-input", "params": {"arguments": {"zone": "UTC"}}},
        {"jsonrpc": "2.0", "method": "ui/notifications/tool-result",
         "params": {"content": [{"type": "text", "text": "nine"}], "structuredContent": {"hour": 9}}},
    ]  # fmt: skip


def test_a_call_that_was_stopped_is_told_as_such(qtbot: QtBot) -> None:
    talk = Talk(ToolEntry("k", 1, "c", "clock", "face", outcome=Outcome.CANCELLED))
    talk.note("ui/notifications/initialized")
    assert talk.said[-1]["method"] == "ui/notifications/tool-cancelled"


def test_a_page_calls_its_own_server_through_the_host(qtbot: QtBot) -> None:
    talk = Talk()
    answer = talk.ask("tools/call", name="wind", arguments={"on": True})
    assert talk.bridge.apps.calls == [("s1", "clock", "wind", freeze({"on": True}))]
    assert answer["result"]["structuredContent"] == {"a": 1}
    assert talk.ask("tools/call", name="gone")["error"]["message"] == "there is no such tool"
    assert "error" in talk.ask("tools/call", name=5)


def test_links_and_words_go_through_the_person(qtbot: QtBot) -> None:
    talk = Talk()
    links, words = [], []
    talk.session.link_wanted.connect(links.append)
    talk.session.said.connect(words.append)
    talk.ask("ui/open-link", url="https://example.com/a")
    for bad in ("file:///etc/passwd", "javascript:alert(1)", "mcp-app://x", 5):
        assert "error" in talk.ask("ui/open-link", url=bad)
    assert links == ["https://example.com/a"]
    talk.ask("ui/message", role="user", content=[{"type": "text", "text": "hello"}, {"type": "image"}])
    assert words == ["hello"]


@pytest.mark.parametrize(
    "method",
    ["sampling/createMessage", "elicitation/create", "ui/update-model-context", "tools/list", "roots/list", "x"],
)
def test_what_is_not_offered_is_refused(qtbot: QtBot, method: str) -> None:
    assert Talk().ask(method)["error"]["code"] == -32601


@pytest.mark.parametrize(
    "text", ["", "no json", "[]", "5", '{"id": 1, "method": "ping"}', '{"jsonrpc": "2.0", "id": {}}']
)
def test_what_is_no_message_is_not_answered(qtbot: QtBot, text: str) -> None:
    talk = Talk()
    talk.session.receive(text)
    talk.session.receive(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping", "params": "x" * LARGEST}))
    assert talk.said == []


def test_a_page_is_as_high_as_it_wants_within_limits(qtbot: QtBot) -> None:
    talk = Talk()
    heights: list[int] = []
    talk.session.resized.connect(heights.append)
    for height in (300, 5, 50_000, -3, "9", 10**9):
        talk.note("ui/notifications/size-changed", height=height)
    assert heights == [300, 48, HIGHEST]
