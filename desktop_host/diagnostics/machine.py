"""Checks of the computer: versions, folder, room on the disk, clock, watches, open files, crashes."""

from __future__ import annotations

import asyncio
import ctypes
import errno
import os
import shutil
import stat
import sys
import tempfile
import time
from collections.abc import Callable
from importlib import metadata
from pathlib import Path

from desktop_host.core.diagnosis import Finding
from desktop_host.diagnostics.findings import ill, well

FREE_BYTES = 200_000_000
"""Less free space than this is a warning: a journal needs room to stay whole."""
SKEW_S = 120.0
"""A clock this far from a server's breaks sign-in and certificates."""
SPARE_FILES = 64
"""Fewer files that may still be opened than this is a warning: each server takes three or more."""
CRASHED_S = 86_400.0
"""How long a crash report is news."""
_LIMITS = Path("/proc/sys/fs/inotify")


async def runtime() -> Finding:
    """Python and Qt in versions that work together."""
    python = ".".join(map(str, sys.version_info[:3]))
    try:
        qt = metadata.version("PySide6-Essentials")
    except metadata.PackageNotFoundError:
        return ill("runtime", "no_qt", "no_qt", python=python)
    return qt_row(sys.version_info[:2], qt, python)


def qt_row(python: tuple[int, ...], qt: str, shown: str) -> Finding:
    """PySide6 6.12 drops a reference on None at each call on Python before 3.12, until the process aborts."""
    numbers = tuple(int(part) for part in qt.split(".")[:2] if part.isdigit())
    if numbers >= (6, 12) and python < (3, 12):
        return ill("runtime", "runtime", "qt_python", python=shown, qt=qt)
    return well("runtime", "runtime", python=shown, qt=qt)


async def home(folder: Path) -> Finding:
    """The profile's folder can be written and is private."""

    def write() -> Finding:
        try:
            with tempfile.NamedTemporaryFile(dir=folder, prefix=".doctor-") as file:
                file.write(b"x" * 4096)
                file.flush()
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                return ill("home", "home_full", "disk", place=str(folder), path=str(folder))
            return ill(
                "home", "home_closed", "home", place=str(folder), path=str(folder), detail=error.strerror or str(error),
            )  # fmt: skip
        if os.name != "nt" and folder.stat().st_mode & 0o077:
            return ill("home", "home_open", "home_open", place=str(folder), act="mend", path=str(folder))
        return well("home", "path", path=str(folder))

    return await asyncio.to_thread(write)


def close_home(folder: Path) -> None:
    """Take the rights of others away. Blocking."""
    folder.chmod(stat.S_IMODE(folder.stat().st_mode) & 0o700)


async def disk(folder: Path) -> Finding:
    """There is room."""
    free = (await asyncio.to_thread(shutil.disk_usage, folder)).free
    shown = f"{free / 1e9:.1f} GB" if free >= 1e9 else f"{free / 1e6:.1f} MB"
    if free < FREE_BYTES:
        return ill("disk", "free", "disk", place=str(folder), act=f"file:{folder}", free=shown)
    return well("disk", "free", free=shown)


async def clock(now: Callable[[], float], skews: list[tuple[str, float]]) -> Finding:
    """The clock agrees with the addresses that told their time, and is not before this program was installed.

    A single address may be wrong itself, so the one that agrees best with us counts.
    """
    shown = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(now()))
    installed = (await asyncio.to_thread(Path(__file__).stat)).st_mtime
    if now() < installed - 86_400:
        return ill("clock", "clock_old", "clock", time=shown)
    best = min(skews, key=lambda one: abs(one[1]), default=None)
    if best is not None and abs(best[1]) > SKEW_S:
        way = "clock_ahead" if best[1] > 0 else "clock_behind"
        return ill("clock", way, "clock", time=shown, seconds=round(abs(best[1])), name=best[0])
    if best is None:
        return well("clock", "clock_alone", time=shown)
    return well("clock", "clock", time=shown, name=best[0], seconds=round(abs(best[1])))


def watch(folder: str) -> None:
    """Watch a folder as the watcher of skills does, for a moment. Linux; nothing elsewhere.

    Raises:
        OSError: `EMFILE`, no further watcher may be made; `ENOSPC`, no further folder may be watched.
    """
    if not sys.platform.startswith("linux"):
        return
    libc = ctypes.CDLL(None, use_errno=True)
    handle = libc.inotify_init1(os.O_CLOEXEC | os.O_NONBLOCK)
    if handle < 0:
        raise OSError(ctypes.get_errno(), "inotify_init1")
    try:
        if libc.inotify_add_watch(handle, os.fsencode(folder), 0x00000002) < 0:
            raise OSError(ctypes.get_errno(), "inotify_add_watch")
    finally:
        os.close(handle)


async def watcher(folder: Path, look: Callable[[str], None] = watch) -> Finding:
    """Folders can be watched; else skills and documents are only polled."""
    try:
        await asyncio.to_thread(look, str(folder))
    except OSError as error:
        if error.errno not in (errno.EMFILE, errno.ENFILE, errno.ENOSPC):
            return ill("watcher", "watch_failed", "home", place=str(folder), detail=error.strerror or str(error))
        name = "max_user_watches" if error.errno == errno.ENOSPC else "max_user_instances"
        value = await asyncio.to_thread(_limit, name)
        return ill("watcher", name, "watcher", place=f"fs.inotify.{name}", limit=value, name=f"fs.inotify.{name}")
    return well("watcher", "watched")


def _limit(name: str) -> str:
    try:
        return (_LIMITS / name).read_text().strip()
    except OSError:
        return "?"


async def files() -> Finding:
    """More files and connections may be opened."""
    found = await asyncio.to_thread(open_files)
    if found is None:
        return well("files", "files_unknown")
    used, limit = found
    if limit - used < SPARE_FILES:
        return ill("files", "files", "files", place="ulimit -n", used=used, limit=limit)
    return well("files", "files", used=used, limit=limit)


def open_files() -> tuple[int, int] | None:
    """`(open, most)` of this process; None where the system does not tell."""
    try:
        import resource
    except ImportError:  # Windows
        return None
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if limit == resource.RLIM_INFINITY:
        return None
    for folder in ("/proc/self/fd", "/dev/fd"):
        try:
            return len(os.listdir(folder)), limit
        except OSError as error:
            if error.errno == errno.EMFILE:
                return limit, limit
    return None


async def crashes(folder: Path, now: Callable[[], float]) -> Finding:
    """No crash was written down lately."""

    def look() -> list[Path]:
        logs = folder / "logs"
        found = sorted(logs.glob("crash-*.txt")) if logs.is_dir() else []
        return [path for path in found if now() - path.stat().st_mtime < CRASHED_S]

    found = await asyncio.to_thread(look)
    if not found:
        return well("crashes", "no_crash")
    return ill(
        "crashes", "crashes", "crashes", place=str(found[-1]), act=f"file:{found[-1]}", count=len(found),
        path=str(found[-1]),
    )  # fmt: skip
