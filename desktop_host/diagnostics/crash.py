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
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import IO, Any

import desktop_host
from desktop_host.diagnostics.redaction import Redactor
from desktop_host.diagnostics.whose import Whose

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
        self._faults: IO[bytes] | None = None

    def install(self, loop: asyncio.AbstractEventLoop | None = None) -> None:
        """Take over the hooks of the interpreter, and let a hard crash (a signal) leave its stacks in a file.

        Args:
            loop: where the profile lives; what nobody awaited there is written as well.
        """
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if self in _installed.all():
            return
        if not _installed.all():
            _before[:] = [sys.excepthook, threading.excepthook]
            sys.excepthook, threading.excepthook = _on_main, _on_thread
        _installed.add(self, loop)
        if loop is not None:
            loop.set_exception_handler(_on_loop)
        if not faulthandler.is_enabled():
            faults = os.open(self.folder / f"fault-{os.getpid()}.txt", os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o600)
            self._faults = os.fdopen(faults, "wb")
            self._faults_at = self.folder / f"fault-{os.getpid()}.txt"
            faulthandler.enable(self._faults)

    def remove(self) -> None:
        """Give the hooks back, unless somebody else has taken them over meanwhile."""
        if self in _installed.all():
            _installed.remove(self)
            if not _installed.all():
                if sys.excepthook is _on_main:
                    sys.excepthook = _before[0]
                if threading.excepthook is _on_thread:
                    threading.excepthook = _before[1]
        if self._faults is not None:
            faulthandler.disable()
            self._faults.close()
            self._faults = None
            with suppress(FileNotFoundError):  # who cleans up while we run takes nothing from us
                if not self._faults_at.stat().st_size:
                    self._faults_at.unlink()

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
        trace = self.redacted("".join(traceback.format_exception(error)))
        _log.critical("a bug %s\n%s", where, trace)
        text = (
            f"Desktop Host {desktop_host.__version__} · Python {platform.python_version()} · {platform.platform()}\n"
            f"{time.strftime('%Y-%m-%d %H:%M:%S %z')} · {where}\n\n{trace}"
        )
        path = self.folder / f"crash-{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}-{time.monotonic_ns() % 10**6}.txt"
        try:
            handle = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
            with os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace") as file:
                file.write(self.redacted(text))
            for old in sorted(self.folder.glob("crash-*.txt"))[:-KEPT]:
                old.unlink(missing_ok=True)
        except OSError as failed:
            _log.error("the crash report could not be written: %s", failed)
            return None
        if self._told:
            self._told(path)
        return path

    def redacted(self, text: str) -> str:
        """The text without the secrets of any profile that is open in this process."""
        for one in (self, *_installed.all()):
            text = one._redactor(text)
        return text


_installed: Whose[CrashReports] = Whose()
_before: list[Any] = [sys.__excepthook__, threading.__excepthook__]


def _whose(loop: asyncio.AbstractEventLoop | None = None) -> CrashReports:
    """Who writes: the profile it happened to; where that cannot be told, the home above, for none of them to read."""
    found = _installed.on(loop) if loop is not None else _installed.now()
    if found is not None:
        return found
    first = _installed.all()[0]
    common = CrashReports(first.folder.parents[2], first._redactor)
    common.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return common


def _on_main(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    if not issubclass(kind, Exception):
        sys.__excepthook__(kind, error, trace)
        return
    reports = _whose()
    path = reports.write(error, "on the main thread")
    print(reports.redacted("".join(traceback.format_exception(error))), file=sys.stderr)
    print(f"report: {path}", file=sys.stderr)


def _on_thread(args: threading.ExceptHookArgs) -> None:
    if args.exc_value is not None and not isinstance(args.exc_value, SystemExit):
        _whose().write(args.exc_value, f"on the thread {args.thread.name if args.thread else '?'}")


def _on_loop(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    if _installed.all():
        _whose(loop).on_loop(loop, context)
    else:
        loop.default_exception_handler(context)
