"""What a request may cost at most, and what fits into a model: asked before anything is sent."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from desktop_host.core.models import ModelEntry, ModelRequest, Quote, Usage
from desktop_host.core.ports import ChatModel
from desktop_host.core.settings_costs import Price
from desktop_host.providers.pricing import cost_of, window_of
from desktop_host.providers.refs import Local, Remote, Script, parse
from desktop_host.providers.scripted import ScriptedModel

STEP = 1000
"""Output tokens that the price of one is taken from."""


class Quotes:
    """Answers for single models; routes ask it for each of theirs."""

    def __init__(
        self,
        entries: Callable[[], Awaitable[Sequence[ModelEntry]]],
        prices: Callable[[], tuple[Price, ...]],
        scripted: Callable[[Path], ChatModel],
    ) -> None:
        """Remember whom to ask.

        Args:
            entries: the models that are known, with their windows; asks no network.
            prices: the person's own.
            scripted: makes the model of a `script:` REF.
        """
        self._entries = entries
        self._prices = prices
        self._scripted = scripted

    async def window(self, ref: str) -> int | None:
        """Context window in tokens; None where nobody says."""
        named = parse(ref)
        if isinstance(named, Script):
            return None
        entries = await self._entries()
        if isinstance(named, Local):
            own = [e for e in entries if e.source == "local"]
            found = next((e for e in own if e.ref == ref), own[0] if own and named.name is None else None)
            return found.context_window if found else None
        for entry in entries:
            if entry.ref == ref and entry.note is None:
                return entry.context_window
        return await asyncio.to_thread(window_of, named.model, named.base_url)

    async def quote(self, ref: str, request: ModelRequest, input_tokens: int) -> Quote | None:
        """The most that a request costs; None where the price is unknown."""
        named = parse(ref)
        if isinstance(named, Local):
            return Quote(0.0)
        if isinstance(named, Script):
            model = self._scripted(named.path)
            return await model.quote(request) if isinstance(model, ScriptedModel) else Quote(0.0)
        return await asyncio.to_thread(self._of, named, input_tokens)

    def _of(self, named: Remote, tokens: int) -> Quote | None:
        own = self._prices()  # They win over "nothing", which a model of this machine costs else.
        # What is sent may be written to the vendor's cache, which costs more than plain input.
        sent = [
            cost_of(named.model, usage, named.base_url, own)
            for usage in (Usage(input=tokens), Usage(cache_write=tokens))
        ]
        more = cost_of(named.model, Usage(input=tokens, output=STEP), named.base_url, own)
        if sent[0] is None or more is None:
            return None
        return Quote(max(cost for cost in sent if cost is not None), max(0.0, more - sent[0]) / STEP)
