"""What was spent, and what is set aside for requests that run now: the truth that budgets are kept by.

Money is counted in whole nano-dollars, so that sums are exact. A reservation of a process that died is booked as
spent: its request may have been billed.
"""

from __future__ import annotations

import math
import os
import uuid
from collections.abc import Sequence

from desktop_host.core.budgets import Purse, Reservation, Standing, refused
from desktop_host.core.errors import HostError
from desktop_host.storage.lease import place, started
from desktop_host.storage.sql import Database, Sql

NANO = 1_000_000_000
MONEY = "money"
"""The word by which all who count money wait for each other."""
SILENT_S = 3600.0
"""A reservation of a process elsewhere that is older was left behind."""


class SqlPurses:
    """`Purses` over a database.

    Every step is one transaction, one after another over all processes: what is left is counted while nobody else
    can take it, so the same money is never spent twice.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._holder = uuid.uuid4().hex
        self._started = started(os.getpid()) or ""

    async def reserve(self, purses: Sequence[Purse], usd: float, at_least: float) -> Reservation:
        """Set money aside; see `Purses.reserve`."""
        return await self._database.write(lambda db: self._reserve(db, purses, usd, at_least))

    async def settle(
        self, reservation: Reservation | None, purses: Sequence[Purse], usd: float, calls: int, tokens: int = 0
    ) -> None:
        """Give back what was set aside and book what it cost."""
        spent = _nano(usd)

        def settle(db: Sql) -> None:
            db.alone(MONEY)
            if reservation is not None:
                db.execute("DELETE FROM reservations WHERE id = ?", (reservation.id,))
            if spent or calls or tokens:
                for purse in purses:
                    _book(db, purse.scope, purse.key, spent, calls, tokens)

        await self._database.write(settle)

    async def standing(self, purses: Sequence[Purse]) -> tuple[Standing, ...]:
        """What each purse has seen."""

        def read(db: Sql) -> tuple[Standing, ...]:
            found = []
            for spent, calls, held, running, tokens in _standings(db, purses):
                found.append(Standing(spent / NANO, calls, held / NANO, running, tokens))
            return tuple(found)

        return await self._database.read(read)

    def _reserve(self, db: Sql, purses: Sequence[Purse], usd: float, at_least: float) -> Reservation:
        db.alone(MONEY)
        now = self._take_over(db)
        wanted = _nano(usd)
        least = min(_nano(at_least), wanted)
        granted = wanted
        for purse, (spent, calls, held, running, _tokens) in zip(purses, _standings(db, purses), strict=True):
            if purse.calls is not None and calls + running >= purse.calls:
                raise HostError(
                    "quota_spent", f"{calls + running} of {purse.calls} requests ({purse.key}) are used",
                    reason=purse.scope, name=purse.key, scope=purse.scope, limit=purse.calls, spent=calls + running,
                )  # fmt: skip
            if purse.usd is None or not wanted:
                continue
            left = _nano(purse.usd) - spent - held
            if left < least or left <= 0:
                raise refused(purse, spent / NANO, held / NANO, least / NANO, key=purse.key)
            granted = min(granted, left)
        name = uuid.uuid4().hex
        mine = (granted, self._holder, place(), os.getpid(), self._started, now)
        for purse in purses:
            db.execute(
                "INSERT INTO reservations (id, scope, key, nano, holder, place, pid, started, at)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", (name, purse.scope, purse.key, *mine),
            )  # fmt: skip
        return Reservation(name, granted / NANO)

    def _take_over(self, db: Sql) -> float:
        """Book the reservations of dead processes; returns the database's time."""
        others = db.execute(
            "SELECT holder, place, pid, started, max(at) FROM reservations WHERE holder <> ?"
            " GROUP BY holder, place, pid, started", (self._holder,),
        )  # fmt: skip
        now = db.clock()
        for holder, where, pid, since, at in others.fetchall():
            alive = started(pid) == since if where == place() else now - at < SILENT_S
            if alive:
                continue
            left = db.execute("SELECT scope, key, nano FROM reservations WHERE holder = ?", (holder,)).fetchall()
            for scope, key, nano in left:
                _book(db, scope, key, nano, 1)
            db.execute("DELETE FROM reservations WHERE holder = ?", (holder,))
        return now


def _standings(db: Sql, purses: Sequence[Purse]) -> list[tuple[int, int, int, int, int]]:
    """Of each, spent nano-dollars, calls, nano-dollars set aside, requests that run, tokens."""
    # All are asked before the first answer is waited for.
    asked = [
        (
            db.execute("SELECT nano, calls, tokens FROM purses WHERE scope = ? AND key = ?", where),
            db.execute(
                "SELECT coalesce(sum(nano), 0), count(*) FROM reservations WHERE scope = ? AND key = ?", where
            ),
        )
        for where in ((purse.scope, purse.key) for purse in purses)
    ]  # fmt: skip
    found = []
    for booked, held in asked:
        nano, calls, tokens = booked.fetchone() or (0, 0, 0)
        aside, running = held.fetchone()
        found.append((int(nano), int(calls), int(aside), int(running), int(tokens)))
    return found


def _book(db: Sql, scope: str, key: str, nano: int, calls: int, tokens: int = 0) -> None:
    db.execute(
        "INSERT INTO purses (scope, key, nano, calls, tokens) VALUES (?, ?, ?, ?, ?) ON CONFLICT (scope, key)"
        " DO UPDATE SET nano = purses.nano + excluded.nano, calls = purses.calls + excluded.calls,"
        " tokens = purses.tokens + excluded.tokens",
        (scope, key, nano, calls, tokens),
    )


def _nano(usd: float) -> int:
    """Whole nano-dollars, rounded up: never too little."""
    return math.ceil(round(usd * NANO, 3))
