"""What local models write into their text though it is none: `<think>` passages and printed tool calls.

Servers without a parser for a model's own marks hand them through. A passage at the very start of an answer
between `<think>` and `</think>` is thinking; `<tool_call>{…}</tool_call>`, or an answer that is nothing but
one `{"name": …, "arguments": …}` of an offered tool, is a call. Anything else stays text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from desktop_host.core.models import TextDelta, ThinkingDelta

_THINK = ("<think>", "</think>")
_CALL = ("<tool_call>", "</tool_call>")
_FENCE = re.compile(r"^```(?:json)?\s*|\s*```$")
_BARE = '{"name":'


class TextGate:
    """Splits streamed text; what might become a call or a mark is held back until that is known."""

    def __init__(self, names: frozenset[str]) -> None:
        """Args: names: wire names of the offered tools; without any, no call is looked for."""
        self._names = names
        self._held = ""
        self._state = "start"
        self._thought = False
        self._text: list[str] = []
        self._thinking: list[str] = []
        self.calls: list[tuple[str, Any]] = []
        """Printed calls: name and arguments."""

    @property
    def text(self) -> str:
        """The visible text so far."""
        return "".join(self._text)

    @property
    def thinking(self) -> str:
        """The thinking so far."""
        return "".join(self._thinking)

    def take(self, piece: str) -> Iterator[TextDelta | ThinkingDelta]:
        """Add text; yields what is certain."""
        self._held += piece
        moved = True
        while moved and self._held:
            moved = False
            if self._state == "start":
                moved = self._begin()
            elif self._state == "think":
                before, moved = self._until(_THINK[1])
                if before:
                    self._thinking.append(before)
                    yield ThinkingDelta(before)
                if moved:
                    self._state, self._thought = "start", True
            elif self._state == "text":
                if not self._names:
                    before, self._held = self._held, ""
                else:
                    before, moved = self._until(_CALL[0])
                if before:
                    self._text.append(before)
                    yield TextDelta(before)
                if moved:
                    self._state = "call"
            elif self._state == "call":
                body, mark, rest = self._held.partition(_CALL[1])
                if mark:
                    moved, self._held, self._state = True, rest, "text"
                    if not self._call(body):
                        shown = f"{_CALL[0]}{body}{_CALL[1]}"
                        self._text.append(shown)
                        yield TextDelta(shown)

    def finish(self) -> Iterator[TextDelta | ThinkingDelta]:
        """The end of the text: what is still held becomes a call, or is let go."""
        held, self._held = self._held, ""
        if self._state == "think":
            if held:
                self._thinking.append(held)
                yield ThinkingDelta(held)
            return
        if self._state in ("call", "start") and held.strip():
            bare = _FENCE.sub("", held.strip()) if self._state == "start" else held
            if self._call(bare):
                return
            held = _CALL[0] + held if self._state == "call" else held
        if held:
            self._text.append(held)
            yield TextDelta(held)

    def _begin(self) -> bool:
        """Whether it is known what the answer starts with."""
        if self._thought:
            self._held = self._held.lstrip("\n")
        start = self._held.lstrip()
        if not start:
            return False
        if start.startswith(_THINK[0]):
            self._state, self._held = "think", start[len(_THINK[0]) :]
            return True
        if _THINK[0].startswith(start):
            return False
        if self._names:
            compact = re.sub(r"\s+", "", _FENCE.sub("", start) if not "```json".startswith(start) else "")
            if not compact or compact.startswith(_BARE) or _BARE.startswith(compact):
                return False
        self._state = "text"
        return True

    def _until(self, mark: str) -> tuple[str, bool]:
        """The text before a mark, and whether it was reached; a mark that may be beginning is held."""
        before, found, rest = self._held.partition(mark)
        if found:
            self._held = rest
            return before, True
        keep = next((n for n in range(min(len(mark) - 1, len(before)), 0, -1) if mark.startswith(before[-n:])), 0)
        self._held = before[len(before) - keep :]
        return before[: len(before) - keep], False

    def _call(self, body: str) -> bool:
        try:
            said = json.loads(body.strip())
        except ValueError:
            return False
        if not isinstance(said, dict) or said.get("name") not in self._names:
            return False
        given = said.get("arguments", said.get("parameters", {}))
        if isinstance(given, str):
            try:
                given = json.loads(given or "{}")
            except ValueError:
                return False
        if not isinstance(given, dict):
            return False
        self.calls.append((said["name"], given))
        return True


class StopCutter:
    """Ends text at a stop sequence, for wires that have no such parameter."""

    def __init__(self, stops: tuple[str, ...]) -> None:
        """Args: stops: the sequences; blank ones are ignored."""
        self._stops = tuple(stop for stop in stops if stop.strip())
        self._held = ""
        self.hit = False

    def take(self, piece: str) -> str:
        """The part of the text that may be shown."""
        if not self._stops:
            return piece
        if self.hit:
            return ""
        text = self._held + piece
        found = [place for stop in self._stops if (place := text.find(stop)) >= 0]
        if found:
            self.hit, self._held = True, ""
            return text[: min(found)]
        keep = max(
            (
                n
                for stop in self._stops
                for n in range(min(len(stop) - 1, len(text)), 0, -1)
                if stop.startswith(text[-n:])
            ),
            default=0,
        )
        self._held = text[len(text) - keep :]
        return text[: len(text) - keep]

    def finish(self) -> str:
        """What was held back, if no stop came."""
        held, self._held = self._held, ""
        return "" if self.hit else held
