"""The events of one session, told as they happen."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from typing import Any

from desktop_host.cli.render import JsonView, TextView
from desktop_host.core.events import AskRaised, AskSettled, Stamped, StateChanged, TurnEnded
from desktop_host.core.sessions import SessionState
from desktop_host.engine.host import Host, Reader, TurnResult

GRACE_S = 2.0
"""How long the last events of a turn that is over may take to come."""


class Follower:
    """Shows the events of one session, from before it is made to its end.

    It reads from the start, so that nobody waits for it: what comes before the session is known is kept.

    Args:
        host: the open host.
        view: writes one event.
        asked: is told of every ask that is raised or settled.
    """

    def __init__(
        self, host: Host, view: JsonView | TextView, asked: Callable[[AskRaised | AskSettled], object] | None = None
    ) -> None:
        self._host = host
        self._view = view
        self._asked = asked
        self._reader: Reader = host.subscribe(None, lossless=True)
        self._early: list[Stamped] | None = []
        self._ended: set[int] = set()
        self._idle = False
        self._news = asyncio.Condition()
        self.session = ""
        self._seen = 0
        self.task: asyncio.Task[None] = asyncio.create_task(self._run(), name="cli-follower")

    def follow(self, session: str) -> None:
        """The session whose events are to be shown from now on, with those that came already."""
        early, self._early = self._early or [], None
        self.session, self._seen = session, 0
        self._show(early)

    async def _run(self) -> None:
        while True:
            async for batch in self._reader:
                await self._take(batch)
            if self._reader.lagged_seq is None:
                return
            self._reader = self._host.subscribe(None, lossless=True)
            await self._take(await self._host.history.read(self.session, self._seen))

    async def _take(self, batch: Sequence[Stamped]) -> None:
        if self._early is not None:
            self._early += batch
            return
        self._show(batch)
        async with self._news:
            self._news.notify_all()

    def _show(self, batch: Sequence[Stamped]) -> None:
        for stamped in batch:
            if stamped.session not in (self.session, ""):
                continue
            if stamped.session:
                if stamped.seq <= self._seen:
                    continue
                self._seen = stamped.seq
            self._view.show(stamped)
            match stamped.event:
                case TurnEnded():
                    self._ended.add(stamped.turn)
                case StateChanged(state=state):
                    self._idle = state is SessionState.IDLE
                case AskRaised() | AskSettled() as news if self._asked is not None:
                    self._asked(news)
                case _:
                    pass

    async def until(self, work: asyncio.Future[TurnResult]) -> TurnResult:
        """Wait for the end of a turn and until it was told.

        Raises:
            BrokenPipeError: nobody reads what is told any more.
        """
        either: set[asyncio.Future[Any]] = {work, self.task}
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        if self.task.done() and not work.done():
            self._reader.close()  # or the turn would wait for a reader that reads no more
            await self._host.interrupt(self.session)
            self.task.result()
        result = await work
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(GRACE_S), self._news:
                await self._news.wait_for(lambda: self._told(result.turn))
        if self.task.done():
            self.task.result()
        return result

    def _told(self, turn: int) -> bool:
        return self.task.done() or (turn in self._ended and self._idle)

    async def close(self) -> None:
        """Stop following."""
        self._reader.close()
        self.task.cancel()
        with contextlib.suppress(asyncio.CancelledError, BrokenPipeError):
            await self.task
        self._view.rest()
