"""History and ledger in memory: the same contract suite as the database passes on them."""

from __future__ import annotations

import hashlib
import json
import time
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from desktop_host.core.codec import decode, encode
from desktop_host.core.errors import KnownFault, UserFault
from desktop_host.core.events import (
    AssistantSaid,
    Stamped,
    ToolRequested,
    ToolSettled,
    TurnEnded,
    TurnStarted,
    UsageRecorded,
    UserSaid,
)
from desktop_host.core.messages import Outcome
from desktop_host.core.permissions import Rule
from desktop_host.core.sessions import SessionOptions, SessionRow, TurnStatus
from desktop_host.core.values import FrozenDict


@dataclass
class _Kept:
    row: SessionRow
    options: SessionOptions
    events: list[Stamped] = field(default_factory=list)
    draft: tuple[int, str, str] | None = None
    state: dict[str, str] = field(default_factory=dict)
    holder: object | None = None


@dataclass
class World:
    """What outlives a `MemoryHistory`: several of them on one world are several processes on one profile."""

    sessions: dict[str, _Kept] = field(default_factory=dict)
    blobs: dict[str, bytes] = field(default_factory=dict)
    alive: set[int] = field(default_factory=set)
    grants: list[Rule] = field(default_factory=list)
    tools: dict[str, tuple[str, str]] = field(default_factory=dict)
    usage: list[tuple[str, str, UsageRecorded]] = field(default_factory=list)
    calls: list[tuple[str, ToolSettled]] = field(default_factory=list)


