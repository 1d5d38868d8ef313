"""One session's line of events: stamped, journaled, then published, in that order."""

from __future__ import annotations

from desktop_host.core.events import Event, Stamped
from desktop_host.core.ports import Clock, History
from desktop_host.engine.bus import Bus


class SessionLog:
    """Stamps the events of one session and hands them on: journal before bus."""

    def __init__(self, session: str, history: History, bus: Bus, clock: Clock, last_seq: int, turn: int) -> None:
        self.session = session
        self.turn = turn
        """Number of the running or last turn; events are stamped with it."""
        self.history = history
        self._bus = bus
        self._clock = clock
        bus.seq = max(bus.seq, last_seq)
        self.last_seq = last_seq
        """The place of the newest event."""

    async def emit(self, *events: Event) -> tuple[Stamped, ...]:
        """Write the journaled ones in one transaction, then publish all.

        Raises:
            KnownFault: the journal could not be written; nothing was published.
        """
        async with self._bus.order:
            now = self._clock.now()
            stamped = []
            for event in events:
                self._bus.seq += 1
                stamped.append(Stamped(self._bus.seq, now, self.session, self.turn, event))
            self.last_seq = self._bus.seq
            kept = [s for s in stamped if s.event.journaled]
            if kept:
                await self.history.append(kept)
            for s in stamped:
                await self._bus.publish(s)
        return tuple(stamped)
