"""The chat page on the real host: a scripted model, a real server process, a real journal on disk."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLineEdit, QWidget
from pytestqt.qtbot import QtBot

from desktop_host.app.compose import open_host
from desktop_host.core.messages import Outcome
from desktop_host.core.servers import ServerConfig, Stdio
from desktop_host.engine.host import Host, HostSpec
from desktop_host.ui.bridge import Bridge
from desktop_host.ui.theme import theme
from desktop_host.ui.widgets.ask_card import ApproveCard, AskCard, FormCard
from desktop_host.ui.widgets.chat import ChatPage
from desktop_host.ui.widgets.image_view import ImageView
from desktop_host.ui.widgets.message import AssistantMessage
from desktop_host.ui.widgets.notice import NoticeLine
from desktop_host.ui.widgets.prose import Prose
from desktop_host.ui.widgets.sampling_card import ReplyCard, SamplingCard
from desktop_host.ui.widgets.tool_card import ToolCard
from desktop_host.ui.widgets.user_message import UserMessage

W = TypeVar("W", bound=QWidget)
SMALL = Path(__file__).parent.parent / "fakes" / "servers" / "small.py"
LONG = 20_000


class Stage:
    """A page on a real host of one home."""

    def __init__(self, qtbot: QtBot, home: Path, replies: list[list[dict[str, Any]]], sampling: list[Any]) -> None:
        self.qtbot, self.home = qtbot, home
        self.script = home / "script.json"
        self.script.write_text(json.dumps({"replies": replies, "sampling": sampling}))

    def open(self) -> ChatPage:
        theme.apply("light")
        self.bridge = Bridge(open_host, HostSpec(home=self.home))
        self.page = ChatPage(self.bridge)
        self.qtbot.addWidget(self.page)
        self.page.resize(900, 800)
        self.page.show()
        self.page.activateWindow()
        self.qtbot.waitUntil(self.page.isActiveWindow, timeout=LONG)
        with self.qtbot.waitSignal(self.bridge.ready, timeout=LONG):
            self.bridge.start()

        async def prepare(host: Host) -> None:
            if not host.servers.configs():
                await host.servers.add(ServerConfig("small", Stdio(sys.executable, (str(SMALL), str(self.home)))))
            await host.servers.start("small")

        self.bridge.call(prepare).result(20)
        self.page.open_session(None)
        self.page.chat.choices.pick_model(f"script:{self.script}")
        return self.page

    def say(self, text: str) -> None:
        self.page.focus_composer()
        self.qtbot.keyClicks(self.page.composer.edit, text)
        self.qtbot.keyClick(self.page.composer.edit, Qt.Key.Key_Return)

    def all(self, kind: type[W]) -> list[W]:
        return [r for r in self.page.view.rows.values() if isinstance(r, kind)]

    def card(self, kind: type[W]) -> W:
        def waits() -> bool:
            return any(isinstance(r, AskCard) and isinstance(r, kind) and not r.done for r in self.all(kind))

        self.qtbot.waitUntil(waits, timeout=LONG)
        return next(r for r in self.all(kind) if isinstance(r, AskCard) and not r.done)

    def until_idle(self) -> None:
        model = self.page.chat.transcript
        self.qtbot.waitUntil(lambda: model.now.last_stop is not None and not model.running, timeout=LONG)

    def click(self, button: QWidget) -> None:
        self.qtbot.mouseClick(button, Qt.MouseButton.LeftButton)

    def close(self) -> None:
        if self.bridge.running:
            with self.qtbot.waitSignal(self.bridge.closed, timeout=LONG):
                self.bridge.close()

    @property
    def answer(self) -> str:
        segments = self.all(AssistantMessage)[-1].text.segments
        return "\n".join(s.toPlainText() for s in segments if isinstance(s, Prose))


@pytest.fixture
def stage(qtbot: QtBot, tmp_path: Path) -> Iterator[Callable[..., Stage]]:
    made: list[Stage] = []

    def make(*replies: list[dict[str, Any]], sampling: list[Any] | None = None) -> Stage:
        made.append(Stage(qtbot, tmp_path, list(replies), sampling or []))
        return made[-1]

    yield make
    for one in made:
        one.close()


def call(tool: str, **arguments: Any) -> dict[str, Any]:
    return {"call": {"tool": f"small.{tool}", "arguments": arguments}}


def test_a_tool_is_asked_for_approved_and_its_result_is_shown(stage: Callable[..., Stage]) -> None:
    s = stage(
        [{"text": "I will call it."}, call("echo", text="you there")],
        [{"text": "It said **you there**."}],
        [call("echo", text="again")],
        [{"text": "And again."}],
    )
    s.open()
    s.say("call it")
    card = s.card(ApproveCard)
    assert '"text": "you there"' in card.arguments.code
    s.click(card.buttons[1])  # for this chat
    s.until_idle()
    assert s.all(ToolCard)[0].entry.outcome is Outcome.OK
    assert s.answer == "It said you there."
    s.say("and again")
    s.qtbot.waitUntil(
        lambda: len(s.all(ToolCard)) == 2 and s.all(ToolCard)[1].entry.outcome is Outcome.OK, timeout=LONG
    )
    s.until_idle()
    assert s.answer == "And again."


def test_a_form_and_both_sampling_reviews_are_answered_in_the_conversation(stage: Callable[..., Stage]) -> None:
    s = stage(
        [call("ask")],
        [call("sample")],
        [{"text": "Finished."}],
        sampling=[[{"text": "hi from the model"}]],
    )
    s.open()
    s.say("go")
    s.click(s.card(ApproveCard).buttons[3])  # always this server
    form = s.card(FormCard)
    s.click(form.accept)
    assert not form.done, "a required field is empty"
    row = form.form.row("name")
    assert row.error.text() == "This is required."
    field = row.widgets[0]
    assert isinstance(field, QLineEdit)
    s.qtbot.keyClicks(field, "Ada")
    s.qtbot.keyClick(field, Qt.Key.Key_Return)
    review = s.card(SamplingCard)
    assert review.edit is not None
    assert review.edit.toPlainText() == "say hi"
    review.edit.setPlainText("say hi politely")
    s.click(review.send)
    reply = s.card(ReplyCard)
    assert reply.edit is not None
    assert reply.edit.toPlainText() == "hi from the model"
    reply.edit.setPlainText("good day")
    s.click(reply.send)
    s.until_idle()
    results = [str(c.entry.content) for c in s.all(ToolCard)]
    assert "Ada" in results[0]
    assert "good day" in results[1]


def test_stop_ends_a_running_call_at_once_and_the_server_hears_of_it(stage: Callable[..., Stage]) -> None:
    s = stage([call("slow")], [{"text": "never"}])
    s.open()
    s.say("go slow")
    s.click(s.card(ApproveCard).buttons[0])
    s.qtbot.waitUntil((s.home / "started").exists, timeout=LONG)
    s.qtbot.keyClick(s.page.composer.edit, Qt.Key.Key_Escape)
    s.until_idle()
    assert s.all(ToolCard)[0].entry.outcome is Outcome.CANCELLED
    assert s.all(NoticeLine)[-1].words[0] == "Stopped."
    s.qtbot.waitUntil((s.home / "cancelled").exists, timeout=LONG)
    assert not (s.home / "late").exists()


def test_a_conversation_is_as_it_was_after_quitting(stage: Callable[..., Stage]) -> None:
    s = stage([call("picture")], [{"text": "# A picture\n\nwith `code`"}])
    page = s.open()
    s.say("draw")
    s.click(s.card(ApproveCard).buttons[0])
    s.until_idle()
    session = page.chat.session
    s.qtbot.keyClicks(page.composer.edit, "half a thought")
    s.qtbot.waitUntil(lambda: not page.chat._draft_timer.isActive(), timeout=LONG)
    before = [type(r) for r in page.view.rows.values()]
    s.close()
    page.hide()
    page = s.open()
    page.open_session(session)
    s.qtbot.waitUntil(lambda: [type(r) for r in page.view.rows.values()] == before, timeout=LONG)
    assert s.answer == "A picture\nwith code"
    assert page.composer.text == "half a thought"
    assert s.all(ToolCard)[0].findChildren(ImageView), "what is to be seen is open"
    assert isinstance(next(iter(page.view.rows.values())), UserMessage)


def test_a_failure_of_the_model_is_told_with_its_remedy(stage: Callable[..., Stage]) -> None:
    s = stage([{"error": {"code": "auth", "message": "key is wrong"}}])
    s.open()
    s.say("hello")
    s.until_idle()
    notice = s.all(NoticeLine)[-1]
    what, remedy = notice.words
    assert what
    assert remedy
    with s.qtbot.waitSignal(s.page.needs_model, timeout=30_000):
        s.click(notice.action)


def test_nothing_is_left_running_after_closing(stage: Callable[..., Stage]) -> None:
    s = stage([call("slow")])
    s.open()
    s.say("go slow")
    s.click(s.card(ApproveCard).buttons[0])
    started = s.home / "started"
    s.qtbot.waitUntil(lambda: started.exists() and bool(started.read_text()), timeout=LONG)
    pid = int(started.read_text())
    s.close()

    def gone() -> bool:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        return False

    s.qtbot.waitUntil(gone, timeout=LONG)
