"""What the three adapters share: send, read, put right once, and never lose where the answer stood."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing
from typing import Any

from desktop_host.core.errors import ModelFault
from desktop_host.core.messages import Message, Native
from desktop_host.core.models import (
    Completed,
    ModelEvent,
    ModelNotice,
    ModelRequest,
    TextDelta,
    ThinkingDelta,
    ToolCallDelta,
)
from desktop_host.providers.clients import Connection, Reply
from desktop_host.providers.errors import classify, from_exception, protocol, truncated
from desktop_host.providers.quirks import Draft, Quirks, apply, notice, repair
from desktop_host.providers.toolset import ToolProfile, WireTools, Workshop

MAX_REPAIRS = 8
_KEPT_CONVERSATIONS = 4


def encode(value: Any) -> str:
    """JSON as it goes over the wire; frozen values come out as they went in."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


class Fragments:
    """The wire form of history, kept from turn to turn by the identity of its messages."""

    def __init__(self) -> None:
        self._kept: dict[tuple[str, Any], dict[int, tuple[Message, str]]] = {}

    def join(
        self, conversation: str, variant: Any, messages: Sequence[Message], render: Callable[[Message], list[Any]]
    ) -> str:
        """The JSON array of all messages; only new ones are rendered."""
        old = self._kept.pop((conversation, variant), {})
        new: dict[int, tuple[Message, str]] = {}
        pieces: list[str] = []
        for message in messages:
            known = old.get(id(message))
            if known is None or known[0] is not message:
                known = (message, ",".join(encode(item) for item in render(message)))
            new[id(message)] = known
            if known[1]:
                pieces.append(known[1])
        self._kept[(conversation, variant)] = new
        while len(self._kept) > _KEPT_CONVERSATIONS:
            del self._kept[next(iter(self._kept))]
        return f"[{','.join(pieces)}]"


