"""What is known now of the models of a route: keys, windows, costs, failures. Asks no network."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from desktop_host.core.admin import SettingsStore
from desktop_host.core.errors import HostError, UserFault
from desktop_host.core.models import ModelRequest, Quote
from desktop_host.core.ports import Clock
from desktop_host.core.routes import Considered, Facts, Health, Link, Needs, Route, consider, find
from desktop_host.providers.quotes import Quotes
from desktop_host.providers.router import usable_window

EXPECTED_OUTPUT = 1000
"""Tokens of an answer, for the estimate that a route's cost ceiling is compared with."""
_EMPTY = ModelRequest(())


class RouteFacts:
    """Answers what a route, or a single model, can do and what it costs."""

    def __init__(
        self,
        settings: SettingsStore,
        quotes: Quotes,
        usable: Callable[[str], Awaitable[str | None]],
        health: Health,
        clock: Clock,
    ) -> None:
        self._settings = settings
        self._quotes = quotes
        self._usable = usable
        self._health = health
        self._clock = clock

    async def look(self, route: Route, request: ModelRequest | None, needs: Needs) -> dict[str, Facts]:
        """The facts of each model of a route, for one request."""
        found = await asyncio.gather(*(self._fact(link, request or _EMPTY, needs) for link in route.chain))
        return {link.model: facts for link, facts in zip(route.chain, found, strict=True)}

    async def explain(self, name: str, needs: Needs) -> tuple[Considered, ...]:
        """What a route would do with a request.

        Raises:
            UserFault: `not_found`.
        """
        route = find(self._settings.current().routes, name)
        if route is None:
            raise UserFault("not_found", f"there is no route {name}", kind="route", name=name)
        return consider(route, needs, await self.look(route, None, needs))

    async def window(self, ref: str) -> int | None:
        """Context window of a model, or the largest of a route's usable ones; None where nobody says."""
        route = find(self._settings.current().routes, ref)
        if route is None:
            return await self._quotes.window(ref)
        return usable_window(consider(route, Needs(), await self.look(route, None, Needs())))

    async def quote(self, ref: str, request: ModelRequest, input_tokens: int) -> Quote | None:
        """The most that a request costs; of a route: the dearest of its models whose price is known."""
        route = find(self._settings.current().routes, ref)
        if route is None:
            return await self._quotes.quote(ref, request, input_tokens)
        found = await asyncio.gather(*(self._quoted(link.model, request, input_tokens) for link in route.chain))
        known = [quote for quote in found if quote is not None]
        if not known:
            return None
        return Quote(max(q.fixed_usd for q in known), max(q.per_token_usd for q in known))

    async def _quoted(self, ref: str, request: ModelRequest, input_tokens: int) -> Quote | None:
        try:
            return await self._quotes.quote(ref, request, input_tokens)
        except HostError:
            return None  # a link that cannot be read never answers, so it costs nothing

    async def _fact(self, link: Link, request: ModelRequest, needs: Needs) -> Facts:
        memory_s = self._settings.current().routing.memory_minutes * 60
        failed = self._health.recent(link.model, self._clock.monotonic(), memory_s)
        try:
            reason = await self._usable(link.model)
            window = await self._quotes.window(link.model)
        except HostError:
            return Facts(False, "bad_ref")
        quote = await self._quoted(link.model, request, needs.tokens)
        cost = None if quote is None else quote.fixed_usd + quote.per_token_usd * EXPECTED_OUTPUT
        return Facts(reason is None, reason, window, cost, failed)
