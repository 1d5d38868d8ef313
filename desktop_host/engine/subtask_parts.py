"""The parts of one call of `host.run_subtasks`: read from its arguments, and joined to its result."""

from __future__ import annotations

from dataclasses import dataclass

from desktop_host.core.errors import UserFault
from desktop_host.core.events import SubtaskChanged
from desktop_host.core.exchange import ToolOutcome
from desktop_host.core.messages import Outcome, Text
from desktop_host.core.values import FrozenDict, freeze

MAX_PARTS = 8
"""Parts of one call."""


@dataclass(frozen=True, slots=True)
class Part:
    """What one sub-task is to do."""

    number: int
    name: str
    task: str
    skill: str = ""
    fallback: str = ""
    after: tuple[int, ...] = ()


def parts_of(arguments: FrozenDict) -> tuple[Part, ...]:
    """The parts that a call asks for.

    Raises:
        UserFault: `usage`, what is wrong with which part.
    """
    rows = arguments.get("tasks")
    if not isinstance(rows, tuple) or not 1 <= len(rows) <= MAX_PARTS:
        raise UserFault("usage", f"tasks must be a list of 1 to {MAX_PARTS} tasks")
    out = []
    for number, row in enumerate(rows, 1):
        text = row.get("task") if isinstance(row, FrozenDict) else None
        if not isinstance(text, str) or not text.strip():
            raise UserFault("usage", f"task {number} has no text under `task`")
        words = {key: str(row.get(key) or "").strip() for key in ("name", "skill", "fallback")}
        after = row.get("after") or ()
        if not isinstance(after, tuple) or not all(type(n) is int and 1 <= n < number for n in after):
            raise UserFault("usage", f"task {number}: `after` may name earlier tasks only, by their numbers from 1")
        name = " ".join((words["name"] or text).split())
        name = name if len(name) <= 60 else name[:59].rstrip() + "…"
        out.append(Part(number, name, text.strip(), words["skill"], words["fallback"], tuple(dict.fromkeys(after))))
    return tuple(out)


def joined(ends: tuple[SubtaskChanged, ...]) -> ToolOutcome:
    """All results as one, in the order of the call; each failure is named."""
    texts = [f"[Part {e.number} of {len(ends)}, {e.name}: {_how(e)}]\n{e.text}".rstrip() for e in ends]
    rows = [
        {"number": e.number, "name": e.name, "state": e.state, "session": e.child, "skill": e.skill,
         "instead_of": e.instead_of, "error": e.error}
        for e in ends
    ]  # fmt: skip
    outcome = Outcome.OK if any(e.state == "done" for e in ends) else Outcome.ERROR
    structured: FrozenDict = freeze({"parts": rows})
    return ToolOutcome(outcome, (Text("\n\n".join(texts)),), structured)


def _how(e: SubtaskChanged) -> str:
    by = f" by {e.skill}" if e.skill else ""
    why = f"{e.error['code']}: {e.error['message']}" if e.error else ""
    if e.state == "done":
        return f"done{by}" + (f", because {e.instead_of} failed ({why})" if e.instead_of else "")
    return f"{e.state}{by}{f', {why}' if why else ''}"
