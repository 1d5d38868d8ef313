"""A conversation of 10,000 messages opens as one of 1,000 does: its end first, the rest while it is on the screen."""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from desktop_host.app.compose import open_host
from desktop_host.core.events import AssistantSaid, SkillsChosen, Stamped, TurnEnded, TurnStarted, UsageRecorded
from desktop_host.core.events import UserSaid as Said
from desktop_host.core.messages import Message, Role, Text
from desktop_host.core.sessions import SessionOptions, TurnStatus, TurnStop
from desktop_host.core.transcript import Transcript, fold, fold_all
from desktop_host.engine.host import HostSpec
from desktop_host.profiles.store import Profiles
from desktop_host.storage import open_storage
from desktop_host.ui.bridge import Bridge
from desktop_host.ui.viewmodels.chat import NEWEST
from desktop_host.ui.widgets.chat import ChatPage

pytestmark = pytest.mark.slow
LIMIT_S = 0.5
"""Seconds of this process to the first paint, on an idle machine; processor time, so that others do not count."""
REPLY = "answer {}\n\n- one\n- two\n\n```python\nprint({})\n```\n"


def journal(session: str, messages: int) -> list[Stamped]:
    """A conversation of so many messages."""
    events: list[Stamped] = []
    for turn in range(1, messages // 2 + 1):
        said = Message(Role.ASSISTANT, (Text(REPLY.format(turn, turn)),))
        for event in (
            Said(f"question {turn} about **things**"), TurnStarted(), SkillsChosen(), AssistantSaid(said, "m"),
            UsageRecorded("m", "chat", 10, 5, cost_usd=0.01), TurnEnded(TurnStatus.DONE, TurnStop.END, "answer"),
        ):  # fmt: skip
            events.append(Stamped(len(events) + 1, 1e9 + len(events), session, turn, event))
    return events


class Desk:
    """A chat page on a real host whose profile holds a short and a long conversation."""

    def __init__(self, qtbot: QtBot, home: Path) -> None:
        self.qtbot = qtbot
        profile = Profiles(home).open("default")

        async def fill() -> None:
            async with open_storage(profile.path) as storage:
                for count in (1_000, 10_000):
                    await storage.history.create(str(count), f"{count} messages", SessionOptions())
                    await storage.history.append(journal(str(count), count), copied=True)

        asyncio.run(fill())
        profile.close()
        self.bridge = Bridge(open_host, HostSpec(home))
        self.page = ChatPage(self.bridge)
        qtbot.addWidget(self.page)
        self.page.resize(900, 800)
        self.page.show()
        with qtbot.waitSignal(self.bridge.ready, timeout=30_000):
            self.bridge.start()

    def open(self, session: str) -> float:
        """Seconds of processor time until it is painted."""
        self.page.open_session(None)
        QApplication.processEvents()
        began = time.process_time()
        with self.qtbot.waitSignal(self.page.chat.opened, timeout=60_000):
            self.page.open_session(session)
        self.page.grab()
        return time.process_time() - began

    def whole(self) -> None:
        """Wait until nothing is left out."""
        self.qtbot.waitUntil(lambda: not self.page.chat.transcript.now.partial, timeout=60_000)

    def close(self) -> None:
        with self.qtbot.waitSignal(self.bridge.closed, timeout=30_000):
            self.bridge.close()


@pytest.fixture
def desk(qtbot: QtBot, tmp_path: Path) -> Iterator[Desk]:
    made = Desk(qtbot, tmp_path)
    yield made
    made.close()


@pytest.mark.timeout(300)
def test_ten_thousand_messages_open_as_fast_as_a_thousand_and_all_are_there_soon(desk: Desk) -> None:
    """Within 1.3 times, and 0.5 s to the first paint."""
    desk.open("1000")
    desk.whole()
    short, long = [], []
    for _ in range(5):
        for taken, session in ((short, "1000"), (long, "10000")):
            taken.append(desk.open(session))
            desk.whole()
    ratio = min(long) / min(short)
    assert ratio < 1.3, (short, long)
    assert min(long) < LIMIT_S and statistics.median(short) < 2 * LIMIT_S, (short, long)
    now, view = desk.page.chat.transcript.now, desk.page.view
    assert len(now.entries) == 10_000 and now.input_tokens == 50_000
    assert view.hidden + len(view.rows) == 10_000 and list(view.rows) == [e.key for e in now.entries[view.hidden :]]
    view.load_earlier()
    assert list(view.rows) == [e.key for e in now.entries[view.hidden :]]


def test_the_end_alone_is_shown_first_and_what_happens_meanwhile_is_not_lost(desk: Desk) -> None:
    desk.open("10000")
    model = desk.page.chat.transcript
    assert model.now.partial and 0 < len(model.now.entries) < NEWEST
    newest = Stamped(1_000_000, 2e9, "10000", 5001, Said("something new"))
    desk.page.chat._read_before("10000")
    desk.bridge.batch.emit((newest,))
    assert model.now.entries[-1].key == "user:5001"
    desk.whole()
    assert len(model.now.entries) == 10_001 and model.now.entries[-1].key == "user:5001"
    assert model.now.entries[0].key == "user:1"


def test_many_events_fold_at_once_as_one_by_one() -> None:
    events = journal("s", 400)
    one = Transcript(session="s")
    for stamped in events:
        one = fold(one, stamped)
    assert fold_all(Transcript(session="s"), events) == one
    half = fold_all(Transcript(session="s"), events[:700])
    assert fold_all(half, events) == one and len(half.entries) < len(one.entries)
