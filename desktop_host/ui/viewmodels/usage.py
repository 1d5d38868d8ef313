"""What was used: sums by day, model, server, chat, purpose and skill, the limits, and the same as CSV."""

from __future__ import annotations

import csv
import datetime
import io
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from PySide6.QtCore import QObject, Signal

from desktop_host.core.budgets import hit_rate
from desktop_host.core.errors import HostError
from desktop_host.core.values import FrozenDict
from desktop_host.engine.host import Host
from desktop_host.ui.bridge import Bridge

VIEWS = ("day", "model", "server", "session", "purpose", "skill")
DAYS = 30
"""Days that the chart shows."""
MEASURES = ("cost", "tokens", "requests")


@dataclass(frozen=True, slots=True)
class Line:
    """One row of a table."""

    key: str
    name: str
    requests: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    hit: float | None = None
    """Share of the input that came from the vendor's prompt cache, 0 to 1; None: no input."""
    cost_usd: float | None = None
    """None: no price of it is known."""
    unpriced: int = 0
    """Requests whose price is unknown: the cost is at least that much."""
    calls: int = 0
    """Tool calls (servers only)."""
    failed: int = 0


@dataclass(frozen=True, slots=True)
class Limit:
    """One budget or quota."""

    scope: str
    """`session`, `day` or `month`."""
    unit: str
    """`usd` or `calls`."""
    spent: float
    limit: float | None

    @property
    def share(self) -> float | None:
        """Used part of the limit; None where there is none."""
        return self.spent / self.limit if self.limit else None


class Usage(QObject):
    """The sums of the profile; `refresh` reads them."""

    changed = Signal()
    failed = Signal(object)

    def __init__(self, bridge: Bridge, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._bridge = bridge
        self.lines: dict[str, tuple[Line, ...]] = {}
        self.limits: tuple[Limit, ...] = ()
        self.error: HostError | None = None
        self.loaded = False

    def refresh(self) -> None:
        """Read all anew."""

        async def read(host: Host) -> tuple[dict[str, tuple[Line, ...]], tuple[Limit, ...]]:
            titles = {r.session: r.title for r in await host.history.rows()}
            lines = {}
            for by in VIEWS:
                rows = await host.ledger.usage(by)
                lines[by] = tuple(line_of(by, row, titles) for row in rows)
            return lines, limits_of(await host.standings())

        self._bridge.then(read, self._show, self._failed, self)

    def total(self, since: str = "") -> Line:
        """The sum of all days from `since` (`2026-11-30`) on."""
        days = [line for line in self.lines.get("day", ()) if line.key >= since]
        costs = [line.cost_usd for line in days if line.cost_usd is not None]
        read = sum(line.tokens_in for line in days)
        cached = sum((line.hit or 0.0) * line.tokens_in for line in days)
        return Line(
            "", "", sum(line.requests for line in days), read, sum(line.tokens_out for line in days),
            cached / read if read else None, sum(costs) if costs else None, sum(line.unpriced for line in days),
        )  # fmt: skip

    def by_day(self, measure: str, today: datetime.date) -> list[tuple[str, float]]:
        """`(day, value)` of the last `DAYS` days, days without use included."""
        found = {line.key: line for line in self.lines.get("day", ())}
        out = []
        for back in range(DAYS - 1, -1, -1):
            key = (today - datetime.timedelta(days=back)).isoformat()
            line = found.get(key)
            out.append((key, measured(line, measure) if line else 0.0))
        return out

    def _show(self, found: tuple[dict[str, tuple[Line, ...]], tuple[Limit, ...]]) -> None:
        self.lines, self.limits = found
        self.error, self.loaded = None, True
        self.changed.emit()

    def _failed(self, error: HostError) -> None:
        self.error = error
        self.changed.emit()
        self.failed.emit(error)


def measured(line: Line, measure: str) -> float:
    """One figure of a row."""
    match measure:
        case "cost":
            return line.cost_usd or 0.0
        case "tokens":
            return float(line.tokens_in + line.tokens_out)
        case _:
            return float(line.requests)


def line_of(by: str, row: Mapping[str, Any], titles: Mapping[str, str]) -> Line:
    """A row of the ledger."""
    key = str(row[by] or "")
    if by == "server":
        return Line(
            key, key, int(row.get("sampling_requests") or 0), int(row.get("sampling_tokens") or 0), 0, None,
            row.get("sampling_cost_usd"), 0, int(row.get("calls") or 0), int(row.get("failed") or 0),
        )  # fmt: skip
    name = titles.get(key, "") if by == "session" else key
    read = sum(int(row.get(k) or 0) for k in ("input", "cache_read", "cache_write"))
    return Line(
        key, name, int(row.get("requests") or 0), read, int(row.get("output") or 0), hit_rate(row),
        row.get("cost_usd"), int(row.get("unpriced") or 0),
    )  # fmt: skip


def limits_of(standings: tuple[FrozenDict, ...]) -> tuple[Limit, ...]:
    """Budgets in dollars first, then quotas of requests."""
    found = [Limit(str(s["scope"]), "usd", float(s["spent_usd"]), s.get("limit_usd")) for s in standings]
    found += [
        Limit(str(s["scope"]), "calls", float(s["calls"]), s.get("limit_calls"))
        for s in standings
        if s.get("limit_calls") is not None
    ]
    return tuple(found)


def as_csv(by: str, lines: tuple[Line, ...]) -> str:
    """A table as CSV; an unknown price is empty, never 0."""
    out = io.StringIO()
    writer = csv.writer(out)
    common = ("input_tokens", "output_tokens", "cache_hit_rate", "cost_usd", "unpriced_requests")
    writer.writerow((by, *(("title",) if by == "session" else ()), "requests", *common, "tool_calls", "failed_calls"))
    for line in lines:
        hit = "" if line.hit is None else f"{line.hit:.4f}"
        cost = "" if line.cost_usd is None else f"{line.cost_usd:.6f}"
        name = (_plain(line.name),) if by == "session" else ()
        writer.writerow((
            _plain(line.key), *name, line.requests, line.tokens_in, line.tokens_out, hit, cost, line.unpriced,
            line.calls, line.failed,
        ))  # fmt: skip
    return out.getvalue()


def _plain(text: str) -> str:
    """Text that no spreadsheet takes for a formula: titles are written by models and servers."""
    return f"'{text}" if text[:1] in ("=", "+", "-", "@", "\t", "\r") else text
