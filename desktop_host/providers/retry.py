"""The one policy of trying again: few tries, the vendor's own delay, a visible countdown, never after text."""

from __future__ import annotations

import random
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing

from desktop_host.core.errors import ModelFault
from desktop_host.core.models import (
    ModelEvent,
    ModelRequest,
    RetryWaiting,
    TextDelta,
    ThinkingDelta,
    ToolCallDelta,
)
from desktop_host.core.ports import ChatModel, Clock

MAX_TRIES = 4
MAX_DELAY_S = 60.0
TOTAL_S = 180.0


def is_visible(event: ModelEvent) -> bool:
    """Whether a person has seen something of the answer with this event."""
    return isinstance(event, (TextDelta, ThinkingDelta, ToolCallDelta))


class Retrying:
    """A `ChatModel` that tries again what may pass by itself."""

    def __init__(self, model: ChatModel, clock: Clock, jitter: Callable[[], float] = random.random) -> None:
        """Wrap a model.

        Args:
            model: the model that may fail.
            clock: what waits.
            jitter: a number from 0 to 1, so that many clients do not come back at once.
        """
        self._model = model
        self._clock = clock
        self._jitter = jitter

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """Answer one request; `RetryWaiting` comes before each pause."""
        began = self._clock.monotonic()
        tried = 0
        while True:
            tried += 1
            visible = False
            try:
                async with aclosing(self._model.stream(request)) as events:
                    async for event in events:
                        visible = visible or is_visible(event)
                        yield event
                return
            except ModelFault as fault:
                fault.visible = fault.visible or visible
                delay = self._delay(fault, tried, self._clock.monotonic() - began)
                if delay is None:
                    raise
                waiting = RetryWaiting(tried, delay, fault.code, fault.message)
            yield waiting
            await self._clock.sleep(delay)

    def _delay(self, fault: ModelFault, tried: int, spent_s: float) -> float | None:
        """Seconds to wait, or None to give up: a vendor who wants more than a minute is believed, not waited for."""
        if fault.visible or not fault.retryable or tried >= MAX_TRIES:
            return None
        wanted = fault.retry_after_s or 0.0
        if wanted > MAX_DELAY_S:
            return None
        delay = min(MAX_DELAY_S, max(wanted, self._jitter() * 2.0**tried))
        return delay if spent_s + delay <= TOTAL_S else None
