"""Budgets and quotas: money is set aside before a request and settled after it, so no limit is ever passed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from desktop_host.core.errors import HostError
from desktop_host.core.values import FrozenDict

WARN_AT = 0.8
"""Share of a limit from which a person is told."""


@dataclass(frozen=True, slots=True)
class Purse:
    """Something that is counted, and its limits (None: only counted)."""

    scope: str
    """`session`, `day`, `month` or `server` (what one server's sampling costs in a day)."""
    key: str
    """Id of the session, `2026-11-30`, `2026-11`, or `alias 2026-11-30`."""
    usd: float | None = None
    calls: int | None = None

    @property
    def limited(self) -> bool:
        """Whether it can refuse."""
        return self.usd is not None or self.calls is not None


@dataclass(frozen=True, slots=True)
class Standing:
    """What a purse has seen."""

    spent_usd: float = 0.0
    calls: int = 0
    reserved_usd: float = 0.0
    """Set aside for requests that run now."""
    reserved_calls: int = 0
    tokens: int = 0
    """All that passed through models, input and output."""


def refused(purse: Purse, spent: float, held: float, needs: float, **more: Any) -> HostError:
    """The fault of a request that a budget does not cover: it is spent, or what is left is too little for this one."""
    limit = purse.usd or 0.0
    left = max(limit - spent - held, 0.0)
    return HostError(
        "budget_spent",
        f"the budget ({purse.scope}) of ${limit:g} has ${left:.6f} left; the next request needs ${needs:.6f}",
        reason=purse.scope if spent >= limit else f"{purse.scope}_short", remedy=f"remedy.budget_spent.{purse.scope}",
        scope=purse.scope, limit=limit, budget=limit, spent=round(spent, 6), reserved=round(held, 6),
        left=round(left, 6), needs=round(needs, 6), held=round(held, 6) or None, **more,
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Reservation:
    """Money set aside."""

    id: str
    usd: float


class Purses(Protocol):
    """Where spending is kept; shared by all processes of a profile."""

    async def reserve(self, purses: Sequence[Purse], usd: float, at_least: float) -> Reservation:
        """Set aside `usd` in every purse, or what the emptiest still holds, but no less than `at_least`.

        Raises:
            HostError: `budget_spent` or `quota_spent`, with `scope`, `limit` and `spent`. Nothing is set aside then.
            KnownFault: `database_error` or `disk_full`.
        """
        ...

    async def settle(
        self, reservation: Reservation | None, purses: Sequence[Purse], usd: float, calls: int, tokens: int = 0
    ) -> None:
        """Give back what was set aside and book what it really cost, in one step."""
        ...

    async def standing(self, purses: Sequence[Purse]) -> tuple[Standing, ...]:
        """What each has seen, in their order."""
        ...


@dataclass(frozen=True, slots=True)
class CachedAnswer:
    """An answer of a model that may serve again."""

    key: str
    question: str
    model: str
    answer: FrozenDict
    """The message in the journal's form."""
    created: float
    """Seconds since the epoch."""


class Answers(Protocol):
    """Kept answers of one profile."""

    async def get(self, key: str, since: float) -> CachedAnswer | None:
        """The answer of this key, if it is not older than `since`."""
        ...

    async def put(self, scope: str, answer: CachedAnswer) -> None:
        """Keep an answer; the oldest of more than a thousand go."""
        ...

    async def questions(self, scope: str, since: float) -> tuple[tuple[str, str], ...]:
        """`(key, question)` of the answers given under the same model, system text and tools; newest first."""
        ...

    async def clear(self) -> None: ...


class Likeness(Protocol):
    """How alike questions are in meaning."""

    async def scores(self, question: str, others: Sequence[str]) -> list[float] | None:
        """One score from 0 to 1 for each of the others; None where meaning cannot be compared."""
        ...


def hit_rate(row: Mapping[str, object]) -> float | None:
    """Share of the input that came from the vendor's prompt cache, from 0 to 1; None without input."""
    read, rest = _count(row, "cache_read"), _count(row, "input") + _count(row, "cache_write")
    return read / (read + rest) if read + rest else None


def _count(row: Mapping[str, object], name: str) -> int:
    value = row.get(name)
    return value if isinstance(value, int) else 0
