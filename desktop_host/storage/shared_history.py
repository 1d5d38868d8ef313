"""The journal in a database that computers share; what a person allowed in a chat stays on their computer.

On another computer the same name may be another server, and the same path another folder. And whoever may write to
the database could otherwise allow anything here.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace

from desktop_host.core.codec import decode, encode
from desktop_host.core.permissions import Effect, Rule
from desktop_host.core.sessions import SessionOptions
from desktop_host.storage.history import JournalHistory
from desktop_host.storage.journal import dump
from desktop_host.storage.lease import Leases
from desktop_host.storage.sql import Blobs, Database, Search


class SharedHistory(JournalHistory):
    """`History` over a shared database, with the allowances and folders of its sessions in the profile's own file."""

    def __init__(
        self, database: Database, blobs: Blobs, search: Search, leases: Leases, now: Callable[[], float], own: Database
    ) -> None:
        super().__init__(database, blobs, search, leases, now)
        self._own = OwnOptions(own)

    async def create(self, session: str, title: str, options: SessionOptions) -> None:
        await super().create(session, title, without_trust(options))
        await self._own.put(session, options)

    async def options(self, session: str) -> SessionOptions:
        return await self._own.add(session, await super().options(session))

    async def set_options(self, session: str, options: SessionOptions) -> None:
        await super().set_options(session, without_trust(options))
        await self._own.put(session, options)

    async def delete(self, session: str) -> None:
        await super().delete(session)
        await self._own.put(session, SessionOptions())


def without_trust(options: SessionOptions) -> SessionOptions:
    """Options that another computer may take over: what they deny and ask for, nothing that they allow."""
    return replace(options, rules=tuple(r for r in options.rules if r.effect is not Effect.ALLOW), roots=())


class OwnOptions:
    """What of sessions' options belongs to this profile alone."""

    def __init__(self, own: Database) -> None:
        self._own = own

    async def put(self, session: str, options: SessionOptions) -> None:
        """Keep what `without_trust` leaves out."""
        allowed = [encode(r) for r in options.rules if r.effect is Effect.ALLOW]
        values = (session, dump(allowed), dump(list(options.roots)))
        empty = not allowed and not options.roots
        put = (
            "INSERT INTO own_options (session, rules, roots) VALUES (?, ?, ?)"
            " ON CONFLICT (session) DO UPDATE SET rules = excluded.rules, roots = excluded.roots"
        )
        drop = "DELETE FROM own_options WHERE session = ?"
        await self._own.write(lambda db: db.execute(drop, values[:1]) if empty else db.execute(put, values))

    async def add(self, session: str, options: SessionOptions) -> SessionOptions:
        """The options as they are here; what a row of the shared database allows counts for nothing."""
        query = "SELECT rules, roots FROM own_options WHERE session = ?"
        row = await self._own.read(lambda db: db.execute(query, (session,)).fetchone())
        options = without_trust(options)
        if row is None:
            return options
        allowed: tuple[Rule, ...] = tuple(decode(rule) for rule in json.loads(row[0]))
        return replace(options, rules=(*options.rules, *allowed), roots=tuple(json.loads(row[1])))
