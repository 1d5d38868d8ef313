"""Bugs become files: whatever nobody caught is written to `logs/crash-*.txt`, without secrets and variables."""

from __future__ import annotations

import asyncio
import faulthandler
import logging
import os
import platform
import sys
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import IO, Any

import desktop_host
from desktop_host.diagnostics.redaction import Redactor

_log = logging.getLogger(__name__)
KEPT = 20
"""Reports that are kept; older ones go."""


class CrashReports:
    """Catches what nobody else does, in all threads and on the loop.

    Args:
        folder: the profile's folder, or the home before a profile is known.
        redactor: takes the secrets out.
        told: is given the path of each report, on the thread that crashed.
    """

    def __init__(self, folder: Path, redactor: Redactor, told: Callable[[Path], None] | None = None) -> None:
        self.folder = folder / "logs"
        self._redactor = redactor
        self._told = told
        self._before: tuple[Any, Any] | None = None
        self._faults: IO[bytes] | None = None

    def install(self) -> None:
        """Take over the hooks of the interpreter, and let a hard crash (a signal) leave its stacks in a file."""
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if self._before is not None:
            return
        self._before = (sys.excepthook, threading.excepthook)
        sys.excepthook = self._on_main
        threading.excepthook = self._on_thread
        if not faulthandler.is_enabled():
            self._faults = (self.folder / f"fault-{os.getpid()}.txt").open("wb")
            faulthandler.enable(self._faults)

    def remove(self) -> None:
        """Give the hooks back, unless somebody else has taken them over meanwhile."""
        if self._before is not None:
            if sys.excepthook == self._on_main:
                sys.excepthook = self._before[0]
            if threading.excepthook == self._on_thread:
                threading.excepthook = self._before[1]
            self._before = None
        if self._faults is not None:
            faulthandler.disable()
            self._faults.close()
            path = Path(os.fsdecode(self._faults.name))
            self._faults = None
            if not path.stat().st_size:
                path.unlink()

    def on_loop(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """For `loop.set_exception_handler`."""
        error = context.get("exception")
        if isinstance(error, BaseException):
            self.write(error, f"on the loop: {context.get('message', '')}")
        else:
            _log.error("on the loop: %s", context.get("message"))

    def write(self, error: BaseException, where: str) -> Path | None:
        """Write a report; None where even that fails (a full disk): the log then has it alone."""
        # Clean already here: where no log is open, Python prints what is logged to standard error.
        trace = self._redactor("".join(traceback.format_exception(error)))
        _log.critical("a bug %s\n%s", where, trace)
        text = (
            f"Desktop Host {desktop_host.__version__} · Python {platform.python_version()} · {platform.platform()}\n"
            f"{time.strftime('%Y-%m-%d %H:%M:%S %z')} · {where}\n\n{trace}"
        )
        path = self.folder / f"crash-{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}-{time.monotonic_ns() % 10**6}.txt"
        try:
            handle = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
            with os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace") as file:
                file.write(self._redactor(text))
            for old in sorted(self.folder.glob("crash-*.txt"))[:-KEPT]:
                old.unlink(missing_ok=True)
        except OSError as failed:
            _log.error("the crash report could not be written: %s", failed)
            return None
        if self._told:
            self._told(path)
        return path

    def _on_main(self, kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        if not issubclass(kind, Exception):
            sys.__excepthook__(kind, error, trace)
            return
        path = self.write(error, "on the main thread")
        print(self._redactor("".join(traceback.format_exception(error))), file=sys.stderr)
        print(f"report: {path}", file=sys.stderr)

    def _on_thread(self, args: threading.ExceptHookArgs) -> None:
        if args.exc_value is not None and not isinstance(args.exc_value, SystemExit):
            self.write(args.exc_value, f"on the thread {args.thread.name if args.thread else '?'}")
