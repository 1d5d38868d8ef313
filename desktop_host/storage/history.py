"""The journal and what else is kept of sessions: options, drafts, state, search, leases, blobs."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from desktop_host.core.codec import decode, encode
from desktop_host.core.errors import PeerFault
from desktop_host.core.events import Stamped
from desktop_host.core.sessions import SessionOptions, SessionRow, TurnStatus
from desktop_host.storage.journal import Journal, dump, hold, one, owner_of
from desktop_host.storage.lease import Leases
from desktop_host.storage.search import plain
from desktop_host.storage.sql import Blobs, Database, Search, Sql

PAGE = 1000
"""Events that are read in one go; between two pages other work gets its turn."""

_ROW = "session, title, created, updated, messages, pinned, last_turn"


class JournalHistory:
    """`History` over a database."""

    def __init__(
        self, database: Database, blobs: Blobs, search: Search, leases: Leases, now: Callable[[], float]
    ) -> None:
        self._database = database
        self._blobs = blobs
        self._search = search
        self._leases = leases
        self._journal = Journal(blobs, leases, search)
        self._now = now

    # ---- sessions
    async def create(self, session: str, title: str, options: SessionOptions) -> None:
        now = self._now()
        values = (session, plain(title), now, now, dump(encode(options)))
        query = "INSERT INTO sessions (session, title, created, updated, options, parent) VALUES (?, ?, ?, ?, ?, ?)"

        def make(db: Sql) -> None:
            above = "SELECT coalesce(parent, session) FROM sessions WHERE session = ?"
            root = one(db, options.parent, above)[0] if options.parent else None
            db.execute(query, (*values, root))

        await self._database.write(make)

    async def row(self, session: str) -> SessionRow:
        return await self._database.read(
            lambda db: _session_row(one(db, session, f"SELECT {_ROW} FROM sessions WHERE session = ?"))
        )

    async def rows(self, *, limit: int = 500, offset: int = 0) -> tuple[SessionRow, ...]:
        query = (
            f"SELECT {_ROW} FROM sessions WHERE parent IS NULL"
            " ORDER BY pinned DESC, updated DESC, id DESC LIMIT ? OFFSET ?"
        )
        return await self._database.read(
            lambda db: tuple(_session_row(row) for row in db.execute(query, (limit, offset)).fetchall())
        )

    async def options(self, session: str) -> SessionOptions:
        row = await self._database.read(
            lambda db: one(db, session, "SELECT options FROM sessions WHERE session = ?")
        )  # fmt: skip
        found = decode(json.loads(row[0]))
        if not isinstance(found, SessionOptions):
            raise PeerFault("bad_history", f"session {session} has no readable options", session=session)
        return found

    async def set_options(self, session: str, options: SessionOptions) -> None:
        text = dump(encode(options))
        await self._guarded(session, "UPDATE sessions SET options = ? WHERE id = ?", text)

    async def rename(self, session: str, title: str) -> None:
        await self._change(session, "UPDATE sessions SET title = ? WHERE id = ?", plain(title))

    async def pin(self, session: str, on: bool) -> None:
        await self._change(session, "UPDATE sessions SET pinned = ? WHERE id = ?", int(on))

    async def delete(self, session: str) -> None:
        """Delete a session and the blobs that no other session uses.

        Raises:
            UserFault: `not_found`; `session_busy`, another live process has it.
        """

        def remove(db: Sql) -> list[str]:
            hold(db, session)
            owner = owner_of(db, session)
            self._leases.guard(db, owner, session)
            parts = db.execute("SELECT id FROM sessions WHERE parent = ?", (session,)).fetchall()
            used = []
            for one_of in (*(part for (part,) in parts), owner):
                used += [sha for (sha,) in db.execute("SELECT sha256 FROM blob_uses WHERE owner = ?", (one_of,))]
                self._search.forget(db, one_of)
                db.execute("DELETE FROM sessions WHERE id = ?", (one_of,))
            return used

        used = await self._database.write(remove)
        # A transaction of its own: a file is removed only when the rows are known to be gone.
        await self._database.write(lambda db: self._blobs.sweep(db, used))

    async def sweep(self) -> None:
        """Remove the blobs that a deletion left behind when its process died."""
        query = (
            "SELECT sha256 FROM blobs WHERE loose = 0"
            " AND NOT EXISTS (SELECT 1 FROM blob_uses WHERE blob_uses.sha256 = blobs.sha256)"
        )
        left = await self._database.read(lambda db: [sha for (sha,) in db.execute(query)])
        if left:
            await self._database.write(lambda db: self._blobs.sweep(db, left))

    async def search(self, text: str, limit: int = 50) -> tuple[SessionRow, ...]:
        def find(db: Sql) -> tuple[SessionRow, ...]:
            query = f"SELECT {_ROW} FROM sessions WHERE id = ?"
            return tuple(
                replace(_session_row(db.execute(query, (owner,)).fetchone()), snippet=snippet)
                for owner, snippet in self._search.find(db, text, limit)
            )

        return await self._database.read(find)

    # ---- the journal
    async def append(self, events: Sequence[Stamped], *, copied: bool = False) -> None:
        """Write events in one transaction; usage and counts are kept with them (not of `copied` ones).

        Raises:
            KnownFault: `disk_full` or `database_error`.
            UserFault: `not_found`; `session_busy`, another process has the session or has written to it.
        """
        if events:
            await self._database.write(lambda db: self._journal.append(db, events, copied=copied))

    async def read(self, session: str, after: int = 0, limit: int | None = None) -> tuple[Stamped, ...]:
        """Events after a seq, oldest first.

        Raises:
            UserFault: `not_found`.
            KnownFault: `database_error`; a blob is missing or damaged.
            PeerFault: `bad_history`, an event that no version of this host wrote.
        """
        found: list[Stamped] = []
        while limit is None or len(found) < limit:
            want = PAGE if limit is None else min(PAGE, limit - len(found))
            page = await self._database.read(partial(self._journal.page, session=session, after=after, limit=want))
            found += page
            if len(page) < want:
                break
            after = page[-1].seq
        return tuple(found)

    async def last_seq(self, session: str) -> int:
        query = "SELECT last_seq FROM sessions WHERE session = ?"
        row = await self._database.read(lambda db: one(db, session, query))
        return int(row[0])

    async def tail_seq(self, session: str, count: int) -> int:
        query = "SELECT seq FROM events WHERE owner = ? ORDER BY seq DESC LIMIT 1 OFFSET ?"
        row = await self._database.read(lambda db: db.execute(query, (owner_of(db, session), count)).fetchone())
        return 0 if row is None else int(row[0])

    async def open_turns(self) -> tuple[str, ...]:
        def find(db: Sql) -> tuple[str, ...]:
            rows = db.execute("SELECT id, session FROM sessions WHERE last_turn = 'open' ORDER BY id").fetchall()
            return tuple(session for owner, session in rows if self._leases.taken_by_other(db, owner) is None)

        return await self._database.read(find)

    # ---- drafts and state
    async def save_draft(self, session: str, turn: int, text: str, thinking: str) -> None:
        query = (
            "INSERT INTO drafts (turn, text, thinking, owner) VALUES (?, ?, ?, ?) ON CONFLICT (owner) DO UPDATE"
            " SET turn = excluded.turn, text = excluded.text, thinking = excluded.thinking"
        )
        await self._guarded(session, query, turn, _storable(text), _storable(thinking))

    async def draft(self, session: str) -> tuple[int, str, str] | None:
        query = "SELECT turn, text, thinking FROM drafts WHERE owner = ?"
        row = await self._database.read(lambda db: db.execute(query, (owner_of(db, session),)).fetchone())
        return None if row is None else (int(row[0]), str(row[1]), str(row[2]))

    async def clear_draft(self, session: str) -> None:
        await self._change(session, "DELETE FROM drafts WHERE owner = ?")

    async def put_state(self, session: str, key: str, value: Any) -> None:
        text = dump(value)

        def put(db: Sql) -> None:
            owner = owner_of(db, session)
            db.execute(
                "INSERT INTO states (owner, key, value) VALUES (?, ?, ?)"
                " ON CONFLICT (owner, key) DO UPDATE SET value = excluded.value",
                (owner, key, text),
            )
            self._blobs.use(db, owner, self._blobs.mentioned(db, text))

        await self._database.write(put)

    async def state(self, session: str, key: str) -> Any:
        """The JSON value kept under `key` (plain lists and dicts, a copy); None where there is none."""
        query = "SELECT value FROM states WHERE owner = ? AND key = ?"
        row = await self._database.read(lambda db: db.execute(query, (owner_of(db, session), key)).fetchone())
        return None if row is None else json.loads(row[0])

    # ---- blobs and leases
    async def put_blob(self, data: bytes) -> str:
        return await self._database.write(lambda db: self._blobs.write(db, data, loose=True))

    async def blob(self, sha256: str) -> bytes:
        return await self._database.read(lambda db: self._blobs.read(db, sha256))

    async def lease(self, session: str) -> None:
        def take(db: Sql) -> int:
            hold(db, session)
            owner = owner_of(db, session)
            self._leases.take(db, owner, session)
            return owner

        self._leases.held.add(await self._database.write(take))

    async def release(self, session: str) -> None:
        def drop(db: Sql) -> None:
            hold(db, session)
            for (owner,) in db.execute("SELECT id FROM sessions WHERE session = ?", (session,)).fetchall():
                self._leases.held.discard(owner)
                self._leases.drop(db, owner)

        await self._database.write(drop)

    async def _guarded(self, session: str, query: str, *values: Any) -> None:
        """Change what only the holder of a session may change."""

        def change(db: Sql) -> None:
            owner = owner_of(db, session)
            self._leases.guard(db, owner, session)
            db.execute(query, (*values, owner))

        await self._database.write(change)

    async def _change(self, session: str, query: str, *values: Any) -> None:
        await self._database.write(lambda db: db.execute(query, (*values, owner_of(db, session))))


def _session_row(row: Iterable[Any]) -> SessionRow:
    session, title, created, updated, messages, pinned, last = row
    return SessionRow(
        session, title, created, updated, messages, pinned=bool(pinned), last_turn=TurnStatus(last) if last else None
    )


def _storable(text: str) -> str:
    return text.encode("utf-8", "replace").decode()