class WireModel(ABC):
    """A `ChatModel` over one wire. Subclasses say what is sent and how the answer is read."""

    dialect: str
    path: str
    history_key: str
    """Name of the body's list of messages."""
    profile: ToolProfile

    def __init__(self, connection: Connection, model: str) -> None:
        """Bind a model to an address."""
        self.connection = connection
        self.model = model
        self.quirks = Quirks()
        self.where = connection.where(model)
        self.fragments = Fragments()
        self._workshop = Workshop(self.profile)
        self._told: set[tuple[str, str]] = set()
        self._stripped: set[str] = set()
        self._imageless: set[str] = set()

    @abstractmethod
    def body(self, request: ModelRequest, tools: WireTools, draft: Draft) -> dict[str, Any]:
        """All of the body but the tools and the history."""

    @abstractmethod
    def history(self, request: ModelRequest, tools: WireTools, draft: Draft) -> str:
        """The history as a JSON array."""

    @abstractmethod
    def read(
        self, events: AsyncIterator[Any], request: ModelRequest, tools: WireTools
    ) -> AsyncGenerator[ModelEvent, None]:
        """Decoded events of the vendor to ours; ends with `Completed` or raises."""

    @abstractmethod
    def unfold(self, whole: Any) -> Iterator[Any]:
        """The events that a whole JSON answer would have been streamed as."""

    def headers(self, request: ModelRequest) -> dict[str, str]:
        """Headers of this request beside the client's own."""
        return {}

    def notices(self, request: ModelRequest, tools: WireTools) -> Iterator[ModelNotice]:
        """What a person should know of this request before it is sent."""
        if tools.dropped:
            yield notice("tools_over_limit", limit=len(tools.specs), dropped=tools.dropped)

    def tool_limit(self) -> int | None:
        """How many tools may be sent."""
        return self.quirks.tool_limit

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """Answer one request; see `ChatModel`."""
        draft = Draft(
            strip_thinking=request.conversation in self._stripped,
            no_images=self.quirks.no_images or request.conversation in self._imageless,
        )
        while True:
            tools = self.tools(request)
            for said in self.notices(request, tools):
                if self.first_time(request, said):
                    yield said
            visible = False
            try:
                async with aclosing(self._attempt(request, tools, draft)) as events:
                    async for event in events:
                        visible = visible or isinstance(event, (TextDelta, ThinkingDelta, ToolCallDelta))
                        yield event
                return
            except ModelFault as fault:
                fault.visible = fault.visible or visible
                fault.retryable = fault.retryable and not fault.visible
                step = None if fault.visible else repair(fault, self.quirks, draft, tools)
                if step is None or step.key in draft.tried or len(draft.tried) >= MAX_REPAIRS:
                    raise
                draft.tried.add(step.key)
                if request.conversation and step.key in ("strip", "images"):
                    (self._stripped if step.key == "strip" else self._imageless).add(request.conversation)
                told = step.notice
            if told is not None:
                yield told

    def tools(self, request: ModelRequest) -> WireTools:
        """The tools of a request in wire form."""
        return self._workshop.tools(
            () if self.quirks.no_tools else request.tools,
            without=frozenset(self.quirks.quarantined), reduced=self.quirks.reduced, limit=self.tool_limit(),
        )  # fmt: skip

    def first_time(self, request: ModelRequest, said: ModelNotice) -> bool:
        """Whether a notice is new to the conversation."""
        key = (request.conversation, said.code)
        if request.conversation and key in self._told:
            return False
        self._told.add(key)
        return True

    def replay(self, message: Message, call_ids: Sequence[str]) -> Any:
        """The vendor's own form of a turn if it came from this address and still says the same; else None."""
        native = message.native
        if native is None or native.dialect != self.dialect or native.endpoint != self.connection.base_url:
            return None
        return native.data if sorted(call_ids) == sorted(call.id for call in message.calls) else None

    def native(self, data: Any, model: str) -> Native:
        """Keep a turn in the vendor's own form."""
        return Native(self.dialect, self.connection.base_url, model, data)

    def content(self, request: ModelRequest, tools: WireTools, draft: Draft) -> bytes:
        """The bytes that are posted."""
        body = self.body(request, tools, draft)
        apply(body, self.quirks.without)
        text = encode(body)[:-1]
        if tools.text:
            text += f',"tools":{tools.text}'
        return f'{text},"{self.history_key}":{self.history(request, tools, draft)}}}'.encode("utf-8", "replace")

    async def _attempt(self, request: ModelRequest, tools: WireTools, draft: Draft) -> AsyncGenerator[ModelEvent, None]:
        body = self.content(request, tools, draft)
        async with self.connection.post(self.path, body, self.model, self.headers(request)) as reply:
            ended = False
            async with aclosing(self.read(self._decoded(reply), request, tools)) as events:
                async for event in events:
                    ended = isinstance(event, Completed)
                    yield event
            if not ended:
                raise truncated(self.where, visible=False)

    async def _decoded(self, reply: Reply) -> AsyncGenerator[Any, None]:
        """Each event's JSON. Transport failures and errors within the stream become faults."""
        if reply.whole is not None:
            whole = reply.whole
            if isinstance(whole, Mapping) and whole.get("error"):
                raise classify(self.where, whole)
            for event in self.unfold(whole):
                yield event
            return
        nothing = True
        try:
            async with aclosing(reply.events) as stream:
                async for name, data in stream:
                    if name == "ping" or not data.strip():
                        continue
                    if data.strip() == "[DONE]":
                        nothing = False
                        yield None
                        continue
                    try:
                        event = json.loads(data)
                    except ValueError as error:
                        raise protocol(self.where, "not_json", f"an event is not JSON: {data[:80]}") from error
                    nothing = False
                    if name == "error" and not (isinstance(event, dict) and event.get("type") == "error"):
                        raise classify(self.where, event)
                    yield event
        except ModelFault:
            raise
        except Exception as error:
            raise from_exception(self.where, error, streaming=True) from error
        if nothing and reply.declared:
            raise truncated(self.where, visible=False, detail="the stream ended before its first event")
        if nothing:
            raise protocol(self.where, "not_an_api", "the address sent no event: no model answers there")
