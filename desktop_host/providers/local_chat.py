"""`ChatModel` over an embedded model: the action protocol in, text and tool calls out."""

from __future__ import annotations

import json
import secrets
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Any, Protocol

from desktop_host.core.errors import ModelFault
from desktop_host.core.messages import Message, Role, StopReason, Text, ToolCall
from desktop_host.core.models import (
    Completed,
    ModelEvent,
    ModelNotice,
    ModelRequest,
    Purpose,
    TextDelta,
    ToolCallDelta,
    Usage,
)
from desktop_host.core.values import FrozenDict
from desktop_host.providers.actions import REPLY, Action, ActionReader, action_schema
from desktop_host.providers.local_prompt import Prompt, build, cut
from desktop_host.providers.local_runtime import Endpoint
from desktop_host.providers.local_tools import is_search, own_words, spoken_of
from desktop_host.providers.weights import ModelCard

REPLY_TOKENS = 512
"""Longest reply where the request names no limit: half a minute on a slow machine."""
QUERY_CHARS = 80
"""Longest search of a model that may fall into repeating itself."""
SLOW_TOKENS_PER_S = 5.0
READ_S = 600.0
"""Longest silence: reading a full context on a busy machine takes minutes."""
_PLAIN = frozenset(
    {
        Purpose.TITLE,
        Purpose.SUMMARY,
        Purpose.SAMPLING,
        Purpose.CLASSIFICATION,
        Purpose.SAFETY_CHECK,
        Purpose.TOOL_CHOICE,
    }
)


class Runtime(Protocol):
    """The process behind the model."""

    def use(self) -> AbstractAsyncContextManager[Endpoint]: ...
    async def gone(self) -> bool: ...
    def crashed(self, visible: bool) -> ModelFault: ...


@dataclass(slots=True)
class _Meter:
    """What a request has cost and how it stands."""

    usage: Usage = field(default_factory=lambda: Usage(cost_usd=0.0))
    finish: str | None = None
    visible: bool = False
    speed: float | None = None


@dataclass(slots=True)
class _Speech:
    """The words of a reply. What begins like JSON or like the question is held back: a small model may echo either."""

    question: str = ""
    said: list[str] = field(default_factory=list)
    held: str = ""

    def feed(self, text: str) -> str:
        if not self.said:
            self.held += text
            start = self.held.strip()
            if not start or start[0] in "{[`" or self.question.lower().startswith(start.lower()):
                return ""
            text, self.held = self.held.lstrip(), ""
        self.said.append(text)
        return text

    def finish(self, prompt: Prompt) -> str:
        """What is still to be shown."""
        rest = self.held.strip()
        if not self.said and prompt.last_result is not None and (not rest or self._echoes(rest)):
            name, text = prompt.last_result
            rest = f"{name}: {cut(text.strip() or '✓', 200)}"
        self.said.append(rest)
        return rest

    def _echoes(self, text: str) -> bool:
        return _is_data(text) or text.lower() == self.question.lower()

    @property
    def text(self) -> str:
        return "".join(self.said)


def _is_data(text: str) -> bool:
    try:
        return isinstance(json.loads(text.strip("`").removeprefix("json")), (dict, list))
    except ValueError:
        return False


class _SchemaRefused(Exception):
    """The server could not turn the schema into a grammar."""


