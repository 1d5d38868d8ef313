"""Servers that outlived a killed host: who was started, and which of them may be ended at the next start."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

from desktop_host.servers import private
from desktop_host.servers.descendants import end_marked, mark_of

GRACE_S = 2.0
"""Seconds between the polite signal and the hard one."""


class PidFile:
    """The child processes of the hosts of one profile: a small file for each, so that hosts need no lock.

    A record names the child and its host by pid *and* start time. `sweep` ends a child only if its host is
    gone and the process that has the pid now is the very one that was recorded; ports and names decide
    nothing. All methods block for a moment (tiny files, on macOS one `ps`): call them in a thread.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def add(self, pid: int, name: str) -> None:
        """Record a child just started for the server `name`."""
        born = started(pid)
        if born is None:
            return  # It ended already, or this system cannot tell.
        record = {"pid": pid, "started": born, "name": name, "host": os.getpid(), "host_started": started(os.getpid()),
                  "mark": mark_of(pid)}  # fmt: skip
        private.folder(self.folder)
        draft = self.folder / f".{pid}.tmp"
        private.write(draft, json.dumps(record))
        draft.replace(self._file(pid))

    def remove(self, pid: int) -> None:
        """Forget a child that has ended."""
        self._file(pid).unlink(missing_ok=True)

    def sweep(self) -> list[tuple[int, str]]:
        """End what dead hosts left behind; returns `(pid, name)` of each that was ended.

        Waits at most `GRACE_S` between the polite signal and the hard one.
        """
        ended: list[tuple[int, str]] = []
        marks: list[str] = []
        for file in sorted(self.folder.glob("server-*.json")):
            try:
                record = json.loads(file.read_text(encoding="utf-8"))
                pid, born, name = int(record["pid"]), str(record["started"]), str(record["name"])
                host, host_born = int(record["host"]), record["host_started"]
            except FileNotFoundError:
                continue  # Another host swept it.
            except (OSError, ValueError, KeyError, TypeError):
                file.unlink(missing_ok=True)  # Half-written by a dying host; without a start time nothing is ours.
                continue
            if host == os.getpid() or (host_born is not None and started(host) == host_born):
                continue
            if isinstance(mark := record.get("mark"), str) and mark:
                marks.append(mark)
            if pid > 1 and started(pid) == born and end_group(pid, signal.SIGTERM):
                ended.append((pid, name))
            else:
                file.unlink(missing_ok=True)
        deadline = time.monotonic() + GRACE_S
        for pid, _name in ended:
            born_then = self._born(pid)
            while started(pid) == born_then and time.monotonic() < deadline:
                time.sleep(0.02)
            if born_then is not None and started(pid) == born_then:
                end_group(pid, signal.SIGKILL)
            self.remove(pid)
        for mark in marks:  # What they let go into sessions of its own.
            end_marked(mark)
        return ended

    def _file(self, pid: int) -> Path:
        return self.folder / f"server-{pid}.json"

    def _born(self, pid: int) -> str | None:
        try:
            return str(json.loads(self._file(pid).read_text(encoding="utf-8"))["started"])
        except (OSError, ValueError, KeyError):
            return None


def started(pid: int) -> str | None:
    """When a process started, as a text that no other process of this machine shares with its pid; None: no such.

    Linux: boot id and the clock ticks of `/proc/PID/stat`; elsewhere on POSIX: `ps -o lstart`. Windows gives
    None: there a job object ends the children with the host.
    """
    if sys.platform == "linux":
        try:
            stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
            boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        except OSError:
            return None
        fields = stat[stat.rindex(")") + 2 :].split()  # The name may hold spaces and brackets.
        return None if fields[0] in "ZX" else f"{boot}/{fields[19]}"
    return None if sys.platform == "win32" else started_by_ps(pid)


def started_by_ps(pid: int) -> str | None:
    """`started` for systems without `/proc`."""
    told = subprocess.run(
        ["/bin/ps", "-o", "stat=", "-o", "lstart=", "-p", str(pid)],
        env={"LC_ALL": "C"}, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
    )  # fmt: skip
    match = re.match(r"\s*(\S+)\s+(.+?)\s*$", told.stdout)
    return match[2] if match and not match[1].startswith("Z") else None


def end_group(pid: int, sig: int) -> bool:
    """Signal the group that `pid` leads, or `pid` alone where it leads none. False: gone, or not ours to end."""
    try:
        if os.getpgid(pid) == pid and pid != os.getpgrp():
            os.killpg(pid, sig)
        else:
            os.kill(pid, sig)
    except (ProcessLookupError, PermissionError):
        return False
    return True
