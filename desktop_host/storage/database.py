"""One worker thread with one SQLite connection: every access goes through `read` or `write`.

WAL with `synchronous=NORMAL`: a killed process (kill -9, a crash of ours) loses nothing that was acknowledged,
since a commit has reached the operating system before it is acknowledged. A power cut can take the last commits
with it but never damages the file: the WAL is synced before it is folded in. `FULL` would cost 4.0 ms instead of
0.35 ms for one event (measured on ext4), several times in each step of a turn.
"""

from __future__ import annotations

import asyncio
import errno
import os
import shutil
import sqlite3
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from desktop_host.core.errors import HostError, KnownFault, UserFault
from desktop_host.core.values import FrozenDict
from desktop_host.storage.migrations import STEPS, migrate, newer_schema
from desktop_host.storage.sql import Sql, T

FILE = "host.db"
BUSY_MS = 5000
"""How long a writer waits for another process's transaction."""

_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_NOT_OURS = {errno.EACCES, errno.EPERM, errno.EROFS}
_NO_ROOM = {
    sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_WRITE, sqlite3.SQLITE_IOERR_TRUNCATE, sqlite3.SQLITE_IOERR_SHMSIZE,
}  # fmt: skip
_REASONS = {
    sqlite3.SQLITE_BUSY: "locked",
    sqlite3.SQLITE_LOCKED: "locked",
    sqlite3.SQLITE_CORRUPT: "corrupt",
    sqlite3.SQLITE_NOTADB: "corrupt",
    sqlite3.SQLITE_READONLY: "not_writable",
    sqlite3.SQLITE_CANTOPEN: "not_writable",
    sqlite3.SQLITE_PERM: "not_writable",
    sqlite3.SQLITE_AUTH: "not_writable",
    sqlite3.SQLITE_IOERR: "io",
    sqlite3.SQLITE_NOLFS: "io",
}


def fault_of(error: sqlite3.Error | OSError, path: Path) -> HostError | None:
    """The fault behind a driver's or the system's error; None where it is a bug of ours."""
    where = str(path)
    if isinstance(error, OSError):
        if error.errno in _FULL:
            return _disk_full(path, str(error))
        reason = "not_writable" if error.errno in _NOT_OURS else "io"
        return KnownFault("database_error", f"{where}: {error}", reason=reason, path=where)
    code = getattr(error, "sqlite_errorcode", None)
    if code is None:
        return None
    if code in _NO_ROOM:
        return _disk_full(path, str(error))
    reason = _REASONS.get(code & 0xFF, "")
    if not reason:
        return None
    return KnownFault(
        "database_error", f"{where}: {error}", retryable=reason == "locked", reason=reason, path=where
    )  # fmt: skip


def _disk_full(path: Path, detail: str) -> KnownFault:
    try:
        free: int | None = shutil.disk_usage(path.parent).free
    except OSError:
        free = None
    return KnownFault(
        "disk_full", f"there is no room for {path} ({detail})", path=str(path), free_bytes=free
    )  # fmt: skip


class _Transaction:
    """`Sql` over the one connection: a write transaction has the file to itself anyway."""

    def __init__(self, db: sqlite3.Connection, now: Callable[[], float]) -> None:
        self._db = db
        self.clock = now

    def execute(self, query: str, values: Sequence[Any] = ()) -> sqlite3.Cursor:
        return self._db.execute(query, values)

    def alone(self, what: str, *, shared: bool = False) -> None:
        """Nothing to do."""


