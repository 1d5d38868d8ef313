"""The database's form, as a list of steps from schema 1 on. A step that was released never changes."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable

from desktop_host.core.errors import KnownFault

APPLICATION_ID = 0x44486F73
"""`DHos`, so that `file` and we know our own databases."""

_SCHEMA_1 = """
CREATE TABLE sessions (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    session TEXT NOT NULL UNIQUE,
    title TEXT NOT NULL,
    created REAL NOT NULL,
    updated REAL NOT NULL,
    options TEXT NOT NULL,
    pinned INTEGER NOT NULL DEFAULT 0,
    messages INTEGER NOT NULL DEFAULT 0,
    last_seq INTEGER NOT NULL DEFAULT 0,
    last_turn TEXT
);
CREATE INDEX sessions_by_time ON sessions (pinned DESC, updated DESC);
CREATE INDEX sessions_open ON sessions (last_turn) WHERE last_turn = 'open';

CREATE TABLE events (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    owner INTEGER NOT NULL REFERENCES sessions ON DELETE CASCADE,
    seq INTEGER NOT NULL,
    t REAL NOT NULL,
    turn INTEGER NOT NULL,
    type TEXT NOT NULL,
    body TEXT NOT NULL,
    parts TEXT,
    UNIQUE (owner, seq)
);

CREATE TABLE drafts (
    owner INTEGER PRIMARY KEY REFERENCES sessions ON DELETE CASCADE,
    turn INTEGER NOT NULL,
    text TEXT NOT NULL,
    thinking TEXT NOT NULL
);

CREATE TABLE states (
    owner INTEGER NOT NULL REFERENCES sessions ON DELETE CASCADE,
    key TEXT NOT NULL,
    value TEXT NOT NULL,
    PRIMARY KEY (owner, key)
);

CREATE TABLE leases (
    owner INTEGER PRIMARY KEY REFERENCES sessions ON DELETE CASCADE,
    holder TEXT NOT NULL,
    place TEXT NOT NULL,
    pid INTEGER NOT NULL,
    started TEXT NOT NULL,
    beat REAL NOT NULL
);

CREATE TABLE blobs (
    sha256 TEXT PRIMARY KEY,
    size INTEGER NOT NULL,
    loose INTEGER NOT NULL DEFAULT 0
);

CREATE TABLE blob_uses (
    sha256 TEXT NOT NULL REFERENCES blobs ON DELETE CASCADE,
    owner INTEGER NOT NULL REFERENCES sessions ON DELETE CASCADE,
    PRIMARY KEY (sha256, owner)
);
CREATE INDEX blob_uses_by_owner ON blob_uses (owner);

CREATE VIRTUAL TABLE texts USING fts5 (text, owner UNINDEXED, tokenize = 'trigram');

CREATE TABLE open_calls (
    owner INTEGER NOT NULL REFERENCES sessions ON DELETE CASCADE,
    call_id TEXT NOT NULL,
    server TEXT NOT NULL,
    PRIMARY KEY (owner, call_id)
);

CREATE TABLE usage (
    day TEXT NOT NULL,
    session TEXT NOT NULL,
    model TEXT NOT NULL,
    purpose TEXT NOT NULL,
    requests INTEGER NOT NULL,
    input INTEGER NOT NULL,
    output INTEGER NOT NULL,
    cache_read INTEGER NOT NULL,
    cache_write INTEGER NOT NULL,
    reasoning INTEGER NOT NULL,
    cost_usd REAL,
    unpriced INTEGER NOT NULL,
    PRIMARY KEY (day, session, model, purpose)
);

CREATE TABLE tool_runs (
    day TEXT NOT NULL,
    session TEXT NOT NULL,
    server TEXT NOT NULL,
    calls INTEGER NOT NULL,
    failed INTEGER NOT NULL,
    denied INTEGER NOT NULL,
    duration_ms REAL NOT NULL,
    PRIMARY KEY (day, session, server)
);

CREATE TABLE grants (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    pattern TEXT NOT NULL,
    arguments TEXT NOT NULL,
    rule TEXT NOT NULL,
    UNIQUE (pattern, arguments)
);

