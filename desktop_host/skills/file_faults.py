"""What a person is told when a file of a skill cannot be written."""

from __future__ import annotations

import errno
from pathlib import Path

from desktop_host.core.errors import KnownFault

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_NOT_OURS = (errno.EACCES, errno.EPERM, errno.EROFS)


def file_fault(error: OSError, path: Path, message: str) -> KnownFault:
    """The fault behind a file system's error: no room, no right, or trouble with the disk."""
    if error.errno in _FULL:
        return KnownFault("disk_full", f"{message}: {error}", path=str(path))
    reason = "not_writable" if error.errno in _NOT_OURS else "file_io"
    return KnownFault("database_error", f"{message}: {error}", reason=reason, path=str(path))