class SqliteDatabase:
    """A database file and the thread that owns it."""

    def __init__(self, path: Path, now: Callable[[], float] = time.time) -> None:
        self.path = path
        self._now = now
        self._worker = ThreadPoolExecutor(1, thread_name_prefix="desktop-host-db")
        self._db: sqlite3.Connection | None = None

    async def open(self) -> None:
        """Open or create the file and bring it to today's schema.

        Raises:
            KnownFault: `database_error` (newer schema, corrupt, locked, not writable) or `disk_full`.
        """
        try:
            await self._run(self._open)
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        """Wait for what runs, fold the WAL into the file, end the thread."""
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(self._worker, self._close)
        self._worker.shutdown(wait=False)

    def where(self) -> FrozenDict:
        return FrozenDict({"store": "sqlite", "place": str(self.path), "detail": f"SQLite {sqlite3.sqlite_version}"})

    async def read(self, work: Callable[[Sql], T]) -> T:
        return await self._run(lambda: self._within("BEGIN", work))

    async def write(self, work: Callable[[Sql], T]) -> T:
        return await self._run(lambda: self._within("BEGIN IMMEDIATE", work))

    async def problem(self) -> str | None:
        """What SQLite's own check finds wrong; None for a sound file."""

        def check(db: Sql) -> str | None:
            (found,) = db.execute("PRAGMA quick_check(1)").fetchone()
            return None if found == "ok" else str(found)

        return await self.read(check)

    async def _run(self, work: Callable[[], T]) -> T:
        try:
            return await asyncio.get_running_loop().run_in_executor(self._worker, work)
        except (sqlite3.Error, OSError) as error:
            fault = fault_of(error, self.path)
            if fault is None:
                raise
            raise fault from error

    def _open(self) -> None:
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._refuse_foreign()
        db = sqlite3.connect(self.path, timeout=BUSY_MS / 1000, isolation_level=None, check_same_thread=True)
        self._db = db
        migrating = db.execute("PRAGMA user_version").fetchone()[0]
        if migrating > len(STEPS):
            raise newer_schema(str(self.path), migrating, len(STEPS))
        db.execute(f"PRAGMA busy_timeout = {BUSY_MS}")
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = NORMAL")
        db.execute("PRAGMA foreign_keys = ON")
        db.execute("PRAGMA journal_size_limit = 16777216")
        # A database may come from an imported profile: its schema may call nothing.
        db.execute("PRAGMA trusted_schema = OFF")
        migrate(db, str(self.path))

    def _refuse_foreign(self) -> None:
        """Look at the header before SQLite may write; make a new file that only its owner can read."""
        try:
            with self.path.open("rb") as file:
                header = file.read(100)
        except FileNotFoundError:
            os.close(os.open(self.path, os.O_CREAT | os.O_RDWR, 0o600))
            return
        schema = int.from_bytes(header[60:64], "big") if len(header) >= 64 else 0
        if header.startswith(b"SQLite format 3\0") and schema > len(STEPS):
            raise newer_schema(str(self.path), schema, len(STEPS))

    def _within(self, begin: str, work: Callable[[Sql], T]) -> T:
        if self._db is None:
            raise RuntimeError("the database is closed")
        self._db.execute(begin)
        try:
            result = work(_Transaction(self._db, self._now))
            self._db.execute("COMMIT")
        except BaseException:
            # SQLite ends the transaction itself on some errors (disk full, I/O).
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            raise
        return result

    def _close(self) -> None:
        if self._db is not None:
            self._db.close()
            self._db = None


def set_aside(folder: Path) -> Path:
    """Move a damaged database out of the way, so that the next open starts a new one; only when asked to.

    Returns:
        The path it is kept under; nothing is deleted.

    Raises:
        UserFault: `not_found`, there is no database in `folder`.
    """
    source = folder / FILE
    if not source.exists():
        raise UserFault("not_found", f"there is no database in {folder}", kind="database", name=str(folder))
    stamp = time.strftime("%Y%m%d-%H%M%S")
    kept = next(p for n in range(1000) if not (p := folder / f"{FILE}.damaged-{stamp}{f'-{n}' if n else ''}").exists())
    for suffix in ("-wal", "-shm", ""):
        part = folder / (FILE + suffix)
        if part.exists():
            part.rename(kept.with_name(kept.name + suffix))
    return kept
