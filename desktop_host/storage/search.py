"""Full text of what was said: trigrams, so that Chinese and parts of words are found too.

A trigram index needs three characters; shorter words (most Chinese ones have two) are looked up by LIKE.
"""

from __future__ import annotations

import unicodedata

from desktop_host.storage.sql import Sql

INDEXED_CHARS = 100_000
"""How much of one message is searchable."""
_AROUND = 60
"""Characters of context on each side of a hit."""


def plain(text: str) -> str:
    """Text as the database takes it: composed characters, no lone surrogates, no NUL (it would end the text)."""
    whole = text.encode("utf-8", "replace").decode().replace("\0", "\ufffd")
    return unicodedata.normalize("NFC", whole)


class TrigramSearch:
    """`Search` over FTS5."""

    def index(self, db: Sql, owner: int, seq: int, found_as: int, text: str) -> None:
        if text.strip():
            db.execute(
                "INSERT INTO texts (rowid, text, owner) SELECT id, ?, ? FROM events WHERE owner = ? AND seq = ?",
                (plain(text[:INDEXED_CHARS]), found_as, owner, seq),
            )

    def forget(self, db: Sql, owner: int) -> None:
        """Remove a session's messages; before its events go."""
        db.execute("DELETE FROM texts WHERE rowid IN (SELECT id FROM events WHERE owner = ?)", (owner,))

    def find(self, db: Sql, text: str, limit: int) -> list[tuple[int, str]]:
        """Sessions, newest first, that have all words of `text` in one message or in the title.

        Returns:
            Pairs of the session's row id and the text around the hit.
        """
        terms = plain(text).split()
        if not terms:
            return []
        long = [t for t in terms if len(t) >= 3]
        short = [t for t in terms if len(t) < 3]
        where = ["texts MATCH ?"] if long else []
        values: list[object] = [" AND ".join(_quoted(t) for t in long)] if long else []
        for term in short:
            where.append("text LIKE ? ESCAPE '\\'")
            values.append(like(term))
        # bare columns beside max() come from the row that has the maximum: the newest hit of each session
        said = f"SELECT owner, text, max(rowid) FROM texts WHERE {' AND '.join(where)} GROUP BY owner"
        hits: dict[int, str] = {owner: body for owner, body, _ in db.execute(said, values)}
        titled = " AND ".join("title LIKE ? ESCAPE '\\'" for _ in terms)
        named = f"SELECT id, title FROM sessions WHERE parent IS NULL AND {titled}"
        for owner, title in db.execute(named, [like(t) for t in terms]):
            hits.setdefault(owner, title)
        order = {row[0]: row[1] for row in db.execute("SELECT id, updated FROM sessions") if row[0] in hits}
        newest = sorted(order, key=lambda owner: (-order[owner], -owner))[:limit]
        return [(owner, excerpt(hits[owner], terms)) for owner in newest]


def excerpt(text: str, terms: list[str]) -> str:
    """The surroundings of the first hit, on one line."""
    folded = text.casefold()
    # Folding may change lengths (ß); the place is then off by some characters, which an excerpt can bear.
    places = [at for t in terms if (at := folded.find(t.casefold())) >= 0]
    at = min(places, default=0)
    start, end = max(0, at - _AROUND), min(len(text), at + max(map(len, terms)) + _AROUND)
    cut = " ".join(text[start:end].split())
    return ("…" if start else "") + cut + ("…" if end < len(text) else "")


def _quoted(term: str) -> str:
    return '"' + term.replace('"', '""') + '"'


def like(term: str) -> str:
    """A pattern that finds `term` anywhere."""
    escaped = term.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    return f"%{escaped}%"
