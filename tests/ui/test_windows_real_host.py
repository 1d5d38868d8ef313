"""Several windows on one host, and a conversation that goes to another profile: with the real host underneath."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import QCoreApplication, QEvent, Qt
from PySide6.QtWidgets import QAbstractButton, QFileDialog, QWidget
from pytestqt.qtbot import QtBot

from desktop_host.app.compose import open_host
from desktop_host.app.tenants import Tenants
from desktop_host.core.servers import ServerConfig, Stdio
from desktop_host.core.sessions import SessionOptions
from desktop_host.core.transcript import ToolEntry
from desktop_host.engine.host import Host, HostSpec, UserInput
from desktop_host.i18n import tr
from desktop_host.ui.face import _Face
from desktop_host.ui.theme import theme
from desktop_host.ui.widgets.ask_card import ApproveCard
from desktop_host.ui.widgets.profile_room import ProfileRoom
from desktop_host.ui.widgets.window import MainWindow
from desktop_host.ui.widgets.workspace import Workspace
from tests.live import program

SMALL = Path(__file__).parent.parent / "fakes" / "servers" / "small.py"
LONG = 20_000


class Seat(Tenants):
    """The real profiles; windows of other processes are only noted."""

    def __init__(self, home: Path) -> None:
        super().__init__(home)
        self.opened: list[tuple[str, str]] = []

    def open_window(self, name: str, session: str = "") -> None:
        self.opened.append((name, session))


class Stage:
    """The face as the program runs it, but for its own loop."""

    def __init__(self, qtbot: QtBot, home: Path, replies: list[Any]) -> None:
        self.qtbot, self.home = qtbot, home
        theme.apply("light", 100)
        self.script = home / "script.json"
        self.script.write_text(json.dumps({"replies": replies}))
        self.seat = Seat(home)
        self.seat.create("default")
        settings = home / "profiles" / "default" / "settings.toml"
        settings.write_text(f'schema = 1\n[general]\nonboarded = true\n[model]\ndefault = "script:{self.script}"\n')
        self.face = _Face(qtbot_app(), open_host, HostSpec(home), lazy=False, home=home, profile="default")
        self.face.profiles = lambda: self.seat
        self.face.window.show()
        threading.Thread(target=self.face._load).start()
        self.face._dress()
        self.until(lambda: self.face._workspace is not None and self.workspace(self.face.window).settings.loaded)

    def workspace(self, window: MainWindow) -> Workspace:
        return window.findChild(Workspace)

    def room(self, workspace: Workspace) -> ProfileRoom:
        return next(c for c in workspace.children() if isinstance(c, ProfileRoom))

    def until(self, holds: Callable[[], object]) -> None:
        self.qtbot.waitUntil(lambda: bool(holds()), timeout=LONG)

    def do(self, act: Callable[[Host], Any]) -> Any:
        assert self.face._bridge is not None
        return self.face._bridge.call(act).result(20)

    def press(self, name: str, within: QWidget) -> None:
        def found() -> QAbstractButton | None:
            made = [b for b in within.findChildren(QAbstractButton) if b.isVisible() and b.text() == name]
            return made[0] if made else None

        self.until(found)
        button = found()
        assert button is not None
        self.qtbot.mouseClick(button, Qt.MouseButton.LeftButton)

    def close(self) -> None:
        if self.face._bridge is not None and self.face._bridge.running:
            with self.qtbot.waitSignal(self.face._bridge.closed, timeout=LONG):
                self.face._quit()
        for window in (self.face.window, *self.face._more):
            window.deleteLater()
        QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
        QCoreApplication.processEvents()


def qtbot_app() -> Any:
    return QCoreApplication.instance()


@pytest.fixture
def stage(qtbot: QtBot, tmp_path: Path) -> Iterator[Callable[..., Stage]]:
    made: list[Stage] = []

    def make(*replies: Any) -> Stage:
        made.append(Stage(qtbot, tmp_path, list(replies)))
        return made[-1]

    yield make
    for one in made:
        one.close()


def cards(w: Workspace) -> list[ApproveCard]:
    return [r for r in w.chat.view.rows.values() if isinstance(r, ApproveCard) and not r.done]


def texts(w: Workspace) -> list[str]:
    return [type(e).__name__ + str(getattr(e, "text", "")) for e in w.chat.chat.transcript.now.entries]


def test_a_second_window_follows_live_and_either_may_answer(stage: Callable[..., Stage]) -> None:
    ask = {"call": {"tool": "small.echo", "arguments": {"text": "hello"}}}
    s = stage([{"text": "I will call it."}, ask], [{"text": "The first is done."}], [ask], [{"text": "All done."}])
    small = ServerConfig("small", Stdio(sys.executable, (str(SMALL), str(s.home))))
    s.do(lambda h: h.servers.add(small))
    session = s.do(lambda h: h.new_session(SessionOptions()))
    first = s.workspace(s.face.window)
    first.show_chat(session)
    first.window.commands.run("chat.window")
    s.until(lambda: len(s.face._more) == 1)
    second = s.workspace(s.face._more[0])
    s.until(lambda: second.session == session and not second.chat.chat.busy)
    assert second.window.isVisible() and first.window.isVisible()
    s.do(lambda h: h.submit(session, UserInput("go")))
    s.until(lambda: len(cards(first)) == len(cards(second)) == 1)
    s.qtbot.mouseClick(cards(second)[0].buttons[0], Qt.MouseButton.LeftButton)
    s.until(lambda: not cards(first) and not cards(second))
    s.until(lambda: "The first is done." in str(texts(first)) and not first.chat.chat.transcript.running)
    second.chat.focus_composer()
    s.qtbot.keyClicks(second.chat.composer.edit, "once more")
    s.qtbot.keyClick(second.chat.composer.edit, Qt.Key.Key_Return)
    s.until(lambda: len(cards(first)) == len(cards(second)) == 1)
    s.qtbot.mouseClick(cards(first)[0].buttons[0], Qt.MouseButton.LeftButton)
    s.until(lambda: "All done." in str(texts(second)) and not second.chat.chat.transcript.running)
    s.until(lambda: texts(first) == texts(second))
    held = s.do(lambda h: h.transcript(session))
    assert [type(e).__name__ + str(getattr(e, "text", "")) for e in held.entries] == texts(first)
    assert len([e for e in held.entries if isinstance(e, ToolEntry)]) == 2
    # Another process is told that the session is taken, by whom.
    (told,) = program.run(s.home, "chat", "--session", session, "from elsewhere", code=1)
    assert told["code"] == "session_busy" and "process" in told["message"]
    # A window that goes leaves the other one, and the host.
    s.face._more[0].close()
    s.until(lambda: not s.face._more)
    assert first.window.isVisible() and s.face._bridge is not None and s.face._bridge.running
    assert s.do(lambda h: h.history.row(session)).messages


def test_windows_that_stood_still_or_were_hidden_show_all_in_the_end(
    stage: Callable[..., Stage], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The window's thread is stopped (swapped out) while forty turns happen; its reader is detached meanwhile."""
    from desktop_host.ui import bridge

    monkeypatch.setattr(bridge, "HELD_EVENTS", 30)
    turns = 40
    s = stage(*[[{"text": f"answer {n} " + "word " * 20}] for n in range(turns)])
    session = s.do(lambda h: h.new_session(SessionOptions()))
    first, window = s.workspace(s.face.window), s.face.show_again(session)
    second = s.workspace(window)
    first.show_chat(session)
    s.until(lambda: second.session == session and not second.chat.chat.busy and not first.chat.chat.busy)
    window.hide()
    lagged: list[int] = []
    assert s.face._bridge is not None
    s.face._bridge.lagged.connect(lambda: lagged.append(1))

    async def talk(host: Host) -> None:
        for n in range(turns):
            await (await host.submit(session, UserInput(f"question {n}"))).done

    s.do(talk)  # nothing of the window runs until it is over
    s.until(lambda: f"answer {turns - 1}" in str(texts(first)) and texts(first) == texts(second))
    assert lagged
    assert len(texts(first)) == 2 * turns
    held = s.do(lambda h: h.transcript(session))
    assert [type(e).__name__ + str(getattr(e, "text", "")) for e in held.entries] == texts(first)
    window.show()


