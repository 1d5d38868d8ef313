"""What an idle session gives back, and what a reader that stopped for a minute finds when it comes again."""

from __future__ import annotations

import asyncio
import gc
import os
import selectors
import sys
import weakref
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

import pytest

from desktop_host.app import compose
from desktop_host.core.events import Stamped
from desktop_host.core.messages import Thinking
from desktop_host.core.servers import ServerConfig, ServerScope, Stdio
from desktop_host.core.sessions import SessionOptions
from desktop_host.core.transcript import Transcript, fold
from desktop_host.engine.bundle import transcript_of
from desktop_host.engine.host import HeadlessPolicy, HostSpec, UserInput
from tests.fakes.list_model import call
from tests.fakes.manual_clock import ManualClock
from tests.fakes.rig import Rig
from tests.live import program

T = TypeVar("T")
SMALL = Path(__file__).parent.parent / "fakes" / "servers" / "small.py"


def holders(session: str) -> list[Any]:
    """All dicts and sets of this process that know a session by its id."""
    gc.collect()
    return [o for o in gc.get_objects() if type(o) in (dict, set) and session in o]


async def test_an_idle_session_gives_back_its_actor_its_messages_and_all_that_knew_it(rig):
    """Measured: the objects are gone, not only forgotten."""
    r = rig([[Thinking("hm"), call("t.run", "c1")], ["done"], ["again"]])
    r.tools.add("t.run", "x" * 100_000)
    session = await r.session()
    tasks = len(asyncio.all_tasks())
    await r.say(session)
    actor = r.sessions.find(session)
    context = actor.context
    gone = [weakref.ref(o) for o in (actor, context, context.conversation, context.log)]
    del actor, context
    r.model.requests.clear()
    r.events.clear()
    assert all(ref() is not None for ref in gone)
    await r.clock.advance(31 * 60)
    await r.clock.advance(1)
    gc.collect()
    assert [type(ref()).__name__ for ref in gone if ref() is not None] == []
    assert r.tools.released == [session]
    assert len(asyncio.all_tasks()) <= tasks
    known = [h for h in holders(session) if h is not r.world.sessions and h is not r.sessions._passing]
    assert known == []
    assert len(await r.history.read(session)) > 5
    assert (await r.say(session)).text == "again"


async def test_an_idle_session_ends_the_servers_that_were_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """With the real host and real processes; the record stays and the session starts them again."""
    clock = ManualClock()
    monkeypatch.setattr(compose, "SystemClock", lambda: clock)
    model = program.script(tmp_path / "m.json", [{"text": "one"}], [{"text": "two"}])
    async with compose.open_host(HostSpec(tmp_path / "home", headless=HeadlessPolicy())) as host:
        await host.servers.add(
            ServerConfig("own", Stdio(sys.executable, (str(SMALL), str(tmp_path))), scope=ServerScope.SESSION)
        )
        session = await host.new_session(SessionOptions(model=model))

        async def say() -> str:
            return (await (await host.submit(session, UserInput("hello"))).done).text

        def pid() -> int | None:
            return host.servers.status("own").pid

        assert await say() == "one"
        first = pid()
        assert first is not None and _alive(first)
        await clock.advance(31 * 60)
        async with asyncio.timeout(20):
            while _alive(first):
                await clock.advance(1)
                await asyncio.sleep(0.01)
        assert pid() is None and host._sessions.find(session) is None
        assert await say() == "two"
        assert pid() not in (None, first)
        assert len([s for s in await host.history.read(session) if s.event.type == "user_said"]) == 2


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"


# ---- a reader that stops


class _Skipping(selectors.SelectSelector):
    """Waits for nobody: what would be waited for is added to the clock."""

    skipped = 0.0

    def select(self, timeout: float | None = None) -> Any:
        if timeout:
            self.skipped += timeout
        return super().select(0)


def in_no_time(act: Callable[[], Awaitable[T]]) -> T:
    """Run on a loop whose minutes pass at once."""
    selector = _Skipping()
    loop = asyncio.SelectorEventLoop(selector)
    loop.time = lambda: 1000.0 + selector.skipped  # type: ignore[method-assign]

    async def run() -> T:
        return await act()

    try:
        return loop.run_until_complete(run())
    finally:
        loop.close()


def test_a_reader_that_stops_for_a_minute_loses_nothing_that_is_kept_and_stalls_nobody():
    async def live() -> None:
        turns = 12
        replies: list[list[Any]] = []
        for n in range(turns):
            replies += [
                [Thinking("hm " * 30), f"let me look {n} " + "word " * 40, call("t.run", f"c{n}")],
                [f"done {n}"],
            ]
        r = Rig(replies)
        r.tools.add("t.run", "ran")
        session = await r.session()
        reader = r.host.subscribe(session, capacity=20)
        shown, seen = Transcript(session), set()

        def take(batch: tuple[Stamped, ...]) -> None:
            nonlocal shown
            for stamped in batch:
                seen.add(stamped.seq)
                shown = fold(shown, stamped)

        async def talk() -> float:
            began = asyncio.get_running_loop().time()
            for n in range(turns):
                await r.say(session, f"question {n}")
            return asyncio.get_running_loop().time() - began

        take(await r.history.read(session))
        talking = asyncio.create_task(talk())
        async for batch in reader:
            take(batch)
            await asyncio.sleep(60)
        assert reader.lagged_seq is not None
        missed = reader.lagged_seq
        again = r.host.subscribe(session, capacity=10_000)
        take(await r.history.read(session, missed))
        took = await talking
        kept = await r.history.read(session)
        await r.close()
        async for batch in again:
            take(batch)
        assert took < 5  # a second of patience, not the minute
        assert {s.seq for s in kept} <= seen
        whole = transcript_of(session, "", kept)
        told = [
            [(type(e), getattr(e, "text", ""), getattr(e, "outcome", "")) for e in x.entries] for x in (shown, whole)
        ]
        assert told[0] == told[1] and len(told[0]) == 4 * turns

    in_no_time(live)
