"""How the versions of a skill did: counted from the journals of the sessions that use them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import fields, replace
from typing import Any

from desktop_host.core.events import (
    Branched,
    FeedbackGiven,
    SkillPinned,
    SkillsChosen,
    Stamped,
    SubtaskChanged,
    ToolSettled,
    TurnEnded,
    UsageRecorded,
)
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

    A turn counts for a skill if it was chosen for its message or taken up during it; so does a sub-task's.
    """
    sums: dict[tuple[str, str], VersionResults] = {(v, d): VersionResults(v, d) for v, d in known.items()}
    async for session, _title, pin in sessions_with(history, name):
        for row in _Session(pin).counted(await history.read(session)):
            known_row = sums.get((row.version, row.digest)) or VersionResults(row.version, row.digest)
            sums[row.version, row.digest] = _sum(known_row, row)
    return tuple(sums.values())


def _sum(a: VersionResults, b: VersionResults) -> VersionResults:
    numbers: dict[str, Any] = {}
    for f in fields(VersionResults):
        one, two = getattr(a, f.name), getattr(b, f.name)
        if f.name not in ("version", "digest"):
            numbers[f.name] = None if one is None or two is None else one + two
    return replace(a, **numbers)


class _Session:
    """What one session says of a skill's versions."""

    def __init__(self, pin: SkillPin) -> None:
        self._name = pin.name
        self._pin = pin
        self._forget()

    def _forget(self) -> None:
        self._sums: dict[tuple[str, str], VersionResults] = {}
        self._now: tuple[str, str] | None = None
        self._of_turn: dict[int, tuple[str, str]] = {}
        self._said: dict[int, bool | None] = {}

    def counted(self, events: tuple[Stamped, ...]) -> tuple[VersionResults, ...]:
        """The sums of all events."""
        for stamped in events:
            self._take(stamped)
        for turn, good in self._said.items():
            key = self._of_turn.get(turn)
            if key and good is not None:
                self._add(key, **({"thumbs_up": 1} if good else {"thumbs_down": 1}))
        return tuple(replace(row, sessions=1) for row in self._sums.values())

    def _take(self, stamped: Stamped) -> None:
        now = self._now
        match stamped.event:
            case Branched():
                self._forget()  # what was before is counted where it was said
            case SkillsChosen(skills=pins):
                self._now = None
                for pin in pins:
                    if pin.name == self._name:
                        self._use(pin, stamped.turn)
            case SkillPinned(pin=pin) if pin.name == self._name and pin.reason != "person":
                self._use(pin, stamped.turn)
            case ToolSettled(outcome=outcome) if now and outcome in (Outcome.ERROR, Outcome.TIMED_OUT):
                self._add(now, tool_errors=1)
            case UsageRecorded() as e if now:
                tokens = e.input + e.cache_read + e.cache_write
                self._add(now, cost_usd=e.cost_usd, input_tokens=tokens, output_tokens=e.output)
            case TurnEnded(status=TurnStatus.FAILED) if now:
                self._add(now, failed_turns=1)
            case SubtaskChanged(state="done" | "failed") as e if e.skill.partition("@")[0] == self._name:
                self._add(
                    (self._pin.version, self._pin.digest), turns=1, failed_turns=int(e.state == "failed"),
                    cost_usd=e.cost_usd, input_tokens=e.input_tokens, output_tokens=e.output_tokens,
                )  # fmt: skip
            case FeedbackGiven(turn=turn, good=good):
                self._said[turn] = good
            case _:
                pass

    def _use(self, pin: SkillPin, turn: int) -> None:
        self._now = (pin.version, pin.digest)
        if self._of_turn.get(turn) != self._now:
            self._of_turn[turn] = self._now
            self._add(self._now, turns=1)

    def _add(self, key: tuple[str, str], **more: Any) -> None:
        row = self._sums.get(key) or VersionResults(*key)
        changed: dict[str, Any] = {}
        for field, by in more.items():
            old = getattr(row, field)
            changed[field] = None if old is None or by is None else old + by
        self._sums[key] = replace(row, **changed)
