"""The form of a shared PostgreSQL database, as a list of steps from schema 1 on. A released step never changes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from desktop_host.storage.migrations import newer_schema

if TYPE_CHECKING:
    import psycopg

SCHEMA = "desktop_host"
"""Our own schema: a database may hold other programs' tables of the same names."""
_LOCK = 0x44486F73
"""`DHos`: hosts that start at once change the form one after another."""

_SCHEMA_1 = """
CREATE TABLE sessions (
    id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    session TEXT COLLATE "C" NOT NULL UNIQUE,
    title TEXT NOT NULL,
    created DOUBLE PRECISION NOT NULL,
    updated DOUBLE PRECISION NOT NULL,
    options TEXT NOT NULL,
    pinned INTEGER NOT NULL DEFAULT 0,
    messages BIGINT NOT NULL DEFAULT 0,
    last_seq BIGINT NOT NULL DEFAULT 0,
    last_turn TEXT
);
CREATE INDEX sessions_by_time ON sessions (pinned DESC, updated DESC, id DESC);
CREATE INDEX sessions_open ON sessions (last_turn) WHERE last_turn = 'open';

CREATE TABLE events (
    id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    owner BIGINT NOT NULL REFERENCES sessions ON DELETE CASCADE,
    seq BIGINT NOT NULL,
    t DOUBLE PRECISION NOT NULL,
    turn BIGINT NOT NULL,
    type TEXT NOT NULL,
    body TEXT NOT NULL,
    parts TEXT,
    UNIQUE (owner, seq)
);

CREATE TABLE drafts (
    owner BIGINT PRIMARY KEY REFERENCES sessions ON DELETE CASCADE,
    turn BIGINT NOT NULL,
    text TEXT NOT NULL,
    thinking TEXT NOT NULL
);

CREATE TABLE states (
    owner BIGINT NOT NULL REFERENCES sessions ON DELETE CASCADE,
    key TEXT COLLATE "C" NOT NULL,
    value TEXT NOT NULL,
    PRIMARY KEY (owner, key)
);

CREATE TABLE leases (
    owner BIGINT PRIMARY KEY REFERENCES sessions ON DELETE CASCADE,
    holder TEXT NOT NULL,
    place TEXT NOT NULL,
    pid BIGINT NOT NULL,
    started TEXT NOT NULL,
    beat DOUBLE PRECISION NOT NULL
);
CREATE INDEX leases_by_holder ON leases (holder);

CREATE TABLE blobs (
    sha256 TEXT COLLATE "C" PRIMARY KEY,
    size BIGINT NOT NULL,
    loose INTEGER NOT NULL DEFAULT 0,
    data BYTEA NOT NULL
);
ALTER TABLE blobs ALTER COLUMN data SET STORAGE EXTERNAL;

CREATE TABLE blob_uses (
    sha256 TEXT COLLATE "C" NOT NULL REFERENCES blobs ON DELETE CASCADE,
    owner BIGINT NOT NULL REFERENCES sessions ON DELETE CASCADE,
    PRIMARY KEY (sha256, owner)
);
CREATE INDEX blob_uses_by_owner ON blob_uses (owner);

CREATE TABLE texts (
    event BIGINT PRIMARY KEY REFERENCES events ON DELETE CASCADE,
    owner BIGINT NOT NULL REFERENCES sessions ON DELETE CASCADE,
    text TEXT NOT NULL,
    folded TEXT COLLATE "C" NOT NULL,
    grams INTEGER[] NOT NULL
);
CREATE INDEX texts_by_owner ON texts (owner);
CREATE INDEX texts_by_gram ON texts USING gin (grams);

CREATE TABLE open_calls (
    owner BIGINT NOT NULL REFERENCES sessions ON DELETE CASCADE,
    call_id TEXT COLLATE "C" NOT NULL,
    server TEXT NOT NULL,
    PRIMARY KEY (owner, call_id)
);

CREATE TABLE usage (
    day TEXT COLLATE "C" NOT NULL,
    session TEXT COLLATE "C" NOT NULL,
    model TEXT COLLATE "C" NOT NULL,
    purpose TEXT COLLATE "C" NOT NULL,
    requests BIGINT NOT NULL,
    input BIGINT NOT NULL,
    output BIGINT NOT NULL,
    cache_read BIGINT NOT NULL,
    cache_write BIGINT NOT NULL,
    reasoning BIGINT NOT NULL,
    cost_usd DOUBLE PRECISION,
    unpriced BIGINT NOT NULL,
    PRIMARY KEY (day, session, model, purpose)
);

CREATE TABLE usage_parts (
    kind TEXT COLLATE "C" NOT NULL,
    name TEXT COLLATE "C" NOT NULL,
    day TEXT COLLATE "C" NOT NULL,
    requests BIGINT NOT NULL,
    input BIGINT NOT NULL,
    output BIGINT NOT NULL,
    cache_read BIGINT NOT NULL,
    cache_write BIGINT NOT NULL,
    reasoning BIGINT NOT NULL,
    cost_usd DOUBLE PRECISION,
    unpriced BIGINT NOT NULL,
    PRIMARY KEY (kind, name, day)
);

CREATE TABLE tool_runs (
    day TEXT COLLATE "C" NOT NULL,
    session TEXT COLLATE "C" NOT NULL,
    server TEXT COLLATE "C" NOT NULL,
    calls BIGINT NOT NULL,
    failed BIGINT NOT NULL,
    denied BIGINT NOT NULL,
    duration_ms DOUBLE PRECISION NOT NULL,
    PRIMARY KEY (day, session, server)
);

CREATE TABLE purses (
    scope TEXT COLLATE "C" NOT NULL,
    key TEXT COLLATE "C" NOT NULL,
    nano BIGINT NOT NULL,
    calls BIGINT NOT NULL,
    PRIMARY KEY (scope, key)
);

CREATE TABLE reservations (
    id TEXT NOT NULL,
    scope TEXT COLLATE "C" NOT NULL,
    key TEXT COLLATE "C" NOT NULL,
    nano BIGINT NOT NULL,
    holder TEXT NOT NULL,
    place TEXT NOT NULL,
    pid BIGINT NOT NULL,
    started TEXT NOT NULL,
    at DOUBLE PRECISION NOT NULL,
    PRIMARY KEY (id, scope, key)
);
CREATE INDEX reservations_by_purse ON reservations (scope, key);

CREATE TABLE answers (
    key TEXT COLLATE "C" PRIMARY KEY,
    scope TEXT COLLATE "C" NOT NULL,
    question TEXT NOT NULL,
    model TEXT NOT NULL,
    answer TEXT NOT NULL,
    created DOUBLE PRECISION NOT NULL
);
CREATE INDEX answers_by_scope ON answers (scope, created);

CREATE TABLE brought (
    source TEXT PRIMARY KEY,
    at DOUBLE PRECISION NOT NULL
);
"""


