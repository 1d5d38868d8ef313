"""Files that are either as they were or as they shall be, and one writer at a time across processes."""

from __future__ import annotations

import contextlib
import errno
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from desktop_host.core.errors import KnownFault

LOCK_S = 10.0
"""How long a writer waits for another process."""


_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def fault_of(error: OSError, path: Path) -> KnownFault:
    """The fault behind a file system's error."""
    if error.errno in _FULL:
        return KnownFault("disk_full", f"there is no room for {path}", path=str(path), free_bytes=None)
    reason = "not_writable" if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS) else "io"
    return KnownFault("database_error", f"{path}: {error}", reason=reason, path=str(path))


def write(path: Path, data: bytes, mode: int = 0o600) -> None:
    """Replace a file's content in one step; a killed process leaves the old content or the new.

    A symbolic link (a person's dotfiles) stays a link: its target is replaced.
    """
    path = path.resolve()
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, mode)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock file `path` for the length of the block.

    Raises:
        KnownFault: `database_error` with `reason: locked`, another process holds it for too long.
    """
    handle = os.open(path, os.O_CREAT | os.O_RDWR, 0o600)
    try:
        deadline = time.monotonic() + LOCK_S
        while not _try_lock(handle):
            if time.monotonic() > deadline:
                raise KnownFault(
                    "database_error", f"another process holds {path}", retryable=True, reason="locked", path=str(path)
                )
            time.sleep(0.02)
        yield
    finally:
        # Closing gives the lock back; the file stays, since removing it would let two writers in.
        os.close(handle)


if sys.platform == "win32":  # pragma: no cover - Windows, not run
    import msvcrt

    def _try_lock(handle: int) -> bool:
        try:
            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True
else:
    import fcntl

    def _try_lock(handle: int) -> bool:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        return True
