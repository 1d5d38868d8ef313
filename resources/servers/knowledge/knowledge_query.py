"""Read-only SQL over the index, within limits: an authorizer that knows three tables, a row limit, a time limit."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from knowledge_folders import BadRequest
from knowledge_store import Store, TooSlow, stopped_after

ROWS = 200
"""Rows that a query gives at most."""
SECONDS = 2.0
"""How long a query may take."""
CELL = 2_000
"""Characters of a value that are given at most."""
TABLES = {
    "documents": ("id", "path", "title", "category", "size", "changed", "lines", "key", "kind"),
    "passages": ("id", "document", "number", "heading", "body", "first", "last"),
}
"""What may be read."""
FORM = (
    "One SELECT over documents(" + ", ".join(TABLES["documents"]) + ") and passages("
    + ", ".join(TABLES["passages"]) + "), where passages.document is documents.id, for example"
    " SELECT category, count(*) FROM documents GROUP BY category."
)  # fmt: skip
_HIDDEN = ("folders", "vectors", "terms", "sqlite_", "pragma_")
"""What the names of the other tables begin with."""
_ALLOWED = """
count sum avg min max total group_concat length lower upper substr substring trim ltrim rtrim replace instr
    round abs coalesce ifnull nullif iif like glob printf format date time datetime strftime julianday row_number
    rank dense_rank lag lead first_value last_value ntile char unicode hex sign
"""
_FUNCTIONS = frozenset(_ALLOWED.split())


@dataclass(frozen=True)
class Rows:
    """What a query gave."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    more: bool
    """There are more rows than are given."""


def query(store: Store, sql: str) -> Rows:
    """Run one SELECT.

    Raises:
        BadRequest: it is no such thing, reads what it may not, or takes too long.
    """
    with store.lock:
        file = store.db.execute("PRAGMA database_list").fetchone()[2]
    if file:
        db = sqlite3.connect(f"{Path(file).as_uri()}?mode=ro", uri=True, timeout=5)
        try:
            return _run(db, sql)
        finally:
            db.close()
    with store.lock:
        try:
            return _run(store.db, sql)
        finally:
            store.db.set_authorizer(None)


def _run(db: sqlite3.Connection, sql: str) -> Rows:
    db.set_authorizer(_authorize)
    try:
        with stopped_after(db, SECONDS):
            cursor = db.execute(sql)
            if cursor.description is None:
                raise BadRequest(f"Nothing was asked for. {FORM}")
            found = cursor.fetchmany(ROWS + 1)
            columns = tuple(d[0] for d in cursor.description)
            cursor.close()
    except TooSlow:
        raise BadRequest(
            f"The query took longer than {SECONDS:g} s and was stopped. Ask more narrowly: name a category, a path"
            " or a LIMIT, and join on passages.document = documents.id."
        ) from None
    except (sqlite3.Error, sqlite3.Warning, ValueError) as error:
        said = str(error)
        if any(word in said for word in ("not authorized", "denied", "prohibited")):
            raise BadRequest(f"Only reading is allowed, of two tables. {FORM}") from None
        raise BadRequest(f"SQLite says: {said}. {FORM}") from None
    return Rows(columns, tuple(tuple(_cell(v) for v in row) for row in found[:ROWS]), len(found) > ROWS)


def _authorize(action: int, first: str | None, second: str | None, db: str | None, _inner: str | None) -> int:
    match action:
        case sqlite3.SQLITE_READ if db is None and not second and not (first or "").lower().startswith(_HIDDEN):
            return sqlite3.SQLITE_OK  # A table that the query makes itself; what it is made of is asked for apart.
        case sqlite3.SQLITE_SELECT | sqlite3.SQLITE_RECURSIVE:
            return sqlite3.SQLITE_OK
        case sqlite3.SQLITE_READ if first in TABLES and (second in TABLES[first] or second == ""):
            return sqlite3.SQLITE_OK
        case sqlite3.SQLITE_FUNCTION if (second or "").lower() in _FUNCTIONS:
            return sqlite3.SQLITE_OK
        case _:
            return sqlite3.SQLITE_DENY


def _cell(value: Any) -> Any:
    if isinstance(value, bytes):
        return f"[{len(value)} bytes]"
    if isinstance(value, str) and len(value) > CELL:
        return f"{value[:CELL]}…"
    return value