def _schema_1(db: psycopg.Connection[Any]) -> None:
    for part in _SCHEMA_1.split(";\n"):
        if part.strip():
            db.execute(part.encode())


def _schema_2(db: psycopg.Connection[Any]) -> None:
    """Tokens beside money and requests, as in schema 3 of the file."""
    db.execute("ALTER TABLE purses ADD COLUMN tokens BIGINT NOT NULL DEFAULT 0")


def _schema_3(db: psycopg.Connection[Any]) -> None:
    """Sub-tasks, as in schema 4 of the file."""
    db.execute('ALTER TABLE sessions ADD COLUMN parent TEXT COLLATE "C"')
    db.execute("CREATE INDEX sessions_by_parent ON sessions (parent) WHERE parent IS NOT NULL")


STEPS: tuple[Callable[[psycopg.Connection[Any]], None], ...] = (_schema_1, _schema_2, _schema_3)
"""Step n takes a database from schema n to n + 1; an empty one has schema 0."""


def migrate(
    db: psycopg.Connection[Any], place: str, steps: tuple[Callable[[psycopg.Connection[Any]], None], ...] = STEPS
) -> None:
    """Bring a database to the newest schema, in one transaction; other hosts wait or find it done.

    Args:
        db: a connection in autocommit mode.
        place: its address, for errors.
        steps: how the form came to be.

    Raises:
        KnownFault: `database_error`, the database is newer than this host.
        psycopg.Error: the server does not let us.
    """
    found = _found(db)
    if found > len(steps):
        raise newer_schema(place, found, len(steps))
    if found == len(steps):
        return
    with db.transaction():
        db.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
        found = _found(db)
        if found == 0:
            db.execute(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}")
            db.execute(f"CREATE TABLE IF NOT EXISTS {SCHEMA}.form (number INTEGER NOT NULL)")
        db.execute(f"SET LOCAL search_path TO {SCHEMA}")
        for step in steps[found:]:
            step(db)
        db.execute("DELETE FROM form")
        db.execute("INSERT INTO form (number) VALUES (%s)", (len(steps),))


def _found(db: psycopg.Connection[Any]) -> int:
    # Not `to_regclass`: it may answer from what this connection remembers, and another host just made the table.
    there = db.execute("SELECT 1 FROM pg_catalog.pg_tables WHERE schemaname = %s AND tablename = 'form'", (SCHEMA,))
    if there.fetchone() is None:
        return 0
    number = db.execute(f"SELECT max(number) FROM {SCHEMA}.form").fetchone()
    return int(number[0]) if number and number[0] is not None else 0
