"""What requests may cost: money is set aside before a request, and the truth is booked after it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from desktop_host.core.admin import ModelAdmin, SettingsStore
from desktop_host.core.budgets import WARN_AT, Purse, Purses, Reservation, Standing
from desktop_host.core.errors import HostError
from desktop_host.core.events import Notice
from desktop_host.core.models import ModelRequest, Quote, Usage
from desktop_host.core.ports import Clock
from desktop_host.core.settings import Settings
from desktop_host.core.tokens import elsewhere, most
from desktop_host.core.values import FrozenDict

USUAL_OUTPUT = 16_000
"""Output tokens that money is set aside for where nobody set a limit; the request is limited to what was."""
LEAST_OUTPUT = 256
"""An answer shorter than this is not worth asking for."""


@dataclass(frozen=True, slots=True)
class Need:
    """A request that wants to be paid for."""

    ref: str
    request: ModelRequest
    input_tokens: int
    session: str | None = None
    session_usd: float | None = None
    """The chat's own budget; None: the profile's setting."""
    server: str | None = None
    """Alias of the server whose sampling this is."""
    server_usd: float | None = None
    """What its sampling may cost in a day, beside the profile's setting; None: that alone."""
    most_tokens: int | None = None
    """What the input can have at most; None: by `input_tokens`."""
    tokens_limited: bool = False
    """A token budget stands in for a price that is unknown."""


class Grant:
    """The leave to send one request. Settle it, or abandon it; nothing else gives the money back."""

    def __init__(
        self, ref: str, request: ModelRequest, purses: Purses | None, counted: tuple[Purse, ...],
        reservation: Reservation | None, quote: Callable[[], Awaitable[Quote | None]], input_tokens: int = 0,
    ) -> None:  # fmt: skip
        self.ref = ref
        """The model to ask: the one wanted, or a cheaper one."""
        self.request = request
        self._purses = purses
        self._counted = counted
        self._reservation = reservation
        self._quote = quote
        self._input = input_tokens

    async def settle(self, usage: Usage, *, cached: bool = False) -> tuple[Notice, ...]:
        """Book what it cost; returns what the person should know of the budgets."""
        cost = usage.cost_usd
        if cost is None:
            cost = self._reservation.usd if self._reservation else 0.0
        return await _to_the_end(self._settle(cost, 0 if cached else 1, 0 if cached else usage.total))

    async def abandon(self, output_tokens: int, *, sent: bool) -> None:
        """It failed or was stopped. `sent`: the vendor may bill what it was sent and what it wrote."""
        await _to_the_end(self._abandon(output_tokens, sent))

    async def _abandon(self, output_tokens: int, sent: bool) -> tuple[Notice, ...]:
        cost = 0.0
        if sent and self._purses is not None:
            quote = await self._quote()
            cost = quote.fixed_usd + quote.per_token_usd * output_tokens if quote else 0.0
        return await self._settle(cost, int(sent), self._input + output_tokens if sent else 0)

    async def _settle(self, cost: float, calls: int, tokens: int) -> tuple[Notice, ...]:
        if self._purses is None:
            return ()
        await self._purses.settle(self._reservation, self._counted, cost, calls, tokens)
        self._reservation = None
        limited = [p for p in self._counted if p.limited]
        if not limited:
            return ()
        standing = await self._purses.standing(limited)
        notices = [_notices(p, s, cost, calls) for p, s in zip(limited, standing, strict=True)]
        return tuple(notice for some in notices for notice in some)


