"""The configured servers and how they stand, as a Qt list model with the acts a person can do."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from PySide6.QtCore import QAbstractListModel, QModelIndex, QObject, QPersistentModelIndex, Qt, Signal

from desktop_host.core import events as ev
from desktop_host.core.errors import HostError
from desktop_host.core.messages import ContentBlock, Message
from desktop_host.core.server_ports import Clash
from desktop_host.core.servers import ImportedServer, ServerConfig, ServerState, ServerStatus
from desktop_host.core.values import EMPTY, FrozenDict
from desktop_host.engine.host import Host
from desktop_host.ui.bridge import Bridge
from desktop_host.ui.viewmodels.server_parts import files_of, prompt_parts

STATUS = int(Qt.ItemDataRole.UserRole) + 1
"""Role of the `ServerStatus` of a row."""

LIVE = frozenset({ServerState.READY, ServerState.STARTING, ServerState.WAITING, ServerState.NEEDS_AUTH})
"""States in which a server can be stopped."""


UPDATED = "resource:"
"""How an update is told in the lists of `ServerChanged`."""
TOUCHED = 1000
"""Updates remembered."""

T = TypeVar("T")


class Servers(QAbstractListModel):
    """All configured servers; follows the stream of events."""

    failed = Signal(object)
    """`HostError` of something asked for here."""
    changed = Signal(str)
    """A server's state or configuration is another."""
    lists_changed = Signal(str, object)
    """`(name, tuple of list names)`: its tools, resources or prompts are others."""
    loaded = Signal()
    removed = Signal(str)
    left_tokens = Signal(str)
    """A server was removed, and its authorization server could not be told that its tokens are over."""
    gave_up = Signal(str)
    """A server was given up; told once, until it works again or a person acts on it."""
    to_chat = Signal(str, object)
    """`(text, tuple[InputFile, ...])` that the person wants in the message of the current chat."""
    signed_out = Signal(str, bool)
    """`(name, told)`: whether the authorization server was told to forget the tokens, too."""

    def __init__(self, bridge: Bridge, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._bridge = bridge
        self._statuses: list[ServerStatus] = []
        self._configs: dict[str, ServerConfig] = {}
        self._given_up: set[str] = set()
        self.busy: set[str] = set()
        """Servers for which an act of the person is under way."""
        self.reading = True
        self.touched: dict[tuple[str, str], float] = {}
        """When a resource was last said to have changed (seconds since the epoch), by server and address."""
        bridge.batch.connect(self._on_batch)
        bridge.lagged.connect(self.refresh)

    def rowCount(self, parent: QModelIndex | QPersistentModelIndex = QModelIndex()) -> int:  # noqa: B008
        return 0 if parent.isValid() else len(self._statuses)

    def data(self, index: QModelIndex | QPersistentModelIndex, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if not index.isValid() or index.row() >= len(self._statuses):
            return None
        status = self._statuses[index.row()]
        if role == Qt.ItemDataRole.DisplayRole:
            return status.name
        return status if role == STATUS else None

    # ---- what a view asks

    def status(self, name: str) -> ServerStatus | None:
        """How a server stands."""
        return next((s for s in self._statuses if s.name == name), None)

    def statuses(self) -> tuple[ServerStatus, ...]:
        """All, in the file's order."""
        return tuple(self._statuses)

    def config(self, name: str) -> ServerConfig | None:
        """A server's configuration."""
        return self._configs.get(name)

    # ---- what a person does

    def refresh(self) -> None:
        """Read all again."""

        async def read(host: Host) -> tuple[tuple[ServerStatus, ...], tuple[ServerConfig, ...]]:
            return host.servers.statuses(), host.servers.configs()

        self._bridge.then(read, self._show, self.failed.emit, self)

    def start(self, name: str) -> None:
        """Start a server."""
        self._act(name, lambda host: host.servers.start(name))

    def stop(self, name: str) -> None:
        """Stop a server."""
        self._act(name, lambda host: host.servers.stop(name))

    def restart(self, name: str) -> None:
        """Stop and start a server."""
        self._act(name, lambda host: host.servers.restart(name))

    def mend(self, name: str) -> None:
        """Do what the failure of a server names as its fix."""
        self._act(name, lambda host: host.servers.mend(name))

    def offer_resource(self, blocks: tuple[ContentBlock, ...], title: str) -> None:
        """Put what a resource holds into the message of the current chat."""
        self.to_chat.emit("", files_of(blocks, title))

    def offer_prompt(self, messages: tuple[Message, ...]) -> None:
        """Put a filled prompt into the message of the current chat."""
        self.to_chat.emit(*prompt_parts(messages))

    def login(self, name: str) -> None:
        """Sign in to a remote server; the person is asked before the browser opens."""
        self._act(name, lambda host: host.servers.login(name))

    def cancel_login(self, name: str) -> None:
        """Give up a sign-in that is under way."""
        self._bridge.then(
            lambda host: host.servers.cancel_login(name), lambda _: self.refresh(), self.failed.emit, self
        )

    def logout(self, name: str) -> None:
        """Stop a server and forget its tokens."""

        async def act(host: Host) -> bool:
            return await host.servers.logout(name)

        self._act(name, act, lambda told: self.signed_out.emit(name, told))

    def enable(self, name: str, on: bool) -> None:
        """Switch a server on (and start it) or off."""

        async def act(host: Host) -> None:
            await host.servers.enable(name, on)
            if on and host.servers.status(name).state in (ServerState.STOPPED, ServerState.DISABLED):
                await host.servers.start(name)

        self._act(name, act)

    def remove(self, name: str) -> None:
        """Stop a server and forget it."""

        async def act(host: Host) -> bool:
            bundles = {one.alias for one in await host.bundles.installed()}
            return await (host.bundles if name in bundles else host.servers).remove(name)

        def gone(revoked: bool) -> None:
            self.busy.discard(name)
            self.removed.emit(name)
            if not revoked:
                self.left_tokens.emit(name)
            self.refresh()

        self.busy.add(name)
        self._bridge.then(act, gone, lambda e: self._failed(name, e), self)

    def parse(
        self, text: str, done: Callable[[tuple[ImportedServer, ...]], None], failed: Callable[[HostError], None]
    ) -> None:
        """Read what was pasted; nothing is started."""

        async def read(host: Host) -> tuple[ImportedServer, ...]:
            return host.servers.parse(text)

        self._bridge.then(read, done, failed, self)

    def twins(self, found: tuple[ImportedServer, ...], done: Callable[[FrozenDict], None]) -> None:
        """Which of these are there already, by name; what cannot be compared counts as new."""
        self._bridge.then(lambda host: host.servers.twins(found), done, lambda _error: done(EMPTY), self)

    def add(
        self,
        found: tuple[ImportedServer, ...],
        done: Callable[[tuple[str, ...]], None],
        failed: Callable[[HostError], None],
        clash: Clash = Clash.REFUSE,
    ) -> None:
        """Keep servers (their secrets in the vault), then start those that are enabled.

        `clash`: what happens to names that are taken.
        """

        def kept(configs: tuple[ServerConfig, ...]) -> None:
            self.refresh()
            done(tuple(c.name for c in configs))
            for config in configs:
                if config.enabled:
                    self.start(config.name)

        self._bridge.then(lambda host: host.servers.take_over(found, clash), kept, failed, self)

    def update(
        self,
        config: ServerConfig,
        done: Callable[[], None],
        failed: Callable[[HostError], None],
        *,
        restart: bool = False,
        log_level: str | None = None,
    ) -> None:
        """Change a server; `restart` starts it anew so that the change takes effect, `log_level` is told to it."""

        async def act(host: Host) -> None:
            await host.servers.update(config)
            if log_level is not None and not restart:
                await host.servers.set_log_level(config.name, log_level)

        def kept(_: object) -> None:
            self.refresh()
            done()
            if restart:
                self.restart(config.name)

        self._bridge.then(act, kept, failed, self)

    # ---- inside

    def _act(self, name: str, make: Callable[[Host], Awaitable[T]], done: Callable[[T], None] = lambda _: None) -> None:
        def settled(got: T) -> None:
            self.busy.discard(name)
            self.refresh()
            done(got)

        self.busy.add(name)
        self._given_up.discard(name)
        self.changed.emit(name)
        self._bridge.then(make, settled, lambda e: self._failed(name, e), self)

    def _failed(self, name: str, error: HostError) -> None:
        self.busy.discard(name)
        self.refresh()
        self.failed.emit(error)

    def _show(self, got: tuple[tuple[ServerStatus, ...], tuple[ServerConfig, ...]]) -> None:
        statuses, configs = got
        self._configs = {c.name: c for c in configs}
        names = [s.name for s in self._statuses]
        if [s.name for s in statuses] == names:
            old, self._statuses = self._statuses, list(statuses)
            for row, (before, now) in enumerate(zip(old, statuses, strict=True)):
                if before != now:
                    self.dataChanged.emit(self.index(row), self.index(row))
        else:
            self.beginResetModel()
            self._statuses = list(statuses)
            self.endResetModel()
        self.reading = False
        self.loaded.emit()
        for status in statuses:
            self.changed.emit(status.name)

    def _on_batch(self, batch: tuple[ev.Stamped, ...]) -> None:
        unknown = False
        for stamped in batch:
            event = stamped.event
            if not isinstance(event, ev.ServerChanged):
                continue
            if event.state not in ("failed", "starting", "waiting"):
                self._given_up.discard(event.server)
            elif event.state == "failed" and event.server not in self._given_up:
                self._given_up.add(event.server)
                self.gave_up.emit(event.server)
            row = next((i for i, s in enumerate(self._statuses) if s.name == event.server), -1)
            if row < 0 or event.status is None:
                unknown = True
            else:
                self._statuses[row] = event.status
                self.dataChanged.emit(self.index(row), self.index(row))
                self.changed.emit(event.server)
            for uri in (one.removeprefix(UPDATED) for one in event.lists if one.startswith(UPDATED)):
                self.touched.pop((event.server, uri), None)
                self.touched[event.server, uri] = time.time()
                if len(self.touched) > TOUCHED:
                    del self.touched[next(iter(self.touched))]
            if event.lists:
                self.lists_changed.emit(event.server, event.lists)
        if unknown:
            self.refresh()
