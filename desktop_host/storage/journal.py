"""Events as rows: written with all that is derived from them, read back whole."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from desktop_host.core.codec import decode, encode
from desktop_host.core.errors import KnownFault, PeerFault, UserFault
from desktop_host.core.events import AssistantSaid, Stamped, TurnEnded, TurnStarted, UserSaid
from desktop_host.core.sessions import TurnStatus
from desktop_host.storage import blobs as blob
from desktop_host.storage import ledger
from desktop_host.storage.lease import LEASE, Leases
from desktop_host.storage.sql import Blobs, Search, Sql


def dump(value: Any) -> str:
    """JSON as the database takes it; lone surrogates (a server may send them) are escaped."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    try:
        text.encode()
    except UnicodeEncodeError:
        text = json.dumps(value, separators=(",", ":"))
    return text


def one(db: Sql, session: str, query: str) -> Any:
    """The one row of a session.

    Raises:
        UserFault: `not_found`.
    """
    row = db.execute(query, (session,)).fetchone()
    if row is None:
        raise UserFault("not_found", f"there is no session {session}", kind="session", name=session)
    return row


def owner_of(db: Sql, session: str) -> int:
    """The row id of a session."""
    return int(one(db, session, "SELECT id FROM sessions WHERE session = ?")[0])


def found_as(db: Sql, owner: int) -> int:
    """The row id under which the words of a session are found: of a sub-task's, that of the person's session."""
    query = "SELECT coalesce(top.id, own.id) FROM sessions own LEFT JOIN sessions top ON top.session = own.parent"
    (found,) = db.execute(f"{query} WHERE own.id = ?", (owner,)).fetchone()
    return int(found)


@dataclass(frozen=True, slots=True)
class Place:
    """A session that is written to."""

    owner: int
    found_as: int
    """See `found_as`."""
    booked_on: str
    """The session whose usage this is: of a sub-task's, the person's."""


_WRITTEN_TO = (
    "SELECT s.id, s.last_seq, coalesce(top.id, s.id), coalesce(s.parent, s.session),"
    f" {', '.join(f'l.{column}' for column in LEASE)} FROM sessions s"
    " LEFT JOIN sessions top ON top.session = s.parent LEFT JOIN leases l ON l.owner = s.id WHERE s.session = ?"
)


def hold(db: Sql, session: str) -> None:
    """Be alone with a session: who takes it and who writes to it wait for each other."""
    db.alone(f"session {session}")


class Journal:
    """The journal of all sessions. Methods run on the database's thread, within a transaction."""

    def __init__(self, blobs: Blobs, leases: Leases, search: Search) -> None:
        self._blobs = blobs
        self._leases = leases
        self._search = search

    def append(self, db: Sql, events: Sequence[Stamped], *, copied: bool = False) -> None:
        """Write events and what follows from them; usage was counted already where they are `copied`."""
        for session, group in groupby(events, key=lambda s: s.session):
            hold(db, session)
            # One question: where the database is far, each answer that is waited for is a journey.
            owner, last, found_as, booked_on, *lease = one(db, session, _WRITTEN_TO)
            self._leases.guard(db, owner, session, lease)
            place = Place(owner, found_as, booked_on)
            messages = 0
            for stamped in group:
                if stamped.seq <= last:
                    raise UserFault(
                        "session_busy", f"session {session} already has event {stamped.seq}", session=session,
                        reason="journal_moved",
                    )  # fmt: skip
                last = stamped.seq
                messages += self._append_one(db, place, stamped, copied)
            db.execute(
                "UPDATE sessions SET messages = messages + ?, last_seq = ?, updated = ? WHERE id = ?",
                (messages, last, stamped.t, owner),
            )

    def _append_one(self, db: Sql, place: Place, stamped: Stamped, copied: bool) -> int:
        """Write one event; returns by how many messages the conversation grew."""
        event = stamped.event
        value, big = blob.split(encode(event))
        parts = [[path, self._blobs.write(db, data), form] for path, data, form in big]
        body, owner = dump(value), place.owner
        db.execute(
            "INSERT INTO events (owner, seq, t, turn, type, body, parts) VALUES (?, ?, ?, ?, ?, ?, ?)",
            (owner, stamped.seq, stamped.t, stamped.turn, event.type, body, dump(parts) if parts else None),
        )
        self._blobs.use(db, owner, {*(str(part[1]) for part in parts), *self._blobs.mentioned(db, body)})
        if not copied:
            ledger.record(db, owner, place.booked_on, stamped)
        match event:
            case UserSaid(text=text):
                self._search.index(db, owner, stamped.seq, place.found_as, text)
                return 1
            case AssistantSaid() if event.text:
                self._search.index(db, owner, stamped.seq, place.found_as, event.text)
                return 1
            case TurnStarted():
                _set_turn(db, owner, TurnStatus.OPEN)
            case TurnEnded(status=status):
                _set_turn(db, owner, status)
        return 0

    def page(self, db: Sql, session: str, after: int, limit: int) -> list[Stamped]:
        """The next events after a seq."""
        rows = db.execute(
            "SELECT seq, t, turn, body, parts FROM events WHERE owner = ? AND seq > ? ORDER BY seq LIMIT ?",
            (owner_of(db, session), after, limit),
        )
        return [self._event(db, session, *row) for row in rows.fetchall()]

    def _event(self, db: Sql, session: str, seq: int, t: float, turn: int, body: str, parts: str | None) -> Stamped:
        try:
            value = json.loads(body)
            for path, sha, form in json.loads(parts) if parts else ():
                value = blob.join(value, path, self._part(db, session, seq, sha), form)
            return Stamped(seq, t, session, turn, decode(value))
        except (ValueError, TypeError, LookupError, PeerFault) as error:
            raise PeerFault(
                "bad_history", f"event {seq} of session {session} cannot be read: {error}", session=session, seq=seq
            ) from error

    def _part(self, db: Sql, session: str, seq: int, sha: str) -> bytes:
        try:
            return self._blobs.read(db, sha)
        except UserFault as error:
            raise KnownFault(
                "database_error", f"event {seq} of session {session} lost its blob {sha}", reason="blob_missing",
                path=self._blobs.place(sha), session=session,
            ) from error  # fmt: skip


def _set_turn(db: Sql, owner: int, status: TurnStatus) -> None:
    db.execute("UPDATE sessions SET last_turn = ? WHERE id = ?", (status.value, owner))
