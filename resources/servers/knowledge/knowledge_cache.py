"""Where indexes are kept between runs: the cache folder, its databases, and the folders to search by default."""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import sys
from collections.abc import Sequence
from pathlib import Path

SCHEMA = 2
_TABLES = """
CREATE TABLE documents (
  id INTEGER PRIMARY KEY, path TEXT NOT NULL UNIQUE, file TEXT NOT NULL, title TEXT NOT NULL, category TEXT NOT NULL,
  size INTEGER NOT NULL, changed INTEGER NOT NULL, lines INTEGER NOT NULL, key TEXT NOT NULL UNIQUE,
  kind TEXT NOT NULL
);
CREATE INDEX documents_in ON documents (category);
CREATE TABLE folders (path TEXT PRIMARY KEY, label TEXT, added INTEGER NOT NULL);
CREATE TABLE passages (
  id INTEGER PRIMARY KEY, document INTEGER NOT NULL, number INTEGER NOT NULL, heading TEXT NOT NULL,
  body TEXT NOT NULL, first INTEGER NOT NULL, last INTEGER NOT NULL
);
CREATE INDEX passages_of ON passages (document);
CREATE TABLE vectors (passage INTEGER PRIMARY KEY, vector BLOB NOT NULL);
CREATE VIRTUAL TABLE terms USING fts5 (heading, body, tokenize = 'porter unicode61 remove_diacritics 2');
"""


def cache_folder() -> Path:
    """Where indexes are kept: the platform's folder for caches."""
    home = Path.home()
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA") or home / "AppData/Local")
    elif sys.platform == "darwin":
        base = home / "Library/Caches"
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or home / ".cache")
    return base / "desktop-host" / "knowledge"


def open_database(folders: Sequence[Path], cache: Path | None) -> sqlite3.Connection:
    """The database for a set of folders; a damaged one is made anew, one that cannot be kept stays in memory."""
    if cache is not None:
        name = hashlib.sha256("\0".join(map(str, folders)).encode("utf-8", "surrogatepass")).hexdigest()[:24]
        file = cache / f"{name}-{SCHEMA}.db"
        for _attempt in (1, 2):
            try:
                cache.mkdir(parents=True, exist_ok=True, mode=0o700)
                return _connect(str(file))
            except (sqlite3.OperationalError, OSError) as error:
                print(f"knowledge: no index at {file} ({error}); keeping it in memory", file=sys.stderr)
                break
            except sqlite3.DatabaseError:
                file.unlink(missing_ok=True)  # Damaged; it is only a cache.
    return _connect(":memory:")


def _connect(file: str) -> sqlite3.Connection:
    db = sqlite3.connect(file, check_same_thread=False, timeout=30, isolation_level=None)
    try:
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = NORMAL")
        db.execute("BEGIN IMMEDIATE")
        if not db.execute("SELECT 1 FROM sqlite_master WHERE name = 'terms'").fetchone():
            for statement in _TABLES.split(";\n"):
                if statement.strip():
                    db.execute(statement)
        db.execute("COMMIT")
    except BaseException:
        db.close()
        raise
    return db


def remembered(cache: Path) -> list[Path]:
    """The folders given to `index` so far that still exist."""
    try:
        listed = json.loads((cache / "folders.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return []
    return [Path(f) for f in listed if isinstance(f, str) and Path(f).is_dir()] if isinstance(listed, list) else []


def remember(cache: Path, folder: Path) -> None:
    """Make `folder` one of those that are searched when none is named."""
    folders = list(dict.fromkeys([*map(str, remembered(cache)), str(folder.resolve())]))
    cache.mkdir(parents=True, exist_ok=True, mode=0o700)
    draft = cache / f".folders.{os.getpid()}.tmp"
    draft.write_text(json.dumps(folders, ensure_ascii=False, indent=2), encoding="utf-8")
    draft.replace(cache / "folders.json")
