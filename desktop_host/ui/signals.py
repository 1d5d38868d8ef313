"""SIGINT and SIGTERM while Qt's loop runs."""

from __future__ import annotations

import signal
import socket
from collections.abc import Callable
from contextlib import suppress

from PySide6.QtCore import QObject, QSocketNotifier


class QuitSignals(QObject):
    """SIGINT and SIGTERM close the window in order; Qt's loop is woken by a socket."""

    def __init__(self, act: Callable[[], object], parent: QObject) -> None:
        super().__init__(parent)
        self._act = act
        self._ours, theirs = socket.socketpair()
        self._theirs = theirs
        for end in (self._ours, theirs):
            end.setblocking(False)
        self._old_fd = signal.set_wakeup_fd(theirs.fileno(), warn_on_full_buffer=False)
        self._old = {which: signal.signal(which, lambda *_: None) for which in (signal.SIGINT, signal.SIGTERM)}
        self._notifier = QSocketNotifier(self._ours.fileno(), QSocketNotifier.Type.Read, self)
        self._notifier.activated.connect(self._on_signal)

    def restore(self) -> None:
        """Put the former handlers back."""
        self._notifier.setEnabled(False)
        signal.set_wakeup_fd(self._old_fd)
        for which, handler in self._old.items():
            signal.signal(which, handler)
        self._ours.close()
        self._theirs.close()

    def _on_signal(self) -> None:
        with suppress(BlockingIOError):
            got = self._ours.recv(64)
            if any(which in got for which in (signal.SIGINT, signal.SIGTERM)):
                self._act()
