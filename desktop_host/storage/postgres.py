"""PostgreSQL as the record of a profile, shared by the computers that know its address.

psycopg's blocking connections run the very functions that run on `sqlite3`, on threads: one thread writes, so that
writes keep their order as they do with SQLite, two read. Each thread has one connection and mends it itself.

A connection that is lost costs nothing that was acknowledged, and nothing is written twice: what was cut before its
COMMIT is run again, and of a COMMIT without an answer the server is asked by the transaction's number.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from desktop_host.core.values import FrozenDict
from desktop_host.storage.postgres_faults import AGAIN, EXTRA, fault_of, is_final, is_lost, unavailable
from desktop_host.storage.postgres_schema import migrate
from desktop_host.storage.postgres_transaction import Attempt
from desktop_host.storage.sql import Sql, T

if TYPE_CHECKING:
    import psycopg

OLDEST = 130000
"""The oldest server that has all we ask of it: `pg_xact_status` came with 13."""
READERS = 2
PATIENCE_S = 20.0
"""How long a read or write waits for a server that went away."""
_DEFAULTS = {
    "connect_timeout": "10", "application_name": "desktop-host", "keepalives_idle": "15", "keepalives_interval": "5",
    "keepalives_count": "3", "tcp_user_timeout": "20000",
}  # fmt: skip


class PostgresDatabase:
    """A database on a server and the threads that speak with it."""

    def __init__(self, params: Mapping[str, str]) -> None:
        """Take libpq's parameters (`host`, `dbname`, `password`, `sslmode`, …)."""
        self._params = {**_DEFAULTS, **params}
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="desktop-host-pg-write")
        self._readers = ThreadPoolExecutor(READERS, thread_name_prefix="desktop-host-pg-read")
        self._own = threading.local()
        self._made: set[psycopg.Connection[Any]] = set()
        self._place = ""
        self._detail = ""
        self._up = True

    async def open(self) -> None:
        """Connect and bring the database to today's schema.

        Raises:
            KnownFault: `storage_unavailable` with a `reason`; `database_error`, a newer host wrote it.
        """
        try:
            await asyncio.get_running_loop().run_in_executor(self._writer, self._open)
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        """Wait for what runs and hang up."""

        def end() -> None:
            for threads in (self._writer, self._readers):
                threads.shutdown(wait=True)
            for connection in self._made:
                connection.close()

        await asyncio.to_thread(end)

    def where(self) -> FrozenDict:
        return FrozenDict({"store": "postgresql", "place": self._place, "detail": self._detail})

    async def read(self, work: Callable[[Sql], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._readers, self._patiently, work, False)

    async def write(self, work: Callable[[Sql], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._writer, self._patiently, work, True)

    async def problem(self) -> str | None:
        """Whether the server answers and takes writes."""

        def check(db: Sql) -> str | None:
            (standby,) = db.execute("SELECT pg_is_in_recovery()").fetchone()
            return f"{self._place} is a standby and takes no writes" if standby else None

        return await self.read(check)

    def _open(self) -> None:
        try:
            import psycopg
        except ImportError as error:
            raise unavailable("no_driver", str(error), "", extra=EXTRA) from error
        try:
            connection = self._connected()
            facts = connection.info
            self._place = f"postgresql://{facts.user}@{facts.host}:{facts.port}/{facts.dbname}"
            shown = facts.parameter_status("server_version") or str(facts.server_version)
            tls = ", TLS" if connection.pgconn.ssl_in_use else ""
            self._detail = f"PostgreSQL {shown}{tls}"
            if facts.server_version < OLDEST:
                raise unavailable("version", f"{self._place} is PostgreSQL {shown}", self._place,
                                  found=shown, wanted=OLDEST // 10000)  # fmt: skip
            encoding = facts.parameter_status("server_encoding")
            if encoding != "UTF8":
                raise unavailable("encoding", f"{self._place} has the encoding {encoding}", self._place,
                                  encoding=encoding)  # fmt: skip
            migrate(connection, self._place)
        except psycopg.Error as error:
            raise self._fault(error) from error

    def _connected(self) -> psycopg.Connection[Any]:
        """This thread's connection; a new one where there is none or it broke."""
        import psycopg
        from psycopg.types.numeric import NumericLoader

        class Whole(NumericLoader):
            """Sums of whole numbers are whole numbers."""

            def load(self, data: Any) -> Any:
                found = super().load(data)
                return int(found) if found == found.to_integral_value() else float(found)

        old: psycopg.Connection[Any] | None = getattr(self._own, "connection", None)
        if old is not None and not old.closed:
            return old
        if old is not None:
            self._made.discard(old)
        # Nothing is prepared by name: behind a pooler each transaction may meet another server process.
        connection = psycopg.connect(
            **self._params, autocommit=True, client_encoding="utf8", prepare_threshold=None  # type: ignore[arg-type]  # libpq's words, checked by it.
        )  # fmt: skip
        connection.adapters.register_loader("numeric", Whole)
        self._own.connection = connection
        self._made.add(connection)
        return connection

    def _patiently(self, work: Callable[[Sql], T], writing: bool) -> T:
        """Run `work`, again where the connection was lost or another transaction was in the way."""
        import psycopg

        until = time.monotonic() + (PATIENCE_S if self._up else 0.0)
        pause = 0.05
        while True:
            try:
                result = self._once(work, writing, until)
            except psycopg.Error as error:
                again = error.sqlstate in AGAIN
                if not again and (not is_lost(error) or is_final(error)):
                    raise self._fault(error) from error
                if time.monotonic() >= until:
                    self._up = again
                    raise self._fault(error, lost=not again) from error
                time.sleep(pause)
                pause = min(pause * 2, 1.0)
            else:
                self._up = True
                return result

    def _once(self, work: Callable[[Sql], T], writing: bool, until: float) -> T:
        import psycopg

        connection = self._connected()
        attempt = Attempt(connection, work, writing)
        attempt.run()
        failure = attempt.failure
        if failure is None:
            return attempt.result  # type: ignore[return-value]  # there is one where nothing failed
        if isinstance(failure, psycopg.Error) and (connection.closed or is_lost(failure)):
            connection.close()
            if attempt.ending and (not writing or self._was_kept(attempt.number, until)):
                return attempt.result  # type: ignore[return-value]  # only the answer to COMMIT was lost
            raise failure
        connection.execute("ROLLBACK")
        raise failure

    def _was_kept(self, number: str, until: float) -> bool:
        """Whether a transaction whose COMMIT got no answer took place; asked until the server knows.

        Raises:
            psycopg.Error: the server cannot be asked in time.
            KnownFault: `storage_unavailable`, `uncertain`: it does not know in time.
        """
        import psycopg

        while True:
            try:
                found = self._connected().execute("SELECT pg_xact_status(%s::text::xid8)", (number,)).fetchone()
            except psycopg.Error as error:
                if not is_lost(error) or time.monotonic() >= until:
                    raise
            else:
                status = found[0] if found else None
                if status in ("committed", "aborted"):
                    return bool(status == "committed")
                if time.monotonic() >= until:
                    raise unavailable("uncertain", f"whether transaction {number} was kept is not known", self._place)
            time.sleep(0.2)

    def _fault(self, error: psycopg.Error, *, lost: bool = False) -> BaseException:
        place = self._place or _address(self._params)
        fault = fault_of(error, place, self._params, lost=lost)
        return error if fault is None else fault


def _address(params: Mapping[str, str]) -> str:
    user = f"{params['user']}@" if params.get("user") else ""
    port = f":{params['port']}" if params.get("port") else ""
    return f"postgresql://{user}{params.get('host', 'localhost')}{port}/{params.get('dbname', '')}"