class MemoryHistory:
    """A `History`. `die()` is what a killed process does: its leases fall, its turns stay open."""

    def __init__(self, world: World | None = None, *, now: Callable[[], float] = time.time) -> None:
        self.world = world or World()
        self._now = now
        self.world.alive.add(id(self))
        self.fault: KnownFault | None = None
        """Set by a test: the next appends fail with it."""

    def die(self) -> None:
        self.world.alive.discard(id(self))

    def _kept(self, session: str) -> _Kept:
        try:
            return self.world.sessions[session]
        except KeyError:
            raise UserFault("not_found", f"there is no session {session}", kind="session", name=session) from None

    def _root(self, session: str) -> str:
        above = self.world.sessions[session].options.parent
        return self._root(above) if above in self.world.sessions else session

    def _busy(self, kept: _Kept) -> bool:
        return kept.holder is not None and kept.holder != id(self) and kept.holder in self.world.alive

    async def create(self, session: str, title: str, options: SessionOptions) -> None:
        if session in self.world.sessions:
            raise ValueError(f"session {session} exists")
        if options.parent:
            self._kept(options.parent)
        now = self._now()
        self.world.sessions[session] = _Kept(SessionRow(session, title, now, now, 0), options)

    async def row(self, session: str) -> SessionRow:
        return self._kept(session).row

    async def rows(self, *, limit: int = 500, offset: int = 0) -> tuple[SessionRow, ...]:
        rows = [k.row for k in reversed(self.world.sessions.values()) if k.options.parent is None]
        rows.sort(key=lambda r: (not r.pinned, -r.updated))
        return tuple(rows[offset : offset + limit])

    async def options(self, session: str) -> SessionOptions:
        return self._kept(session).options

    async def set_options(self, session: str, options: SessionOptions) -> None:
        self._free(session).options = options

    def _free(self, session: str) -> _Kept:
        kept = self._kept(session)
        if self._busy(kept):
            raise UserFault("session_busy", "another process has this session", session=session)
        return kept

    async def append(self, events: Sequence[Stamped], *, copied: bool = False) -> None:
        if self.fault:
            raise self.fault
        last: dict[str, int] = {}
        for s in events:
            kept = self._kept(s.session)
            known = last.get(s.session, kept.events[-1].seq if kept.events else 0)
            if self._busy(kept) or s.seq <= known:
                raise UserFault("session_busy", "another process writes this session", session=s.session)
            last[s.session] = s.seq
        for s in events:
            kept = self._kept(s.session)
            event = decode(json.loads(json.dumps(encode(s.event))))
            kept.events.append(replace(s, event=event))
            row = replace(kept.row, updated=s.t)
            match event:
                case UserSaid():
                    row = replace(row, messages=row.messages + 1)
                case AssistantSaid() if event.text:
                    row = replace(row, messages=row.messages + 1)
                case TurnStarted():
                    row = replace(row, last_turn=TurnStatus.OPEN)
                case TurnEnded(status=status):
                    row = replace(row, last_turn=status)
                case UsageRecorded() if not copied:
                    day = time.strftime("%Y-%m-%d", time.localtime(s.t))
                    self.world.usage.append((day, self._root(s.session), event))
                case ToolSettled() if not copied:
                    for e in kept.events:
                        if isinstance(e.event, ToolRequested) and e.event.call_id == event.call_id:
                            self.world.calls.append((e.event.server, event))
            kept.row = row

    async def read(self, session: str, after: int = 0, limit: int | None = None) -> tuple[Stamped, ...]:
        return tuple([s for s in self._kept(session).events if s.seq > after][:limit])

    async def last_seq(self, session: str) -> int:
        events = self._kept(session).events
        return events[-1].seq if events else 0

    async def tail_seq(self, session: str, count: int) -> int:
        events = self._kept(session).events
        return events[-count - 1].seq if len(events) > count else 0

    async def save_draft(self, session: str, turn: int, text: str, thinking: str) -> None:
        if self.fault:
            raise self.fault
        self._free(session).draft = (turn, text, thinking)

    async def draft(self, session: str) -> tuple[int, str, str] | None:
        return self._kept(session).draft

    async def clear_draft(self, session: str) -> None:
        self._kept(session).draft = None

    async def put_state(self, session: str, key: str, value: Any) -> None:
        self._kept(session).state[key] = json.dumps(value)

    async def state(self, session: str, key: str) -> Any:
        text = self._kept(session).state.get(key)
        return None if text is None else json.loads(text)

    async def rename(self, session: str, title: str) -> None:
        kept = self._kept(session)
        kept.row = replace(kept.row, title=title)

    async def pin(self, session: str, on: bool) -> None:
        kept = self._kept(session)
        kept.row = replace(kept.row, pinned=on)

    async def delete(self, session: str) -> None:
        if self._busy(self._kept(session)):
            raise UserFault("session_busy", "another process has this session", session=session)
        gone: set[str] = set()
        for part in [s for s in self.world.sessions if self._root(s) == session]:
            gone |= self._mentioned(self.world.sessions.pop(part))
        for kept in self.world.sessions.values():
            gone -= self._mentioned(kept)
        for sha in gone:
            del self.world.blobs[sha]

    def _mentioned(self, kept: _Kept) -> set[str]:
        text = json.dumps([encode(s.event) for s in kept.events]) + "".join(kept.state.values())
        return {sha for sha in self.world.blobs if sha in text}

    async def search(self, text: str, limit: int = 50) -> tuple[SessionRow, ...]:
        terms = [unicodedata.normalize("NFC", t).casefold() for t in text.split()]
        found = []
        tops = [k.row for k in self.world.sessions.values() if k.options.parent is None]
        for row in sorted(tops, key=lambda r: -r.updated) if terms else ():
            said = [
                e.event.text
                for name in self.world.sessions
                if self._root(name) == row.session
                for e in self.world.sessions[name].events
                if isinstance(e.event, (UserSaid, AssistantSaid))
            ]
            for line in (*reversed(said), row.title):
                if all(t in unicodedata.normalize("NFC", line).casefold() for t in terms):
                    found.append(replace(row, snippet=line[:160]))
                    break
        return tuple(found[:limit])

    async def open_turns(self) -> tuple[str, ...]:
        return tuple(
            name
            for name, kept in self.world.sessions.items()
            if kept.row.last_turn is TurnStatus.OPEN and not self._busy(kept)
        )

    async def put_blob(self, data: bytes) -> str:
        sha = hashlib.sha256(data).hexdigest()
        self.world.blobs[sha] = bytes(data)
        return sha

    async def blob(self, sha256: str) -> bytes:
        try:
            return self.world.blobs[sha256]
        except KeyError:
            raise UserFault("not_found", f"there is no blob {sha256}", kind="blob", name=sha256) from None

    async def lease(self, session: str) -> None:
        kept = self._kept(session)
        if self._busy(kept):
            raise UserFault("session_busy", "another process has this session", session=session)
        kept.holder = id(self)

    async def release(self, session: str) -> None:
        kept = self.world.sessions.get(session)
        if kept and kept.holder == id(self):
            kept.holder = None


