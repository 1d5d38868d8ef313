"""Full text in PostgreSQL: stored pieces of two or three characters, so that Chinese and parts of words are found.

Stored by us and not by `pg_trgm`: that extension may not be there, finds no Chinese in a database whose locale is C,
and leaves words of two characters (most Chinese ones) to a scan of everything.
"""

from __future__ import annotations

import zlib

from desktop_host.storage.search import INDEXED_CHARS, excerpt, like, plain
from desktop_host.storage.sql import Sql


def grams(folded: str) -> list[int]:
    """Numbers of the pieces of a text: three letters of ASCII, or two characters one of which is none.

    Two pieces may share a number: what the index finds is looked at again.
    """
    pieces = {folded[i : i + 2] for i in range(len(folded) - 1) if not folded[i : i + 2].isascii()}
    pieces |= {folded[i : i + 3] for i in range(len(folded) - 2) if folded[i : i + 3].isascii()}
    return sorted({zlib.crc32(piece.encode()) - 2**31 for piece in pieces})


class GramSearch:
    """`Search` over PostgreSQL."""

    def index(self, db: Sql, owner: int, seq: int, found_as: int, text: str) -> None:
        if text.strip():
            shown = plain(text[:INDEXED_CHARS])
            folded = shown.casefold()
            db.execute(
                "INSERT INTO texts (event, owner, text, folded, grams)"
                " SELECT id, ?, ?, ?, ?::int4[] FROM events WHERE owner = ? AND seq = ?",
                (found_as, shown, folded, grams(folded), owner, seq),
            )

    def forget(self, db: Sql, owner: int) -> None:
        db.execute("DELETE FROM texts WHERE owner = ?", (owner,))

    def find(self, db: Sql, text: str, limit: int) -> list[tuple[int, str]]:
        terms = plain(text).split()
        if not terms:
            return []
        folded = [t.casefold() for t in terms]
        wanted = sorted({number for t in folded for number in grams(t)})
        found = " AND ".join(["strpos(folded, ?) > 0"] * len(folded))
        values: list[object] = list(folded)
        if wanted:
            found, values = f"grams @> ?::int4[] AND {found}", [wanted, *values]
        titled = " AND ".join("title ILIKE ? ESCAPE '\\'" for _ in terms)
        rows = db.execute(
            f"WITH said AS (SELECT DISTINCT ON (owner) owner, text FROM texts WHERE {found} ORDER BY owner, event DESC)"
            " SELECT s.id, coalesce(said.text, s.title) FROM sessions s LEFT JOIN said ON said.owner = s.id"
            f" WHERE said.owner IS NOT NULL OR (s.parent IS NULL AND {titled})"
            " ORDER BY s.updated DESC, s.id DESC LIMIT ?",
            [*values, *(like(t) for t in terms), limit],
        )
        return [(owner, excerpt(body, terms)) for owner, body in rows.fetchall()]
