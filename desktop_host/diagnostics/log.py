"""The log: one rotating file a profile, written on a thread of its own, without secrets."""

from __future__ import annotations

import asyncio
import errno
import logging
import logging.handlers
import os
import queue
import sys
from pathlib import Path
from typing import IO, Any

from desktop_host.core.errors import KnownFault, UserFault
from desktop_host.diagnostics.redaction import Redactor
from desktop_host.diagnostics.whose import Whose

FILE = "host.log"
_BYTES = 1_000_000
_KEPT = 3
_CHARS = 40_000
"""Longest line; of more, the middle is left out."""
OURS = "desktop_host"


class _Redacting(logging.Formatter):
    """Redacts the finished line, so tracebacks and arguments are covered too."""

    def __init__(self, redactor: Redactor) -> None:
        super().__init__("%(asctime)s %(levelname)s %(process)d %(name)s: %(message)s")
        self._redactor = redactor

    def format(self, record: logging.LogRecord) -> str:
        line = super().format(record)
        if len(line) > _CHARS:
            line = f"{line[: _CHARS // 2]} … {len(line) - _CHARS} characters … {line[-_CHARS // 2 :]}"
        for redactor in (self._redactor, *(logs.redactor for logs in _open.all())):
            line = redactor(line)  # A secret of any open profile, whatever line it got into.
        return line


class _PrivateFile(logging.handlers.RotatingFileHandler):
    """Files that only their owner can read."""

    failed = False

    def _open(self) -> IO[Any]:  # type: ignore[override]  # typeshed wants TextIOWrapper; any text file serves
        return open(
            self.baseFilename, self.mode, encoding="utf-8", errors="backslashreplace",
            opener=lambda path, flags: os.open(path, flags, 0o600),
        )  # fmt: skip

    def handleError(self, record: logging.LogRecord) -> None:
        """A full disk ends the log, not the program. Python's own way would print the record, secrets and all."""
        self._tell(sys.exc_info()[1])

    def close(self) -> None:
        try:
            super().close()
        except OSError as error:  # The last lines had no room.
            self._tell(error)

    def _tell(self, error: BaseException | None) -> None:
        if not self.failed:
            self.failed = True
            print(f"{self.baseFilename} cannot be written: {error}", file=sys.stderr)


class Logs:
    """Open logs; `close` writes out what waits."""

    def __init__(
        self, folder: Path, redactor: Redactor, level: int, loop: asyncio.AbstractEventLoop | None = None
    ) -> None:
        self.folder = folder
        self.redactor = redactor
        """Tell it each secret: `redactor.add(value)`."""
        waiting: queue.SimpleQueue[logging.LogRecord] = queue.SimpleQueue()
        file = _PrivateFile(folder / FILE, maxBytes=_BYTES, backupCount=_KEPT, encoding="utf-8")
        file.setFormatter(_Redacting(redactor))
        self._file = file
        self._entry = logging.handlers.QueueHandler(waiting)
        self._entry.addFilter(lambda _record: _open.now() is self)  # asked on the thread that logs
        self._listener = logging.handlers.QueueListener(waiting, file)
        self._listener.start()
        self._level = level
        _open.add(self, loop)
        logging.getLogger().addHandler(self._entry)
        _set_level()

    @property
    def path(self) -> Path:
        """The newest file."""
        return self.folder / FILE

    def close(self) -> None:
        """Stop logging to this folder; twice is once."""
        if self._entry in logging.getLogger().handlers:
            logging.getLogger().removeHandler(self._entry)
            self._listener.stop()
            self._file.close()
            _open.remove(self)
            _set_level()


_open: Whose[Logs] = Whose()


def _set_level() -> None:
    """The chattiest level that an open log wants."""
    logging.getLogger(OURS).setLevel(min((logs._level for logs in _open.all()), default=logging.NOTSET))


def start_logging(
    folder: Path,
    level: int | str = logging.INFO,
    *,
    redactor: Redactor | None = None,
    loop: asyncio.AbstractEventLoop | None = None,
) -> Logs:
    """Log to `logs/host.log` in a profile's folder; other libraries' warnings too. Blocking.

    Args:
        folder: the profile's folder.
        level: of our own loggers; others are kept from WARNING on.
        redactor: what to leave out; None: a new one that knows the common forms of keys.
        loop: where the profile lives. With several profiles in one process, lines of other loops and of threads
            without one do not come into this log.

    Raises:
        KnownFault: `disk_full` or `database_error`, the file cannot be made.
        UserFault: `usage`, there is no such level.
    """
    number = level if isinstance(level, int) else logging.getLevelNamesMapping().get(level.upper())
    if number is None:
        raise UserFault("usage", f"there is no log level {level!r}", value=str(level), reason="log_level")
    logs = folder / "logs"
    try:
        logs.mkdir(mode=0o700, parents=True, exist_ok=True)
        return Logs(logs, redactor or Redactor(), number, loop)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise KnownFault("disk_full", f"there is no room for {logs}", path=str(logs), free_bytes=None) from error
        raise KnownFault("database_error", f"{logs}: {error}", reason="not_writable", path=str(logs)) from error