class MemoryLedger:
    """A `Ledger` beside a `MemoryHistory` of the same world."""

    def __init__(self, world: World | None = None) -> None:
        self.world = world or World()

    async def grants(self) -> tuple[Rule, ...]:
        return tuple(self.world.grants)

    async def grant(self, rule: Rule) -> None:
        same = (rule.pattern, rule.arguments)
        self.world.grants[:] = [r for r in self.world.grants if (r.pattern, r.arguments) != same]
        self.world.grants.append(rule)

    async def revoke(self, pattern: str) -> None:
        self.world.grants[:] = [r for r in self.world.grants if r.pattern != pattern]

    async def known_tool(self, full_name: str) -> tuple[str, str] | None:
        return self.world.tools.get(full_name)

    async def remember_tool(self, full_name: str, digest: str, description: str) -> None:
        self.world.tools[full_name] = (digest, description)

    async def usage(self, by: str) -> tuple[FrozenDict, ...]:
        if by == "server":
            return self._by_server()
        if by not in ("day", "model", "session", "purpose", "skill"):
            raise UserFault("usage", f"usage cannot be summed by {by!r}", value=by)
        sums: dict[str, dict[str, Any]] = {}
        for day, session, e in self.world.usage:
            keys = {"day": day, "model": e.model, "session": session, "purpose": e.purpose}
            for key in e.skills if by == "skill" else (keys[by],):
                self._add(sums, by, key, e)
        return tuple(FrozenDict(sums[key]) for key in sorted(sums))

    def _add(self, sums: dict[str, dict[str, Any]], by: str, key: str, e: UsageRecorded) -> None:
        row = sums.setdefault(key, {
            by: key, "requests": 0, "input": 0, "output": 0, "cache_read": 0, "cache_write": 0, "reasoning": 0,
            "cost_usd": None, "unpriced": 0,
        })  # fmt: skip
        row["requests"] += 1
        for name in ("input", "output", "cache_read", "cache_write", "reasoning"):
            row[name] += getattr(e, name)
        if e.cost_usd is None:
            row["unpriced"] += 1
        else:
            row["cost_usd"] = (row["cost_usd"] or 0.0) + e.cost_usd

    def _by_server(self) -> tuple[FrozenDict, ...]:
        sums: dict[str, dict[str, Any]] = {}

        def of(server: str) -> dict[str, Any]:
            return sums.setdefault(server, {
                "server": server, "calls": 0, "failed": 0, "denied": 0, "duration_ms": 0.0,
                "sampling_requests": 0, "sampling_tokens": 0, "sampling_cost_usd": 0,
            })  # fmt: skip

        for _day, _session, used in self.world.usage:
            if used.server:
                row = of(used.server)
                row["sampling_requests"] += 1
                row["sampling_tokens"] += used.input + used.output + used.cache_read + used.cache_write
                row["sampling_cost_usd"] += used.cost_usd or 0.0
        for server, e in self.world.calls:
            row = of(server)
            row["calls"] += 1
            row["failed"] += e.outcome in (Outcome.ERROR, Outcome.TIMED_OUT, Outcome.UNKNOWN)
            row["denied"] += e.outcome is Outcome.DENIED
            row["duration_ms"] += e.duration_ms
        return tuple(FrozenDict(sums[key]) for key in sorted(sums))
