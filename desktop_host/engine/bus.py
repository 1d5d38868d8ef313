"""The stream of events to many readers, each with a bounded queue of its own.

A full queue gives way by the rules of `core.delivery`: an older event of the same subject is replaced, the
oldest droppable event goes, neighbouring pieces of text are merged; only then does the publisher wait, which
stops the pull on the model's stream, so that pressure reaches the socket. A reader that stays full for
`PATIENCE_S` is detached and reads the journal instead.
"""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import replace

from desktop_host.core.delivery import Delivery
from desktop_host.core.events import Event, Stamped, TokenDelta, subject

PATIENCE_S = 1.0


class Reader:
    """One reader: `async for batch in reader`, each batch a non-empty tuple of events in order.

    A reader that takes nothing for too long is detached: iteration ends and `lagged_seq` tells the last event
    it was given; read the journal from there and subscribe again.
    """

    def __init__(self, bus: Bus, session: str | None, capacity: int, lossless: bool) -> None:
        self._bus = bus
        self._session = session
        self._capacity = max(1, capacity)
        self._lossless = lossless
        self._queue: deque[Stamped] = deque()
        self._some = asyncio.Event()
        self._room = asyncio.Event()
        self._closed = False
        self._taken_seq = 0
        self.lagged_seq: int | None = None

    def __aiter__(self) -> Reader:
        return self

    async def __anext__(self) -> tuple[Stamped, ...]:
        while not self._queue:
            if self._closed:
                raise StopAsyncIteration
            self._some.clear()
            await self._some.wait()
        batch = tuple(self._queue)
        self._queue.clear()
        self._taken_seq = batch[-1].seq
        self._room.set()
        return batch

    def close(self) -> None:
        """Leave; iteration ends after what is queued."""
        self._closed = True
        self._some.set()
        self._room.set()
        self._bus.forget(self)

    def wants(self, stamped: Stamped) -> bool:
        """Whether this reader follows the event's session."""
        return not self._closed and (self._session is None or stamped.session in ("", self._session))

    def offer(self, stamped: Stamped) -> bool:
        """Take an event if there is, or can be made, room for it."""
        if not self._lossless and stamped.event.delivery is Delivery.LATEST:
            self._replace_older(stamped)
        if len(self._queue) >= self._capacity and not self._make_room(stamped):
            return False
        if len(self._queue) < self._capacity:
            self._queue.append(stamped)
        self._some.set()
        return True

    async def wait_for_room(self) -> bool:
        """Wait until the reader took something. False: it was too slow and is detached now."""
        self._room.clear()
        if self._lossless:
            await self._room.wait()
            return not self._closed
        try:
            async with asyncio.timeout(PATIENCE_S):
                await self._room.wait()
        except TimeoutError:
            self.lagged_seq = self._taken_seq
            self._queue.clear()
            self.close()
        return not self._closed

    def _replace_older(self, stamped: Stamped) -> None:
        key = subject(stamped)
        for i, queued in enumerate(self._queue):
            if queued.event.delivery is Delivery.LATEST and subject(queued) == key:
                del self._queue[i]
                return

    def _make_room(self, stamped: Stamped) -> bool:
        """Make a place for `stamped`, or absorb it; False where nothing may give way."""
        if self._lossless:
            return False
        for i, queued in enumerate(self._queue):
            if queued.event.delivery is Delivery.DROP:
                del self._queue[i]
                return True
        if stamped.event.delivery is Delivery.DROP:
            return True  # nothing older to drop: this one is not queued, since the queue is full
        last = self._queue[-1]
        joined = _joined(last, stamped)
        if joined is not None:
            self._queue[-1] = joined
            return True
        return self._merge_neighbours()

    def _merge_neighbours(self) -> bool:
        for i in range(1, len(self._queue)):
            joined = _joined(self._queue[i - 1], self._queue[i])
            if joined is not None:
                self._queue[i] = joined
                del self._queue[i - 1]
                return True
        return False


def _joined(first: Stamped, second: Stamped) -> Stamped | None:
    if (
        isinstance(first.event, TokenDelta)
        and isinstance(second.event, TokenDelta)
        and (first.session, first.turn) == (second.session, second.turn)
    ):
        return replace(second, event=TokenDelta(first.event.text + second.event.text))
    return None


class Bus:
    """All readers of a host."""

    def __init__(self) -> None:
        self._readers: tuple[Reader, ...] = ()
        self.seq = 0
        """The newest place given out; one count for all lines of a host, so that `seq` rises for any reader."""
        self.order = asyncio.Lock()
        """Held from stamping to publishing: what is stamped first is published first."""

    async def announce(self, event: Event, now: float) -> None:
        """Publish an event that belongs to no session and is not kept."""
        async with self.order:
            self.seq += 1
            await self.publish(Stamped(self.seq, now, "", 0, event))

    def subscribe(self, session: str | None = None, *, capacity: int = 100, lossless: bool = False) -> Reader:
        """A new reader of events from now on."""
        reader = Reader(self, session, capacity, lossless)
        self._readers = (*self._readers, reader)
        return reader

    def forget(self, reader: Reader) -> None:
        """Drop a reader."""
        self._readers = tuple(r for r in self._readers if r is not reader)

    async def publish(self, stamped: Stamped) -> None:
        """Give an event to every reader that wants it; waits for those that are full."""
        for reader in self._readers:
            while reader.wants(stamped) and not reader.offer(stamped):
                if not await reader.wait_for_room():
                    break

    def close(self) -> None:
        """End all readers."""
        for reader in self._readers:
            reader.close()
