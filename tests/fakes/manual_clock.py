"""A clock that stands still until a test moves it."""

from __future__ import annotations

import asyncio
import heapq
import itertools


class ManualClock:
    """A `Clock`. `advance()` moves time and wakes sleepers in the order of their alarms."""

    def __init__(self, now: float = 1_700_000_000.0) -> None:
        self._now = now
        self._monotonic = 1000.0
        self._alarms: list[tuple[float, int, asyncio.Future[None]]] = []
        self._count = itertools.count()

    def now(self) -> float:
        return self._now

    def monotonic(self) -> float:
        return self._monotonic

    @property
    def sleepers(self) -> int:
        """How many tasks sleep now."""
        return sum(not alarm.done() for _, _, alarm in self._alarms)

    async def sleep(self, seconds: float) -> None:
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        alarm: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._alarms, (self._monotonic + seconds, next(self._count), alarm))
        await alarm

    async def advance(self, seconds: float) -> None:
        """Move on, stopping at each alarm on the way so that the woken task sees its own time."""
        target = self._monotonic + seconds
        await _settle()
        while self._alarms and self._alarms[0][0] <= target:
            at, _, alarm = heapq.heappop(self._alarms)
            self._move(at)
            if not alarm.done():
                alarm.set_result(None)
            await _settle()
        self._move(target)
        await _settle()

    async def wait_for_sleepers(self, count: int = 1, *, turns: int = 10_000) -> None:
        """Let other tasks run until `count` of them sleep."""
        for _ in range(turns):
            if self.sleepers >= count:
                return
            await asyncio.sleep(0)
        raise AssertionError(f"{self.sleepers} sleep, {count} were expected")

    def _move(self, monotonic: float) -> None:
        self._now += monotonic - self._monotonic
        self._monotonic = monotonic


async def _settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)
