"""The gateway in the window: on or off, its key, what it offers, and who came."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeAlias

from PySide6.QtCore import QObject, QTimer, Signal

from desktop_host.core.errors import HostError
from desktop_host.core.sharing import Sharing
from desktop_host.engine.host import Host
from desktop_host.ui.bridge import Bridge

LOOK_MS = 1500
WAYS = ("ask", "allow", "off")
"""How a server is offered: the person is asked for each call, nobody is asked, or not at all."""


@dataclass(frozen=True, slots=True)
class Offered:
    """A server and how it is offered."""

    alias: str
    title: str
    way: str


class SharingModel(QObject):
    """Looks at the gateway while it is being shown."""

    changed = Signal()
    failed = Signal(object)

    def __init__(self, bridge: Bridge, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._bridge = bridge
        self.state = Sharing()
        self.offered: tuple[Offered, ...] = ()
        self.port = 8010
        self.known = self.busy = False
        self._timer = QTimer(self)
        self._timer.setInterval(LOOK_MS)
        self._timer.timeout.connect(self.look)

    def watch(self, on: bool) -> None:
        """Look again and again, or no more."""
        if on:
            self.look()
            self._timer.start()
        else:
            self._timer.stop()

    def look(self) -> None:
        """Ask how it stands."""
        if not self.busy:
            self._bridge.then(_read, self._show, self.failed.emit, self)

    def turn(self, on: bool) -> None:
        """Switch it."""

        async def act(host: Host) -> _Seen:
            if host.sharing is not None:
                await host.sharing.turn(on)
            return await _read(host)

        self._act(act)

    def new_key(self, done: Callable[[str], None]) -> None:
        """Make another key; `done` gets it, once."""

        async def act(host: Host) -> str:
            return await host.sharing.new_key() if host.sharing is not None else ""

        def made(key: str) -> None:
            done(key)
            self.look()

        self._bridge.then(act, made, self.failed.emit, self)

    def set_port(self, port: int) -> None:
        """Serve at another port."""

        async def act(host: Host) -> _Seen:
            await host.settings.set("gateway.port", port)
            return await _again(host)

        if port != self.port:
            self._act(act)

    def offer(self, alias: str, way: str) -> None:
        """Offer a server in one of `WAYS`; rules for single tools that are kept already stay."""

        async def act(host: Host) -> _Seen:
            kept = host.settings.current().gateway
            hidden = {a for a in kept.hidden.split() if a != alias} | ({alias} if way == "off" else set())
            allow = {g for g in kept.allow.split() if g != f"{alias}.*"} | ({f"{alias}.*"} if way == "allow" else set())
            await host.settings.set("gateway.hidden", "\n".join(sorted(hidden)))
            await host.settings.set("gateway.allow", "\n".join(sorted(allow)))
            return await _again(host)

        self._act(act)

    # ---- inside
    def _act(self, act: Callable[[Host], Awaitable[_Seen]]) -> None:
        self.busy = True
        self.changed.emit()

        def done(seen: _Seen) -> None:
            self.busy = False
            self._show(seen)

        def failed(error: HostError) -> None:
            self.busy = False
            self.failed.emit(error)
            self.look()

        self._bridge.then(act, done, failed, self)

    def _show(self, seen: _Seen) -> None:
        self.known = True
        self.state, self.offered, self.port = seen
        self.changed.emit()


_Seen: TypeAlias = tuple[Sharing, tuple[Offered, ...], int]


async def _read(host: Host) -> _Seen:
    kept = host.settings.current().gateway
    hidden, allow = set(kept.hidden.split()), set(kept.allow.split())

    def way(alias: str) -> str:
        return "off" if alias in hidden else "allow" if f"{alias}.*" in allow else "ask"

    offered = tuple(Offered(c.name, c.title or c.name, way(c.name)) for c in host.servers.configs() if c.enabled)
    state = await host.sharing.state() if host.sharing is not None else Sharing()
    return state, offered, kept.port


async def _again(host: Host) -> _Seen:
    """Where it is on it begins anew, with the settings of now."""
    if host.sharing is not None and (await host.sharing.state()).on:
        await host.sharing.turn(True)
    return await _read(host)
