"""What is written to and read from the index's tables."""

from __future__ import annotations

import contextlib
import hashlib
import os
import sqlite3
import threading
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from knowledge_extract import extract
from knowledge_text import Document, read_document, terms


@dataclass(frozen=True)
class Hit:
    """A passage that answers a query; a higher score is better."""

    path: str
    title: str
    heading: str
    passage: int
    first_line: int
    last_line: int
    score: float
    text: str


@dataclass(frozen=True)
class Entry:
    """A document of the index."""

    path: str
    title: str
    category: str
    size: int
    lines: int
    passages: int
    key: str
    """The document's name in `knowledge://doc/{id}`: depends on its path alone."""


@dataclass(frozen=True)
class Taken:
    """A file that was read and cut."""

    path: str
    file: Path
    stat: os.stat_result
    kind: str
    document: Document


class TooSlow(Exception):
    """A statement ran longer than it may."""


def key_of(path: str) -> str:
    """The document's id: the same for the same path, in every index."""
    return hashlib.sha256(path.encode()).hexdigest()[:12]


def text_of(file: Path) -> tuple[str, str, str | None]:
    """A file's text, its kind and the title it names. Raises `Unreadable` and `OSError`."""
    made = extract(file, file.read_bytes())
    return made.text, made.kind, made.title


def taken(path: str, file: Path, stat: os.stat_result) -> Taken:
    """Read and cut a file. Raises `Unreadable` and `OSError`."""
    text, kind, title = text_of(file)
    document = read_document(text, title or file.stem, markdown=kind == "markdown", code=kind == "code")
    return Taken(path, file, stat, kind, document)


class Store:
    """The tables behind one lock."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self.db = db
        self.lock = threading.Lock()

    def close(self) -> None:
        """Close the database."""
        with self.lock:
            self.db.close()

    @contextlib.contextmanager
    def transaction(self) -> Iterator[None]:
        """Write: all or nothing."""
        with self.lock:
            self.db.execute("BEGIN IMMEDIATE")
            try:
                yield
            except BaseException:
                self.db.execute("ROLLBACK")
                raise
            self.db.execute("COMMIT")

    @contextlib.contextmanager
    def limited(self, seconds: float) -> Iterator[sqlite3.Connection]:
        """Read; a statement that runs longer is stopped.

        Raises:
            TooSlow: it was stopped.
        """
        with self.lock, stopped_after(self.db, seconds):
            yield self.db

    def known(self) -> dict[str, tuple[int, int]]:
        """Size and time of change of each document."""
        with self.lock:
            return {row[0]: (row[1], row[2]) for row in self.db.execute("SELECT path, size, changed FROM documents")}

    def entries(self, condition: str, value: str | None) -> list[Entry]:
        """The documents for which a condition over `?1` holds, by path."""
        with self.lock:
            rows = self.db.execute(
                "SELECT path, title, category, size, lines,"
                " (SELECT count(*) FROM passages WHERE document = documents.id), key"
                f" FROM documents WHERE {condition} ORDER BY path",
                (value,),
            ).fetchall()
        return [Entry(*row) for row in rows]

    def by_words(self, wanted: Iterable[str], top_k: int, seconds: float) -> list[Hit]:
        """The passages that hold these words, or else words that begin like them; best first.

        Raises:
            TooSlow: it took longer.
        """
        words = list(wanted)
        with self.limited(seconds) as db:
            hits = ranked(db, " OR ".join(f'"{t}"' for t in words), top_k)
            if not hits and (begun := [t for t in words if len(t) > 2]):
                hits = ranked(db, " OR ".join(f'"{t}"*' for t in begun), top_k)
        return hits

    def forget(self, paths: Iterable[str]) -> None:
        """Remove documents; within a transaction."""
        for path in paths:
            row = self.db.execute("SELECT id FROM documents WHERE path = ?", (path,)).fetchone()
            if row is None:
                continue
            of = "(SELECT id FROM passages WHERE document = ?)"
            self.db.execute(f"DELETE FROM terms WHERE rowid IN {of}", row)
            self.db.execute(f"DELETE FROM vectors WHERE passage IN {of}", row)
            self.db.execute("DELETE FROM passages WHERE document = ?", row)
            self.db.execute("DELETE FROM documents WHERE id = ?", row)

    def put(self, one: Taken) -> None:
        """Add a document; within a transaction."""
        folders = one.path.split("/")[:-1]
        category = one.document.category or (folders[0] if folders else "general")
        made = self.db.execute(
            "INSERT INTO documents (path, file, title, category, size, changed, lines, key, kind)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (one.path, str(one.file), one.document.title, category, one.stat.st_size, one.stat.st_mtime_ns,
             one.document.lines, key_of(one.path), one.kind),
        )  # fmt: skip
        last = self.db.execute("SELECT coalesce(max(id), 0) FROM passages").fetchone()[0]
        numbered = list(enumerate(one.document.passages, 1))
        self.db.executemany(
            "INSERT INTO passages (id, document, number, heading, body, first, last) VALUES (?, ?, ?, ?, ?, ?, ?)",
            [(last + n, made.lastrowid, n, p.heading, p.text, p.first_line, p.last_line) for n, p in numbered],
        )
        self.db.executemany(
            "INSERT INTO terms (rowid, heading, body) VALUES (?, ?, ?)",
            [
                (last + n, " ".join(terms(f"{one.document.title} {p.heading} {one.file.stem}")),
                 " ".join(terms(p.text)))
                for n, p in numbered
            ],
        )  # fmt: skip


@contextlib.contextmanager
def stopped_after(db: sqlite3.Connection, seconds: float) -> Iterator[None]:
    """Stop what runs on a connection for longer than this.

    Raises:
        TooSlow: it was stopped.
    """
    until = time.monotonic() + seconds
    db.set_progress_handler(lambda: time.monotonic() > until, 10_000)
    try:
        yield
    except sqlite3.OperationalError as error:
        if str(error) == "interrupted":
            raise TooSlow from error
        raise
    finally:
        db.set_progress_handler(None, 0)


HIT = (
    "SELECT d.path, d.title, p.heading, p.number, p.first, p.last, {score} AS score, p.body"
    " FROM {source} JOIN documents d ON d.id = p.document"
)


def ranked(db: sqlite3.Connection, match: str, top_k: int) -> list[Hit]:
    """The passages that fit a full-text expression, best first."""
    source = "terms JOIN passages p ON p.id = terms.rowid"
    rows = db.execute(
        HIT.format(score="-bm25(terms, 2.0, 1.0)", source=source)
        + " WHERE terms MATCH ? ORDER BY score DESC, p.id LIMIT ?",
        (match, top_k),
    ).fetchall()
    return [hit(row) for row in rows]


def hit(row: tuple[str, str, str, int, int, int, float, str]) -> Hit:
    """A row of `HIT` as a value."""
    path, title, heading, number, first, last, score, body = row
    return Hit(path, title, heading, number, first, last, round(score, 4), body)
