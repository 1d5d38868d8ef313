"""What a server started and let go into sessions of its own: found by a mark in the environment, and ended (Linux).

A process group reaches only those that stayed in it. A child that called `setsid` (a browser, a daemon) is known
by nothing but what it inherited, even after its parent has ended.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from pathlib import Path

MARK = "DESKTOP_HOST_SERVER"
"""Variable that each server gets, with a value of its own."""
GRACE_S = 1.0
_READ = 262_144


def mark_of(pid: int) -> str | None:
    """The mark that a process carries; None where it has none, or this system does not tell."""
    found = [v for k, _, v in (x.partition(b"=") for x in _environment(pid).split(b"\0")) if k == MARK.encode()]
    return found[0].decode("ascii", "replace") if found else None


def end_marked(mark: str) -> int:
    """End every process that carries `mark`, politely, then not; how many there were. Blocking, about 1 s at most."""
    there = _carriers(mark)
    for pid in there:
        _signal(pid, signal.SIGTERM)
    deadline = time.monotonic() + GRACE_S
    left = there
    while left and time.monotonic() < deadline:
        time.sleep(0.02)
        left = [pid for pid in left if _carries(pid, mark)]
    for pid in left:
        _signal(pid, signal.SIGKILL)
    return len(there)


def _carriers(mark: str) -> list[int]:
    if sys.platform != "linux":
        return []
    pids = [int(p.name) for p in Path("/proc").iterdir() if p.name.isdigit()]
    return [pid for pid in pids if pid not in (1, os.getpid()) and _carries(pid, mark)]


def _carries(pid: int, mark: str) -> bool:
    return f"{MARK}={mark}".encode() in _environment(pid).split(b"\0")


def _environment(pid: int) -> bytes:
    try:
        with Path(f"/proc/{pid}/environ").open("rb") as file:
            return file.read(_READ)
    except OSError:
        return b""  # It has ended, is somebody else's, or this is no Linux.


def _signal(pid: int, sig: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, sig)
