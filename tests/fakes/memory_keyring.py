"""A keyring backend for tests in child processes and in ours: kept in memory, with switches for each failure."""

from __future__ import annotations

import threading

from keyring.backend import KeyringBackend
from keyring.errors import KeyringLocked, PasswordDeleteError


class MemoryKeyring(KeyringBackend):
    """Behaves as a real backend; a test may lock it, make it forget, or let it hang."""

    priority = 10.0  # type: ignore[assignment]

    def __init__(self) -> None:
        super().__init__()
        self.kept: dict[tuple[str, str], str] = {}
        self.locked = False
        self.forgets = False
        self.breaks: Exception | None = None
        self.answers = threading.Event()
        self.answers.set()
        self.longest = 0

    def _turn(self) -> None:
        self.answers.wait()
        if self.breaks:
            raise self.breaks
        if self.locked:
            raise KeyringLocked("Failed to unlock the collection!")

    def get_password(self, service: str, username: str) -> str | None:
        self._turn()
        return self.kept.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        self._turn()
        self.longest = max(self.longest, len(password))
        if not self.forgets:
            self.kept[service, username] = password

    def delete_password(self, service: str, username: str) -> None:
        self._turn()
        if (service, username) not in self.kept:
            raise PasswordDeleteError("No such password!")
        del self.kept[service, username]
