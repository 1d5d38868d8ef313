"""The chat page, driven with real clicks and keys against a host that behaves."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import QMimeData, Qt, QUrl
from PySide6.QtGui import QGuiApplication, QImage
from PySide6.QtWidgets import QAbstractButton, QLabel, QPushButton, QWidget
from pytestqt.qtbot import QtBot

from desktop_host import i18n
from desktop_host.core import events as ev
from desktop_host.core.asks import Allow, ApproveTool, Refuse
from desktop_host.core.errors import UserFault
from desktop_host.core.messages import Outcome, Text, assistant
from desktop_host.core.models import ModelEntry
from desktop_host.core.permissions import Effect, Life, Scope
from desktop_host.core.sessions import SessionState, TurnStatus, TurnStop
from desktop_host.core.tools import ToolSpec
from desktop_host.core.values import FrozenDict, freeze
from desktop_host.engine.host import Ticket, UserInput
from desktop_host.ui.theme import theme
from desktop_host.ui.widgets.ask_card import ApproveCard, SettledAsk
from desktop_host.ui.widgets.chat import ChatPage
from desktop_host.ui.widgets.message import AssistantMessage
from desktop_host.ui.widgets.notice import NoticeLine
from desktop_host.ui.widgets.tool_card import ToolCard
from desktop_host.ui.widgets.user_message import UserMessage
from tests.fakes.fake_host import FakeHost, FakeModels, TurnOver
from tests.ui.chat_kit import Make, chat_pages, on_host


@pytest.fixture
def make(qtbot: QtBot) -> Iterator[Make]:
    with chat_pages(qtbot) as build:
        yield build


def say(qtbot: QtBot, page: ChatPage, text: str) -> None:
    page.focus_composer()
    qtbot.keyClicks(page.composer.edit, text)
    qtbot.keyClick(page.composer.edit, Qt.Key.Key_Return)


def rows(page: ChatPage, kind: type) -> list:
    return [r for r in page.view.rows.values() if isinstance(r, kind)]


def idle(page: ChatPage) -> bool:
    return bool(page.chat.transcript.now.entries) and not page.chat.transcript.running and not page.chat.busy


def test_a_first_message_makes_a_session_and_its_answer_streams(qtbot: QtBot, make: Make) -> None:
    host = FakeHost()
    page = make(host)
    made: list[str] = []
    page.session_changed.connect(made.append)
    say(qtbot, page, "Hello you")
    qtbot.waitUntil(lambda: idle(page) and bool(rows(page, AssistantMessage)), timeout=30_000)
    assert made == ["s1"]
    assert host.options["s1"].model == "script:demo"
    assert page.composer.text == ""
    answer = rows(page, AssistantMessage)[0]
    assert answer.text.segments[0].toPlainText() == "You said: Hello you"


def test_shift_enter_breaks_the_line_and_blank_text_is_not_sent(qtbot: QtBot, make: Make) -> None:
    host = FakeHost()
    page = make(host)
    height = page.composer.edit.height()
    qtbot.keyClicks(page.composer.edit, "one")
    qtbot.keyClick(page.composer.edit, Qt.Key.Key_Return, Qt.KeyboardModifier.ShiftModifier)
    qtbot.keyClicks(page.composer.edit, "two")
    assert page.composer.text == "one\ntwo"
    assert page.composer.edit.height() > height
    page.composer.put("   ")
    qtbot.keyClick(page.composer.edit, Qt.Key.Key_Return)
    assert host.said == []
    assert not page.composer.send_button.isEnabled()


async def waits(host: FakeHost, session: str, text: str) -> None:
    host.publish(session, ev.TokenDelta("Part of "))
    await asyncio.Event().wait()


def test_escape_stops_the_turn_and_resume_goes_on(qtbot: QtBot, make: Make) -> None:
    host = FakeHost(waits)
    page = make(host)
    say(qtbot, page, "go")
    qtbot.waitUntil(lambda: bool(rows(page, AssistantMessage)), timeout=30_000)
    assert page.composer.stop_button.isVisible()
    assert not page.composer.send_button.isVisible()
    qtbot.keyClick(page.composer.edit, Qt.Key.Key_Escape)
    qtbot.waitUntil(lambda: idle(page) and bool(rows(page, NoticeLine)), timeout=30_000)
    notice = rows(page, NoticeLine)[0]
    assert notice.words[0] == "Stopped."
    qtbot.mouseClick(notice.action, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: page.chat.transcript.running, timeout=30_000)
    qtbot.mouseClick(page.composer.stop_button, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: idle(page), timeout=30_000)


def test_a_message_sent_while_the_model_works_is_queued_and_counted(qtbot: QtBot, make: Make) -> None:
    host = FakeHost(waits)
    page = make(host)
    say(qtbot, page, "first")
    qtbot.waitUntil(lambda: page.chat.transcript.running, timeout=30_000)
    qtbot.keyClicks(page.composer.edit, "second")
    assert page.composer.send_button.isVisible()
    assert page.composer.send_button.text() == "Queue"
    qtbot.keyClick(page.composer.edit, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: [r.message.text for r in page.queue.rows] == ["second"], timeout=30_000)
    qtbot.mouseClick(page.composer.stop_button, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: len(rows(page, UserMessage)) == 2, timeout=30_000)


ASK = ApproveTool(
    "a1", "s1", "c1", "files", "delete", freeze({"path": "/tmp/" + "x" * 3000, "deep": {"a": [1]}}),
    "Delete", "Deletes", tool_digest="d1", changed=True, previous_description="Reads",
)  # fmt: skip


async def asks(host: FakeHost, session: str, text: str) -> None:
    outcome = await host.run_tool(session, ASK, ev.ToolSettled("c1", Outcome.OK, (Text("deleted"),), duration_ms=5))
    await host.say(session, f"It was {outcome.value}.")


@pytest.mark.parametrize(
    ("key", "answer"),
    [
        (Qt.Key.Key_1, Allow(Life.ONCE, Scope.CALL, "d1")),
        (Qt.Key.Key_2, Allow(Life.SESSION, Scope.TOOL, "d1")),
        (Qt.Key.Key_T, Allow(Life.PROFILE, Scope.TOOL, "d1")),
        (Qt.Key.Key_V, Allow(Life.PROFILE, Scope.SERVER, "d1")),
        (Qt.Key.Key_D, Refuse()),
    ],
)
def test_an_approval_is_answered_by_one_key(qtbot: QtBot, make: Make, key: Qt.Key, answer: object) -> None:
    host = FakeHost(asks)
    page = make(host)
    say(qtbot, page, "delete it")
    qtbot.waitUntil(lambda: bool(rows(page, ApproveCard)), timeout=30_000)
    card = rows(page, ApproveCard)[0]
    qtbot.waitUntil(card.hasFocus, timeout=30_000)
    assert "x" * 3000 in card.arguments.code
    qtbot.keyClick(card, key)
    qtbot.waitUntil(lambda: idle(page), timeout=30_000)
    assert host.answers == [("a1", answer)]
    outcome = "denied" if isinstance(answer, Refuse) else "ok"
    assert rows(page, AssistantMessage)[-1].text.segments[0].toPlainText() == f"It was {outcome}."
    assert rows(page, ToolCard)[0].entry.outcome == outcome
    assert rows(page, SettledAsk)[0].isHidden()


def test_an_approval_does_not_take_the_focus_from_someone_who_types(qtbot: QtBot, make: Make) -> None:
    host = FakeHost(asks)
    page = make(host)
    say(qtbot, page, "delete it")
    qtbot.keyClicks(page.composer.edit, "meanwhile I ty")
    qtbot.waitUntil(lambda: bool(rows(page, ApproveCard)), timeout=30_000)
    qtbot.wait(50)
    assert page.composer.edit.hasFocus()
    qtbot.keyClicks(page.composer.edit, "pe 1")
    assert host.answers == []
    assert page.composer.text == "meanwhile I type 1"
    qtbot.keyClick(page.composer.edit, Qt.Key.Key_5, Qt.KeyboardModifier.AltModifier)
    qtbot.waitUntil(lambda: host.answers == [("a1", Refuse())], timeout=30_000)


def test_a_click_on_allow_runs_the_call_and_is_taken_once(qtbot: QtBot, make: Make) -> None:
    host = FakeHost(asks)
    page = make(host)
    say(qtbot, page, "delete it")
    qtbot.waitUntil(lambda: bool(rows(page, ApproveCard)), timeout=30_000)
    card = rows(page, ApproveCard)[0]
    qtbot.mouseClick(card.buttons[0], Qt.MouseButton.LeftButton)
    qtbot.mouseClick(card.buttons[4], Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: idle(page), timeout=30_000)
    assert len(host.answers) == 1


def test_drafts_stay_with_their_chat(qtbot: QtBot, make: Make) -> None:
    host = FakeHost()
    page = make(host)
    say(qtbot, page, "hello")
    qtbot.waitUntil(lambda: idle(page), timeout=30_000)
    qtbot.keyClicks(page.composer.edit, "half a thought")
    page.open_session(None)
    assert page.composer.text == ""
    qtbot.waitUntil(lambda: host.history.values.get(("s1", "draft")) == "half a thought", timeout=30_000)
    qtbot.keyClicks(page.composer.edit, "another")
    page.open_session("s1")
    qtbot.waitUntil(lambda: page.composer.text == "half a thought", timeout=30_000)
    page.open_session(None)
    assert page.composer.text == "another"


def test_a_refused_message_goes_back_to_the_composer_with_words(qtbot: QtBot, make: Make) -> None:
    class Full(FakeHost):
        async def submit(self, session: str, said: UserInput) -> Ticket:
            raise UserFault("session_busy", "32 messages wait")

    page = make(Full())
    say(qtbot, page, "one more")
    qtbot.waitUntil(lambda: page.composer.text == "one more", timeout=30_000)
    assert page._banner.isVisible()
    assert page._banner.accessibleName()


def test_files_and_pictures_are_attached_and_sent(qtbot: QtBot, make: Make, tmp_path: Path) -> None:
    host = FakeHost()
    page = make(host)
    note = tmp_path / "note.txt"
    note.write_text("你好", "utf-8")
    mime = QMimeData()
    mime.setUrls([QUrl.fromLocalFile(str(note)), QUrl.fromLocalFile(str(tmp_path))])
    page.composer.edit.insertFromMimeData(mime)
    assert page._banner.isVisible()  # a folder cannot go along
    picture = QImage(4, 4, QImage.Format.Format_RGB32)
    picture.fill(0)
    QGuiApplication.clipboard().setImage(picture)
    page.composer.edit.paste()
    assert [f.mime_type for f in page.composer.files] == ["text/plain", "image/png"]
    chips = page.composer._chips.findChildren
    qtbot.waitUntil(lambda: len([c for c in chips(QPushButton) if c.isVisible()]) == 2, timeout=30_000)
    say(qtbot, page, "look")
    qtbot.waitUntil(lambda: bool(host.said), timeout=30_000)
    assert next((f.name, f.data) for f in host.said[0][1].files) == ("note.txt", "你好".encode())
    assert page.composer.files == ()


def test_without_a_ready_model_there_is_one_next_step(qtbot: QtBot, make: Make) -> None:
    host = FakeHost()
    host.models = FakeModels(ModelEntry("local", "Local", "local", False, "no_weights"))
    page = make(host)
    page.chat.choices.pick_model("local")

    def shown() -> list[QPushButton]:
        return [b for b in page.welcome.findChildren(QPushButton) if b.isVisible()]

    qtbot.waitUntil(lambda: [b.text() for b in shown()] == ["Set up a model"], timeout=30_000)
    button = shown()[0]
    with qtbot.waitSignal(page.needs_model, timeout=30_000):
        qtbot.mouseClick(button, Qt.MouseButton.LeftButton)
    qtbot.keyClicks(page.composer.edit, "hi")
    with qtbot.waitSignal(page.needs_model, timeout=30_000):
        qtbot.keyClick(page.composer.edit, Qt.Key.Key_Return)
    assert page.composer.text == "hi"
    assert host.said == []


def test_servers_of_a_chat_can_be_switched_and_their_cost_is_shown(qtbot: QtBot, make: Make) -> None:
    host = FakeHost()
    host.servers.put("files", ToolSpec("files", "read", "x" * 500), ToolSpec("files", "write", "y" * 500))
    host.servers.put("db", ToolSpec("db", "query", "z" * 500))
    page = make(host)
    qtbot.waitUntil(lambda: page.composer.servers_button.text() == "3 tools", timeout=30_000)
    assert "tokens" in page.composer.servers_button.accessibleName()
    page.composer.servers_button.open_menu()
    menu = page.composer.servers_button._menu
    next(a for a in menu.actions() if a.text().startswith("db")).trigger()
    menu.close()
    qtbot.waitUntil(lambda: page.composer.servers_button.text() == "2 tools", timeout=30_000)
    assert page.chat.choices.options.servers == ("files",)


def test_how_a_turn_failed_is_told_with_what_to_do(qtbot: QtBot, make: Make) -> None:
    async def fails(host: FakeHost, session: str, text: str) -> None:
        raise TurnOver(TurnStop.ERROR)

    page = make(FakeHost(fails))
    say(qtbot, page, "go")
    qtbot.waitUntil(lambda: idle(page) and bool(rows(page, NoticeLine)), timeout=30_000)
    on_host(page, lambda: None)
    assert rows(page, NoticeLine)[0].words[0]


def test_changed_tools_wait_for_apply(qtbot: QtBot, make: Make) -> None:
    host = FakeHost()
    page = make(host)
    say(qtbot, page, "hello")
    qtbot.waitUntil(lambda: idle(page), timeout=30_000)
    on_host(page, lambda: host.publish("s1", ev.ToolsChanged(("files.read",))))
    qtbot.waitUntil(lambda: bool(rows(page, NoticeLine)), timeout=30_000)
    qtbot.mouseClick(rows(page, NoticeLine)[0].action, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: host.applied == ["s1"], timeout=30_000)
    qtbot.waitUntil(lambda: "now has" in rows(page, NoticeLine)[0].words[0], timeout=30_000)


def test_a_retry_counts_down_and_can_be_cancelled(qtbot: QtBot, make: Make) -> None:
    import time

    async def retries(host: FakeHost, session: str, text: str) -> None:
        host.publish(session, ev.RetryScheduled(1, 30, "overloaded", "529", time.time() + 30))
        await asyncio.Event().wait()

    page = make(FakeHost(retries))
    say(qtbot, page, "go")
    qtbot.waitUntil(lambda: bool(rows(page, NoticeLine)), timeout=30_000)
    notice = rows(page, NoticeLine)[0]
    first = notice._what.text()
    assert "30" in first or "29" in first
    qtbot.waitUntil(lambda: notice._what.text() != first, timeout=30_000)
    qtbot.mouseClick(notice.action, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: idle(page), timeout=30_000)


def filled(host: FakeHost, turns: int) -> str:
    """A session with this many finished turns."""
    for n in range(1, turns + 1):
        host.publish("old", ev.UserSaid(f"question {n}"), n)
        host.publish("old", ev.AssistantSaid(assistant(f"answer {n}\n\n" + "words " * 40), "m"), n)
        host.publish("old", ev.TurnEnded(TurnStatus.DONE, TurnStop.END), n)
    return "old"


def test_the_newest_forty_rows_are_widgets_and_earlier_ones_come_on_demand(qtbot: QtBot, make: Make) -> None:
    host = FakeHost()
    page = make(host)
    on_host(page, lambda: filled(host, 60))
    page.open_session("old")
    qtbot.waitUntil(lambda: len(page.view.rows) == 40, timeout=30_000)
    bar = page.view.verticalScrollBar()
    qtbot.waitUntil(lambda: bar.value() == bar.maximum() > 0, timeout=30_000)
    assert page.view.hidden == 80
    first = next(iter(page.view.rows.values()))
    bar.setValue(bar.maximum() // 2)
    assert not page.view.following
    before = bar.maximum()
    bar.setValue(0)
    qtbot.waitUntil(lambda: len(page.view.rows) == 80, timeout=20_000)

    def top() -> int:
        return first.mapTo(page.view.viewport(), first.rect().topLeft()).y()

    # what was read stays where it was, however long the earlier rows take to find their place
    qtbot.waitUntil(lambda: bar.maximum() > before + 3000 and -60 < top() < 200, timeout=20_000)


def test_the_view_follows_the_stream_only_at_its_end(qtbot: QtBot, make: Make) -> None:
    host = FakeHost()
    page = make(host)
    on_host(page, lambda: filled(host, 20))
    page.open_session("old")
    bar = page.view.verticalScrollBar()
    qtbot.waitUntil(lambda: bar.value() == bar.maximum() > 0, timeout=30_000)
    on_host(page, lambda: host.publish("old", ev.TokenDelta("new " * 400), 21))
    qtbot.waitUntil(lambda: page.chat.transcript.now.open_reply is not None, timeout=30_000)
    qtbot.wait(100)
    assert bar.value() == bar.maximum()
    bar.setValue(bar.maximum() - 400)
    at = bar.value()
    assert page._jump.isVisible()
    on_host(page, lambda: host.publish("old", ev.TokenDelta("more " * 400), 21))
    qtbot.waitUntil(lambda: bar.maximum() > at + 500, timeout=30_000)
    assert bar.value() == at
    qtbot.mouseClick(page._jump, Qt.MouseButton.LeftButton)
    assert bar.value() == bar.maximum()
    assert not page._jump.isVisible()


def test_a_window_that_lost_events_reads_the_journal_again(qtbot: QtBot, make: Make) -> None:
    host = FakeHost()
    page = make(host)
    on_host(page, lambda: filled(host, 2))
    page.open_session("old")
    qtbot.waitUntil(lambda: len(page.view.rows) == 4, timeout=30_000)

    def lose() -> None:
        reader = host.readers.pop()
        host.publish("old", ev.UserSaid("unheard"), 3)
        reader.lose(99)

    on_host(page, lose)
    qtbot.waitUntil(lambda: len(page.view.rows) == 5, timeout=30_000)


def test_everything_that_can_be_focused_has_a_name(qtbot: QtBot, make: Make) -> None:
    host = FakeHost(asks)
    page = make(host)
    say(qtbot, page, "delete it")
    qtbot.waitUntil(lambda: bool(rows(page, ApproveCard)), timeout=30_000)
    for widget in page.findChildren(QWidget):
        if widget.isVisible() and widget.focusPolicy() != Qt.FocusPolicy.NoFocus and type(widget).__name__ != "QWidget":
            name = widget.accessibleName() or (widget.text() if isinstance(widget, QAbstractButton | QLabel) else "")
            assert name, f"{widget!r} has no name"


def test_the_page_speaks_chinese(qtbot: QtBot, make: Make) -> None:
    i18n.install("zh_CN")
    page = make(FakeHost(asks))
    say(qtbot, page, "delete it")
    qtbot.waitUntil(lambda: bool(rows(page, ApproveCard)), timeout=30_000)
    assert rows(page, ApproveCard)[0].title.text() == "允许 files 运行“Delete”吗？"
    assert page.composer.stop_button.text() == "停止"


def test_colours_change_while_the_page_is_shown(qtbot: QtBot, make: Make) -> None:
    host = FakeHost()
    page = make(host)
    text = "# Title\n\nSome `code` and [link](http://a.b).\n\n```python\nx = 1\ny = 2\n```\n\nend"

    def old() -> None:
        host.publish("old", ev.AssistantSaid(assistant(text), "m"))

    on_host(page, old)
    page.open_session("old")
    qtbot.waitUntil(lambda: bool(rows(page, AssistantMessage)), timeout=30_000)
    message = rows(page, AssistantMessage)[0]
    before = [s.toPlainText() if hasattr(s, "toPlainText") else s.code for s in message.text.segments]
    theme.apply("dark")
    after = [s.toPlainText() if hasattr(s, "toPlainText") else s.code for s in message.text.segments]
    theme.apply("light")
    assert before == after


def test_a_tool_card_shows_progress_then_its_result(qtbot: QtBot, make: Make) -> None:
    host = FakeHost()
    page = make(host)
    on_host(page, lambda: filled(host, 1))
    page.open_session("old")
    qtbot.waitUntil(lambda: len(page.view.rows) == 2, timeout=30_000)

    def begin() -> None:
        host.publish("old", ev.StateChanged(SessionState.WAITING_TOOL), 2)
        host.publish("old", ev.ToolRequested("c9", "web", "crawl", "web__crawl", FrozenDict({"u": 1}), Effect.ALLOW), 2)
        host.publish("old", ev.ToolStarted("c9"), 2)
        host.publish("old", ev.ToolProgress("c9", 3, 10, "page 3"), 2)

    on_host(page, begin)
    qtbot.waitUntil(lambda: bool(rows(page, ToolCard)), timeout=30_000)
    card = rows(page, ToolCard)[0]
    assert card._line.text() == "page 3 · 3/10"
    assert card._bar.value() == 300
    assert card.state_text.startswith("Running")
    on_host(page, lambda: host.publish("old", ev.ToolSettled("c9", Outcome.OK, (Text("a\n" * 40),), None, 1234), 2))
    qtbot.waitUntil(lambda: card.entry.outcome is Outcome.OK, timeout=30_000)
    assert card.state_text == "Done · 1.2 s"
    assert not card._bar.isVisible()
    qtbot.mouseClick(card.fold_button, Qt.MouseButton.LeftButton)
    assert card._body is not None
    assert card._body.isVisible()
