"""The host's side of a server's page: what it is told, what it may ask for, and what it is refused."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from PySide6.QtCore import QObject
from pytestqt.qtbot import QtBot

from desktop_host.core.apps import AppPage, granted, policy
from desktop_host.core.errors import UserFault
from desktop_host.core.exchange import ToolOutcome
from desktop_host.core.messages import Outcome, Text
from desktop_host.core.session_events import PageSaid
from desktop_host.core.tools import ToolSpec
from desktop_host.core.transcript import ToolEntry
from desktop_host.core.values import freeze
from desktop_host.ui.viewmodels.app_hello import HIGHEST
from desktop_host.ui.viewmodels.app_session import LARGEST, AppSession, Wish

PAGE = AppPage("clock", "face", "ui://clock/face", "<p>", *policy(None))
DONE = ToolEntry(
    "k", 1, "c", "clock", "face", arguments=freeze({"zone": "UTC"}), outcome=Outcome.OK, content=(Text("nine"),),
    structured=freeze({"hour": 9}),
)  # fmt: skip


class Apps:
    """A host's pages: remembers what was called."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self.told_: list[PageSaid] = []
        self.let = False

    def speaks(self, _session: str, _server: str) -> bool:
        return self.let

    def let_speak(self, _session: str, _server: str) -> None:
        self.let = True

    async def told(self, _session: str, said: PageSaid) -> None:
        self.told_.append(said)

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

    def __init__(self, entry: ToolEntry = DONE, page: AppPage = PAGE) -> None:
        self.bridge = Near()
        self.session = AppSession(self.bridge, "s1", page, entry, lambda: {"theme": "dark"})  # type: ignore[arg-type]
        self.said: list[dict[str, Any]] = []
        self.session.send.connect(lambda text: self.said.append(json.loads(text)))
        self.wishes: list[Wish] = []
        self.session.wished.connect(self.wishes.append)

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        self.session.receive(json.dumps({"jsonrpc": "2.0", "id": 7, "method": method, "params": params}))
        return self.said[-1] if self.said else {}

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
    assert talk.bridge.apps.calls == [("s1", "clock", "wind", freeze({"on": True}), "face")]
    assert answer["result"]["structuredContent"] == {"a": 1}
    assert talk.ask("tools/call", name="gone")["error"]["message"] == "there is no such tool"
    assert "error" in talk.ask("tools/call", name=5)


def test_links_and_words_wait_for_the_persons_word(qtbot: QtBot) -> None:
    talk = Talk()
    for bad in ("file:///etc/passwd", "javascript:alert(1)", "mcp-app://x", 5):
        assert "error" in talk.ask("ui/open-link", url=bad)
    before = len(talk.said)
    talk.session.receive(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ui/open-link",
                                     "params": {"url": "https://example.com/a"}}))  # fmt: skip
    assert [(w.kind, w.text) for w in talk.wishes] == [("link", "https://example.com/a")]
    assert len(talk.said) == before, "no answer before the person's"
    hello = {"role": "user", "content": [{"type": "text", "text": "hello"}, {"type": "image"}]}
    assert talk.ask("ui/message", **hello)["error"]["code"] == -32000, "one question at a time"
    talk.wishes[0].reply(False)
    assert talk.said[-1]["error"]["message"] == "Link opening denied by user"
    talk.session.receive(json.dumps({"jsonrpc": "2.0", "id": 2, "method": "ui/message", "params": hello}))
    assert (talk.wishes[1].kind, talk.wishes[1].text) == ("message", "hello")
    talk.wishes[1].reply(True)
    assert talk.said[-1] == {"jsonrpc": "2.0", "id": 2, "result": {}}
    assert "error" in talk.ask("ui/message", role="assistant", content=[{"type": "text", "text": "I agree"}])
    assert "error" in talk.ask("ui/message", role="user", content=[])


