"""What a server's sampling may use: requests a minute, one at a time within a call, tokens and money a day.

Tokens and money are counted in the purses of the profile, by the day of this computer's clock, so that they hold
over a restart and for all processes; what runs now is set aside here.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from desktop_host.core.asks import DAILY_USD
from desktop_host.core.errors import UserFault
from desktop_host.core.exchange import Origin
from desktop_host.core.ports import Clock
from desktop_host.core.servers import SamplingPolicy
from desktop_host.engine.spending import Spending

LEAST_OUTPUT = 16
"""With fewer tokens of the day left for an answer, it is not asked for."""


@dataclass(slots=True)
class _Server:
    recent: deque[float] = field(default_factory=deque)
    """When it asked within the last minute, on the monotonic clock."""
    running: set[tuple[str | None, str | None]] = field(default_factory=set)
    """Sessions and calls with a request under way."""
    held: int = 0
    """Tokens that requests under way may still use."""


class Allowance:
    """Admits the sampling requests of servers."""

    def __init__(self, clock: Clock, spending: Spending) -> None:
        self._clock = clock
        self._spending = spending
        self._servers: dict[str, _Server] = {}

    @asynccontextmanager
    async def admitted(
        self, origin: Origin, policy: SamplingPolicy, input_tokens: int, wanted: int
    ) -> AsyncIterator[int]:
        """Let one request in; yields how many tokens its answer may have.

        Raises:
            UserFault: `permission` with `reason` `sampling_off`, `sampling_depth` (a request of the same call is
                under way), `sampling_rate` or `sampling_budget`.
        """
        if policy.mode == "off":
            raise refused(origin.server, "sampling_off", "switched off")
        mine = self._servers.setdefault(origin.server, _Server())
        at = (origin.session, origin.call_id)
        if at in mine.running:
            raise refused(origin.server, "sampling_depth", "another request of the same call is under way")
        now = self._clock.monotonic()
        while mine.recent and now - mine.recent[0] > 60:
            mine.recent.popleft()
        if len(mine.recent) >= policy.per_minute:
            raise refused(origin.server, "sampling_rate", f"more than {policy.per_minute} requests a minute")
        mine.recent.append(now)
        mine.running.add(at)
        held = 0
        try:
            used = (await self._spending.server_today(origin.server)).tokens
            left = policy.daily_tokens - used - mine.held - input_tokens
            most = min(wanted, policy.max_tokens)
            if left < min(LEAST_OUTPUT, most):
                raise refused(
                    origin.server, "sampling_budget", f"its {policy.daily_tokens} tokens of today do not cover this"
                )
            most = min(most, left)
            held = input_tokens + most
            mine.held += held
            yield most
        finally:
            mine.held -= held
            mine.running.discard(at)


def money_cap(policy: SamplingPolicy) -> float | None:
    """What a server's sampling may cost in a day, in US dollars; never without a cap where nobody is asked."""
    return policy.daily_usd or (DAILY_USD if policy.mode == "allow" else None)


def refused(server: str, reason: str, text: str) -> UserFault:
    """The fault of a request that is not let in."""
    return UserFault("permission", f"sampling for {server}: {text}", server=server, reason=reason)