def test_the_first_window_may_go_while_another_one_is_open(stage: Callable[..., Stage]) -> None:
    s = stage([{"text": "hello"}])
    session = s.do(lambda h: h.new_session(SessionOptions(), "Kept"))
    window = s.face.show_again(session)
    s.until(lambda: s.workspace(window).session == session)
    s.face.window.close()
    assert not s.face.window.isVisible() and s.face._bridge is not None and s.face._bridge.running
    assert s.do(lambda h: h.history.row(session)).title == "Kept"
    with s.qtbot.waitSignal(s.face._bridge.closed, timeout=LONG):
        window.close()


def test_a_window_that_is_called_to_a_chat_from_elsewhere_shows_it(stage: Callable[..., Stage]) -> None:
    """As `Tenants.open_window` calls it after a move: another process made the session."""
    s = stage([{"text": "hello"}])
    w = s.workspace(s.face.window)
    bundle = s.home / "bundle.json"
    session = s.do(lambda h: h.new_session(SessionOptions(), "From there"))
    bundle.write_text(s.do(lambda h: h.export(session, "json")))
    (made,) = program.run(s.home, "sessions", "import", str(bundle))
    s.face.receive([f"desktop-host://chat/{made['session']}"])
    s.until(lambda: w.session == made["session"] and w.sessions.found(made["session"]))
    s.until(lambda: not w.chat.chat.busy)
    assert w.page == "chats"


def choose(s: Stage, file: Path) -> None:
    """Import a file through the window's own dialog."""
    s.workspace(s.face.window).window.commands.run("chat.import")
    s.until(lambda: s.face.window.findChildren(QFileDialog))
    (dialog,) = s.face.window.findChildren(QFileDialog)
    dialog.fileSelected.emit(str(file))
    dialog.reject()
    s.until(lambda: not s.face.window.findChildren(QFileDialog))


