"""The index: folders of documents in an SQLite full-text table, kept up to date by size and time of change."""

from __future__ import annotations

import difflib
import sys
import threading
import time
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path

from knowledge_cache import open_database
from knowledge_extract import Unreadable
from knowledge_folders import BadRequest, Folders, checked
from knowledge_meaning import Meaning
from knowledge_store import Entry, Hit, Store, Taken, TooSlow, taken, text_of
from knowledge_text import query_terms

__all__ = ["BadRequest", "Entry", "Hit", "Index"]

LARGEST_FILE = 20_000_000
"""Bytes; larger files are left out and named in the log."""
FRESH_S = 1.0
"""A scan younger than this is not repeated."""
SEARCH_S = 10.0
"""How long a search may take."""
FIRST_SCAN_S = 10.0
"""How long a question waits for a scan that is under way; then what was read so far answers."""
BATCH = 64
"""Documents written in one transaction: between two of them questions are answered."""

Progress = Callable[[int, int, str], None]
"""Told (done, of, document) while documents are read; called in the scanning thread."""


class Index:
    """Folders to search. Safe to use from several threads, and by several processes at once.

    Args:
        folders: the folders; each must exist.
        cache: folder for the index; None keeps it in memory. A cache that cannot be used is replaced by memory.
        meaning: ranks by sense as well; None: by words alone.

    Raises:
        BadRequest: a folder does not exist.
    """

    def __init__(self, folders: Sequence[Path], cache: Path | None, meaning: Meaning | None = None) -> None:
        self._folders = Folders(folders)
        self._given = tuple(self._folders)
        self._store = Store(open_database(self._given, cache))
        self._meaning = meaning
        self._scanning = threading.Lock()
        self._scanned = 0.0
        self.watched = False
        """Whether changes are told by `touch`: then a question need not look for them."""
        self._dirty = threading.Event()
        self._dirty.set()
        self.skipped: tuple[str, ...] = ()
        """Files of the last scan that were left out, with the reason."""
        self.reading: tuple[int, int] | None = None
        """(done, of) while documents are read."""
        self.on_change: list[Callable[[frozenset[str]], None]] = []
        """Told, in the scanning thread, the paths of documents that came, changed or went."""
        self._remember_folders()

    def _remember_folders(self) -> None:
        with self._store.lock:
            rows = self._store.db.execute("SELECT path, label, added FROM folders").fetchall()
        for path, label, added in rows:
            if added and Path(path).is_dir():
                self._folders.add(Path(path), label)
            elif not added:
                self._folders.remove(Path(path))

    @property
    def folders(self) -> tuple[Path, ...]:
        """The folders now."""
        return tuple(self._folders)

    def close(self) -> None:
        """Close the index."""
        if self._meaning is not None:
            self._meaning.close()
        self._store.close()

    @property
    def store(self) -> Store:
        """The tables; for reading."""
        return self._store

    @property
    def meaning(self) -> Meaning | None:
        """Search by sense, where that is switched on."""
        return self._meaning

    def touch(self) -> None:
        """Something in the folders may have changed."""
        self._dirty.set()

    # ---- keeping up to date
    def refresh(self, *, force: bool = False, progress: Progress | None = None) -> None:
        """Take in what changed in the folders since the last scan."""
        if not force and not self._stale():
            return
        if not self._scanning.acquire(timeout=-1 if force else FIRST_SCAN_S):
            return
        try:
            if force or self._stale():
                self._scan(progress)
        finally:
            self._scanning.release()

    def _stale(self) -> bool:
        if not self._scanned or (self._dirty.is_set() and self.watched):
            return True
        return not self.watched and time.monotonic() - self._scanned >= FRESH_S

    def _scan(self, progress: Progress | None) -> None:
        self._dirty.clear()
        known, seen = self._store.known(), set[str]()
        skipped: list[str] = []
        changes = []
        for path, file, stat in self._folders.files(skipped):
            if stat.st_size > LARGEST_FILE:
                skipped.append(f"{path}: larger than {LARGEST_FILE} bytes")
                continue
            seen.add(path)
            if known.get(path) != (stat.st_size, stat.st_mtime_ns):
                changes.append((path, file, stat))
        gone = [path for path in known if path not in seen]
        if gone:
            with self._store.transaction():
                self._store.forget(gone)
        for at in range(0, len(changes), BATCH):
            batch: list[Taken] = []
            for done, (path, file, stat) in enumerate(changes[at : at + BATCH], at):
                self.reading = (done, len(changes))
                if progress is not None:
                    progress(done, len(changes), path)
                try:
                    batch.append(taken(path, file, stat))
                except (Unreadable, OSError) as error:
                    skipped.append(f"{path}: {getattr(error, 'strerror', None) or error}")
            with self._store.transaction():
                self._store.forget(path for path, _file, _stat in changes[at : at + BATCH])
                for one in batch:
                    self._store.put(one)
        self.reading = None
        if progress is not None and changes:
            progress(len(changes), len(changes), "")
        for line in skipped:
            if line not in self.skipped:
                print(f"knowledge: left out {line}", file=sys.stderr)
        self.skipped = tuple(skipped)
        self._scanned = time.monotonic()
        if changes or gone:
            _lines.cache_clear()
            if self._meaning is not None:
                self._meaning.forget()
            for told in self.on_change:
                told(frozenset([*gone, *(c[0] for c in changes)]))

    def add_folder(self, folder: Path, progress: Progress | None = None) -> tuple[Path, int]:
        """Take a folder in for good; returns it with the number of documents of the index now.

        Raises:
            BadRequest: it does not exist, or is part of the index already.
        """
        found = checked(folder)
        if (holder := self._folders.covering(found)) is not None:
            raise BadRequest(f"{found} is searched already, as part of {holder}.")
        label = self._folders.add(found)
        with self._store.transaction():
            self._keep(found, label, added=True)
        self.refresh(force=True, progress=progress)
        return found, self.count()

    def remove_folder(self, folder: Path) -> tuple[Path, int]:
        """Leave a folder out for good; its files stay. Returns as `add_folder`.

        Raises:
            BadRequest: it is none of the folders.
        """
        found = self.folder_like(folder)
        self._folders.remove(found)
        with self._store.transaction():
            self._keep(found, None, added=False)
        self.refresh(force=True)
        return found, self.count()

    def folder_like(self, folder: Path) -> Path:
        """The folder of the index that was meant.

        Raises:
            BadRequest: it is none of the folders.
        """
        wanted = folder.expanduser()
        for known in self._folders:
            if known in (wanted, wanted.resolve()) or str(folder) == known.name:
                return known
        listed = ", ".join(map(str, self._folders)) or "none"
        raise BadRequest(f"{folder} is none of the folders that are searched. Folders: {listed}.")

    def _keep(self, folder: Path, label: str | None, *, added: bool) -> None:
        if added == (folder in self._given):
            self._store.db.execute("DELETE FROM folders WHERE path = ?", (str(folder),))
        else:
            row = (str(folder), label, int(added))
            self._store.db.execute("INSERT OR REPLACE INTO folders (path, label, added) VALUES (?, ?, ?)", row)

    # ---- asking
    def search(self, query: str, top_k: int) -> list[Hit]:
        """The passages that fit best, best first.

        Raises:
            BadRequest: the query holds no word, or takes too long.
        """
        wanted = query_terms(query)
        if not wanted:
            raise BadRequest("The query holds no word. Ask with the words that the answer would contain.")
        self.refresh()
        try:
            if self._meaning is not None:
                return self._meaning.search(self._store, query, wanted, top_k, SEARCH_S)
            return self._store.by_words(wanted, top_k, SEARCH_S)
        except TooSlow:
            raise BadRequest(
                f"The search took longer than {SEARCH_S:g} s and was stopped."
                " Ask more narrowly: two to five telling words."
            ) from None

    def documents(self, category: str | None = None) -> list[Entry]:
        """All documents, or those of a category, by path."""
        self.refresh()
        return self._store.entries("?1 IS NULL OR category = ?1", category)

    def count(self) -> int:
        """How many documents there were at the last scan."""
        with self._store.lock:
            return int(self._store.db.execute("SELECT count(*) FROM documents").fetchone()[0])

    def read(self, path: str) -> tuple[Entry, list[str]]:
        """A document's entry and its lines.

        Only what the index lists can be read, so that no path leads out of the folders; a file that was
        replaced by a link leading out since is refused too.

        Raises:
            BadRequest: there is no such document.
        """
        self.refresh()
        entry = next(iter(self._store.entries("path = ?1", path)), None)
        if entry is None:
            near = difflib.get_close_matches(path, [e.path for e in self.documents()], 3, 0.5)
            advice = f" Did you mean {' or '.join(near)}?" if near else ""
            raise BadRequest(f"There is no document {path!r}.{advice} Use a path as list_documents gives it.")
        return entry, self._lines_of(entry)

    def by_key(self, key: str) -> tuple[Entry, list[str]] | None:
        """As `read`, by the document's id; None where there is none."""
        self.refresh()
        entry = next(iter(self._store.entries("key = ?1", key)), None)
        return None if entry is None else (entry, self._lines_of(entry))

    def _lines_of(self, entry: Entry) -> list[str]:
        file = self._folders.file(entry.path)
        if file is None:
            raise BadRequest(f"There is no document {entry.path!r} any more. Use list_documents to see what there is.")
        try:
            stat = file.stat()
            return list(_lines(file, stat.st_size, stat.st_mtime_ns))
        except (Unreadable, OSError):
            raise BadRequest(f"{entry.path!r} cannot be read any more. Use list_documents to see what there is.") from (
                None
            )

    def stats(self) -> dict[str, object]:
        """Counts for `knowledge://stats`."""
        self.refresh()
        with self._store.lock:
            count, size = self._store.db.execute("SELECT count(*), coalesce(sum(size), 0) FROM documents").fetchone()
            passages = self._store.db.execute("SELECT count(*) FROM passages").fetchone()[0]
            by = "SELECT {0}, count(*) FROM documents GROUP BY {0} ORDER BY {0}"
            categories = dict(self._store.db.execute(by.format("category")).fetchall())
            kinds = dict(self._store.db.execute(by.format("kind")).fetchall())
        done, of = self.reading or (0, 0)
        return {
            "documents": count, "passages": passages, "categories": categories, "kinds": kinds,
            "folders": [str(f) for f in self._folders], "bytes": size, "skipped": len(self.skipped),
            "reading": {"done": done, "of": of} if of else None,
        }  # fmt: skip


@lru_cache(maxsize=16)
def _lines(file: Path, _size: int, _changed: int) -> tuple[str, ...]:
    """The lines of a file as it is now; the last few files are kept, as a PDF takes long."""
    return tuple(text_of(file)[0].splitlines())
