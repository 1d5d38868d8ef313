"""What the person allowed for good, and what was used. Usage outlives the sessions it came from."""

from __future__ import annotations

import json
import time
from typing import Any

from desktop_host.core.codec import decode, encode
from desktop_host.core.errors import UserFault
from desktop_host.core.events import Stamped, ToolRequested, ToolSettled, UsageRecorded
from desktop_host.core.messages import Outcome
from desktop_host.core.permissions import Rule
from desktop_host.core.values import FrozenDict
from desktop_host.storage.sql import Database, Sql

_TOKENS = ("requests", "input", "output", "cache_read", "cache_write", "reasoning")
_COUNTED = (*_TOKENS, "cost_usd", "unpriced")
_SAMPLING = ("sampling_requests", "sampling_tokens", "sampling_cost_usd")
_ADD = (
    " DO UPDATE SET requests = u.requests + excluded.requests, input = u.input + excluded.input,"
    " output = u.output + excluded.output, cache_read = u.cache_read + excluded.cache_read,"
    " cache_write = u.cache_write + excluded.cache_write, reasoning = u.reasoning + excluded.reasoning,"
    " unpriced = u.unpriced + excluded.unpriced, cost_usd = CASE WHEN excluded.cost_usd IS NULL THEN u.cost_usd"
    " ELSE coalesce(u.cost_usd, 0) + excluded.cost_usd END"
)
_BY_USE = "ON CONFLICT (day, session, model, purpose)"
ADD_PARTS = f"ON CONFLICT (kind, name, day){_ADD}"
"""How a row of `usage_parts AS u` is added to the one of its key."""
_FAILED = (Outcome.ERROR, Outcome.TIMED_OUT, Outcome.UNKNOWN)


def record(db: Sql, owner: int, session: str, stamped: Stamped) -> None:
    """Keep what an event says of usage: tokens by model, calls by server. Within the journal's transaction.

    What a sub-task used is booked on the `session` in which the person is.
    """
    event = stamped.event
    if not isinstance(event, UsageRecorded | ToolRequested | ToolSettled):
        return
    day = time.strftime("%Y-%m-%d", time.localtime(stamped.t))
    match event:
        case UsageRecorded():
            values = (
                event.input, event.output, event.cache_read, event.cache_write, event.reasoning, event.cost_usd,
                int(event.cost_usd is None),
            )  # fmt: skip
            where = (day, session, event.model, event.purpose)
            db.execute(
                f"INSERT INTO usage AS u VALUES (?, ?, ?, ?, 1, ?, ?, ?, ?, ?, ?, ?) {_BY_USE}{_ADD}", (*where, *values)
            )
            named = [("server", event.server)] if event.server else []
            for kind, name in (*named, *(("skill", skill) for skill in event.skills)):
                parts = (kind, name, day, *values)
                db.execute(f"INSERT INTO usage_parts AS u VALUES (?, ?, ?, 1, ?, ?, ?, ?, ?, ?, ?) {ADD_PARTS}", parts)
        case ToolRequested():
            db.execute(
                "INSERT INTO open_calls (owner, call_id, server) VALUES (?, ?, ?)"
                " ON CONFLICT (owner, call_id) DO UPDATE SET server = excluded.server",
                (owner, event.call_id, event.server),
            )
        case ToolSettled():
            call = (owner, event.call_id)
            how = (int(event.outcome in _FAILED), int(event.outcome is Outcome.DENIED), event.duration_ms)
            db.execute(
                "INSERT INTO tool_runs AS r (day, session, server, calls, failed, denied, duration_ms)"
                " SELECT ?, ?, server, 1, ?, ?, ? FROM open_calls WHERE owner = ? AND call_id = ?"
                " ON CONFLICT (day, session, server) DO UPDATE SET"
                " calls = r.calls + 1, failed = r.failed + excluded.failed, denied = r.denied + excluded.denied,"
                " duration_ms = r.duration_ms + excluded.duration_ms",
                (day, session, *how, *call),
            )
            db.execute("DELETE FROM open_calls WHERE owner = ? AND call_id = ?", call)


