"""The way from a profile's own file into the database that computers share: copied, never deleted here."""

from __future__ import annotations

import json
import logging
import sqlite3
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

from desktop_host.core.codec import decode, encode
from desktop_host.core.errors import HostError
from desktop_host.core.values import FrozenDict
from desktop_host.storage.blobs import BlobFiles
from desktop_host.storage.journal import dump, found_as
from desktop_host.storage.lease import Leases
from desktop_host.storage.ledger import ADD_PARTS
from desktop_host.storage.shared_history import OwnOptions, without_trust
from desktop_host.storage.sql import Blobs, Database, Search, Sql

_log = logging.getLogger(__name__)

_SESSION = "session, options, title, created, updated, pinned, messages, last_seq, last_turn, parent"
_BY_SESSION = {
    "drafts": ("turn", "text", "thinking"),
    "states": ("key", "value"),
    "open_calls": ("call_id", "server"),
}
"""Tables of a session's own rows, and their columns beside the owner."""
_USAGE = {
    "usage": "day, session, model, purpose, requests, input, output, cache_read, cache_write, reasoning, cost_usd,"
    " unpriced",
    "tool_runs": "day, session, server, calls, failed, denied, duration_ms",
}
"""Tables with a row for each session: a row that is there already is the same one."""
_PARTS = "kind, name, day, requests, input, output, cache_read, cache_write, reasoning, cost_usd, unpriced"


class Upload:
    """Copies what a profile's own file holds."""

    def __init__(self, path: Path, own: Database, shared: Database, files: BlobFiles, blobs: Blobs, search: Search):
        self._path = path
        self._own, self._shared = own, shared
        self._files, self._blobs, self._search = files, blobs, search

    async def run(self, source: str) -> FrozenDict:
        """Copy every session that the shared database lacks, each whole or not at all, and once what was spent.

        Args:
            source: names the file for good, so that its sums are added only once.

        Returns:
            `{copied, present, busy, failed}`: numbers of sessions; `busy` ones are open in a running host.

        Raises:
            KnownFault: `database_error` or `storage_unavailable`. What was copied stays; run it again.
        """
        found = await self._own.read(lambda db: db.execute("SELECT id, session FROM sessions ORDER BY id").fetchall())
        told = dict.fromkeys(("copied", "present", "busy", "failed"), 0)
        leases = Leases()
        for owner, session in found:
            taken = await self._own.read(partial(leases.taken_by_other, owner=owner))
            if taken is not None:
                told["busy"] += 1
                continue
            try:
                await self._keep_own(owner, session)
                new = await self._shared.write(partial(self._session, owner=owner, session=session))
            except HostError as error:
                if error.code != "too_large":
                    raise
                _log.warning("session %s is not copied: %s", session, error)
                told["failed"] += 1
            else:
                told["copied" if new else "present"] += 1
        await self._shared.write(lambda db: self._sums(db, source))
        return FrozenDict(told)

    async def _keep_own(self, owner: int, session: str) -> None:
        """What was allowed in the chat stays allowed here, and only here."""
        query = "SELECT options FROM sessions WHERE id = ?"
        row = await self._own.read(lambda db: db.execute(query, (owner,)).fetchone())
        known = await self._own.read(
            lambda db: db.execute("SELECT 1 FROM own_options WHERE session = ?", (session,)).fetchone()
        )
        if row is not None and known is None:
            await OwnOptions(self._own).put(session, decode(json.loads(row[0])))

    def _old(self) -> closing[sqlite3.Connection]:
        """A reader of the file on the thread that writes to the server: rows go through one by one."""
        return closing(sqlite3.connect(f"{self._path.absolute().as_uri()}?mode=ro", uri=True))

    def _session(self, db: Sql, owner: int, session: str) -> bool:
        """Copy one session; whether it was new there."""
        with self._old() as old:
            row = old.execute(f"SELECT {_SESSION} FROM sessions WHERE id = ?", (owner,)).fetchone()
            if row is None:
                return False  # deleted meanwhile
            row = (row[0], dump(encode(without_trust(decode(json.loads(row[1]))))), *row[2:])
            made = db.execute(
                f"INSERT INTO sessions ({_SESSION}) VALUES ({_marks(_SESSION)}) ON CONFLICT (session) DO NOTHING"
                " RETURNING id", row,
            ).fetchone()  # fmt: skip
            if made is None:
                return False
            (new,) = made
            self._copy_blobs(db, old, owner, new)
            top = found_as(db, new)
            texts = "SELECT text FROM texts WHERE rowid = ?"
            columns = "seq, t, turn, type, body, parts"
            for number, *event in old.execute(
                f"SELECT id, {columns} FROM events WHERE owner = ? ORDER BY seq", (owner,)
            ):
                db.execute(f"INSERT INTO events (owner, {columns}) VALUES (?, {_marks(columns)})", (new, *event))
                for (text,) in old.execute(texts, (number,)).fetchall():
                    self._search.index(db, new, event[0], top, text)
            for table, names in _BY_SESSION.items():
                listed = ", ".join(names)
                for values in old.execute(f"SELECT {listed} FROM {table} WHERE owner = ?", (owner,)):
                    db.execute(f"INSERT INTO {table} (owner, {listed}) VALUES (?, {_marks(listed)})", (new, *values))
        return True

    def _copy_blobs(self, db: Sql, old: sqlite3.Connection, owner: int, new: int) -> None:
        for (sha,) in old.execute("SELECT sha256 FROM blob_uses WHERE owner = ?", (owner,)).fetchall():
            try:
                data = self._files.read(db, sha)
            except HostError as error:
                # As it is here: the session opens, and what lacks the bytes says so.
                _log.warning("a blob is not copied: %s", error)
                continue
            self._blobs.use(db, new, [self._blobs.write(db, data)])

    def _sums(self, db: Sql, source: str) -> None:
        """Usage row by row; sums that many sessions share are added once."""
        with self._old() as old:
            for table, columns in _USAGE.items():
                put = f"INSERT INTO {table} ({columns}) VALUES ({_marks(columns)}) ON CONFLICT DO NOTHING"
                _each(db, put, old.execute(f"SELECT {columns} FROM {table}"))
            db.alone("upload")
            if db.execute("SELECT 1 FROM brought WHERE source = ?", (source,)).fetchone():
                return
            db.execute("INSERT INTO brought (source, at) VALUES (?, ?)", (source, db.clock()))
            put = f"INSERT INTO usage_parts AS u ({_PARTS}) VALUES ({_marks(_PARTS)}) {ADD_PARTS}"
            _each(db, put, old.execute(f"SELECT {_PARTS} FROM usage_parts"))
            put = (
                "INSERT INTO purses AS p (scope, key, nano, calls, tokens) VALUES (?, ?, ?, ?, ?)"
                " ON CONFLICT (scope, key) DO UPDATE SET nano = p.nano + excluded.nano,"
                " calls = p.calls + excluded.calls, tokens = p.tokens + excluded.tokens"
            )
            _each(db, put, old.execute("SELECT scope, key, nano, calls, tokens FROM purses"))


def _each(db: Sql, query: str, rows: sqlite3.Cursor) -> None:
    values: tuple[Any, ...]
    for values in rows:
        db.execute(query, values)


def _marks(columns: str) -> str:
    return ", ".join("?" * (columns.count(",") + 1))
