"""Tool calls of a Chat Completions stream, gathered from whatever servers send as deltas.

Seen in public: no index, always index 0, no id, an id on every chunk or only on the first, empty ids later,
whole calls in one chunk, arguments as an object. Each rule below is one of those.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from desktop_host.providers.arguments import is_complete


@dataclass(slots=True)
class Gathered:
    """A call so far."""

    id: str
    name: str = ""
    pieces: list[str] = field(default_factory=list)
    """The arguments so far; a list, because adding to a text copies it each time."""
    invented: bool = False
    """The server gave no id."""
    extra: dict[str, Any] = field(default_factory=dict)
    """Keys of the server's own (a signature, say) that must come back with the call."""

    @property
    def arguments(self) -> str:
        """The arguments as text."""
        return "".join(self.pieces)


class Calls:
    """Gathers calls in the order they began."""

    def __init__(self) -> None:
        self._calls: list[Gathered] = []
        self._slots: dict[int, Gathered] = {}
        self._current: Gathered | None = None

    def __iter__(self) -> Iterator[Gathered]:
        return iter(self._calls)

    def __len__(self) -> int:
        return len(self._calls)

    def take(self, delta: Mapping[str, Any]) -> tuple[Gathered, str]:
        """Add one delta; returns its call and the new piece of arguments."""
        function = delta.get("function")
        function = function if isinstance(function, Mapping) else {}
        name = str(function.get("name") or "")
        call_id = str(delta.get("id") or "")
        index = delta.get("index")
        slot = index if isinstance(index, int) else None
        call = self._find(slot, call_id, name)
        if call is None:
            call = Gathered(call_id or invented_id(len(self._calls)), invented=not call_id)
            self._calls.append(call)
        if slot is not None:
            self._slots[slot] = call
        self._current = call
        if name and name != call.name and not call.pieces:
            call.name += name
        for key, value in delta.items():
            if key not in ("index", "id", "type", "function") and value is not None:
                call.extra[key] = value
        piece = function.get("arguments")
        if isinstance(piece, (dict, list)):
            piece = json.dumps(piece, ensure_ascii=False)
        piece = piece if isinstance(piece, str) else ""
        if piece:
            call.pieces.append(piece)
        return call, piece

    def _find(self, slot: int | None, call_id: str, name: str) -> Gathered | None:
        """The call a delta belongs to; None where it begins a new one."""
        known = next((call for call in self._calls if call_id and call.id == call_id), None)
        if known is not None:
            return known
        if slot is None:
            return None if name else self._current
        call = self._slots.get(slot)
        if call is None or not name:
            return call
        if call_id and not call.invented:
            return None
        return None if call.name and is_complete(call.arguments) else call


def invented_id(place: int) -> str:
    """An id for a call that came without; unique among all turns, since results are matched by it."""
    return f"call_{place}_{uuid.uuid4().hex[:8]}"
