"""What the storage room asks of a database: the same words on SQLite and on PostgreSQL.

Queries are written once, in the part of SQL that both know, with `?` for values: upserts name their conflict,
columns of the old row are qualified, new ids come by RETURNING. What differs has a class of its own on each side:
how bytes are kept (`blobs`, `blob_rows`), how text is found (`search`, `gram_search`), and the schema.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Protocol, TypeVar

from desktop_host.core.values import FrozenDict

T = TypeVar("T")


class Rows(Protocol):
    """What a query found."""

    def fetchone(self) -> Any: ...
    def fetchall(self) -> list[Any]: ...
    def __iter__(self) -> Iterator[Any]: ...


class Sql(Protocol):
    """One transaction. Its methods run on a thread of the database's."""

    def execute(self, query: str, values: Sequence[Any] = ()) -> Rows:
        """Run one statement; each `?` stands for a value."""
        ...

    def alone(self, what: str, *, shared: bool = False) -> None:
        """Until the transaction ends, no other transaction is past this line with the same word.

        What is read afterwards is what the others left. `shared`: others that ask for it shared may be, too.
        """
        ...

    def clock(self) -> float:
        """Seconds since the epoch by the one clock that all processes of this database go by."""
        ...


class Database(Protocol):
    """Where a profile's record is kept."""

    async def read(self, work: Callable[[Sql], T]) -> T:
        """Run `work` on one consistent state of the database. It may run twice, if the connection is lost.

        Raises:
            KnownFault: `database_error`, `disk_full` or `storage_unavailable`.
        """
        ...

    async def write(self, work: Callable[[Sql], T]) -> T:
        """Run `work` as one transaction: all of it is kept, or nothing. It may run twice, but is kept once.

        Raises:
            KnownFault: `database_error`, `disk_full` or `storage_unavailable`.
        """
        ...

    async def problem(self) -> str | None:
        """What is wrong with it; None where nothing is."""
        ...

    def where(self) -> FrozenDict:
        """`{store: sqlite | postgresql, place, detail}`, without any secret."""
        ...

    async def close(self) -> None: ...


class Blobs(Protocol):
    """Bytes by their sha256. Methods run within a transaction."""

    def write(self, db: Sql, data: bytes, *, loose: bool = False) -> str:
        """Keep `data` and return its digest. `loose`: no session uses it yet.

        Raises:
            KnownFault: `too_large`, `disk_full` or `database_error`.
        """
        ...

    def read(self, db: Sql, sha256: str) -> bytes:
        """The bytes, proved by their digest.

        Raises:
            UserFault: `not_found`, that is no digest of a kept blob.
            KnownFault: `database_error`, the bytes are damaged.
        """
        ...

    def use(self, db: Sql, owner: int, shas: Iterable[str]) -> None:
        """Note that a session uses these blobs."""
        ...

    def mentioned(self, db: Sql, text: str) -> set[str]:
        """The kept blobs whose digests stand in `text`."""
        ...

    def sweep(self, db: Sql, candidates: Iterable[str]) -> None:
        """Remove those of `candidates` that nobody uses any more; within a write transaction."""
        ...

    def place(self, sha256: str) -> str:
        """Where a blob lies, for errors."""
        ...


class Search(Protocol):
    """Full text of what was said. Methods run within a transaction."""

    def index(self, db: Sql, owner: int, seq: int, found_as: int, text: str) -> None:
        """Make the message that is event `seq` of `owner` findable, as one of the session `found_as`."""
        ...

    def forget(self, db: Sql, owner: int) -> None:
        """Remove a session's messages; before its events go."""
        ...

    def find(self, db: Sql, text: str, limit: int) -> list[tuple[int, str]]:
        """Sessions, newest first, that have all words of `text` in one message or in the title.

        Returns:
            Pairs of the session's row id and the text around the hit.
        """
        ...
