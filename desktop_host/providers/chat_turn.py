"""An answer of Chat Completions as its chunks build it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from desktop_host.core.messages import ContentBlock, Message, Role, StopReason, Text, Thinking, ToolCall
from desktop_host.core.models import Completed, ModelEvent, TextDelta, ThinkingDelta, ToolCallDelta, Usage
from desktop_host.core.values import EMPTY, FrozenDict, freeze
from desktop_host.providers.accumulate import Calls, invented_id
from desktop_host.providers.arguments import CUT_OFF, parse
from desktop_host.providers.plaintext import TextGate
from desktop_host.providers.toolset import WireTools
from desktop_host.providers.wiremodel import encode

_STOPS = {
    "stop": StopReason.END, "length": StopReason.LENGTH, "tool_calls": StopReason.TOOLS,
    "function_call": StopReason.TOOLS, "content_filter": StopReason.REFUSAL,
}  # fmt: skip
_REASONING = ("reasoning_content", "reasoning")


class Turn:
    """One answer."""

    def __init__(self, tools: WireTools) -> None:
        self._tools = tools
        self._gate = TextGate(tools.names)
        self._calls = Calls()
        self._thinking: list[str] = []
        self._thinking_key: str | None = None
        self._details: list[Any] = []
        self._refused = ""
        self._finish: str | None = None
        self._counts: dict[str, Any] = {}
        self.model: str | None = None
        self.done = False

    @property
    def ended(self) -> bool:
        """Whether the server said that this was all."""
        return self._finish is not None or self.done

    def take(self, chunk: dict[str, Any]) -> Iterator[ModelEvent]:
        """Add one chunk; yields what of it is to be shown."""
        self.model = self.model or chunk.get("model")
        if isinstance(chunk.get("usage"), dict):
            self._counts = chunk["usage"]
        for choice in chunk.get("choices") or ():
            delta = choice.get("delta") or choice.get("message") or {}
            yield from self._think(delta)
            content = delta.get("content")
            if isinstance(content, list):
                content = "".join(str(p.get("text") or "") for p in content if isinstance(p, dict))
            if content:
                yield from self._gate.take(content)
            if delta.get("refusal"):
                self._refused += delta["refusal"]
                yield TextDelta(delta["refusal"])
            for piece in delta.get("tool_calls") or ():
                call, text = self._calls.take(piece)
                if call.name:
                    yield ToolCallDelta(call.id, call.name, text)
            self._finish = choice.get("finish_reason") or self._finish

    def flush(self) -> Iterator[ModelEvent]:
        """What was held back."""
        yield from self._gate.finish()

    def _think(self, delta: dict[str, Any]) -> Iterator[ModelEvent]:
        for key in _REASONING:
            said = delta.get(key)
            if isinstance(said, str) and said and self._thinking_key in (None, key):
                self._thinking_key = key
                self._thinking.append(said)
                yield ThinkingDelta(said)
                break
        details = delta.get("reasoning_details")
        if isinstance(details, list):
            self._details += details

    @property
    def _cut(self) -> bool:
        return self._finish == "length"

    def message(self) -> tuple[Message, FrozenDict | None]:
        """The neutral message and the server's own form of it."""
        blocks: list[ContentBlock] = []
        thinking = "".join(self._thinking) or self._gate.thinking
        if thinking.strip():
            blocks.append(Thinking(thinking))
        text = self._gate.text + self._refused
        if text.strip():
            blocks.append(Text(text))
        if self._finish == "content_filter" or self._refused:
            return Message(Role.ASSISTANT, tuple(b for b in blocks if isinstance(b, Text))), None
        sent: list[dict[str, Any]] = []
        gathered = [call for call in self._calls if call.name]
        for place, call in enumerate(gathered):
            arguments, problem = parse(call.arguments, lenient=True)
            if self._cut and place == len(gathered) - 1:
                arguments, problem = {}, CUT_OFF
            named = EMPTY if problem else self._tools.arguments(call.name, arguments)
            blocks.append(ToolCall(call.id, call.name, named, problem))
            function = {"name": call.name, "arguments": encode(arguments)}
            sent.append({"id": call.id, "type": "function", "function": function, **call.extra})
        printed = not sent
        for place, (name, arguments) in enumerate(self._gate.calls if printed else ()):
            call_id = invented_id(place)
            blocks.append(ToolCall(call_id, name, self._tools.arguments(name, arguments)))
            function = {"name": name, "arguments": encode(arguments)}
            sent.append({"id": call_id, "type": "function", "function": function})
        if not text.strip() and not sent:
            return Message(Role.ASSISTANT, tuple(blocks)), None
        native: dict[str, Any] = {"role": "assistant", "content": text or None}
        if self._thinking and self._thinking_key:
            native[self._thinking_key] = thinking
        if self._details:
            native["reasoning_details"] = self._details
        if sent:
            native["tool_calls"] = sent
        return Message(Role.ASSISTANT, tuple(blocks)), freeze(native)

    def completed(self, message: Message, model: str) -> Completed:
        """The end of the answer."""
        stop = _STOPS.get(self._finish or "stop", StopReason.END)
        if self._refused:
            stop = StopReason.REFUSAL
        elif message.calls and stop is StopReason.END:
            stop = StopReason.TOOLS
        detail = self._refused or (self._finish if stop is StopReason.REFUSAL else None)
        return Completed(message, self._usage(), stop, self.model or model, detail)

    def limit(self, limit: int | None) -> None:
        """Take an answer that used all of `limit` tokens as cut off, whatever the server says."""
        spent = self._counts.get("completion_tokens")
        if limit and isinstance(spent, int) and spent >= limit and self._finish != "content_filter":
            self._finish = "length"

    def _usage(self) -> Usage:
        c = self._counts
        prompt, answer = c.get("prompt_tokens_details") or {}, c.get("completion_tokens_details") or {}
        read = prompt.get("cached_tokens") or c.get("prompt_cache_hit_tokens") or 0
        written = prompt.get("cache_write_tokens") or 0
        return Usage(
            max(0, (c.get("prompt_tokens") or 0) - read - written), c.get("completion_tokens") or 0, read, written,
            answer.get("reasoning_tokens") or 0,
        )  # fmt: skip
