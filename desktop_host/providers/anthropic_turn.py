"""An answer of Anthropic Messages as its events build it: blocks kept whole, in the vendor's form."""

from __future__ import annotations

from typing import Any

from desktop_host.core.messages import ContentBlock, StopReason, Text, Thinking, ToolCall
from desktop_host.core.models import ModelEvent, TextDelta, ThinkingDelta, ToolCallDelta, Usage
from desktop_host.core.values import EMPTY
from desktop_host.providers.arguments import CUT_OFF, parse
from desktop_host.providers.toolset import WireTools

_CUT = (StopReason.LENGTH, StopReason.CONTEXT)
STEPS = frozenset(
    {
        "message_start", "content_block_start", "content_block_delta", "content_block_stop", "message_delta",
        "message_stop", "whole_text",
    }
)  # fmt: skip


class Turn:
    """One answer. Unknown blocks, deltas and events are kept or passed over, never misread."""

    def __init__(self) -> None:
        self.blocks: dict[int, dict[str, Any]] = {}
        self._pieces: dict[tuple[int, str], list[str]] = {}
        self.counts: dict[str, Any] = {}
        self.model: str | None = None
        self.stop: str | None = None
        self.detail: str | None = None
        self.done = False

    @property
    def ordered(self) -> list[dict[str, Any]]:
        """The blocks in the order of the wire."""
        return [block for _, block in sorted(self.blocks.items())]

    def take(self, kind: str, event: dict[str, Any]) -> ModelEvent | None:
        """Add one event; returns what of it is to be shown.

        Raises:
            KeyError, TypeError, AttributeError: the event lacks what its type promises.
        """
        if kind == "content_block_delta":
            return self._delta(event["index"], event["delta"])
        if kind == "content_block_start":
            block = dict(event["content_block"])
            self.blocks[event["index"]] = block
            if block.get("type") == "tool_use":
                return ToolCallDelta(block["id"], block["name"], "")
            if block.get("type") == "thinking" and block.get("thinking"):
                return ThinkingDelta(block["thinking"])
        elif kind == "whole_text":
            return TextDelta(self.blocks[event["index"]]["text"])
        elif kind == "message_start":
            self.model = event["message"].get("model")
            self._count(event["message"].get("usage"))
        elif kind == "message_delta":
            delta = event["delta"]
            self.stop = delta.get("stop_reason") or self.stop
            details = delta.get("stop_details")
            if isinstance(details, dict):
                self.detail = details.get("explanation") or details.get("category") or self.detail
            self._count(event.get("usage"))
        elif kind == "message_stop":
            self.done = True
        return None

    def _delta(self, index: int, delta: dict[str, Any]) -> ModelEvent | None:
        block = self.blocks[index]
        kind = delta.get("type")
        if kind == "text_delta":
            self._add(index, "text", delta["text"])
            return TextDelta(delta["text"]) if delta["text"] else None
        if kind == "thinking_delta":
            self._add(index, "thinking", delta["thinking"])
            return ThinkingDelta(delta["thinking"]) if delta["thinking"] else None
        if kind == "signature_delta":
            block["signature"] = delta["signature"]
        elif kind == "input_json_delta":
            piece = delta["partial_json"]
            self._add(index, "json", piece)
            if piece and block.get("type") == "tool_use":
                return ToolCallDelta(block["id"], block["name"], piece)
        elif kind == "citations_delta":
            block["citations"] = [*(block.get("citations") or ()), delta["citation"]]
        return None

    def _add(self, index: int, key: str, piece: str) -> None:
        """Keep a piece; joined once at the end, because adding to a text copies it each time."""
        self._pieces.setdefault((index, key), []).append(piece)

    def _count(self, usage: Any) -> None:
        if isinstance(usage, dict):
            self.counts.update({k: v for k, v in usage.items() if v is not None})

    def usage(self) -> Usage:
        """The tokens; counts of later events replace earlier ones."""
        c = self.counts
        return Usage(
            c.get("input_tokens", 0), c.get("output_tokens", 0), c.get("cache_read_input_tokens", 0),
            c.get("cache_creation_input_tokens", 0), (c.get("output_tokens_details") or {}).get("thinking_tokens") or 0,
        )  # fmt: skip

    def finish(self, stop: StopReason, tools: WireTools) -> list[ContentBlock]:
        """The neutral blocks; the last call of a cut answer is void, and unreadable input becomes `{}`."""
        raw: dict[int, str] = {}
        for (index, key), pieces in self._pieces.items():
            if key == "json":
                raw[index] = "".join(pieces)
            else:
                self.blocks[index][key] = "".join((self.blocks[index].get(key) or "", *pieces))
        self._pieces.clear()
        out: list[ContentBlock] = []
        last = max(self.blocks, default=-1)
        for index, block in sorted(self.blocks.items()):
            kind = block.get("type")
            if index in raw:
                block["input"], problem = parse(raw[index])
            else:
                problem = None
            if kind == "thinking" and block.get("thinking"):
                out.append(Thinking(block["thinking"]))
            elif kind == "text" and block.get("text", "").strip():
                out.append(Text(block["text"]))
            elif kind == "tool_use":
                if stop in _CUT and index == last:
                    block["input"], problem = {}, CUT_OFF
                name = str(block["name"])
                given = block.get("input")
                arguments = EMPTY if problem else tools.arguments(name, given if isinstance(given, dict) else {})
                out.append(ToolCall(str(block["id"]), name, arguments, problem))
        return out
