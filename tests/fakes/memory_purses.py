"""Budgets and kept answers in memory: they pass the same contract suite as the database's."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from desktop_host.core.budgets import CachedAnswer, Purse, Reservation, Standing, refused
from desktop_host.core.errors import HostError

NANO = 1_000_000_000


def _nano(usd: float) -> int:
    return math.ceil(round(usd * NANO, 3))


@dataclass
class MemoryPurses:
    """A `Purses`."""

    spent: dict[tuple[str, str], int] = field(default_factory=lambda: defaultdict(int))
    calls: dict[tuple[str, str], int] = field(default_factory=lambda: defaultdict(int))
    tokens: dict[tuple[str, str], int] = field(default_factory=lambda: defaultdict(int))
    held: dict[str, tuple[tuple[tuple[str, str], ...], int]] = field(default_factory=dict)

    def _held(self, purse: Purse) -> list[int]:
        return [nano for keys, nano in self.held.values() if (purse.scope, purse.key) in keys]

    async def reserve(self, purses: Sequence[Purse], usd: float, at_least: float) -> Reservation:
        granted = _nano(usd)
        least = min(_nano(at_least), granted)
        for purse in purses:
            where, held = (purse.scope, purse.key), self._held(purse)
            if purse.calls is not None and self.calls[where] + len(held) >= purse.calls:
                raise HostError(
                    "quota_spent",
                    "used",
                    reason=purse.scope,
                    scope=purse.scope,
                    limit=purse.calls,
                    spent=self.calls[where],
                )
            if purse.usd is None or not _nano(usd):
                continue
            left = _nano(purse.usd) - self.spent[where] - sum(held)
            if left < least or left <= 0:
                raise refused(purse, self.spent[where] / NANO, sum(held) / NANO, least / NANO)
            granted = min(granted, left)
        name = str(len(self.held) + sum(self.calls.values()) + id(purses))
        self.held[name] = (tuple((p.scope, p.key) for p in purses), granted)
        return Reservation(name, granted / NANO)

    async def settle(
        self, reservation: Reservation | None, purses: Sequence[Purse], usd: float, calls: int, tokens: int = 0
    ) -> None:
        if reservation is not None:
            self.held.pop(reservation.id, None)
        for purse in purses:
            self.spent[(purse.scope, purse.key)] += _nano(usd)
            self.calls[(purse.scope, purse.key)] += calls
            self.tokens[(purse.scope, purse.key)] += tokens

    async def standing(self, purses: Sequence[Purse]) -> tuple[Standing, ...]:
        return tuple(
            Standing(
                self.spent[(p.scope, p.key)] / NANO, self.calls[(p.scope, p.key)], sum(self._held(p)) / NANO,
                len(self._held(p)), self.tokens[(p.scope, p.key)],
            )
            for p in purses
        )  # fmt: skip


@dataclass
class MemoryAnswers:
    """An `Answers`."""

    kept: dict[str, tuple[str, CachedAnswer]] = field(default_factory=dict)

    async def get(self, key: str, since: float) -> CachedAnswer | None:
        found = self.kept.get(key)
        return found[1] if found and found[1].created >= since else None

    async def put(self, scope: str, answer: CachedAnswer) -> None:
        self.kept[answer.key] = (scope, answer)
        for _, key in sorted(((a.created, key) for key, (_s, a) in self.kept.items()), reverse=True)[1000:]:
            del self.kept[key]

    async def questions(self, scope: str, since: float) -> tuple[tuple[str, str], ...]:
        found = [a for s, a in self.kept.values() if s == scope and a.created >= since]
        found.sort(key=lambda a: -a.created)
        return tuple((a.key, a.question) for a in found[:200])

    async def clear(self) -> None:
        self.kept.clear()
