"""Bytes by their sha256, as rows: a session that goes on at another computer finds them there."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from desktop_host.core.errors import KnownFault
from desktop_host.storage.blobs import SWEEPING, BlobUses, missing
from desktop_host.storage.sql import Sql

LIMIT = 128 * 2**20
"""Bytes of one blob at most; attachments end at 20 MB, a pinned skill at 50 MB."""


class BlobRows(BlobUses):
    """`Blobs` in PostgreSQL."""

    def write(self, db: Sql, data: bytes, *, loose: bool = False) -> str:
        if len(data) > LIMIT:
            raise KnownFault(
                "too_large", f"{len(data):,} bytes are more than the {LIMIT:,} that the shared database takes at once",
                reason="blob", size=len(data), limit=LIMIT,
            )  # fmt: skip
        sha = hashlib.sha256(data).hexdigest()
        db.alone(SWEEPING, shared=True)
        # Asked first: bytes that are there already need not travel.
        if not db.execute("SELECT 1 FROM blobs WHERE sha256 = ?", (sha,)).fetchone():
            db.execute(
                "INSERT INTO blobs (sha256, size, loose, data) VALUES (?, ?, ?, ?) ON CONFLICT (sha256) DO NOTHING",
                (sha, len(data), int(loose), data),
            )
        if loose:
            db.execute("UPDATE blobs SET loose = 1 WHERE sha256 = ?", (sha,))
        return sha

    def read(self, db: Sql, sha256: str) -> bytes:
        row = db.execute("SELECT data FROM blobs WHERE sha256 = ?", (sha256,)).fetchone()
        if row is None:
            raise missing(sha256)
        data = bytes(row[0])
        if hashlib.sha256(data).hexdigest() != sha256:
            raise KnownFault(
                "database_error", f"blob {sha256} is damaged: its digest differs", reason="blob_damaged",
                path=self.place(sha256),
            )  # fmt: skip
        return data

    def sweep(self, db: Sql, candidates: Iterable[str]) -> None:
        for sha in self.unused(db, candidates):
            db.execute("DELETE FROM blobs WHERE sha256 = ?", (sha,))

    def place(self, sha256: str) -> str:
        return f"blobs/{sha256}"
