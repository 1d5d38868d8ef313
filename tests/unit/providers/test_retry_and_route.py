"""Trying again, falling back, and what an answer costs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

import pytest

from desktop_host.core.errors import ModelFault
from desktop_host.core.messages import StopReason, assistant
from desktop_host.core.models import (
    Completed,
    ModelEvent,
    ModelRequest,
    RetryWaiting,
    TextDelta,
    ThinkingDelta,
    Usage,
)
from desktop_host.providers.pricing import Priced, cost_of, window_of
from desktop_host.providers.retry import Retrying
from tests.contract.chat_model_contract import asked, end_of
from tests.fakes.manual_clock import ManualClock
from tests.fakes.model_server import ModelServer, answer
from tests.fakes.remote import models, ref_of
from tests.fakes.wires import Say, reply

DONE = Completed(assistant("ok"), Usage(input=1000, output=100), StopReason.END, "m")
BUSY = ModelFault("overloaded", "busy", retryable=True)


class Playing:
    """A model that plays lists of events; an exception in a list is raised there."""

    def __init__(self, *plays: list[Any]) -> None:
        self.plays = list(plays)
        self.closed = 0

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        try:
            for event in self.plays.pop(0):
                if isinstance(event, ModelFault):
                    raise ModelFault(
                        event.code, event.message, retryable=event.retryable, retry_after_s=event.retry_after_s,
                        visible=event.visible,
                    )  # fmt: skip
                yield event
        finally:
            self.closed += 1


async def run(model: Any, clock: ManualClock, seconds: float = 1000) -> tuple[list[ModelEvent], ModelFault | None]:
    seen: list[ModelEvent] = []

    async def read() -> None:
        async for event in model.stream(asked()):
            seen.append(event)

    task = asyncio.create_task(read())
    for _ in range(10):
        await clock.advance(seconds / 10)
    try:
        await asyncio.wait_for(task, 5)
    except ModelFault as fault:
        return seen, fault
    return seen, None


async def test_what_may_pass_is_tried_again_and_said_before_each_pause():
    clock = ManualClock()
    model = Retrying(Playing([BUSY], [BUSY], [TextDelta("ok"), DONE]), clock, jitter=lambda: 1.0)
    seen, fault = await run(model, clock)
    assert fault is None
    waits = [event for event in seen if isinstance(event, RetryWaiting)]
    assert [(w.attempt, w.delay_s, w.code) for w in waits] == [(1, 2.0, "overloaded"), (2, 4.0, "overloaded")]
    assert seen[-1] is DONE


async def test_four_tries_are_all():
    clock = ManualClock()
    playing = Playing(*[[BUSY]] * 9)
    seen, fault = await run(Retrying(playing, clock, jitter=lambda: 1.0), clock)
    assert fault is not None
    assert playing.closed == 4
    assert len(seen) == 3


async def test_the_vendors_delay_is_the_least_that_is_waited():
    """Hazard J107."""
    clock = ManualClock()
    busy = ModelFault("rate_limited", "slow down", retryable=True, retry_after_s=17)
    seen, _ = await run(Retrying(Playing([busy], [DONE]), clock, jitter=lambda: 0.0), clock)
    assert isinstance(seen[0], RetryWaiting)
    assert seen[0].delay_s == 17


async def test_a_delay_of_more_than_a_minute_is_shown_and_not_waited_for():
    """Hazard J107: fifty silent minutes of "thinking"."""
    clock = ManualClock()
    busy = ModelFault("rate_limited", "tomorrow", retryable=True, retry_after_s=3000)
    seen, fault = await run(Retrying(Playing([busy]), clock), clock)
    assert fault is not None
    assert fault.retry_after_s == 3000
    assert seen == []


async def test_three_minutes_in_all_are_the_end():
    clock = ManualClock()
    busy = ModelFault("rate_limited", "slow", retryable=True, retry_after_s=60)
    seen, fault = await run(Retrying(Playing(*[[busy]] * 4), clock), clock)
    assert fault is not None
    assert [e.delay_s for e in seen if isinstance(e, RetryWaiting)] == [60, 60, 60]
    slow = Retrying(Playing([busy], [busy], [busy], [DONE]), clock, jitter=lambda: 0.0)
    task = asyncio.create_task(run(slow, clock, 181))
    assert (await task)[1] is None


@pytest.mark.parametrize("shown", [TextDelta("Half"), ThinkingDelta("Hm")])
async def test_nothing_is_tried_again_after_something_was_shown(shown):
    clock = ManualClock()
    seen, fault = await run(Retrying(Playing([shown, BUSY], [DONE]), clock), clock)
    assert fault is not None
    assert fault.visible
    assert seen == [shown]


async def test_what_cannot_pass_is_not_tried_again():
    clock = ManualClock()
    seen, fault = await run(Retrying(Playing([ModelFault("auth", "no")], [DONE]), clock), clock)
    assert fault is not None
    assert seen == []


async def test_cancelling_a_pause_is_no_error_and_closes_all():
    clock = ManualClock()
    playing = Playing([BUSY], [DONE])
    task = asyncio.create_task(run(Retrying(playing, clock), clock, 0))
    await clock.wait_for_sleepers()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert playing.closed == 1


async def test_a_429_over_the_wire_is_waited_for_and_answered():
    clock = ManualClock()
    refusal = answer(
        {"type": "error", "error": {"type": "rate_limit_error", "message": "slow"}}, 429, ("retry-after", "3")
    )
    busy = answer({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}, 529)
    async with ModelServer() as server, models(clock=clock) as catalog:
        server.script(refusal, busy, reply("anthropic", Say("Hi.")))
        model = await catalog.open(ref_of("anthropic", server))
        seen: list[ModelEvent] = []
        pauses: asyncio.Queue[RetryWaiting] = asyncio.Queue()

        async def read() -> None:
            async for event in model.stream(asked()):
                seen.append(event)
                if isinstance(event, RetryWaiting):
                    pauses.put_nowait(event)

        task = asyncio.create_task(read())
        for _ in range(2):
            await asyncio.wait_for(pauses.get(), 30)
            await clock.wait_for_sleepers()
            await clock.advance(60)
        await asyncio.wait_for(task, 30)
        assert len(server.posts) == 3
        assert [p.headers["x-stainless-retry-count"] for p in server.posts] == ["0", "0", "0"]
    waits = [e for e in seen if isinstance(e, RetryWaiting)]
    assert [w.code for w in waits] == ["rate_limited", "overloaded"]
    assert waits[0].delay_s >= 3
    assert end_of(seen).message.text == "Hi."


async def test_a_known_model_has_a_price_and_an_unknown_one_has_none():
    usage = Usage(input=1000, output=100, cache_read=500)
    known = await asyncio.to_thread(cost_of, "claude-haiku-5-5", usage, "https://api.anthropic.com")
    assert known is not None
    assert 0 < known < 0.01
    for model, address in (("gpt-99", "https://api.openai.com/v1"), ("qwen3", "https://models.example.com/v1")):
        assert await asyncio.to_thread(cost_of, model, usage, address) is None
    assert cost_of("anything", usage, "http://127.0.0.1:11434/v1") == 0.0
    assert await asyncio.to_thread(window_of, "claude-haiku-5-5", "https://api.anthropic.com") == 1_000_000
    assert await asyncio.to_thread(window_of, "gpt-99", "https://api.openai.com/v1") is None


async def test_priced_fills_in_the_cost_and_leaves_a_known_one():
    clock = ManualClock()
    priced = Priced(Playing([DONE]), "claude-haiku-5-5", "https://api.anthropic.com")
    seen: list[ModelEvent] = [event async for event in priced.stream(asked())]
    assert end_of(seen).usage.cost_usd == pytest.approx(0.00015)
    unknown = Priced(Playing([DONE]), "m", "https://models.example.com/v1")
    assert end_of([event async for event in unknown.stream(asked())]).usage.cost_usd is None
    assert clock.now() > 0
