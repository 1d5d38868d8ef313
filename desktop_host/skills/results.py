"""How the versions of a skill did: counted from the journals of the sessions that use them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from typing import Any

from desktop_host.core.events import SkillPinned, SkillsChosen, Stamped, ToolSettled, TurnEnded, UsageRecorded
from desktop_host.core.messages import Outcome
from desktop_host.core.ports import History
from desktop_host.core.sessions import TurnStatus
from desktop_host.core.skill_admin import VersionResults
from desktop_host.core.skills import SkillPin
from desktop_host.skills.pins import STATE

_PAGE = 500


async def sessions_with(history: History, name: str) -> AsyncIterator[tuple[str, str, SkillPin]]:
    """The sessions that keep a version of a skill: `(session, title, pin)`."""
    offset = 0
    while rows := await history.rows(limit=_PAGE, offset=offset):
        offset += len(rows)
        for row in rows:
            state = await history.state(row.session, STATE)
            pin = state.get("pins", {}).get(name) if isinstance(state, dict) else None
            if pin:
                yield (
                    row.session,
                    row.title,
                    SkillPin(name, str(pin["version"]), str(pin["digest"]), str(pin["reason"])),
                )
        if len(rows) < _PAGE:
            return


async def results_of(history: History, name: str, known: Mapping[str, str]) -> tuple[VersionResults, ...]:
    """One line a version and digest, the present versions first even if nobody used them.

    A turn counts for a skill if it was chosen for its message or taken up during it.
    """
    sums: dict[tuple[str, str], VersionResults] = {(v, d): VersionResults(v, d) for v, d in known.items()}
    async for session, _title, _pin in sessions_with(history, name):
        _count(sums, await history.read(session), name)
    return tuple(sums.values())


def _count(sums: dict[tuple[str, str], VersionResults], events: tuple[Stamped, ...], name: str) -> None:
    now: tuple[str, str] | None = None
    of_turn: dict[int, tuple[str, str]] = {}
    seen: set[tuple[str, str]] = set()

    def add(key: tuple[str, str], **more: Any) -> None:
        row = sums.get(key) or VersionResults(*key)
        changed: dict[str, Any] = {}
        for field, by in more.items():
            old = getattr(row, field)
            changed[field] = None if old is None or by is None else old + by
        sums[key] = replace(row, **changed)

    def use(pin: SkillPin, turn: int) -> None:
        nonlocal now
        now = (pin.version, pin.digest)
        if of_turn.get(turn) == now:
            return
        of_turn[turn] = now
        add(now, turns=1, sessions=0 if now in seen else 1)
        seen.add(now)

    for stamped in events:
        match stamped.event:
            case SkillsChosen(skills=pins):
                now = None
                for pin in pins:
                    if pin.name == name:
                        use(pin, stamped.turn)
            case SkillPinned(pin=pin) if pin.name == name and pin.reason != "person":
                use(pin, stamped.turn)
            case ToolSettled(outcome=outcome) if now and outcome in (Outcome.ERROR, Outcome.TIMED_OUT):
                add(now, tool_errors=1)
            case UsageRecorded() as e if now:
                add(now, cost_usd=e.cost_usd, input_tokens=e.input + e.cache_read + e.cache_write,
                    output_tokens=e.output)  # fmt: skip
            case TurnEnded(status=TurnStatus.FAILED) if now:
                add(now, failed_turns=1)
            case other if other.type == "feedback_given":
                key = of_turn.get(int(getattr(other, "turn", 0) or stamped.turn))
                value = _thumb(other)
                if key and value:
                    add(key, **({"thumbs_up": 1} if value > 0 else {"thumbs_down": 1}))


def _thumb(event: Any) -> int:
    """1 for a thumb up, -1 for one down, 0 for neither, in whatever form the event has it."""
    for field in ("value", "thumb", "rating", "good", "up"):
        value = getattr(event, field, None)
        if value is None:
            continue
        if isinstance(value, bool):
            return 1 if value else -1
        if isinstance(value, (int, float)):
            return (value > 0) - (value < 0)
        return {"up": 1, "good": 1, "+1": 1, "down": -1, "bad": -1, "-1": -1}.get(str(value).lower(), 0)
    return 0
