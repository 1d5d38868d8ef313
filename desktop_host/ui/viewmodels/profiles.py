"""The profiles of this home, as the window sees them: each is a host of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from PySide6.QtCore import QObject, Signal

from desktop_host.core.errors import HostError
from desktop_host.core.profiles import ProfilesPort
from desktop_host.engine.host import Host
from desktop_host.ui.bridge import Bridge

T = TypeVar("T")


class ProfileList(QObject):
    """The names, and what can be done with them. Each act runs in a thread, so that no window waits."""

    changed = Signal()
    failed = Signal(object)
    """`HostError` that nobody else heard of."""
    told = Signal(str, str)
    """`(what, name)`: `created`, `cloned`, `exported`, `imported`, `deleted` or `opened`."""

    handed = Signal(str, str, str, bool)
    """`(session, profile, session there, kept here)`: a conversation was moved or copied."""

    def __init__(self, bridge: Bridge, port: ProfilesPort, current: str, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._bridge = bridge
        self._port = port
        self.current = current
        """Name of the profile of this window."""
        self.names: tuple[str, ...] = (current,)

    def refresh(self) -> None:
        """Read the names anew."""
        self._run(self._port.names, self._show, self.failed.emit)

    def create(self, name: str, failed: Callable[[HostError], None]) -> None:
        """Make a profile."""
        self._change("created", name, lambda: self._port.create(name), failed)

    def clone(self, name: str, new: str, failed: Callable[[HostError], None]) -> None:
        """Copy a profile."""
        self._change("cloned", new, lambda: self._port.clone(name, new), failed)

    def export(self, name: str, target: Path, failed: Callable[[HostError], None]) -> None:
        """Write a profile to a file."""
        self._change("exported", target.name, lambda: self._port.export(name, target), failed)

    def take_in(self, source: Path, name: str, failed: Callable[[HostError], None]) -> None:
        """Make a profile of a file."""
        self._change("imported", name, lambda: self._port.take_in(source, name or None), failed)

    def delete(self, name: str, failed: Callable[[HostError], None]) -> None:
        """Delete a profile."""
        self._change("deleted", name, lambda: self._port.delete(name), failed)

    def open_window(self, name: str, failed: Callable[[HostError], None] | None = None, session: str = "") -> None:
        """Open a profile in a window of its own, maybe at a conversation."""
        self._change("opened", name, lambda: self._port.open_window(name, session), failed or self.failed.emit)

    def hand_over(self, session: str, name: str, *, keep: bool) -> None:
        """Move a conversation to a profile, or (`keep`) copy it there; `handed` follows."""

        async def put(text: str) -> str:
            return await asyncio.to_thread(self._port.take_session, name, text)

        self._bridge.then(
            lambda host: host.hand_over(session, put, keep=keep),
            lambda made: self.handed.emit(session, name, made, keep), self.failed.emit, self,
        )  # fmt: skip

    def _change(self, what: str, name: str, act: Callable[[], object], failed: Callable[[HostError], None]) -> None:
        def done(found: object) -> None:
            self.told.emit(what, name or str(found))
            self.refresh()

        self._run(act, done, failed)

    def _run(self, act: Callable[[], T], done: Callable[[T], None], failed: Callable[[HostError], None]) -> None:
        async def run(_host: Host) -> T:
            return await asyncio.to_thread(act)

        self._bridge.then(run, done, failed, self)

    def _show(self, names: tuple[str, ...]) -> None:
        if names != self.names:
            self.names = names
            self.changed.emit()