class SqlLedger:
    """`Ledger` over databases.

    Usage is kept where the journal is. What a person allowed stays with the profile: on another computer the same
    name may be another server, so a database that computers share holds no permissions.
    """

    def __init__(self, database: Database, own: Database) -> None:
        self._database = database
        self._own = own

    async def grants(self) -> tuple[Rule, ...]:
        """The rules, in the order they were given."""
        rows = await self._own.read(lambda db: db.execute("SELECT rule FROM grants ORDER BY id").fetchall())
        return tuple(decode(json.loads(text)) for (text,) in rows)

    async def grant(self, rule: Rule) -> None:
        """Keep a rule. The person's latest word on a pattern (and its arguments) replaces the earlier one."""
        values = (rule.pattern, "" if rule.arguments is None else f"={rule.arguments}", json.dumps(encode(rule)))

        def put(db: Sql) -> None:
            db.execute("DELETE FROM grants WHERE pattern = ? AND arguments = ?", values[:2])
            db.execute("INSERT INTO grants (pattern, arguments, rule) VALUES (?, ?, ?)", values)

        await self._own.write(put)

    async def revoke(self, pattern: str) -> None:
        """Forget all rules of a pattern."""
        await self._own.write(lambda db: db.execute("DELETE FROM grants WHERE pattern = ?", (pattern,)))

    async def known_tool(self, full_name: str) -> tuple[str, str] | None:
        query = "SELECT digest, description FROM known_tools WHERE full_name = ?"
        row = await self._own.read(lambda db: db.execute(query, (full_name,)).fetchone())
        return None if row is None else (str(row[0]), str(row[1]))

    async def remember_tool(self, full_name: str, digest: str, description: str) -> None:
        values = (full_name, digest, description.encode("utf-8", "replace").decode())
        await self._own.write(lambda db: db.execute("INSERT OR REPLACE INTO known_tools VALUES (?, ?, ?)", values))

    async def usage(self, by: str) -> tuple[FrozenDict, ...]:
        """Sums, ordered by their key.

        By `day` (local), `model`, `session` or `purpose`: `{<by>, requests, input, output, cache_read, cache_write,
        reasoning, cost_usd, unpriced}`; `cost_usd` is the sum of the requests whose price is known (None: of none),
        `unpriced` counts the others. By `skill` likewise, for `name@version`. By `server`: `{server, calls, failed,
        denied, duration_ms}` of its tools, and of its sampling `{sampling_requests, sampling_tokens,
        sampling_cost_usd}`.

        Raises:
            UserFault: `usage`, another word in `by`.
        """
        if by == "server":
            return await self._by_server()
        if by == "skill":
            query = f"SELECT name, {_sum(_COUNTED)} FROM usage_parts WHERE kind = 'skill' GROUP BY name ORDER BY name"
            return await self._rows(query, (by, *_COUNTED))
        if by not in ("day", "model", "session", "purpose"):
            raise UserFault("usage", f"usage cannot be summed by {by!r}", value=by)
        query = f"SELECT {by}, {_sum(_COUNTED)} FROM usage GROUP BY {by} ORDER BY {by}"
        return await self._rows(query, (by, *_COUNTED))

    async def _by_server(self) -> tuple[FrozenDict, ...]:
        own = ("calls", "failed", "denied", "duration_ms")
        tools = await self._rows(
            f"SELECT server, {_sum(own)} FROM tool_runs GROUP BY server ORDER BY server", ("server", *own)
        )  # fmt: skip
        asked = await self._rows(
            "SELECT name, sum(requests), sum(input + output + cache_read + cache_write), sum(cost_usd)"
            " FROM usage_parts WHERE kind = 'server' GROUP BY name", ("server", *_SAMPLING),
        )  # fmt: skip
        found = {row["server"]: dict(row) for row in tools}
        for row in asked:
            found.setdefault(row["server"], {"server": row["server"]} | dict.fromkeys(own, 0)).update(row)
        nothing = dict.fromkeys(_SAMPLING, 0)
        return tuple(FrozenDict(nothing | found[name]) for name in sorted(found))

    async def _rows(self, query: str, names: tuple[str, ...]) -> tuple[FrozenDict, ...]:
        def read(db: Sql) -> list[Any]:
            return db.execute(query).fetchall()

        return tuple(FrozenDict(zip(names, row, strict=True)) for row in await self._database.read(read))


def _sum(columns: tuple[str, ...]) -> str:
    return ", ".join(f"sum({column})" for column in columns)
