"""The profile's settings and standing permissions, as the window sees them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from PySide6.QtCore import QObject, Signal

from desktop_host.core import settings as core
from desktop_host.core.errors import HostError
from desktop_host.core.permissions import Rule
from desktop_host.core.routes import Considered, Needs, Route
from desktop_host.core.settings import Endpoint, Settings
from desktop_host.core.values import FrozenDict
from desktop_host.engine.host import Host
from desktop_host.ui.bridge import Bridge


class ProfileSettings(QObject):
    """Settings of the profile. What is set here is shown at once and taken back where it could not be kept."""

    changed = Signal(str)
    """A key is another; empty: all may be."""
    failed = Signal(object)
    """`HostError`: something could not be kept."""

    def __init__(self, bridge: Bridge, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.bridge = self._bridge = bridge
        self.current = Settings()
        self.record = FrozenDict()
        """Where conversations are kept: `{store, place, detail}`; empty until it is known."""
        self.loaded = False

    def refresh(self) -> None:
        """Read the file's values again."""

        async def read(host: Host) -> tuple[Settings, HostError | None, FrozenDict]:
            return host.settings.current(), core.not_used(host.settings.problems()), host.record

        self._bridge.then(read, self._loaded, self.failed.emit, self)

    def _loaded(self, found: tuple[Settings, HostError | None, FrozenDict]) -> None:
        first, self.record = not self.loaded, found[2]
        self._show(found[0])
        if first and found[1] is not None:
            self.failed.emit(found[1])

    def value(self, key: str) -> Any:
        """The value of a key."""
        return core.get(self.current, key)

    def set(self, key: str, value: Any, failed: Callable[[HostError], None] | None = None) -> None:
        """Set one key; `failed` hears why not."""
        before = self.current
        try:
            self.current = core.put(self.current, key, value)
        except HostError as error:
            (failed or self.failed.emit)(error)
            return
        self.changed.emit(key)

        def undone(error: HostError) -> None:
            self.current = before
            self.changed.emit(key)
            (failed or self.failed.emit)(error)

        self._bridge.then(lambda host: host.settings.set(key, value), lambda _: None, undone, self)

    def put_endpoints(
        self, endpoints: tuple[Endpoint, ...], done: Callable[[], None], failed: Callable[[HostError], None]
    ) -> None:
        """Keep another list of endpoints."""

        async def act(host: Host) -> Settings:
            await host.settings.save(replace(host.settings.current(), endpoints=endpoints))
            return host.settings.current()

        def kept(settings: Settings) -> None:
            self._show(settings)
            done()

        self._bridge.then(act, kept, failed, self)

    def put_routes(
        self, routes: tuple[Route, ...], done: Callable[[], None], failed: Callable[[HostError], None]
    ) -> None:
        """Keep another table of routes."""

        async def act(host: Host) -> Settings:
            await host.settings.save(replace(host.settings.current(), routes=routes))
            return host.settings.current()

        def kept(settings: Settings) -> None:
            self._show(settings)
            done()

        self._bridge.then(act, kept, failed, self)

    def explain_route(
        self, name: str, done: Callable[[tuple[Considered, ...]], None], failed: Callable[[HostError], None]
    ) -> None:
        """Ask what a route would do with a short question that offers tools."""
        self._bridge.then(lambda host: host.models.explain(name, Needs(1000, tools=True)), done, failed, self)

    def _show(self, settings: Settings) -> None:
        self.current, self.loaded = settings, True
        self.changed.emit("")


class Permissions(QObject):
    """What the person allowed or denied for good."""

    changed = Signal()
    failed = Signal(object)

    def __init__(self, bridge: Bridge, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._bridge = bridge
        self.rules: tuple[Rule, ...] = ()
        self.loaded = False

    def refresh(self) -> None:
        """Read the grants again."""
        self._bridge.then(lambda host: host.grants(), self._show, self.failed.emit, self)

    def revoke(self, pattern: str) -> None:
        """Take back what was granted or denied for a pattern."""
        self._bridge.then(lambda host: host.revoke(pattern), lambda _: self.refresh(), self.failed.emit, self)

    def _show(self, rules: tuple[Rule, ...]) -> None:
        self.rules, self.loaded = rules, True
        self.changed.emit()