def test_an_exported_chat_is_imported_in_the_window_and_goes_on_and_another_file_is_refused_with_words(
    stage: Callable[..., Stage],
) -> None:
    s = stage([{"text": "Noted: blue."}], [{"text": "It was blue."}])
    session = s.do(lambda h: h.new_session(SessionOptions(), "Colours"))

    async def say(host: Host) -> None:
        await (await host.submit(session, UserInput("remember blue"))).done

    s.do(say)
    bundle = s.home / "colours.json"
    bundle.write_text(s.do(lambda h: h.export(session, "json")), "utf-8")
    s.do(lambda h: h.delete(session))
    choose(s, bundle)
    w = s.workspace(s.face.window)
    s.until(lambda: w.session and w.session != session and w.sessions.found(w.session))
    s.until(lambda: any("Noted: blue." in text for text in texts(w)))
    assert w.sessions.found(w.session).title == "Colours"
    (s.home / "other.json").write_bytes(b"\xff\xff\xff")
    for name in ("other.json", "none.json"):
        before = len(w.window.toasts.texts())
        choose(s, s.home / name)
        s.until(lambda before=before: len(w.window.toasts.texts()) > before)
    assert any("The file is no exported chat." in text for text in w.window.toasts.texts())
    assert any("none.json cannot be read." in text for text in w.window.toasts.texts())


@pytest.mark.parametrize("keep", [False, True])
def test_a_chat_is_moved_or_copied_to_another_profile_and_goes_on_there(
    stage: Callable[..., Stage], keep: bool
) -> None:
    s = stage([{"text": "Noted: blue."}], [{"text": "It was blue."}])
    s.seat.create("work")
    session = s.do(lambda h: h.new_session(SessionOptions(), "Colours"))

    async def say(host: Host) -> None:
        await (await host.submit(session, UserInput("remember blue"))).done

    s.do(say)
    w = s.workspace(s.face.window)
    w.sessions.refresh()
    s.until(lambda: w.sessions.found(session))
    room = s.room(w)
    room.model.refresh()
    s.until(lambda: room.model.names == ("default", "work"))
    w.show_chat(session)
    w.window.commands.run("chat.move")
    dialog = room.dialog
    assert dialog is not None
    assert [dialog.target.itemText(i) for i in range(dialog.target.count())] == ["work"]
    s.press("Copy" if keep else "Move", dialog)
    s.until(lambda: "profile work" in str(w.window.toasts.texts()))
    rows = {r.session for r in s.do(lambda h: h.history.rows())}
    assert (session in rows) == keep
    assert w.session == (session if keep else "")
    s.press("Open", w.window)
    s.until(lambda: s.seat.opened)
    ((name, there),) = s.seat.opened
    assert name == "work" and there and there != session
    shown = program.run(s.home, "--profile", "work", "sessions", "show", there)
    assert "Noted: blue." in json.dumps(shown)
    model = f"script:{s.script}"
    gone_on = program.run(s.home, "--profile", "work", "chat", "--session", there, "--model", model, "which colour?")
    assert [e["text"] for e in gone_on if e["type"] == "assistant_said"] == ["It was blue."]


def test_a_chat_that_works_is_not_moved(stage: Callable[..., Stage]) -> None:
    s = stage([{"text": "slow"}, {"delay_ms": 60_000}])
    s.seat.create("work")
    session = s.do(lambda h: h.new_session(SessionOptions(), "Busy"))
    s.do(lambda h: h.submit(session, UserInput("go")))
    w = s.workspace(s.face.window)
    s.room(w).model.hand_over(session, "work", keep=False)
    s.until(lambda: w.window.toasts.texts())
    assert session in {r.session for r in s.do(lambda h: h.history.rows())}
    assert program.run(s.home, "--profile", "work", "sessions", "list") == []
    s.do(lambda h: h.interrupt(session))


def test_a_summary_is_made_at_once_by_the_palette_and_can_be_undone(stage: Callable[..., Stage]) -> None:
    s = stage(*[[{"text": f"answer {n}"}] for n in range(4)])
    session = s.do(lambda h: h.new_session(SessionOptions()))
    w = s.workspace(s.face.window)
    w.show_chat(session)
    s.until(lambda: not w.chat.chat.busy)
    w.window.commands.run("chat.compact")
    s.until(lambda: "too little" in str(w.window.toasts.texts()))

    async def talk(host: Host) -> None:
        for n in range(2):
            await (await host.submit(session, UserInput(f"question {n}"))).done

    s.do(talk)
    w.window.commands.run("chat.compact")
    s.until(lambda: [e for e in w.chat.chat.transcript.now.entries if getattr(e, "code", "") == "compacted"])
    told = s.do(lambda h: _told(h, session))
    assert len(told) == 1 and "question 0" not in told[0]
    s.press(tr("chat.do.undo_summary"), w.window)
    s.until(lambda: len(s.do(lambda h: _told(h, session))) == 4)


async def _told(host: Host, session: str) -> list[str]:
    """What the model would be sent now."""
    actor = await host._sessions.actor(session)
    return [m.text for m in actor.context.conversation.messages()]
