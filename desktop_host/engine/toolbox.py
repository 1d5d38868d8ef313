"""The tools of one conversation: a table that stays as it was told to the model, and the running of calls."""

from __future__ import annotations

import difflib
from dataclasses import dataclass, replace
from typing import Any

from desktop_host.core.codec import decode, encode
from desktop_host.core.errors import PeerFault
from desktop_host.core.events import ToolsChanged
from desktop_host.core.messages import Text
from desktop_host.core.tools import ToolSpec


@dataclass(frozen=True, slots=True)
class Prefix:
    """What a model was told at the start of a conversation.

    Vendors bind their reasoning to it ("preserved thinking"), so it is stored and sent the same each time.
    """

    system: str
    tools: tuple[ToolSpec, ...]
    result_chars: int
    foreign: bool = False
    """It came with a session from elsewhere: the hints of its tools do not count."""

    def to_state(self) -> dict[str, Any]:
        """The form kept with the session."""
        state = {"system": self.system, "tools": encode(self.tools), "result_chars": self.result_chars}
        return state | {"foreign": True} if self.foreign else state

    @staticmethod
    def from_state(state: dict[str, Any]) -> Prefix:
        """The prefix as it was kept.

        Raises:
            PeerFault: `bad_history`.
        """
        try:
            return Prefix(state["system"], tuple(decode(state["tools"])), int(state["result_chars"]),
                          bool(state.get("foreign")))  # fmt: skip
        except (KeyError, TypeError, ValueError) as error:
            raise PeerFault("bad_history", f"the kept start of the conversation is broken: {error}") from error


SHOWN_NAMES = 20
"""Names that a model is told of where none is like the one it called."""


class ToolTable:
    """Wire names to tools, frozen for a conversation."""

    def __init__(self, tools: tuple[ToolSpec, ...]) -> None:
        self.tools = tools
        self._by_wire = {t.wire_name: t for t in tools}

    def find(self, wire_name: str) -> ToolSpec | None:
        """The tool behind a name of the model's."""
        return self._by_wire.get(wire_name)

    def unknown(self, wire_name: str, now: tuple[ToolSpec, ...] = ()) -> str:
        """What to tell a model that called a tool which does not exist: names like it, else all it has.

        `now`: the tools there are, also those that the model has to search for.
        """
        names = {**{t.wire_name: t for t in now if t.enabled}, **self._by_wire}
        bare = {t.name.lower(): wire for wire, t in names.items()}
        wanted = wire_name.rsplit(".", 1)[-1].rsplit("__", 1)[-1].lower()
        close = difflib.get_close_matches(wire_name, names, n=3, cutoff=0.5)
        close += [bare[name] for name in difflib.get_close_matches(wanted, bare, n=3, cutoff=0.6)]
        if close:
            hint = f"Did you mean: {', '.join(list(dict.fromkeys(close))[:3])}?"
        elif self._by_wire:
            hint = f"You have: {', '.join(sorted(self._by_wire)[:SHOWN_NAMES])}."
        else:
            hint = "You have no tools."
        return f"There is no tool named {wire_name!r}; nothing was run. {hint}"

    def difference(self, now: tuple[ToolSpec, ...]) -> ToolsChanged | None:
        """What `now` has that the model was not told of, or None."""
        old = {t.full_name: t.digest for t in self.tools}
        new = {t.full_name: t.digest for t in now}
        added = tuple(sorted(new.keys() - old.keys()))
        removed = tuple(sorted(old.keys() - new.keys()))
        changed = tuple(sorted(n for n in old.keys() & new.keys() if old[n] != new[n]))
        return ToolsChanged(added, removed, changed) if added or removed or changed else None


def offered(tools: tuple[ToolSpec, ...]) -> tuple[ToolSpec, ...]:
    """The tools a model may be told of: enabled ones, in a stable order, one of each name."""
    seen: dict[str, ToolSpec] = {}
    for spec in sorted(tools, key=lambda t: (t.server, t.name)):
        if spec.enabled:
            seen.setdefault(spec.full_name, replace(spec, icons=()) if spec.icons else spec)
    return tuple(seen.values())


def told(text: str) -> tuple[Text, ...]:
    """Content of a result that the host itself gives."""
    return (Text(text),)
