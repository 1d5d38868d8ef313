"""Which folders servers may know of, by session, and telling running servers as soon as they are others.

Modern servers ask each time they need them; older ones are told (`notifications/roots/list_changed`).
"""

from __future__ import annotations

import asyncio

from desktop_host.core.ports import Reviewer
from desktop_host.servers.keeper import Keeper
from desktop_host.servers.pool import Pool


class Folders:
    """What each session's servers were last told."""

    def __init__(self, pool: Pool, reviewer: Reviewer) -> None:
        self._pool, self._reviewer = pool, reviewer
        self._known: dict[str | None, tuple[str, ...]] = {}
        """By session; by None those of the profile, which hold for sessions without their own."""
        self._own: dict[str, bool] = {}
        """Sessions in use, and whether they have folders of their own."""

    def begin(self) -> None:
        """Know the profile's folders before any server starts."""
        self._known[None] = self._reviewer.roots(None)

    def use(self, session: str, roots: tuple[str, ...]) -> None:
        """A turn of this session begins: a server whose folders differ by chat is not shared with others."""
        self._own[session] = bool(roots)
        self._pool.set_apart(session, bool(roots))

    def forget(self, session: str) -> None:
        """The session is closed."""
        self._own.pop(session, None)
        self._known.pop(session, None)
        self._pool.set_apart(session, False)

    async def tell(self, session: str | None) -> None:
        """Tell the running servers of a session (None: of the profile) if their folders are others now."""
        keepers = self._pool.shared() if session is None else self._of(session)
        await self._tell(session, keepers)
        if session is None:
            await asyncio.gather(*(self._tell(s, self._pool.of_session(s)) for s in list(self._own)))

    def _of(self, session: str) -> tuple[Keeper, ...]:
        own = self._pool.of_session(session)
        # Until its next turn, a session that had no folders works over the shared connections.
        return own if own or session not in self._own else self._pool.shared()

    async def _tell(self, session: str | None, keepers: tuple[Keeper, ...]) -> None:
        now = self._reviewer.roots(session)
        before = self._known.get(session, self._known.get(None, ()))
        self._known[session] = now
        if now != before:
            await asyncio.gather(*(k.connection.roots_changed() for k in keepers if k.connection is not None))