def test_what_a_page_tells_the_model_needs_a_yes_and_only_the_newest_is_kept(qtbot: QtBot) -> None:
    talk = Talk()
    apps = talk.bridge.apps
    talk.ask("ui/update-model-context", content=[{"type": "text", "text": "one"}], structuredContent={"n": 1})
    talk.ask("ui/update-model-context", content=[{"type": "text", "text": "two"}])
    assert [(w.kind, w.text) for w in talk.wishes] == [("speak", 'one\n{\n  "n": 1\n}')] and apps.told_ == []
    talk.wishes[0].reply(True)
    assert apps.told_ == [PageSaid("c", "clock", "face", "two")], "the first was out of date by then"
    assert [m["result"] for m in talk.said] == [{}, {}]
    for text in ("three", "four", "four"):
        talk.ask("ui/update-model-context", content=[{"type": "text", "text": text}])
    qtbot.waitUntil(lambda: len(apps.told_) == 2, timeout=5000)
    assert apps.told_[1].text == "four"
    qtbot.waitUntil(lambda: len(talk.said) == 5, timeout=5000)
    assert talk.ask("ui/update-model-context", content="words")["error"]["code"] == -32602


def test_a_page_that_was_refused_tells_the_model_nothing(qtbot: QtBot) -> None:
    talk = Talk()
    talk.ask("ui/update-model-context", structuredContent={"n": 1})
    talk.wishes[0].reply(False)
    assert talk.said[-1]["error"]["message"] == "Context update denied"
    assert "error" in talk.ask("ui/update-model-context", structuredContent={"n": 2})
    assert len(talk.wishes) == 1 and talk.bridge.apps.told_ == [], "it is not asked again"


def test_a_page_hears_of_its_tool_its_place_and_its_end(qtbot: QtBot) -> None:
    spec = ToolSpec("clock", "face", input_schema=freeze({"type": "object"}), title="Face")
    talk = Talk(
        page=replace(PAGE, spec=spec, csp=granted(freeze({"ui": {"csp": {"connectDomains": ["https://a.b"]}}})))
    )
    talk.session.resize(412)
    hello = talk.ask("ui/initialize")["result"]
    context, can = hello["hostContext"], hello["hostCapabilities"]
    assert context["toolInfo"]["tool"] == {"name": "face", "title": "Face", "inputSchema": {"type": "object"}}
    assert context["containerDimensions"] == {"width": 412, "maxHeight": HIGHEST}
    assert context["timeZone"] and context["userAgent"].startswith("desktop-host/")
    assert can["sandbox"] == {"permissions": {}, "csp": {"connectDomains": ["https://a.b"]}}
    talk.session.looks_changed()
    assert len(talk.said) == 1, "nothing is sent before the page is ready"
    talk.note("ui/notifications/initialized")
    talk.note("ui/notifications/initialized")
    assert [m["method"] for m in talk.said[1:]].count("ui/notifications/tool-input") == 1
    talk.session.looks_changed()
    talk.session.resize(300)
    assert [m["params"] for m in talk.said[-2:]] == [
        {"theme": "dark"}, {"containerDimensions": {"width": 300, "maxHeight": HIGHEST}},
    ]  # fmt: skip
    with qtbot.waitSignal(talk.session.ended, timeout=5000):
        talk.session.end("the test is over")
        assert (talk.said[-1]["method"], talk.said[-1]["params"]["reason"]) == (
            "ui/resource-teardown", "the test is over",
        )  # fmt: skip
        assert "error" in talk.ask("tools/call", name="wind")
        talk.session.receive(json.dumps({"jsonrpc": "2.0", "id": talk.said[-2]["id"], "result": {}}))
    assert talk.bridge.apps.calls == []


def test_a_page_that_does_not_answer_is_taken_away_all_the_same(qtbot: QtBot) -> None:
    talk = Talk()
    talk.note("ui/notifications/initialized")
    with qtbot.waitSignal(talk.session.ended, timeout=5000):
        talk.session.end("x")
    with qtbot.waitSignal((young := Talk()).session.ended, timeout=5000):
        young.session.end("x")
    assert young.said == [], "a page that never was ready hears nothing"


def test_the_meta_of_a_result_is_for_the_page(qtbot: QtBot) -> None:
    talk = Talk(replace(DONE, meta=freeze({"secret": 1})))
    talk.note("ui/notifications/initialized")
    assert talk.said[-1]["params"]["_meta"] == {"secret": 1}


@pytest.mark.parametrize(
    "method",
    ["sampling/createMessage", "elicitation/create", "tools/list", "roots/list", "x"],
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
