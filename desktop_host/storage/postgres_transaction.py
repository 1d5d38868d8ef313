"""One transaction on PostgreSQL, its statements sent without waiting for the answers of those before.

Only where a result is read does it cost a journey to the server: an event is appended in two of them. What a
statement that nobody reads had to say is heard at the end, before the transaction is said to be done.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import TYPE_CHECKING, Any, Generic

from desktop_host.core.errors import KnownFault
from desktop_host.storage.postgres_schema import SCHEMA
from desktop_host.storage.sql import Rows, Sql, T

if TYPE_CHECKING:
    import psycopg

LOCK_MS = 8000
"""How long a writer waits for another host's transaction."""
FROZEN_MS = 5000
"""How long a host may stand still in a transaction that others wait for; then the server ends it."""
_LIMITS = (
    f"set_config('search_path', '{SCHEMA}', true), set_config('lock_timeout', '{LOCK_MS}', true),"
    f" set_config('idle_in_transaction_session_timeout', '{FROZEN_MS}', true)"
)
_WRITE = ("BEGIN ISOLATION LEVEL READ COMMITTED", f"SELECT pg_current_xact_id()::text, {_LIMITS}")
_READ = ("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", f"SELECT '', {_LIMITS}")


class Attempt(Generic[T]):
    """One attempt at a transaction."""

    def __init__(self, connection: psycopg.Connection[Any], work: Callable[[Sql], T], writing: bool) -> None:
        self._connection = connection
        self._work = work
        self._writing = writing
        self.number = ""
        """The transaction's number, known before COMMIT is sent; empty for one that only reads."""
        self.ending = False
        """Whether COMMIT was sent."""
        self.result: T | None = None
        self.failure: BaseException | None = None
        """Why it is not known to have been kept."""

    def run(self) -> None:
        """Begin, work, commit; never raises."""
        import psycopg

        try:
            with self._pipeline():
                try:
                    self._statements()
                except BaseException as error:
                    self.failure = error
        except psycopg.Error as error:
            # What follows a refused statement is refused for that; the first one has the reason.
            told: BaseException = error
            while isinstance(told, psycopg.errors.PipelineAborted) and isinstance(told.__context__, psycopg.Error):
                told = told.__context__
            self.failure = self.failure or told

    def _statements(self) -> None:
        begin, limits = _WRITE if self._writing else _READ
        self._connection.execute(begin)
        begun = self._connection.execute(limits)
        self.result = self._work(_Statements(self._connection))
        row = begun.fetchone()
        if row is None:
            raise KnownFault("database_error", "the server answered nothing", reason="io")
        self.number = str(row[0])
        self.ending = True
        self._connection.execute("COMMIT")

    def _pipeline(self) -> AbstractContextManager[object]:
        import psycopg

        return self._connection.pipeline() if psycopg.Pipeline.is_supported() else nullcontext()


class _Statements:
    """`Sql` over one connection."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self._connection = connection

    def execute(self, query: str, values: Sequence[Any] = ()) -> Rows:
        # PostgreSQL's text holds no NUL; JSON has it escaped, so only words of a title or a name can lose one.
        clean = [v.replace("\0", "\ufffd") if isinstance(v, str) and "\0" in v else v for v in values]
        return self._connection.execute(_translated(query), clean)

    def alone(self, what: str, *, shared: bool = False) -> None:
        self._connection.execute(f"SELECT pg_advisory_xact_lock{'_shared' if shared else ''}(%s)", (key(what),))

    def clock(self) -> float:
        row = self._connection.execute("SELECT extract(epoch FROM clock_timestamp())::float8").fetchone()
        return float(row[0]) if row else 0.0


@cache
def _translated(query: str) -> bytes:
    return query.replace("%", "%%").replace("?", "%s").encode()


@cache
def key(what: str) -> int:
    """The number of an advisory lock."""
    return int.from_bytes(hashlib.sha256(f"desktop-host {what}".encode()).digest()[:8], "big", signed=True)
