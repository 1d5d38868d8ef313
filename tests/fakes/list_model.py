"""A model that says what a list tells it: for engine tests. Passes the contract of `ChatModel`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass, field
from typing import Any

from desktop_host.core.errors import HostError, ModelFault
from desktop_host.core.messages import Message, Role, StopReason, Text, Thinking, ToolCall
from desktop_host.core.models import (
    Completed,
    ModelEntry,
    ModelEvent,
    ModelNotice,
    ModelProgress,
    ModelRequest,
    Quote,
    RetryWaiting,
    TextDelta,
    ThinkingDelta,
    Usage,
)
from desktop_host.core.routes import Considered, Needs
from desktop_host.core.tools import wire_name
from desktop_host.core.values import freeze


def call(full_name: str, /, call_id: str = "", **arguments: Any) -> ToolCall:
    """A call of `server.tool` as a model would write it."""
    server, _, tool = full_name.partition(".")
    return ToolCall(call_id or f"c-{tool}-{len(arguments)}", wire_name(server, tool), freeze(arguments))


@dataclass
class ListModel:
    """Each reply is a list of steps: text, `ToolCall`, an exception, an `asyncio.Event` to wait for, an event."""

    replies: list[list[Any]]
    requests: list[ModelRequest] = field(default_factory=list)
    usage: Usage = Usage(10, 5, cost_usd=0.0)
    waiting: asyncio.Event = field(default_factory=asyncio.Event)
    """Set while the model waits for an `asyncio.Event` of its list."""

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        self.requests.append(request)
        if request.step_index >= len(self.replies):
            raise ModelFault("script_exhausted", "no reply left")
        blocks: list[Any] = []
        stop: StopReason | None = None
        for item in self.replies[request.step_index]:
            match item:
                case StopReason():
                    stop = item
                case str():
                    for i, word in enumerate(item.split(" ")):
                        piece = f" {word}" if i else word
                        blocks.append(piece)
                        yield TextDelta(piece)
                case Thinking(text=text):
                    yield ThinkingDelta(text)
                    blocks.append(item)
                case ToolCall():
                    blocks.append(item)
                case BaseException():
                    raise item
                case asyncio.Event():
                    self.waiting.set()
                    await item.wait()
                case RetryWaiting() | ModelNotice():
                    yield item
        text = "".join(b for b in blocks if isinstance(b, str))
        calls = [b for b in blocks if isinstance(b, ToolCall)]
        thinking = [b for b in blocks if isinstance(b, Thinking)]
        message = Message(Role.ASSISTANT, (*thinking, *((Text(text),) if text else ()), *calls))
        yield Completed(message, self.usage, stop or (StopReason.TOOLS if calls else StopReason.END), "list-model")


@dataclass
class FixedModels:
    """A `ModelAdmin` with the models it was given."""

    models: dict[str, Any]
    windows: dict[str, int] = field(default_factory=dict)
    quotes: dict[str, Quote | None] = field(default_factory=dict)
    """What a request costs at most, by REF; 0 where nothing is said."""
    traits: dict[str, tuple[int | None, int | None]] = field(default_factory=dict)
    """Speed and intelligence, by REF."""
    unusable: set[str] = field(default_factory=set)
    """Names of routes of which no model may answer."""

    async def window(self, ref: str) -> int | None:
        return self.windows.get(ref)

    async def quote(self, ref: str, request: ModelRequest, input_tokens: int) -> Quote | None:
        return self.quotes.get(ref, Quote(0.0))

    def kin(self) -> tuple[tuple[str, ...], ...]:
        return (("haiku", "luna"),)

    async def explain(self, name: str, needs: Needs) -> tuple[Considered, ...]:
        """A model of this name stands for a route of it: usable, unless it is in `unusable`."""
        if name not in self.models:
            raise HostError("not_found", name)
        usable = name not in self.unusable
        return (Considered(name, usable, usable, ("first" if usable else "no_key",)),)

    async def open(self, ref: str) -> Any:
        found = self.models.get(ref)
        if found is None:
            raise HostError("unknown_model", f"no model {ref}", model=ref)
        return found

    async def entries(self, *, refresh: bool = False) -> tuple[ModelEntry, ...]:
        steps = {ref: self.traits.get(ref, (None, None)) for ref in self.models}
        return tuple(ModelEntry(ref, ref, "test", True, speed=s, intelligence=i) for ref, (s, i) in steps.items())

    async def fetch(self, name: str, progress: Callable[[ModelProgress], None]) -> None:
        raise HostError("not_found", name)

    async def remove(self, name: str) -> None:
        raise HostError("not_found", name)

    async def check(self, ref: str) -> None:
        await self.open(ref)

    async def close(self) -> None:
        self.models.clear()
