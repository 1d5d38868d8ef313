"""One process per session: who holds it, whether that process still lives, and the takeover if not.

A process is known by where it runs (machine, boot and process-id namespace), its number and its start time,
so a number that was given to another program is not mistaken for the holder. Where the holder runs elsewhere
(a home on a network disk, another container) only its heartbeat can speak for it.
"""

from __future__ import annotations

import contextlib
import os
import platform
import subprocess
import sys
import uuid
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from desktop_host.core.errors import UserFault
from desktop_host.storage.sql import Sql

BEAT_S = 20.0
"""Seconds between heartbeats."""
SILENT_S = 90.0
"""A holder elsewhere that was silent for so long is taken for dead."""


LEASE = ("holder", "place", "pid", "started", "beat")
"""Columns by which a lease is judged."""


@cache
def place() -> str:
    """Where process numbers of ours mean anything."""
    parts = [platform.node()]
    with contextlib.suppress(OSError):
        parts.append(Path("/proc/sys/kernel/random/boot_id").read_text().strip())
    with contextlib.suppress(OSError):
        parts.append(os.readlink("/proc/self/ns/pid"))
    return " ".join(parts)


def started(pid: int) -> str | None:
    """When a process of this place started, in a form that only equality is asked of; None if it does not run."""
    if sys.platform == "linux":
        try:
            fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
        except OSError:
            return None
        return None if fields[0] in (b"Z", b"X") else fields[19].decode()
    if sys.platform == "win32":
        return _started_windows(pid)
    # The environment is fixed, because the form of the time follows the language.
    environ = {"LC_ALL": "C", "PATH": "/bin:/usr/bin"}
    shown = subprocess.run(["ps", "-o", "lstart=", "-p", str(pid)], capture_output=True, text=True, env=environ)
    return shown.stdout.strip() or None


def _started_windows(pid: int) -> str | None:  # pragma: no cover - Windows, not run
    import ctypes

    kernel = ctypes.windll.kernel32  # type: ignore[attr-defined]  # Windows only.
    handle = kernel.OpenProcess(0x1000, False, pid)
    if not handle:
        return None
    times = [ctypes.c_ulonglong() for _ in range(4)]
    code = ctypes.c_ulong()
    try:
        alive = kernel.GetExitCodeProcess(handle, ctypes.byref(code)) and code.value == 259
        if not alive or not kernel.GetProcessTimes(handle, *(ctypes.byref(t) for t in times)):
            return None
    finally:
        kernel.CloseHandle(handle)
    return str(times[0].value)


class Leases:
    """The leases of one open storage. Methods run on the database's thread, within a transaction."""

    def __init__(self) -> None:
        self.holder = uuid.uuid4().hex
        self.held: set[int] = set()
        """Sessions that were taken here and not given back: if a lease of theirs is gone, somebody took over."""
        self._pid = os.getpid()
        self._started = started(self._pid) or ""

    def taken_by_other(self, db: Sql, owner: int) -> tuple[int, str] | None:
        """Process number and place of another live holder of this session."""
        return self._other(db, self._row(db, owner))

    def _row(self, db: Sql, owner: int) -> Any:
        return db.execute(f"SELECT {', '.join(LEASE)} FROM leases WHERE owner = ?", (owner,)).fetchone()

    def _other(self, db: Sql, row: Any) -> tuple[int, str] | None:
        if row is None or row[0] == self.holder:
            return None
        _, where, pid, since, beat = row
        alive = started(pid) == since if where == place() else db.clock() - beat < SILENT_S
        return (int(pid), str(where)) if alive else None

    def take(self, db: Sql, owner: int, session: str) -> None:
        """Take a session, from a dead holder too.

        Raises:
            UserFault: `session_busy`.
        """
        self._refuse(self.taken_by_other(db, owner), session)
        db.execute(
            "INSERT INTO leases (owner, holder, place, pid, started, beat) VALUES (?, ?, ?, ?, ?, ?)"
            " ON CONFLICT (owner) DO UPDATE SET holder = excluded.holder, place = excluded.place, pid = excluded.pid,"
            " started = excluded.started, beat = excluded.beat",
            (owner, self.holder, place(), self._pid, self._started, db.clock()),
        )

    def guard(self, db: Sql, owner: int, session: str, found: Sequence[Any] | None = None) -> None:
        """Let nobody but the holder change a session. Asked by whoever is `alone` with it.

        Args:
            db: the transaction.
            owner: row id of the session.
            session: its name.
            found: the columns `LEASE` of its lease, all None where there is none; None: they are read.

        Raises:
            UserFault: `session_busy`, another live process has it, or took it over and may have gone on with it.
        """
        row = self._row(db, owner) if found is None else (found if found[0] is not None else None)
        self._refuse(self._other(db, row), session)
        if owner in self.held and (row is None or row[0] != self.holder):
            raise UserFault(
                "session_busy", f"another process took session {session} over", session=session, reason="taken_over"
            )

    def _refuse(self, taken: tuple[int, str] | None, session: str) -> None:
        if taken is None:
            return
        pid, where = taken
        here = where == place()
        machine = where.partition(" ")[0]
        raise UserFault(
            "session_busy", f"process {pid}{'' if here else f' on {machine}'} has session {session} open",
            session=session, pid=pid, machine=machine, reason="other_process" if here else "other_machine",
        )  # fmt: skip

    def drop(self, db: Sql, owner: int) -> None:
        """Give a session back."""
        db.execute("DELETE FROM leases WHERE owner = ? AND holder = ?", (owner, self.holder))

    def drop_all(self, db: Sql) -> None:
        """Give all sessions back."""
        db.execute("DELETE FROM leases WHERE holder = ?", (self.holder,))

    def beat(self, db: Sql) -> None:
        """Tell those elsewhere that we live."""
        db.execute("UPDATE leases SET beat = ? WHERE holder = ?", (db.clock(), self.holder))
