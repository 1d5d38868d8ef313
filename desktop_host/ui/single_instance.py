"""One window for each home and profile: a second start hands its arguments to the first and leaves.

The seat is a lock file, so that the first start needs no network module before its first paint; it listens
after that. A second start waits for it.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QCryptographicHash, QDir, QLockFile, QObject, QSysInfo, Signal

if TYPE_CHECKING:
    from PySide6.QtNetwork import QLocalServer

HANDOVER_S = 5.0
"""How long a second start waits for the first to take its arguments."""
LARGEST_MESSAGE = 1_000_000


class SingleInstance(QObject):
    """The seat of the running window, or the way to it.

    Args:
        home: the folder below which all is kept, None for the platform's.
        profile: name of the profile.
        parent: Qt's owner.
    """

    raised = Signal(object)
    """`list[str]`: another start asks this window to come forward, with these arguments."""

    def __init__(self, home: Path | None, profile: str, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.name = instance_name(home, profile)
        self._lock = QLockFile(QDir.temp().filePath(f"{self.name}.lock"))
        self._lock.setStaleLockTime(0)
        self._server: QLocalServer | None = None
        self._met = False
        """Whether somebody listened where the owner of the seat does."""

    def claim(self, arguments: list[str]) -> bool:
        """Take the seat; call `listen` soon. False: another process has it and was given `arguments`; leave.

        Also True where the seat is taken but its owner does not answer within `HANDOVER_S` seconds: a hung
        window must not keep a person out (the host's own leases still guard the data).
        """
        if self._lock.tryLock(0):
            return True
        if self._hand_over(arguments):
            return False
        if not self._met and self._abandoned() and self._lock.removeStaleLockFile():
            self._lock.tryLock(0)
        return True

    def _abandoned(self) -> bool:
        """Whether the lock names no process that could hold it: cut off by a crash, or of this computer's old name.

        Qt itself sees that a process of this computer has ended; the folder is not shared with others.
        """
        try:
            pid, _program, host = Path(self._lock.fileName()).read_text("utf-8", "replace").split("\n")[:3]
        except ValueError:
            return True
        except OSError:
            return False
        return not pid.isdecimal() or host != QSysInfo.machineHostName()

    def release(self) -> None:
        """Leave the seat."""
        if self._server is not None:
            self._server.close()
            self._server = None
        self._lock.unlock()

    def listen(self) -> None:
        """Take what later starts have to say."""
        from PySide6.QtNetwork import QLocalServer

        if not self._lock.isLocked():
            return
        QLocalServer.removeServer(self.name)
        self._server = QLocalServer(self)
        self._server.setSocketOptions(QLocalServer.SocketOption.UserAccessOption)
        self._server.newConnection.connect(self._on_connection)
        self._server.listen(self.name)

    def _hand_over(self, arguments: list[str]) -> bool:
        import json

        from PySide6.QtNetwork import QLocalSocket

        end = time.monotonic() + HANDOVER_S
        message = json.dumps({"arguments": arguments}).encode() + b"\n"
        while time.monotonic() < end:
            socket = QLocalSocket()
            socket.connectToServer(self.name)
            if socket.waitForConnected(500):
                self._met = True
                socket.write(message)
                socket.waitForBytesWritten(1000)
                if socket.waitForReadyRead(1500) and bytes(socket.readAll().data()).startswith(b"ok"):
                    return True
            else:
                time.sleep(0.05)  # the first start holds the lock but does not listen yet
        return False

    def _on_connection(self) -> None:
        while self._server is not None and (socket := self._server.nextPendingConnection()) is not None:
            socket.readyRead.connect(self._on_message)
            socket.disconnected.connect(socket.deleteLater)

    def _on_message(self) -> None:
        import json

        from PySide6.QtNetwork import QLocalSocket

        socket = self.sender()
        if not isinstance(socket, QLocalSocket):
            return
        if socket.bytesAvailable() > LARGEST_MESSAGE:
            socket.abort()
            return
        if not socket.canReadLine():
            return
        try:
            said = json.loads(bytes(socket.readLine().data()))
            arguments = [str(a) for a in said["arguments"]]
        except (ValueError, KeyError, TypeError):
            socket.abort()
            return
        socket.write(b"ok\n")
        socket.flush()
        self.raised.emit(arguments)


def instance_name(home: Path | None, profile: str) -> str:
    """The name of the local socket of a home and profile; another user's is another."""
    place = str(home.expanduser().resolve()) if home else "default"
    user = os.getuid() if hasattr(os, "getuid") else os.environ.get("USERNAME", "")
    whole = QCryptographicHash(QCryptographicHash.Algorithm.Sha256)
    whole.addData(f"{user}\0{place}\0{profile}".encode())
    return "desktop-host-" + bytes(whole.result().toHex().data()).decode()[:16]
