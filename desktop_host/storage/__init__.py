"""The record of a profile: journal, drafts, blobs, search, grants, usage, budgets and kept answers.

In SQLite below the profile's folder, or in a PostgreSQL database that several computers share.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from desktop_host.core.errors import HostError
from desktop_host.core.values import FrozenDict
from desktop_host.storage.answers import SqlAnswers
from desktop_host.storage.blobs import BlobFiles
from desktop_host.storage.database import FILE, SqliteDatabase, set_aside
from desktop_host.storage.history import JournalHistory
from desktop_host.storage.lease import BEAT_S, Leases
from desktop_host.storage.ledger import SqlLedger
from desktop_host.storage.purses import SqlPurses
from desktop_host.storage.search import TrigramSearch
from desktop_host.storage.sql import Blobs, Database, Search

__all__ = ["JournalHistory", "SqlLedger", "Storage", "open_storage", "set_aside"]

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Storage:
    """An open record."""

    history: JournalHistory
    ledger: SqlLedger
    database: Database
    """What holds the journal."""
    own: Database
    """The profile's own file; the same, where nothing is shared."""
    purses: SqlPurses
    answers: SqlAnswers
    upload: Callable[[str], Awaitable[FrozenDict]] | None = None
    """Copies what the own file holds into the shared database (`Upload.run`); None where nothing is shared."""

    async def problem(self) -> str | None:
        """What is wrong with it; None where nothing is.

        Raises:
            KnownFault: `database_error` or `storage_unavailable`, it cannot even be read.
        """
        found = await self.database.problem()
        return found if found or self.own is self.database else await self.own.problem()

    def where(self) -> FrozenDict:
        """`{store: sqlite | postgresql, place, detail}`, without any secret."""
        return self.database.where()


@contextlib.asynccontextmanager
async def open_storage(
    folder: Path, *, shared: Mapping[str, str] | None = None, now: Callable[[], float] = time.time
) -> AsyncIterator[Storage]:
    """Open the record of a profile; any number of processes may.

    Args:
        folder: the profile's folder; holds `host.db` and `blobs/`.
        shared: libpq's parameters of the PostgreSQL database that holds the journal, the blobs and what is spent;
            None: the profile's own file does. What a person allowed is in the file either way.
        now: seconds since the epoch.

    Raises:
        KnownFault: `database_error` with `reason` (`newer_schema`, `corrupt`, `locked`, `not_writable`, `io`),
            `disk_full`, or `storage_unavailable` with `reason`. The file is left as it is; `set_aside(folder)`
            moves a damaged one away.
    """
    async with contextlib.AsyncExitStack() as opened:
        own = SqliteDatabase(folder / FILE, now)
        await own.open()
        opened.push_async_callback(own.close)
        database: Database = own
        files = BlobFiles(folder / "blobs")
        blobs: Blobs = files
        search: Search = TrigramSearch()
        upload = None
        if shared is not None:
            from desktop_host.storage.blob_rows import BlobRows
            from desktop_host.storage.gram_search import GramSearch
            from desktop_host.storage.postgres import PostgresDatabase
            from desktop_host.storage.shared_history import SharedHistory
            from desktop_host.storage.upload import Upload

            server = PostgresDatabase(shared)
            await server.open()
            opened.push_async_callback(server.close)
            database, blobs, search = server, BlobRows(), GramSearch()
            upload = Upload(own.path, own, server, files, blobs, search).run
        leases = Leases()
        history = JournalHistory(database, blobs, search, leases, now)
        if shared is not None:
            history = SharedHistory(database, blobs, search, leases, now, own)
        await history.sweep()
        beating = asyncio.create_task(_beat(database, leases), name="lease heartbeat")
        try:
            yield Storage(
                history, SqlLedger(database, own), database, own, SqlPurses(database), SqlAnswers(database), upload
            )
        finally:
            beating.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await beating
            try:
                await database.write(leases.drop_all)
            except HostError as error:
                # Our process ends its leases anyway; a full disk must not keep the host from closing.
                _log.warning("leases were not given back: %s", error)


async def _beat(database: Database, leases: Leases) -> None:
    while True:
        await asyncio.sleep(BEAT_S)
        try:
            await database.write(leases.beat)
        except HostError as error:
            _log.warning("no heartbeat: %s", error)