class Spending:
    """The budgets and quotas of a host."""

    def __init__(self, models: ModelAdmin, settings: SettingsStore, clock: Clock, purses: Purses | None) -> None:
        self._models = models
        self._settings = settings
        self._clock = clock
        self._purses = purses

    async def admit(self, need: Need) -> Grant:
        """Set money aside for a request; where the budget no longer covers it, for one of a cheaper model.

        Raises:
            HostError: `budget_spent`, `quota_spent` or `price_unknown`.
        """
        if self._purses is None:
            return Grant(need.ref, need.request, None, (), None, partial(self._models.quote, need.ref, need.request, 0))
        settings = self._settings.current()
        counted = self.purses(settings, need.session, need.session_usd, need.server, need.server_usd)
        refused: HostError | None = None
        for ref in (need.ref, *_cheaper(settings, need.ref)):
            try:
                bound = need.most_tokens
                other = bound if bound is None or ref == need.ref else elsewhere(bound)
                return await self._admit(self._purses, replace(need, ref=ref, most_tokens=other), counted)
            except HostError as fault:
                refused = refused or fault
                if refused.code != "budget_spent":
                    break
        assert refused is not None
        raise refused

    async def _admit(self, purses: Purses, need: Need, counted: tuple[Purse, ...]) -> Grant:
        request = need.request
        money = any(p.usd is not None for p in counted)
        ask = partial(self._models.quote, need.ref, request, need.input_tokens)
        if not any(p.limited for p in counted):
            # Nobody waits for a price here: the first one takes a second to load.
            return Grant(need.ref, request, purses, counted, None, ask, need.input_tokens)
        # Money is set aside for the most that it can be: an estimate may be passed, a limit may not.
        bound = most(need.input_tokens) if need.most_tokens is None else need.most_tokens
        quote = await self._models.quote(need.ref, request, bound) if money else None
        if money and quote is None and not need.tokens_limited:
            raise HostError("price_unknown", f"the price of {need.ref} is unknown", model=need.ref)
        price = quote or Quote(0.0)
        wanted = request.max_tokens or USUAL_OUTPUT
        usd = price.fixed_usd + price.per_token_usd * wanted
        least = price.fixed_usd + price.per_token_usd * min(LEAST_OUTPUT, wanted)
        reservation = await purses.reserve(counted, usd if money else 0.0, least if money else 0.0)
        if money and price.per_token_usd > 0:
            affordable = int((reservation.usd - price.fixed_usd) / price.per_token_usd + 1e-6)
            request = replace(request, max_tokens=min(wanted, max(1, affordable)))
        request = replace(request, price_limit=money and not need.tokens_limited)
        return Grant(need.ref, request, purses, counted, reservation, ask, need.input_tokens)

    def purses(
        self,
        settings: Settings,
        session: str | None,
        session_usd: float | None = None,
        server: str | None = None,
        server_usd: float | None = None,
    ) -> tuple[Purse, ...]:
        """What a request counts for, with the limits of now."""
        budgets = settings.budgets
        now = time.localtime(self._clock.now())
        day, month = time.strftime("%Y-%m-%d", now), time.strftime("%Y-%m", now)
        found = []
        if session:
            own = budgets.session_usd or None if session_usd is None else session_usd
            found.append(Purse("session", session, own))
        found.append(Purse("day", day, budgets.day_usd or None, settings.quotas.calls))
        found.append(Purse("month", month, budgets.month_usd or None))
        if server:
            limits = [usd for usd in (server_usd, budgets.server_day_usd) if usd]
            found.append(Purse("server", f"{server} {day}", min(limits, default=None)))
        return tuple(found)

    async def server_today(self, server: str) -> Standing:
        """What a server's sampling cost today, in money and tokens."""
        if self._purses is None:
            return Standing()
        purse = self.purses(self._settings.current(), None, server=server)[-1]
        return (await self._purses.standing((purse,)))[0]

    async def standings(self, session: str | None, session_usd: float | None = None) -> tuple[FrozenDict, ...]:
        """`{scope, key, spent_usd, reserved_usd, limit_usd, calls, limit_calls}` of day, month and one chat."""
        if self._purses is None:
            return ()
        counted = self.purses(self._settings.current(), session, session_usd)
        return tuple(
            FrozenDict({
                "scope": p.scope, "key": p.key, "spent_usd": s.spent_usd, "reserved_usd": s.reserved_usd,
                "limit_usd": p.usd, "calls": s.calls + s.reserved_calls, "limit_calls": p.calls,
            })
            for p, s in zip(counted, await self._purses.standing(counted), strict=True)
        )  # fmt: skip


def _cheaper(settings: Settings, ref: str) -> tuple[str, ...]:
    """The models to go on with once the budget is spent: those after `ref` in the chain, or all of it."""
    budgets = settings.budgets
    if budgets.at_limit != "downgrade":
        return ()
    chain = tuple(one.strip() for one in budgets.downgrade.split(",") if one.strip())
    return chain[chain.index(ref) + 1 :] if ref in chain else chain


def _notices(purse: Purse, standing: Standing, cost: float, calls: int) -> list[Notice]:
    """What to say once a limit is four fifths used, and where a request cost more than was foreseen."""
    out = []
    if purse.usd is not None and cost > 0:
        line = purse.usd * WARN_AT
        if standing.spent_usd > purse.usd + 1e-9:
            out.append(Notice("budget_late", FrozenDict({
                "scope": purse.scope, "over": round(standing.spent_usd - purse.usd, 6), "limit": purse.usd,
            })))  # fmt: skip
        elif standing.spent_usd >= line > standing.spent_usd - cost:
            out.append(Notice("budget_near", FrozenDict({
                "scope": purse.scope, "percent": int(100 * standing.spent_usd / purse.usd),
                "spent": round(standing.spent_usd, 4), "limit": purse.usd,
            })))  # fmt: skip
    if purse.calls is not None and standing.calls >= purse.calls * WARN_AT > standing.calls - calls:
        out.append(Notice("quota_near", FrozenDict({"spent": standing.calls, "limit": purse.calls})))
    return out


async def _to_the_end(work: Coroutine[Any, Any, tuple[Notice, ...]]) -> tuple[Notice, ...]:
    """Finish `work` even if the caller is cancelled meanwhile: money must not stay set aside."""
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait({task})
        raise
