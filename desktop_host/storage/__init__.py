"""SQLite: journal, drafts, blobs, search, grants, usage, budgets and kept answers."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path

from desktop_host.core.errors import HostError
from desktop_host.storage.answers import SqlAnswers
from desktop_host.storage.blobs import Blobs
from desktop_host.storage.database import FILE, Database, set_aside
from desktop_host.storage.history import JournalHistory
from desktop_host.storage.lease import BEAT_S, Leases
from desktop_host.storage.ledger import SqlLedger
from desktop_host.storage.purses import SqlPurses

__all__ = ["JournalHistory", "SqlLedger", "Storage", "open_storage", "set_aside"]

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Storage:
    """An open database."""

    history: JournalHistory
    ledger: SqlLedger
    database: Database
    purses: SqlPurses
    answers: SqlAnswers

    async def problem(self) -> str | None:
        """What is wrong with the file; None for a sound one.

        Raises:
            KnownFault: `database_error`, it cannot even be read.
        """
        return await self.database.problem()


@contextlib.asynccontextmanager
async def open_storage(folder: Path, *, now: Callable[[], float] = time.time) -> AsyncIterator[Storage]:
    """Open the database of a profile's folder; any number of processes may.

    Args:
        folder: the profile's folder; holds `host.db` and `blobs/`.
        now: seconds since the epoch.

    Raises:
        KnownFault: `database_error` with `reason` (`newer_schema`, `corrupt`, `locked`, `not_writable`, `io`)
            or `disk_full`. The file is left as it is; `set_aside(folder)` moves a damaged one away.
    """
    database = Database(folder / FILE)
    leases = Leases()
    await database.open()
    try:
        history = JournalHistory(database, Blobs(folder / "blobs"), leases, now)
        await history.sweep()
        beating = asyncio.create_task(_beat(database, leases, now), name="lease heartbeat")
        try:
            yield Storage(history, SqlLedger(database), database, SqlPurses(database, now), SqlAnswers(database))
        finally:
            beating.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await beating
            try:
                await database.write(leases.drop_all)
            except HostError as error:
                # Our process ends its leases anyway; a full disk must not keep the host from closing.
                _log.warning("leases were not given back: %s", error)
    finally:
        await database.close()


async def _beat(database: Database, leases: Leases, now: Callable[[], float]) -> None:
    while True:
        await asyncio.sleep(BEAT_S)
        try:
            await database.write(lambda db: leases.beat(db, now()))
        except HostError as error:
            _log.warning("no heartbeat: %s", error)
