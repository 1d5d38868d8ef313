"""Answers of models that may serve again."""

from __future__ import annotations

import json

from desktop_host.core.budgets import CachedAnswer
from desktop_host.core.values import freeze
from desktop_host.storage.journal import dump
from desktop_host.storage.sql import Database, Sql

KEPT = 1000
"""Answers that are kept at most; the oldest go first."""
COMPARED = 200
"""Questions that a new one is compared with at most."""


class SqlAnswers:
    """`Answers` over a database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def get(self, key: str, since: float) -> CachedAnswer | None:
        """The answer of a key."""
        query = "SELECT question, model, answer, created FROM answers WHERE key = ? AND created >= ?"
        row = await self._database.read(lambda db: db.execute(query, (key, since)).fetchone())
        return None if row is None else CachedAnswer(key, row[0], row[1], freeze(json.loads(row[2])), row[3])

    async def put(self, scope: str, answer: CachedAnswer) -> None:
        """Keep an answer in place of an older one of its key."""
        question = answer.question.encode("utf-8", "replace").decode()
        values = (answer.key, scope, question, answer.model, dump(answer.answer), answer.created)

        def write(db: Sql) -> None:
            db.execute(
                "INSERT INTO answers (key, scope, question, model, answer, created) VALUES (?, ?, ?, ?, ?, ?)"
                " ON CONFLICT (key) DO UPDATE SET scope = excluded.scope, question = excluded.question,"
                " model = excluded.model, answer = excluded.answer, created = excluded.created",
                values,
            )
            db.execute(
                "DELETE FROM answers WHERE key IN"
                " (SELECT key FROM answers ORDER BY created DESC, key LIMIT 1000000 OFFSET ?)", (KEPT,)
            )  # fmt: skip

        await self._database.write(write)

    async def questions(self, scope: str, since: float) -> tuple[tuple[str, str], ...]:
        """The newest questions of a scope."""
        query = "SELECT key, question FROM answers WHERE scope = ? AND created >= ? ORDER BY created DESC, key LIMIT ?"
        rows = await self._database.read(lambda db: db.execute(query, (scope, since, COMPARED)).fetchall())
        return tuple((str(key), str(question)) for key, question in rows)

    async def clear(self) -> None:
        """Forget all answers."""
        await self._database.write(lambda db: db.execute("DELETE FROM answers"))
