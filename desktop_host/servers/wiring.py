"""What the connections of one server share, and who is calling over them."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

from desktop_host.core.admin import SecretStore
from desktop_host.core.exchange import Origin, RunningCall
from desktop_host.core.ports import Clock, Reviewer
from desktop_host.core.server_values import ServerValues
from desktop_host.core.servers import ServerConfig, Timeouts
from desktop_host.servers.environment import PidFile
from desktop_host.servers.eras import Eras
from desktop_host.servers.records import Redactor, ServerLog, WireLog
from desktop_host.servers.sign_in import SignIn

CALL_S = 120.0
"""How long (seconds) a call may give no sign of life, unless something else is set."""


@dataclass(slots=True)
class Wiring:
    """The surroundings of one server; its configuration may change while it runs."""

    config: ServerConfig
    reviewer: Reviewer
    secrets: SecretStore
    clock: Clock
    environ: Mapping[str, str]
    values: Callable[[], ServerValues]
    """What the profile gives its servers, as it is now."""
    pids: PidFile
    eras: Eras
    redact: Redactor
    wire: WireLog
    log: ServerLog
    sign_in: SignIn
    changed: Callable[[tuple[str, ...]], None]
    """Told which lists are others now, as in `ServerChanged.lists`."""
    apps: bool = False
    """Whether pages of servers can be shown, so that servers are told so."""
    call_s: Callable[[], float] = lambda: CALL_S
    """How long a call may give no sign of life (seconds) where the server has no limit of its own."""

    @property
    def timeouts(self) -> Timeouts:
        """The server's own limits, and the profile's for a call where it has none of its own."""
        own = self.config.timeouts
        if own.call_s is not None:
            return own
        call_s = self.call_s()
        return replace(own, call_s=call_s, call_max_s=max(call_s, own.call_max_s))


def idle_s(timeouts: Timeouts) -> float:
    """`call_s`, or what holds where nobody says otherwise."""
    return CALL_S if timeouts.call_s is None else timeouts.call_s


class Deadline:
    """How long a call may take: `call_s` from the last sign of life, `call_max_s` in all.

    While a person is asked over the connection the first clock stands still, the second does not.
    """

    def __init__(self, timeouts: Timeouts) -> None:
        self._loop = asyncio.get_running_loop()
        self._idle = idle_s(timeouts)
        self._last = self._loop.time() + timeouts.call_max_s
        self._held = False
        self.timer = asyncio.timeout_at(self._when())

    @classmethod
    def to_connect(cls, timeouts: Timeouts) -> Deadline:
        """The limit for connecting and for fetching a list, however short that of calls is."""
        most = max(timeouts.connect_s, timeouts.call_max_s)
        return cls(replace(timeouts, call_s=timeouts.connect_s, call_max_s=most))

    def touch(self) -> None:
        """A sign of life."""
        if not self.timer.expired():
            self.timer.reschedule(self._when())

    def hold(self, on: bool) -> None:
        """Stand still while a person is asked."""
        self._held = on
        self.touch()

    def _when(self) -> float:
        return self._last if self._held else min(self._loop.time() + self._idle, self._last)


@dataclass(slots=True, eq=False)
class CallInFlight:
    """One running call and on whose behalf it runs."""

    floor: Floor
    session: str | None
    call_id: str | None
    deadline: Deadline
    about: RunningCall
    """What was asked of the server."""
    running: bool = False
    """Inside its timer, so that the deadline may be moved."""


CALLING: ContextVar[CallInFlight | None] = ContextVar("desktop_host_calling", default=None)
"""The call on whose behalf the SDK runs a callback, where the transport tells (modern era, HTTP)."""


MARKS: ContextVar[Mapping[str, Any]] = ContextVar("desktop_host_marks", default=MappingProxyType({}))
"""What a client outside said of the chain its call belongs to (`_meta`); passed on to the server behind."""


@dataclass(slots=True)
class Floor:
    """The calls that run over one connection, and the questions open over it."""

    server: str
    session: str | None
    """Set where the connection belongs to one session."""
    calls: set[CallInFlight] = field(default_factory=set)
    asks: int = 0
    empty: asyncio.Event = field(default_factory=asyncio.Event)
    """Set whenever a call ends and none is left."""
    finished: set[str | None] = field(default_factory=set)
    """Ids of the pages of which the server said that the person is done there."""
    finishing: asyncio.Event = field(default_factory=asyncio.Event)
    """Set whenever there is one more."""
    refusals: deque[tuple[int, str]] = field(default_factory=lambda: deque(maxlen=16))
    """Errors that the host gave to the server's questions: in the modern era they come back as the call's own."""
    waits: set[Deadline] = field(default_factory=set)
    """What else has a time limit here: to be connected, to fetch a list."""

    def finish(self, elicitation_id: str) -> None:
        """The person has done what a page was opened for. The newest 64 are remembered."""
        if len(self.finished) >= 64:
            self.finished.clear()
        self.finished.add(elicitation_id)
        self.finishing.set()

    def leave(self, call: CallInFlight) -> None:
        """A call has ended."""
        self.calls.discard(call)
        if not self.calls:
            self.empty.set()

    def origin(self) -> Origin | None:
        """Who asks: own session > the call's context > the only call, or the only session, with calls in flight.

        None: naming a session would be a guess.
        """
        call = CALLING.get()
        if call is None or call.floor is not self:
            call = next(iter(self.calls)) if len(self.calls) == 1 else None
        if call is not None:
            return Origin(self.server, self.session or call.session, call.call_id, (call.about,))
        open_ = tuple(sorted((c.about for c in self.calls), key=lambda c: c.key))
        if self.session is not None:
            return Origin(self.server, self.session, None, open_)
        sessions = {c.session for c in self.calls}
        return Origin(self.server, sessions.pop(), None, open_) if len(sessions) == 1 else None

    @contextmanager
    def asking(self) -> Iterator[None]:
        """While open, the deadlines of this connection's calls stand still."""
        self.asks += 1
        self._hold()
        try:
            yield
        finally:
            self.asks -= 1
            self._hold()

    @asynccontextmanager
    async def within(self, deadline: Deadline) -> AsyncIterator[None]:
        """Run under a time limit that stands still, too, while a person is asked.

        Raises:
            TimeoutError: it is over.
        """
        async with deadline.timer:
            self.waits.add(deadline)
            deadline.hold(self.asks > 0)
            try:
                yield
            finally:
                self.waits.discard(deadline)

    def _hold(self) -> None:
        for deadline in self.waits:
            deadline.hold(self.asks > 0)
        for call in self.calls:
            if call.running:
                call.deadline.hold(self.asks > 0)
