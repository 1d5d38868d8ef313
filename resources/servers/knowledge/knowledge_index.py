"""The index: folders of text in an SQLite full-text table, kept up to date by size and time of change."""

from __future__ import annotations

import contextlib
import difflib
import os
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from knowledge_cache import open_database
from knowledge_text import decode, query_terms, read_document, terms

ENDINGS = {".md": True, ".markdown": True, ".txt": False}
"""File endings that are read; whether they hold Markdown."""
LARGEST_FILE = 5_000_000
"""Bytes; larger files are left out and named in the log."""
FRESH_S = 1.0
"""A scan younger than this is not repeated."""
_SKIPPED = frozenset({"node_modules", "__pycache__"})


class BadRequest(Exception):
    """What was asked for cannot be answered; the text tells how to ask instead."""


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


class Index:
    """Folders to search. Safe to use from several threads, and by several processes at once.

    Args:
        folders: the folders; each must exist.
        cache: folder for the index; None keeps it in memory. A cache that cannot be used is replaced by memory.

    Raises:
        BadRequest: a folder does not exist.
    """

    def __init__(self, folders: Sequence[Path], cache: Path | None) -> None:
        self.folders = tuple(dict.fromkeys(Path(f).expanduser().resolve() for f in folders))
        for folder in self.folders:
            if not folder.is_dir():
                raise BadRequest(f"{folder} is no folder. Give the path of a folder with .md or .txt files.")
        self._labels = self._label()
        self._lock = threading.Lock()
        self._scanned = 0.0
        self.skipped: tuple[str, ...] = ()
        """Files of the last scan that were left out, with the reason."""
        self._db = open_database(self.folders, cache)

    def _label(self) -> dict[str, Path]:
        """What paths of each folder begin with: nothing for a single folder, else its name."""
        if len(self.folders) == 1:
            return {"": self.folders[0]}
        labels: dict[str, Path] = {}
        for folder in self.folders:
            name, n = folder.name or "root", 2
            while f"{name}/" in labels:
                name, n = f"{folder.name or 'root'}-{n}", n + 1
            labels[f"{name}/"] = folder
        return labels

    def close(self) -> None:
        """Close the index."""
        with self._lock:
            self._db.close()

    def refresh(self, *, force: bool = False) -> None:
        """Take in what changed in the folders since the last scan."""
        with self._lock:
            if not force and time.monotonic() - self._scanned < FRESH_S and self._scanned:
                return
            known = {row[0]: row[1:] for row in self._db.execute("SELECT path, id, size, changed FROM documents")}
            skipped: list[str] = []
            changes: list[tuple[str, Path, os.stat_result]] = []
            seen: set[str] = set()
            for path, file in self._files(skipped):
                try:
                    stat = file.stat()
                except OSError as error:
                    skipped.append(f"{path}: {error.strerror}")
                    continue
                if stat.st_size > LARGEST_FILE:
                    skipped.append(f"{path}: larger than {LARGEST_FILE} bytes")
                    continue
                seen.add(path)
                if path not in known or known[path][1:] != (stat.st_size, stat.st_mtime_ns):
                    changes.append((path, file, stat))
            gone = [path for path in known if path not in seen]
            if changes or gone:
                with self._transaction():
                    for path in [*gone, *(c[0] for c in changes)]:
                        self._forget(path)
                    for path, file, stat in changes:
                        try:
                            self._take_in(path, file, stat)
                        except OSError as error:
                            skipped.append(f"{path}: {error.strerror}")
            for line in skipped:
                if line not in self.skipped:
                    print(f"knowledge: left out {line}", file=sys.stderr)
            self.skipped = tuple(skipped)
            self._scanned = time.monotonic()

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[None]:
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._db.execute("ROLLBACK")
            raise
        self._db.execute("COMMIT")

    def _files(self, skipped: list[str]) -> Iterator[tuple[str, Path]]:
        for label, root in self._labels.items():
            for folder, names, files in os.walk(root, onerror=lambda e: skipped.append(str(e))):
                names[:] = sorted(n for n in names if not n.startswith(".") and n not in _SKIPPED)
                for name in sorted(files):
                    file = Path(folder, name)
                    if name.startswith(".") or file.suffix.lower() not in ENDINGS:
                        continue
                    if not self._inside(file, root):
                        skipped.append(f"{file}: a link that leads out of the folder")
                        continue
                    yield label + file.relative_to(root).as_posix(), file

    @staticmethod
    def _inside(file: Path, root: Path) -> bool:
        return file.resolve().is_relative_to(root) and file.is_file()

    def _forget(self, path: str) -> None:
        row = self._db.execute("SELECT id FROM documents WHERE path = ?", (path,)).fetchone()
        if row is not None:
            self._db.execute("DELETE FROM terms WHERE rowid IN (SELECT id FROM passages WHERE document = ?)", row)
            self._db.execute("DELETE FROM passages WHERE document = ?", row)
            self._db.execute("DELETE FROM documents WHERE id = ?", row)

    def _take_in(self, path: str, file: Path, stat: os.stat_result) -> None:
        document = read_document(decode(file.read_bytes()), file.stem, markdown=ENDINGS[file.suffix.lower()])
        folders = path.split("/")[:-1]
        category = document.category or (folders[0] if folders else "general")
        row = (path, str(file), document.title, category, stat.st_size, stat.st_mtime_ns, document.lines)
        made = self._db.execute(
            "INSERT INTO documents (path, file, title, category, size, changed, lines) VALUES (?, ?, ?, ?, ?, ?, ?)",
            row,
        )
        for number, p in enumerate(document.passages, 1):
            entry = (made.lastrowid, number, p.heading, p.text, p.first_line, p.last_line)
            passage = self._db.execute(
                "INSERT INTO passages (document, number, heading, body, first, last) VALUES (?, ?, ?, ?, ?, ?)", entry
            )
            heading = f"{document.title} {p.heading} {file.stem}"
            self._db.execute(
                "INSERT INTO terms (rowid, heading, body) VALUES (?, ?, ?)",
                (passage.lastrowid, " ".join(terms(heading)), " ".join(terms(p.text))),
            )

    def search(self, query: str, top_k: int) -> list[Hit]:
        """The passages that fit best, best first.

        Raises:
            BadRequest: the query holds no word.
        """
        wanted = query_terms(query)
        if not wanted:
            raise BadRequest("The query holds no word. Ask with the words that the answer would contain.")
        self.refresh()
        hits = self._ranked(" OR ".join(f'"{t}"' for t in wanted), top_k)
        if not hits:  # Perhaps only beginnings of words were given.
            hits = self._ranked(" OR ".join(f'"{t}"*' for t in wanted if len(t) > 2) or '""', top_k)
        return hits

    def _ranked(self, match: str, top_k: int) -> list[Hit]:
        with self._lock:
            rows = self._db.execute(
                "SELECT d.path, d.title, p.heading, p.number, p.first, p.last, -bm25(terms, 2.0, 1.0) AS score, p.body"
                " FROM terms JOIN passages p ON p.id = terms.rowid JOIN documents d ON d.id = p.document"
                " WHERE terms MATCH ? ORDER BY score DESC, p.id LIMIT ?",
                (match, top_k),
            ).fetchall()
        return [
            Hit(path, title, heading, number, first, last, round(score, 4), body)
            for path, title, heading, number, first, last, score, body in rows
        ]

    def documents(self, category: str | None = None) -> list[Entry]:
        """All documents, or those of a category, by path."""
        self.refresh()
        with self._lock:
            rows = self._db.execute(
                "SELECT path, title, category, size, lines,"
                " (SELECT count(*) FROM passages WHERE document = documents.id)"
                " FROM documents WHERE ?1 IS NULL OR category = ?1 ORDER BY path",
                (category,),
            ).fetchall()
        return [Entry(*row) for row in rows]

    def count(self) -> int:
        """How many documents there were at the last scan."""
        with self._lock:
            return int(self._db.execute("SELECT count(*) FROM documents").fetchone()[0])

    def read(self, path: str) -> tuple[Entry, list[str]]:
        """A document's entry and its lines.

        Only what the index lists can be read, so that no path leads out of the folders; a file that was
        replaced by a link leading out since is refused too.

        Raises:
            BadRequest: there is no such document.
        """
        self.refresh()
        entry = next((e for e in self.documents() if e.path == path), None)
        if entry is None:
            near = difflib.get_close_matches(path, [e.path for e in self.documents()], 3, 0.5)
            advice = f" Did you mean {' or '.join(near)}?" if near else ""
            raise BadRequest(f"There is no document {path!r}.{advice} Use a path as list_documents gives it.")
        label = max((x for x in self._labels if path.startswith(x)), key=len)
        root = self._labels[label]
        file = root / path[len(label) :]
        if not self._inside(file, root):
            raise BadRequest(f"There is no document {path!r} any more. Use list_documents to see what there is.")
        return entry, decode(file.read_bytes()).splitlines()

    def stats(self) -> dict[str, object]:
        """Counts for `knowledge://stats`."""
        found = self.documents()
        categories: dict[str, int] = {}
        for entry in found:
            categories[entry.category] = categories.get(entry.category, 0) + 1
        return {
            "documents": len(found),
            "passages": sum(e.passages for e in found),
            "categories": dict(sorted(categories.items())),
            "folders": [str(f) for f in self.folders],
            "bytes": sum(e.size for e in found),
            "skipped": len(self.skipped),
        }
