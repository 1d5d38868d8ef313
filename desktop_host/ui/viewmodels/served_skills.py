"""The skills that servers serve, as a window sees them: what is listed, and whether the person approved it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from PySide6.QtCore import QObject, Signal

from desktop_host.core import events as ev
from desktop_host.core.errors import HostError
from desktop_host.core.remote_skills import RemoteSkill
from desktop_host.core.servers import ServerState
from desktop_host.engine.host import Host
from desktop_host.ui.bridge import Bridge

Found = tuple[tuple[RemoteSkill, ...], Mapping[str, tuple[str, ...]]]


class ServedSkills(QObject):
    """Listed anew when a server has come or gone."""

    failed = Signal(object)
    """`HostError` of something asked for here."""
    loaded = Signal()
    """`rows` and `problems` are those of now."""

    def __init__(self, bridge: Bridge, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._bridge = bridge
        self.rows: tuple[RemoteSkill, ...] = ()
        self.problems: Mapping[str, tuple[str, ...]] = {}
        """What could not be used, by server."""
        self._under_way = self._again = False
        bridge.batch.connect(self._on_batch)
        bridge.lagged.connect(self.refresh)

    def refresh(self) -> None:
        """Ask the servers; one listing at a time, and one more where something changed meanwhile."""
        if self._under_way:
            self._again = True
            return
        self._under_way = True
        self._bridge.then(_list, self._show, self._not_listed, self)

    def approve(self, skill: RemoteSkill) -> None:
        """Let a skill be used as it is shown."""
        self._act(lambda host: host.skills.approve_remote(skill.id, skill.digest))

    def revoke(self, skill: RemoteSkill) -> None:
        """Take the approval back."""
        self._act(lambda host: host.skills.revoke_remote(skill.id))

    def read(
        self, id_: str, path: str, done: Callable[[bytes], None], failed: Callable[[HostError], None], owner: QObject
    ) -> None:
        """Fetch one file for the person to read."""
        self._bridge.then(lambda host: host.skills.read_remote(id_, path), done, failed, owner)

    # ---- inside

    def _act(self, make: Callable[[Host], Awaitable[None]]) -> None:
        def refused(error: HostError) -> None:
            self.refresh()
            self.failed.emit(error)

        self._bridge.then(make, lambda _: self.refresh(), refused, self)

    def _show(self, found: Found) -> None:
        self.rows, self.problems = found
        self._over()

    def _not_listed(self, error: HostError) -> None:
        self.failed.emit(error)
        self._over()

    def _over(self) -> None:
        again, self._under_way, self._again = self._again, False, False
        self.loaded.emit()
        if again:
            self.refresh()

    def _on_batch(self, batch: tuple[ev.Stamped, ...]) -> None:
        settled = (ServerState.READY, ServerState.STOPPED, ServerState.DISABLED, ServerState.FAILED)
        if any(isinstance(s.event, ev.ServerChanged) and s.event.state in settled for s in batch):
            self.refresh()


async def _list(host: Host) -> Found:
    return await host.skills.remote_skills(refresh=True), host.skills.remote_problems()
