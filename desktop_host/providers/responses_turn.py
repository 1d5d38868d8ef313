"""An answer of OpenAI Responses as its events build it."""

from __future__ import annotations

from typing import Any

from desktop_host.core.models import ModelEvent, TextDelta, ThinkingDelta, ToolCallDelta, Usage
from desktop_host.providers.plaintext import StopCutter

_THINKING = ("response.reasoning_summary_text.delta", "response.reasoning_text.delta")
_TEXT = ("response.output_text.delta", "response.refusal.delta")
_TERMINAL = ("response.completed", "response.incomplete", "response.failed")


class Turn:
    """One answer; its text ends at a stop sequence, for which this wire has no parameter."""

    def __init__(self, stops: tuple[str, ...]) -> None:
        self.cutter = StopCutter(stops)
        self.final: dict[str, Any] | None = None
        self._text: list[str] = []
        self._done: dict[int, Any] = {}
        self._named: dict[int, tuple[str, str]] = {}

    @property
    def text(self) -> str:
        """All text that was shown."""
        return "".join(self._text)

    def shown(self, text: str) -> TextDelta:
        """Text that is shown, and kept."""
        self._text.append(text)
        return TextDelta(text)

    def take(self, event: dict[str, Any]) -> ModelEvent | None:
        """Add one event; returns what of it is to be shown.

        Raises:
            KeyError, TypeError, AttributeError: the event lacks what its type promises.
        """
        kind = event.get("type")
        if kind in _TEXT:
            text = self.cutter.take(event["delta"])
            return self.shown(text) if text else None
        if kind in _THINKING:
            return ThinkingDelta(event["delta"]) if event["delta"] else None
        if kind == "response.function_call_arguments.delta":
            named = self._named.get(event["output_index"])
            return ToolCallDelta(*named, event["delta"]) if named else None
        if kind == "response.output_item.added" and event["item"].get("type") == "function_call":
            item = event["item"]
            self._named[event["output_index"]] = named = (item["call_id"], item["name"])
            return ToolCallDelta(*named, "")
        if kind == "response.output_item.done":
            self._done[event["output_index"]] = event["item"]
        elif kind in _TERMINAL:
            self.final = event["response"]
        return None

    def items(self) -> list[Any]:
        """The items as they came; an item's own `done` event counts more than the summary at the end."""
        listed = dict(enumerate((self.final or {}).get("output") or ()))
        return [dict(item) for _, item in sorted({**listed, **self._done}.items())]

    def usage(self) -> Usage:
        """The tokens; input without what the cache gave."""
        counts = (self.final or {}).get("usage") or {}
        read_in, out = counts.get("input_tokens_details") or {}, counts.get("output_tokens_details") or {}
        read, written = read_in.get("cached_tokens") or 0, read_in.get("cache_write_tokens") or 0
        return Usage(
            max(0, (counts.get("input_tokens") or 0) - read - written), counts.get("output_tokens") or 0, read, written,
            out.get("reasoning_tokens") or 0,
        )  # fmt: skip
