"""`ChatModel` over Anthropic Messages, and over addresses that speak the same wire.

Assistant turns go back exactly as they came: newer models bind their thinking to the bytes before it. The
system text carries one cache mark and the body another, so that the prefix stays warm from step to step.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from typing import Any

from desktop_host.core.messages import ContentBlock, Message, Role, StopReason, Text, ToolCall, ToolResult
from desktop_host.core.models import (
    Completed,
    ModelEvent,
    ModelNotice,
    ModelRequest,
    Purpose,
)
from desktop_host.core.values import freeze
from desktop_host.providers.anthropic_turn import STEPS, Turn
from desktop_host.providers.clients import Connection
from desktop_host.providers.errors import classify, protocol, truncated
from desktop_host.providers.history import repaired
from desktop_host.providers.known import claude
from desktop_host.providers.quirks import Draft, notice
from desktop_host.providers.results import (
    FilePart,
    ImagePart,
    Part,
    TextPart,
    is_error,
    parts_of,
    result_parts,
)
from desktop_host.providers.toolset import ToolProfile, WireTools
from desktop_host.providers.wiremodel import WireModel, encode

BINDING_BETA = "thinking-binding-controls-2026-08-01"
UNKNOWN_MAX_TOKENS = 16_000
CACHE = {"type": "ephemeral"}
_STOPS = {
    "end_turn": StopReason.END, "tool_use": StopReason.TOOLS, "max_tokens": StopReason.LENGTH,
    "stop_sequence": StopReason.STOP_SEQUENCE, "pause_turn": StopReason.PAUSE, "compaction": StopReason.PAUSE,
    "refusal": StopReason.REFUSAL, "model_context_window_exceeded": StopReason.CONTEXT,
}  # fmt: skip
_QUIET = (Purpose.TITLE, Purpose.SAMPLING, Purpose.CLASSIFICATION)
_THINKING = ("thinking", "redacted_thinking")
_MUST_CALL = "Answer by calling one of the tools."


def _shape(name: str, description: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "description": description, "input_schema": schema}


class AnthropicModel(WireModel):
    """A model behind the Messages API."""

    dialect = "anthropic"
    path = "/v1/messages"
    history_key = "messages"
    profile = ToolProfile(_shape, rename=True)

    def __init__(self, connection: Connection, model: str) -> None:
        super().__init__(connection, model)
        self._compat = connection.wire == "anthropic-compat"
        self._family = None if self._compat else claude(model)

    def headers(self, request: ModelRequest) -> dict[str, str]:
        return {"anthropic-beta": BINDING_BETA} if self._binds() else {}

    def notices(self, request: ModelRequest, tools: WireTools) -> Iterator[ModelNotice]:
        yield from super().notices(request, tools)
        if request.temperature is not None and not self._compat:
            yield notice("temperature_dropped", model=self.model)
        if request.effort and not self._takes_effort():
            yield notice("param_dropped", param="effort")

    def body(self, request: ModelRequest, tools: WireTools, draft: Draft) -> dict[str, Any]:
        family = self._family
        most = self.quirks.max_tokens or (family.max_output if family else UNKNOWN_MAX_TOKENS)
        most = draft.max_tokens or min(request.max_tokens or most, self.quirks.max_tokens or request.max_tokens or most)
        body: dict[str, Any] = {"model": self.model, "stream": True, "max_tokens": most}
        if request.system.strip():
            body["system"] = [{"type": "text", "text": request.system, "cache_control": CACHE}]
        if not self._compat:
            body["cache_control"] = CACHE
        elif request.temperature is not None:
            body["temperature"] = request.temperature
        if family and family.adaptive:
            body["thinking"] = {"type": "adaptive", "display": "summarized"}
            if self._binds():
                body["thinking"]["block_binding"] = {"prefix_mismatch_behavior": "drop_block"}
        effort = request.effort or ("low" if request.purpose in _QUIET and family and family.adaptive else None)
        if effort and self._takes_effort():
            body["output_config"] = {"effort": effort}
        stops = [stop for stop in request.stop if stop.strip()]
        if stops:
            body["stop_sequences"] = stops
        if tools.text and request.tool_choice == "required" and self._can_force():
            body["tool_choice"] = {"type": "any"}
        elif tools.text and request.tool_choice == "none":
            body["tool_choice"] = {"type": "none"}
        elif not tools.text and (named := _called(request)):
            body["tools"] = [_shape(name, "", {"type": "object", "properties": {}}) for name in named]
            body["tool_choice"] = {"type": "none"}
        return body

    def history(self, request: ModelRequest, tools: WireTools, draft: Draft) -> str:
        messages = repaired(request.messages)
        variant = (draft.strip_thinking, draft.no_images, tuple(sorted(tools.renames)))
        text = self.fragments.join(
            request.conversation, variant, messages, lambda message: self._render(message, tools, draft)
        )
        extra = ""
        if messages and messages[-1].role is Role.ASSISTANT and messages[-1].native is None:
            extra = "Continue."
        elif tools.text and request.tool_choice == "required" and not self._can_force():
            extra = _MUST_CALL
        if not extra:
            return text
        return f"{text[:-1]}{',' if len(text) > 2 else ''}{encode({'role': 'user', 'content': extra})}]"

    async def read(
        self, events: AsyncIterator[Any], request: ModelRequest, tools: WireTools
    ) -> AsyncGenerator[ModelEvent, None]:
        turn = Turn()
        async for event in events:
            kind = event.get("type") if isinstance(event, dict) else None
            if kind == "error":
                raise classify(self.where, event)
            if kind == "message_start":
                dropped = (event["message"].get("input_transformations") or ()) and notice("thinking_dropped")
                if dropped and self.first_time(request, dropped):
                    yield dropped
            if kind in STEPS:
                try:
                    shown = turn.take(kind, event)
                except (KeyError, TypeError, AttributeError) as error:
                    raise protocol(
                        self.where, "bad_event", f"a {kind} event is not as it should be: {error}"
                    ) from error
                if shown is not None:
                    yield shown
        if not turn.done or turn.stop is None:
            raise truncated(self.where, visible=False)
        yield self._completed(turn, tools)

    def unfold(self, whole: Any) -> Iterator[Any]:
        if not isinstance(whole, dict) or not isinstance(whole.get("content"), list):
            raise protocol(self.where, "not_an_api", "the answer is JSON, but not a message")
        yield {"type": "message_start", "message": {**whole, "content": []}}
        for index, block in enumerate(whole["content"]):
            yield {"type": "content_block_start", "index": index, "content_block": block}
            if block.get("type") == "text":
                yield {"type": "whole_text", "index": index}
        yield {"type": "message_delta", "delta": whole, "usage": whole.get("usage")}
        yield {"type": "message_stop"}

    def _takes_effort(self) -> bool:
        return not self._compat and (self._family is None or self._family.effort)

    def _can_force(self) -> bool:
        return self._family is None or self._family.forced_tools

    def _binds(self) -> bool:
        return bool(self._family and self._family.binding) and "thinking.block_binding" not in self.quirks.without

    def _completed(self, turn: Turn, tools: WireTools) -> Completed:
        stop = _STOPS.get(turn.stop or "", StopReason.END)
        blocks = turn.finish(stop, tools)
        native = None
        if stop is StopReason.REFUSAL:
            blocks = [b for b in blocks if isinstance(b, Text)]
        elif turn.blocks:
            kept = [b for b in turn.ordered if not _blank(b) and (self._compat or not _unsigned(b))]
            native = self.native(freeze(kept), turn.model or self.model) if kept else None
        if stop is StopReason.END and any(isinstance(b, ToolCall) for b in blocks):
            stop = StopReason.TOOLS
        return Completed(
            Message(Role.ASSISTANT, tuple(blocks), native), turn.usage(), stop, turn.model or self.model, turn.detail
        )

    def _render(self, message: Message, tools: WireTools, draft: Draft) -> list[Any]:
        if message.role is Role.USER:
            content = [item for block in message.blocks for item in self._user_block(block, draft)]
            return [{"role": "user", "content": content}] if content else []
        content = self._assistant(message, tools, draft)
        return [{"role": "assistant", "content": content}] if content else []

    def _assistant(self, message: Message, tools: WireTools, draft: Draft) -> list[Any]:
        native = message.native
        if native is not None and native.dialect == self.dialect and isinstance(native.data, tuple):
            ids = [b["id"] for b in native.data if isinstance(b, dict) and b.get("type") == "tool_use"]
            data = self.replay(message, ids)
            if data is not None:
                drop = draft.strip_thinking
                return [
                    self._with_id(block)
                    for block in data
                    if not (drop and block.get("type") in _THINKING) and (self._compat or not _unsigned(block))
                ]
        out: list[Any] = []
        for block in message.blocks:
            if isinstance(block, Text) and block.text.strip():
                out.append({"type": "text", "text": block.text})
            elif isinstance(block, ToolCall):
                given = tools.wire_arguments(block.wire_name, block.arguments)
                out.append({"type": "tool_use", "id": self._id(block.id), "name": block.wire_name, "input": given})
        return out

    def _user_block(self, block: ContentBlock, draft: Draft) -> list[Any]:
        if not isinstance(block, ToolResult):
            return self._parts(parts_of((block,)), draft)
        content = self._parts(result_parts(block), draft)
        entry: dict[str, Any] = {"type": "tool_result", "tool_use_id": self._id(block.call_id), "content": content}
        if is_error(block):
            entry["is_error"] = True
        return [entry]

    def _parts(self, parts: list[Part], draft: Draft) -> list[Any]:
        out: list[Any] = []
        for part in parts:
            match part:
                case TextPart(text=text):
                    out.append({"type": "text", "text": text})
                case ImagePart(data=data, mime_type=mime) if not draft.no_images:
                    source = {"type": "base64", "media_type": mime, "data": data}
                    out.append({"type": "image", "source": source})
                case FilePart(data=data) if not self._compat:
                    source = {"type": "base64", "media_type": "application/pdf", "data": data}
                    out.append({"type": "document", "source": source})
                case ImagePart(mime_type=mime):
                    out.append({"type": "text", "text": f"[{mime}: the model takes no images]"})
                case FilePart(name=name):
                    out.append({"type": "text", "text": f"[{name}: the model takes no PDF]"})
        return out

    def _with_id(self, block: Any) -> Any:
        if block.get("type") != "tool_use" or self._id(block["id"]) == block["id"]:
            return block
        return {**block, "id": self._id(block["id"])}

    def _id(self, call_id: str) -> str:
        """Ids of other vendors may hold characters that this one refuses; its own never do."""
        return call_id if self._compat else re.sub(r"[^a-zA-Z0-9_-]", "_", call_id) or "call"


def _unsigned(block: Any) -> bool:
    return isinstance(block, dict) and block.get("type") == "thinking" and not block.get("signature")


def _blank(block: Any) -> bool:
    return block.get("type") == "text" and not block.get("text", "").strip()


def _called(request: ModelRequest) -> list[str]:
    return sorted({call.wire_name for message in request.messages for call in message.calls})