class LocalChatModel:
    """An embedded model. Reads its tools from the system text and is held to one action a reply."""

    def __init__(self, card: ModelCard, runtime: Runtime) -> None:
        self._card, self._runtime = card, runtime
        self.tokens_per_s: float | None = None
        """Decoding speed of the last reply."""
        self._told_slow = False

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """Answer one request.

        Raises:
            ModelFault: `model_missing` (`reason`: `no_runtime`, `start_failed`, `crashed`), `context_overflow`,
                `stream_truncated`, `protocol_error`.
        """
        plain = request.purpose in _PLAIN or not request.tools
        prompt = build(request, self._card, plain=plain)
        meter = _Meter()
        async with self._runtime.use() as endpoint:
            if prompt.plain:
                blocks = [Text("")]
                async for piece in self._pieces(endpoint, self._body(request, prompt, None), meter):
                    blocks[0] = Text(blocks[0].text + piece)
                    meter.visible = True
                    yield TextDelta(piece)
                yield self._completed((blocks[0],), meter)
                return
            async for event in self._act(request, prompt, endpoint, meter):
                yield event

    async def _act(
        self, request: ModelRequest, prompt: Prompt, endpoint: Endpoint, meter: _Meter
    ) -> AsyncIterator[ModelEvent]:
        """One action; asked again where the schema was too much for the server or a call only repeats itself."""
        tools, loose = prompt.tools, False
        while True:
            reader, speech = ActionReader(), _Speech(prompt.said.strip())
            call_id = f"call_{secrets.token_hex(8)}"
            schema = action_schema(
                tools, prompt.names, reply=not prompt.must_call, loose=loose,
                longest={t.wire_name: QUERY_CHARS for t in tools if self._card.invents and is_search(t)},
                optional=lambda name, kind: not self._card.invents or spoken_of(name, kind, prompt.said),
            )  # fmt: skip
            repeats = bool(prompt.calls)
            try:
                async for piece in self._pieces(endpoint, self._body(request, prompt, schema), meter):
                    text, arguments = reader.feed(piece)
                    if text and (shown := speech.feed(text)):
                        meter.visible = True
                        yield TextDelta(shown)
                    if arguments and reader.tool and not repeats:
                        yield ToolCallDelta(call_id, prompt.wire(reader.tool), arguments)
            except _SchemaRefused as error:
                if loose:
                    raise ModelFault("bad_tool_schema", f"the tools cannot be put into a grammar: {error}") from error
                loose = True
                continue
            action = reader.finish()
            if action.tool != REPLY and self._repeated(action, prompt):
                tools = ()
                continue
            break
        if (notice := self._slow(meter)) is not None:
            yield notice
        if action.tool == REPLY:
            if rest := speech.finish(prompt):
                yield TextDelta(rest)
            yield self._completed((Text(speech.text),), meter)
        else:
            given = action.arguments
            spec = next((t for t in tools if t.wire_name == prompt.wire(action.tool)), None)
            if self._card.invents and spec is not None and action.problem is None and not prompt.calls:
                given = own_words(spec, given, prompt.said)
            call = ToolCall(call_id, prompt.wire(action.tool), given, action.problem)
            yield self._completed((call,), meter)

    @staticmethod
    def _repeated(action: Action, prompt: Prompt) -> bool:
        wire = prompt.wire(action.tool)
        return any(c.wire_name == wire and c.arguments == action.arguments for c in prompt.calls)

    def _body(self, request: ModelRequest, prompt: Prompt, schema: dict[str, Any] | None) -> dict[str, Any]:
        body: dict[str, Any] = {
            "messages": prompt.messages,
            "temperature": request.temperature or 0.0,
            "max_tokens": min(request.max_tokens or REPLY_TOKENS, self._card.context // 2),
            "stream": True,
            "stream_options": {"include_usage": True},
            "cache_prompt": True,
        }
        if schema is not None:
            body["response_format"] = {"type": "json_schema", "json_schema": {"name": "action", "schema": schema}}
        elif request.stop:
            body["stop"] = list(request.stop)
        return body

    async def _pieces(self, endpoint: Endpoint, body: dict[str, Any], meter: _Meter) -> AsyncGenerator[str, None]:
        """The content as it streams. Leaving it closes the connection, on which the server stops working."""
        import httpx2

        meter.finish = None
        timeout = httpx2.Timeout(READ_S, connect=5.0)
        headers = {"authorization": f"Bearer {endpoint.key}"}
        url = f"{endpoint.address}/v1/chat/completions"
        try:
            async with (
                httpx2.AsyncClient(trust_env=False, verify=False, timeout=timeout, headers=headers) as client,
                client.stream("POST", url, json=body) as reply,
            ):
                if reply.status_code != 200:
                    raise self._refused(reply.status_code, await reply.aread(), "response_format" in body)
                async for line in reply.aiter_lines():
                    if line.startswith("data: {"):
                        piece = self._take(json.loads(line[6:]), meter)
                        if piece:
                            yield piece
        except (httpx2.TransportError, ValueError) as error:
            if await self._runtime.gone():
                raise self._runtime.crashed(meter.visible) from error
            raise ModelFault(
                "stream_truncated", f"the local model's answer broke off: {error}",
                retryable=not meter.visible, visible=meter.visible,
            ) from error  # fmt: skip
        if meter.finish is None:
            raise ModelFault(
                "stream_truncated", "the local model's answer ended too early",
                retryable=not meter.visible, visible=meter.visible,
            )  # fmt: skip

    def _take(self, chunk: dict[str, Any], meter: _Meter) -> str:
        if "error" in chunk:
            raise ModelFault("protocol_error", str(chunk["error"])[:300], visible=meter.visible)
        timings = chunk.get("timings")
        if timings:
            meter.usage += Usage(
                input=timings.get("prompt_n", 0), output=timings.get("predicted_n", 0),
                cache_read=timings.get("cache_n", 0), cost_usd=0.0,
            )  # fmt: skip
            if timings.get("predicted_n", 0) >= 10:
                meter.speed = self.tokens_per_s = float(timings["predicted_per_second"])
        for choice in chunk.get("choices") or ():
            meter.finish = choice.get("finish_reason") or meter.finish
            return (choice.get("delta") or {}).get("content") or ""
        return ""

    @staticmethod
    def _refused(status: int, body: bytes, constrained: bool) -> Exception:
        text = body.decode("utf-8", "replace")
        if "exceed_context_size" in text:
            return ModelFault("context_overflow", "the message is longer than the local model can read")
        if status == 400 and constrained:
            return _SchemaRefused(text[:300])
        if status == 503:
            return ModelFault("overloaded", "the local model is still loading", retryable=True)
        return ModelFault("protocol_error", f"the local model answered {status}: {text[:300]}", status=status)

    def _completed(self, blocks: tuple[Text | ToolCall, ...], meter: _Meter) -> Completed:
        stop = StopReason.TOOLS if isinstance(blocks[0], ToolCall) else StopReason.END
        if meter.finish == "length":
            stop = StopReason.LENGTH
        kept = tuple(b for b in blocks if not isinstance(b, Text) or b.text)
        return Completed(Message(Role.ASSISTANT, kept), meter.usage, stop, self._card.name)

    def _slow(self, meter: _Meter) -> ModelNotice | None:
        if self._told_slow or meter.speed is None or meter.speed >= SLOW_TOKENS_PER_S:
            return None
        self._told_slow = True
        return ModelNotice("local_slow", FrozenDict({"tokens_per_s": round(meter.speed, 1)}))
