"""A chain of models: the next one answers where the one before cannot, until something was shown."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

from desktop_host.core.errors import ModelFault
from desktop_host.core.models import ModelEvent, ModelRequest, ModelSwitched
from desktop_host.core.ports import ChatModel
from desktop_host.providers.retry import is_visible, streaming

STAYS = frozenset({"content_filter", "bad_history", "thinking_binding"})
"""Faults of the conversation, not of the model: another model is not asked behind the person's back."""


class Router:
    """A `ChatModel` over several; each keeps its own retries."""

    def __init__(self, chain: Sequence[tuple[str, ChatModel]]) -> None:
        """Take the chain as `(REF, model)`, first choice first; at least one."""
        if not chain:
            raise ValueError("a route needs a model")
        self._chain = tuple(chain)

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """Answer one request; `ModelSwitched` tells when another model takes over."""
        for place, (ref, model) in enumerate(self._chain):
            visible = False
            try:
                async with streaming(model, request) as events:
                    async for event in events:
                        visible = visible or is_visible(event)
                        yield event
                return
            except ModelFault as fault:
                last = place + 1 == len(self._chain)
                if visible or fault.visible or last or fault.code in STAYS:
                    raise
                switched = ModelSwitched(ref, self._chain[place + 1][0], fault.code)
            yield switched
