"""What every `ChatModel` promises. Each function takes a stage: `stage(*answers)` opens a model that gives them.

A stage is an async context manager; an adapter's test file makes one and runs all of `CONTRACT` on it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, aclosing
from typing import Any

from desktop_host.core.messages import Message, StopReason, Text, Thinking, ToolResult, user
from desktop_host.core.models import Completed, ModelEvent, ModelRequest, TextDelta, ThinkingDelta, Usage
from desktop_host.core.ports import ChatModel
from desktop_host.core.tools import ToolSpec
from desktop_host.core.values import freeze
from tests.fakes.wires import Say

Stage = Callable[..., AbstractAsyncContextManager[ChatModel]]

ECHO = ToolSpec(
    "echo", "say", "Says it again.",
    freeze({"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}),
)  # fmt: skip


async def collect(model: ChatModel, request: ModelRequest) -> list[ModelEvent]:
    return [event async for event in model.stream(request)]


def asked(text: str = "hello", *more: Message, tools: tuple[ToolSpec, ...] = (), **fields: Any) -> ModelRequest:
    return ModelRequest((user(text), *more), tools=tools, conversation="c-1", **fields)


def end_of(events: list[ModelEvent]) -> Completed:
    last = events[-1]
    assert isinstance(last, Completed)
    return last


async def the_text_comes_in_pieces_that_make_up_the_message(stage: Stage) -> None:
    async with stage(Say("The quick brown fox.")) as model:
        events = await collect(model, asked())
    pieces = [event.text for event in events if isinstance(event, TextDelta)]
    assert len(pieces) > 1
    assert "".join(pieces).strip() == end_of(events).message.text == "The quick brown fox."


async def a_stream_ends_with_exactly_one_completed(stage: Stage) -> None:
    async with stage(Say("Done.")) as model:
        events = await collect(model, asked())
    assert sum(isinstance(event, Completed) for event in events) == 1
    assert end_of(events).stop is StopReason.END
    assert end_of(events).model
    assert isinstance(end_of(events).usage, Usage)


async def thinking_is_apart_from_the_text(stage: Stage) -> None:
    async with stage(Say("Four.", thinking="Two and two.")) as model:
        events = await collect(model, asked())
    assert "".join(e.text for e in events if isinstance(e, ThinkingDelta)).strip() == "Two and two."
    assert [type(block) for block in end_of(events).message.blocks] == [Thinking, Text]


async def parallel_calls_come_whole_and_in_order(stage: Stage) -> None:
    calls = tuple((f"call_{n}", ECHO.wire_name, {"text": f"n{n}"}) for n in range(3))
    async with stage(Say("I look.", calls=calls)) as model:
        events = await collect(model, asked(tools=(ECHO,)))
    done = end_of(events)
    assert done.stop is StopReason.TOOLS
    assert [dict(call.arguments) for call in done.message.calls] == [{"text": f"n{n}"} for n in range(3)]
    assert {call.wire_name for call in done.message.calls} == {ECHO.wire_name}
    assert len({call.id for call in done.message.calls}) == 3
    assert not any(call.problem for call in done.message.calls)


async def results_lead_to_the_next_answer(stage: Stage) -> None:
    async with stage(Say(calls=(("call_1", ECHO.wire_name, {"text": "a"}),)), Say("It said a.")) as model:
        first = end_of(await collect(model, asked(tools=(ECHO,)))).message
        results = user(*(ToolResult(call.id, (Text("a"),)) for call in first.calls))
        second = end_of(await collect(model, asked("hello", first, results, tools=(ECHO,), step_index=1)))
    assert second.message.text == "It said a."


async def a_stream_can_be_left_in_the_middle(stage: Stage) -> None:
    async with stage(Say("A long answer that nobody waits for."), Say("Next.")) as model:
        async with aclosing(model.stream(asked())) as events:
            async for event in events:
                if isinstance(event, TextDelta):
                    break
        assert end_of(await collect(model, asked(step_index=1))).message.text == "Next."


async def a_cancelled_stream_raises_the_cancellation_alone(stage: Stage) -> None:
    async with stage(Say("A long answer that nobody waits for.")) as model:
        begun = asyncio.Event()

        async def read() -> None:
            async for _event in model.stream(asked()):
                begun.set()
                await asyncio.sleep(3600)

        task = asyncio.create_task(read())
        await asyncio.wait_for(begun.wait(), 20)
        task.cancel()
        done, _ = await asyncio.wait({task}, timeout=5)
        assert done == {task}
        assert task.cancelled()


CONTRACT: tuple[Callable[[Stage], Awaitable[None]], ...] = (
    the_text_comes_in_pieces_that_make_up_the_message,
    a_stream_ends_with_exactly_one_completed,
    thinking_is_apart_from_the_text,
    parallel_calls_come_whole_and_in_order,
    results_lead_to_the_next_answer,
    a_stream_can_be_left_in_the_middle,
    a_cancelled_stream_raises_the_cancellation_alone,
)
