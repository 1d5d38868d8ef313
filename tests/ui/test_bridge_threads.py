"""The bridge between the host's thread and the window's."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import pytest
from PySide6.QtCore import QObject
from pytestqt.qtbot import QtBot

from desktop_host.core import events as ev
from desktop_host.core.errors import HostError, KnownFault
from desktop_host.engine.host import Host, HostSpec, UserInput
from desktop_host.ui.bridge import HELD_EVENTS, Bridge
from tests.fakes.fake_host import FakeHost, opener


@pytest.fixture
def host() -> FakeHost:
    return FakeHost()


@pytest.fixture
def bridge(qtbot: QtBot, host: FakeHost) -> Iterator[Bridge]:
    made = Bridge(opener(host), HostSpec())
    with qtbot.waitSignal(made.ready, timeout=30_000):
        made.start()
    yield made
    if made.running:
        with qtbot.waitSignal(made.closed, timeout=30_000):
            made.close()


def test_events_reach_the_windows_thread_in_order_and_in_batches(qtbot: QtBot, bridge: Bridge, host: FakeHost) -> None:
    got: list[ev.Stamped] = []
    batches: list[int] = []
    threads: set[int] = set()

    def take(events: tuple[ev.Stamped, ...]) -> None:
        got.extend(events)
        batches.append(len(events))
        threads.add(threading.get_ident())

    bridge.batch.connect(take)

    async def flood(h: Host) -> None:
        for n in range(500):
            host.publish("s", ev.TokenDelta(str(n)))

    bridge.call(flood)
    qtbot.waitUntil(lambda: len(got) == 500, timeout=30_000)
    assert [s.seq for s in got] == sorted(s.seq for s in got)
    assert len(batches) < 20
    assert threads == {threading.get_ident()}


def test_a_result_is_delivered_in_the_windows_thread(qtbot: QtBot, bridge: Bridge) -> None:
    got: list[tuple[str, bool]] = []
    bridge.then(
        lambda h: h.new_session(), lambda s: got.append((s, threading.current_thread() is threading.main_thread()))
    )
    qtbot.waitUntil(lambda: bool(got), timeout=30_000)
    assert got == [("s1", True)]


def test_a_failure_goes_to_its_hearer_and_else_to_the_signal(qtbot: QtBot, bridge: Bridge) -> None:
    heard: list[HostError] = []
    bridge.then(lambda h: h.transcript("nowhere"), lambda _t: None, heard.append)
    qtbot.waitUntil(lambda: bool(heard), timeout=30_000)
    assert heard[0].code == "not_found"

    async def broken(_h: Host) -> None:
        raise ZeroDivisionError("oops")

    with qtbot.waitSignal(bridge.failed_call, timeout=30_000) as caught:
        bridge.then(broken, lambda _x: None)
    assert caught.args[0].code == "bug"
    assert "ZeroDivisionError" in caught.args[0].message


def test_nothing_is_delivered_to_an_owner_that_is_gone(qtbot: QtBot, bridge: Bridge) -> None:
    from shiboken6 import delete

    owner = QObject()
    got: list[str] = []
    gate = asyncio.Event()

    async def wait(_h: Host) -> str:
        await gate.wait()
        return "late"

    bridge.then(wait, got.append, owner=owner)
    delete(owner)

    async def free(_h: Host) -> str:
        gate.set()
        return "free"

    done: list[str] = []
    bridge.then(free, done.append)
    qtbot.waitUntil(lambda: bool(done), timeout=30_000)
    bridge.then(lambda h: h.new_session(), done.append)
    qtbot.waitUntil(lambda: len(done) == 2, timeout=30_000)
    assert got == []


def test_a_host_that_cannot_open_says_why_and_fails_the_calls_that_waited(qtbot: QtBot) -> None:
    @asynccontextmanager
    async def broken(_spec: HostSpec) -> AsyncIterator[Host]:
        raise KnownFault("database_error", "the journal cannot be read")
        yield

    bridge = Bridge(broken, HostSpec())
    heard: list[HostError] = []
    with qtbot.waitSignal(bridge.failed, timeout=30_000) as caught:
        bridge.start()
        bridge.then(lambda h: h.new_session(), lambda _s: None, heard.append)
    assert caught.args[0].code == "database_error"
    qtbot.waitUntil(lambda: bool(heard) or not bridge.running, timeout=30_000)
    with qtbot.waitSignal(bridge.closed, timeout=30_000):
        bridge.close()


def test_closing_ends_the_host_in_order_and_joins_the_thread(qtbot: QtBot, bridge: Bridge, host: FakeHost) -> None:
    bridge.then(lambda h: h.submit("s1", UserInput("hello")), lambda _t: None)
    with qtbot.waitSignal(bridge.closed, timeout=30_000):
        bridge.close()
    assert host.closed
    assert not bridge.running
    assert bridge.call(lambda h: h.new_session()).cancelled()
    assert not any(t.name == "host" for t in threading.enumerate())


def test_closing_while_the_host_opens_gives_up_opening(qtbot: QtBot) -> None:
    entered = threading.Event()

    @asynccontextmanager
    async def slow(_spec: HostSpec) -> AsyncIterator[Host]:
        entered.set()
        await asyncio.Event().wait()
        yield FakeHost()

    bridge = Bridge(slow, HostSpec())
    bridge.start()
    assert entered.wait(5)
    with qtbot.waitSignal(bridge.closed, timeout=30_000):
        bridge.close()


def test_a_reader_that_lagged_rejoins_and_says_so(qtbot: QtBot, bridge: Bridge, host: FakeHost) -> None:
    got: list[ev.Stamped] = []
    bridge.batch.connect(got.extend)

    async def lose(_h: Host) -> None:
        host.readers[-1].lose(7)

    async def tell(_h: Host) -> None:
        host.publish("s", ev.TokenDelta("after"))

    with qtbot.waitSignal(bridge.lagged, timeout=30_000):
        bridge.call(lose)
    bridge.call(tell)
    qtbot.waitUntil(lambda: bool(got), timeout=30_000)


def test_a_window_that_stands_still_holds_a_bounded_number_of_events(
    qtbot: QtBot, bridge: Bridge, host: FakeHost
) -> None:
    async def flood(_h: Host) -> int:
        for n in range(HELD_EVENTS * 3):
            host.publish("s", ev.TokenDelta(str(n)))
        for _ in range(HELD_EVENTS * 4):
            await asyncio.sleep(0)
        return len(bridge._held)

    got: list[ev.Stamped] = []
    bridge.batch.connect(got.extend)
    assert bridge.call(flood).result(30) <= HELD_EVENTS
    qtbot.waitUntil(lambda: len(got) == HELD_EVENTS * 3, timeout=10_000)


def test_an_answer_can_be_awaited_on_the_windows_own_loop(qtbot: QtBot, bridge: Bridge, qapp: QObject) -> None:
    import qasync

    async def flow() -> str:
        return await bridge.ask(lambda h: h.new_session())

    loop = qasync.QEventLoop(qapp)
    try:
        assert loop.run_until_complete(flow()) == "s1"
    finally:
        loop.close()
