"""What an answer cost: prices by a table that ships with the host, loaded when first needed, in a thread."""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Any

from desktop_host.core.models import Completed, ModelEvent, ModelRequest, Usage
from desktop_host.core.ports import ChatModel
from desktop_host.core.settings_costs import Price
from desktop_host.providers.clients import is_loopback, vendor_of


def cost_of(model: str, usage: Usage, base_url: str, own: tuple[Price, ...] = ()) -> float | None:
    """US dollars of a request; 0 on loopback, None where no price is known. Blocking: about a second at first.

    `own` are the person's prices; the first whose name fits wins over the table and over loopback.
    """
    for price in own:
        if fnmatchcase(model, price.model):
            return _by_own(price, usage)
    if is_loopback(base_url):
        return 0.0
    prices: Any = importlib.import_module("genai_prices")
    counted = prices.Usage(
        input_tokens=usage.input + usage.cache_read + usage.cache_write, output_tokens=usage.output,
        cache_read_tokens=usage.cache_read, cache_write_tokens=usage.cache_write,
    )  # fmt: skip
    try:
        found = prices.calc_price(counted, model, **_place(base_url))
    except LookupError:
        return None
    return float(found.total_price)


def _by_own(price: Price, usage: Usage) -> float:
    read = price.input if price.cache_read is None else price.cache_read
    write = price.input if price.cache_write is None else price.cache_write
    parts = (
        (usage.input, price.input), (usage.output, price.output), (usage.cache_read, read), (usage.cache_write, write),
    )  # fmt: skip
    return sum(tokens * each for tokens, each in parts) / 1_000_000


def window_of(model: str, base_url: str) -> int | None:
    """Context window in tokens by the same table; None where it is not known. Blocking like `cost_of`."""
    if is_loopback(base_url):
        return None
    prices: Any = importlib.import_module("genai_prices")
    try:
        found = prices.calc_price(prices.Usage(input_tokens=1, output_tokens=1), model, **_place(base_url))
    except LookupError:
        return None
    window = found.model.context_window
    return int(window) if window else None


def _place(base_url: str) -> dict[str, str]:
    vendor = vendor_of(base_url)
    return {"provider_id": vendor} if vendor else {"provider_api_url": base_url}


class Priced:
    """A `ChatModel` that fills in the cost of each answer."""

    def __init__(
        self, model: ChatModel, name: str, base_url: str, own: Callable[[], tuple[Price, ...]] = lambda: ()
    ) -> None:
        """Wrap a model.

        Args:
            model: the model that answers.
            name: its name, for the price where the answer does not say one that is known.
            base_url: where it answers.
            own: the person's own prices.
        """
        self._model = model
        self._name = name
        self._base_url = base_url
        self._own = own

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """Answer one request."""
        async with aclosing(self._model.stream(request)) as events:
            async for event in events:
                if isinstance(event, Completed) and event.usage.cost_usd is None:
                    cost = await self._cost(event)
                    event = replace(event, usage=event.usage.priced(cost))
                yield event

    async def _cost(self, event: Completed) -> float | None:
        own = self._own()
        if is_loopback(self._base_url) and not own:
            return 0.0
        for name in dict.fromkeys((event.model, self._name)):
            cost = await asyncio.to_thread(cost_of, name, event.usage, self._base_url, own)
            if cost is not None:
                return cost
        return None
