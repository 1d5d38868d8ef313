"""Bytes by their sha256, as files of their own, and big strings moved out of the journal's rows.

Files are written inside the database's write transaction: who deletes and who writes wait for each other,
across processes, so a file is never removed under a row that has just begun to use it.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import os
import re
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from desktop_host.core.errors import KnownFault, UserFault
from desktop_host.storage.sql import Sql

INLINE_LIMIT = 16 * 1024
"""Longest string (characters) that stays in a row."""

SWEEPING = "blobs"
"""The word by which those who remove blobs and those who use them wait for each other."""

_SHA = re.compile(r"\b[0-9a-f]{64}\b")


class BlobUses:
    """Which sessions use which blobs: rows, wherever the bytes lie."""

    def use(self, db: Sql, owner: int, shas: Iterable[str]) -> None:
        """Note that a session uses these blobs."""
        for sha in shas:
            db.execute("INSERT INTO blob_uses (sha256, owner) VALUES (?, ?) ON CONFLICT DO NOTHING", (sha, owner))
            db.execute("UPDATE blobs SET loose = 0 WHERE sha256 = ? AND loose = 1", (sha,))

    def mentioned(self, db: Sql, text: str) -> set[str]:
        """The kept blobs whose digests stand in `text`."""
        found = set(_SHA.findall(text))
        if found:
            db.alone(SWEEPING, shared=True)
        return {s for s in found if db.execute("SELECT 1 FROM blobs WHERE sha256 = ?", (s,)).fetchone()}

    def unused(self, db: Sql, candidates: Iterable[str]) -> list[str]:
        """Those of `candidates` that nobody uses, now that nobody can begin to."""
        db.alone(SWEEPING)
        query = (
            "SELECT 1 FROM blobs WHERE sha256 = ? AND loose = 0"
            " AND NOT EXISTS (SELECT 1 FROM blob_uses WHERE blob_uses.sha256 = blobs.sha256)"
        )
        return [sha for sha in candidates if db.execute(query, (sha,)).fetchone()]


def missing(sha256: str) -> UserFault:
    """The fault of a digest that nothing is kept under."""
    return UserFault("not_found", f"there is no blob {sha256}", kind="blob", name=sha256[:80])


class BlobFiles(BlobUses):
    """`Blobs` as files of a folder. Its methods run on the database's thread."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, sha256: str) -> Path:
        """Where a blob lies."""
        return self.folder / sha256[:2] / sha256

    def write(self, db: Sql, data: bytes, *, loose: bool = False) -> str:
        sha = hashlib.sha256(data).hexdigest()
        target = self.path(sha)
        if not (target.exists() and target.stat().st_size == len(data)):
            self._store(target, data)
        db.execute(
            "INSERT INTO blobs (sha256, size, loose) VALUES (?, ?, ?)"
            " ON CONFLICT (sha256) DO UPDATE SET loose = max(blobs.loose, excluded.loose)",
            (sha, len(data), int(loose)),
        )
        return sha

    def place(self, sha256: str) -> str:
        return str(self.path(sha256))

    def read(self, db: Sql, sha256: str) -> bytes:
        if not _SHA.fullmatch(sha256):
            raise missing(sha256)
        path = self.path(sha256)
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            raise missing(sha256) from None
        if hashlib.sha256(data).hexdigest() != sha256:
            raise KnownFault(
                "database_error", f"{path} is damaged: its digest differs", reason="blob_damaged", path=str(path)
            )
        return data

    def sweep(self, db: Sql, candidates: Iterable[str]) -> None:
        for sha in self.unused(db, candidates):
            # The file goes first: a row without a file is found and written anew, a file without a row is lost.
            self.path(sha).unlink(missing_ok=True)
            db.execute("DELETE FROM blobs WHERE sha256 = ?", (sha,))

    def _store(self, target: Path, data: bytes) -> None:
        self.folder.mkdir(mode=0o700, exist_ok=True)
        target.parent.mkdir(mode=0o700, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=".new-")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, target)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise
        _sync_folder(target.parent)


def _sync_folder(folder: Path) -> None:
    if os.name == "nt":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def split(value: Any, path: tuple[str | int, ...] = ()) -> tuple[Any, list[tuple[list[str | int], bytes, str]]]:
    """Take the big strings out of a JSON value.

    Returns:
        The value with empty strings in their place, and per string its path, its bytes and how they give
        the string back (`text` or `base64`). Kept beside the value, never in it: no tool result can forge one.
    """
    if isinstance(value, str):
        if len(value) <= INLINE_LIMIT:
            return value, []
        data, form = _bytes_of(value)
        return "", [(list(path), data, form)]
    parts: list[tuple[list[str | int], bytes, str]] = []
    if isinstance(value, dict):
        smaller: dict[str, Any] = {}
        for key, item in value.items():
            smaller[key], more = split(item, (*path, key))
            parts += more
        return smaller, parts
    if isinstance(value, (list, tuple)):
        items: list[Any] = []
        for index, item in enumerate(value):
            one, more = split(item, (*path, index))
            items.append(one)
            parts += more
        return items, parts
    return value, parts


def join(value: Any, path: list[str | int], data: bytes, form: str) -> Any:
    """Put one big string back; changes `value` in place and returns it (or the string, for an empty path)."""
    text = base64.b64encode(data).decode() if form == "base64" else data.decode("utf-8", "surrogatepass")
    if not path:
        return text
    inner = value
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = text
    return value


def _bytes_of(text: str) -> tuple[bytes, str]:
    if len(text) % 4 == 0 and text.isascii() and " " not in text[:256]:
        try:
            data = base64.b64decode(text, validate=True)
        except binascii.Error:
            pass
        else:
            if base64.b64encode(data).decode() == text:
                return data, "base64"
    return text.encode("utf-8", "surrogatepass"), "text"