CREATE TABLE known_tools (
    full_name TEXT PRIMARY KEY,
    digest TEXT NOT NULL,
    description TEXT NOT NULL
);
"""


def _statements(script: str) -> list[str]:
    return [part.strip() for part in script.split(";\n") if part.strip()]


def _schema_1(db: sqlite3.Connection) -> None:
    for statement in _statements(_SCHEMA_1):
        db.execute(statement)
    db.execute(f"PRAGMA application_id = {APPLICATION_ID}")


_SCHEMA_2 = """
CREATE TABLE purses (
    scope TEXT NOT NULL,
    key TEXT NOT NULL,
    nano INTEGER NOT NULL,
    calls INTEGER NOT NULL,
    PRIMARY KEY (scope, key)
);

CREATE TABLE reservations (
    id TEXT NOT NULL,
    scope TEXT NOT NULL,
    key TEXT NOT NULL,
    nano INTEGER NOT NULL,
    holder TEXT NOT NULL,
    place TEXT NOT NULL,
    pid INTEGER NOT NULL,
    started TEXT NOT NULL,
    at REAL NOT NULL,
    PRIMARY KEY (id, scope, key)
);
CREATE INDEX reservations_by_purse ON reservations (scope, key);

CREATE TABLE answers (
    key TEXT PRIMARY KEY,
    scope TEXT NOT NULL,
    question TEXT NOT NULL,
    model TEXT NOT NULL,
    answer TEXT NOT NULL,
    created REAL NOT NULL
);
CREATE INDEX answers_by_scope ON answers (scope, created);

CREATE TABLE usage_parts (
    kind TEXT NOT NULL,
    name TEXT NOT NULL,
    day TEXT NOT NULL,
    requests INTEGER NOT NULL,
    input INTEGER NOT NULL,
    output INTEGER NOT NULL,
    cache_read INTEGER NOT NULL,
    cache_write INTEGER NOT NULL,
    reasoning INTEGER NOT NULL,
    cost_usd REAL,
    unpriced INTEGER NOT NULL,
    PRIMARY KEY (kind, name, day)
);
"""


def _schema_2(db: sqlite3.Connection) -> None:
    """Budgets, kept answers, usage by server and by version of a skill."""
    for statement in _statements(_SCHEMA_2):
        db.execute(statement)


def _schema_3(db: sqlite3.Connection) -> None:
    """Tokens beside money and requests: what a server may sample in a day holds over a restart."""
    db.execute("ALTER TABLE purses ADD COLUMN tokens INTEGER NOT NULL DEFAULT 0")


def _schema_4(db: sqlite3.Connection) -> None:
    """Sub-tasks: the session in which the person is, by its name; NULL for that one itself."""
    db.execute("ALTER TABLE sessions ADD COLUMN parent TEXT")
    db.execute("CREATE INDEX sessions_by_parent ON sessions (parent) WHERE parent IS NOT NULL")


def _schema_5(db: sqlite3.Connection) -> None:
    """What a person allowed in chats whose record is in a shared database."""
    db.execute("CREATE TABLE own_options (session TEXT PRIMARY KEY, rules TEXT NOT NULL, roots TEXT NOT NULL)")


STEPS: tuple[Callable[[sqlite3.Connection], None], ...] = (_schema_1, _schema_2, _schema_3, _schema_4, _schema_5)
"""Step n takes a database from schema n to n + 1; an empty file has schema 0."""


def newer_schema(path: str, found: int, known: int) -> KnownFault:
    """The fault of a database that a newer host wrote. The file is left as it is."""
    return KnownFault(
        "database_error", f"{path} has schema {found}; this version of the host knows {known}",
        reason="newer_schema", path=path, schema=found, known=known,
    )  # fmt: skip


def migrate(db: sqlite3.Connection, path: str, steps: tuple[Callable[[sqlite3.Connection], None], ...] = STEPS) -> None:
    """Bring a database to the newest schema, in one transaction; other processes wait or find it done.

    Raises:
        KnownFault: `database_error`, the database is newer than this host.
    """
    (found,) = db.execute("PRAGMA user_version").fetchone()
    if found > len(steps):
        raise newer_schema(path, found, len(steps))
    if found == len(steps):
        return
    db.execute("BEGIN IMMEDIATE")
    try:
        (found,) = db.execute("PRAGMA user_version").fetchone()
        for number in range(found, len(steps)):
            steps[number](db)
            db.execute(f"PRAGMA user_version = {number + 1}")
        db.execute("COMMIT")
    except BaseException:
        db.execute("ROLLBACK")
        raise
