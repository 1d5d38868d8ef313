"""What the person allowed for good, and what was used. Usage outlives the sessions it came from."""

from __future__ import annotations

import json
import sqlite3
import time
from typing import Any

from desktop_host.core.codec import decode, encode
from desktop_host.core.errors import UserFault
from desktop_host.core.events import Stamped, ToolRequested, ToolSettled, UsageRecorded
from desktop_host.core.messages import Outcome
from desktop_host.core.permissions import Rule
from desktop_host.core.values import FrozenDict
from desktop_host.storage.database import Database

_TOKENS = ("requests", "input", "output", "cache_read", "cache_write", "reasoning")
_FAILED = (Outcome.ERROR, Outcome.TIMED_OUT, Outcome.UNKNOWN)


def record(db: sqlite3.Connection, owner: int, stamped: Stamped) -> None:
    """Keep what an event says of usage: tokens by model, calls by server. Within the journal's transaction."""
    event = stamped.event
    day = time.strftime("%Y-%m-%d", time.localtime(stamped.t))
    match event:
        case UsageRecorded():
            db.execute(
                "INSERT INTO usage VALUES (?, ?, ?, ?, 1, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET"
                " requests = requests + 1, input = input + excluded.input, output = output + excluded.output,"
                " cache_read = cache_read + excluded.cache_read, cache_write = cache_write + excluded.cache_write,"
                " reasoning = reasoning + excluded.reasoning, unpriced = unpriced + excluded.unpriced,"
                " cost_usd = CASE WHEN excluded.cost_usd IS NULL THEN cost_usd"
                " ELSE coalesce(cost_usd, 0) + excluded.cost_usd END",
                (
                    day, stamped.session, event.model, event.purpose, event.input, event.output, event.cache_read,
                    event.cache_write, event.reasoning, event.cost_usd, int(event.cost_usd is None),
                ),
            )  # fmt: skip
        case ToolRequested():
            db.execute("INSERT OR REPLACE INTO open_calls VALUES (?, ?, ?)", (owner, event.call_id, event.server))
        case ToolSettled():
            called = db.execute(
                "DELETE FROM open_calls WHERE owner = ? AND call_id = ? RETURNING server", (owner, event.call_id)
            ).fetchone()
            if called:
                db.execute(
                    "INSERT INTO tool_runs VALUES (?, ?, ?, 1, ?, ?, ?) ON CONFLICT DO UPDATE SET"
                    " calls = calls + 1, failed = failed + excluded.failed, denied = denied + excluded.denied,"
                    " duration_ms = duration_ms + excluded.duration_ms",
                    (
                        day, stamped.session, called[0], int(event.outcome in _FAILED),
                        int(event.outcome is Outcome.DENIED), event.duration_ms,
                    ),
                )  # fmt: skip


class SqlLedger:
    """`Ledger` over SQLite."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def grants(self) -> tuple[Rule, ...]:
        """The rules, in the order they were given."""
        rows = await self._database.read(lambda db: db.execute("SELECT rule FROM grants ORDER BY id").fetchall())
        return tuple(decode(json.loads(text)) for (text,) in rows)

    async def grant(self, rule: Rule) -> None:
        """Keep a rule. The person's latest word on a pattern (and its arguments) replaces the earlier one."""
        values = (rule.pattern, "" if rule.arguments is None else f"={rule.arguments}", json.dumps(encode(rule)))
        await self._database.write(
            lambda db: db.execute("INSERT OR REPLACE INTO grants (pattern, arguments, rule) VALUES (?, ?, ?)", values)
        )

    async def revoke(self, pattern: str) -> None:
        """Forget all rules of a pattern."""
        await self._database.write(lambda db: db.execute("DELETE FROM grants WHERE pattern = ?", (pattern,)))

    async def known_tool(self, full_name: str) -> tuple[str, str] | None:
        query = "SELECT digest, description FROM known_tools WHERE full_name = ?"
        row = await self._database.read(lambda db: db.execute(query, (full_name,)).fetchone())
        return None if row is None else (str(row[0]), str(row[1]))

    async def remember_tool(self, full_name: str, digest: str, description: str) -> None:
        values = (full_name, digest, description.encode("utf-8", "replace").decode())
        await self._database.write(lambda db: db.execute("INSERT OR REPLACE INTO known_tools VALUES (?, ?, ?)", values))

    async def usage(self, by: str) -> tuple[FrozenDict, ...]:
        """Sums, ordered by their key.

        By `day` (local), `model` or `session`: `{<by>, requests, input, output, cache_read, cache_write, reasoning,
        cost_usd, unpriced}`; `cost_usd` is the sum of the requests whose price is known (None: of none), `unpriced`
        counts the others. By `server`: `{server, calls, failed, denied, duration_ms}`, since servers use no tokens.

        Raises:
            UserFault: `usage`, another word in `by`.
        """
        if by == "server":
            return await self._sums("tool_runs", by, ("calls", "failed", "denied", "duration_ms"))
        if by not in ("day", "model", "session"):
            raise UserFault("usage", f"usage cannot be summed by {by!r}", value=by)
        return await self._sums("usage", by, (*_TOKENS, "cost_usd", "unpriced"))

    async def _sums(self, table: str, by: str, columns: tuple[str, ...]) -> tuple[FrozenDict, ...]:
        query = f"SELECT {by}, {', '.join(f'sum({c})' for c in columns)} FROM {table} GROUP BY {by} ORDER BY {by}"

        def read(db: sqlite3.Connection) -> list[Any]:
            return db.execute(query).fetchall()

        return tuple(FrozenDict(zip((by, *columns), row, strict=True)) for row in await self._database.read(read))
