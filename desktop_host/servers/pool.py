"""The keepers of all servers: which exist for whom, and what is told of them without flooding anybody."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from desktop_host.core.admin import SecretStore
from desktop_host.core.auth import SignInDefaults
from desktop_host.core.events import ServerChanged
from desktop_host.core.ports import Clock, EventSink, Reviewer
from desktop_host.core.server_values import ServerValues
from desktop_host.core.servers import ServerConfig, ServerScope, ServerState, ServerStatus
from desktop_host.servers.environment import PidFile
from desktop_host.servers.eras import Eras
from desktop_host.servers.keeper import Keeper
from desktop_host.servers.records import Redactor, ServerLog, WireLog
from desktop_host.servers.sign_in import SignIn
from desktop_host.servers.wiring import CALL_S, Wiring

QUIET_S = 0.2
"""Least time between two events about one server; the newest state is told at its end."""
CLOSE_S = 8.0
"""Longest time that closing waits; processes are killed well before."""

_RANK = [ServerState.READY, ServerState.STARTING, ServerState.WAITING, ServerState.STOPPING,
         ServerState.NEEDS_AUTH, ServerState.FAILED, ServerState.STOPPED]  # fmt: skip


class Pool:
    """Keepers by server and session (None: shared by all sessions)."""

    def __init__(
        self, folder: Path, secrets: SecretStore, reviewer: Reviewer, sink: EventSink, clock: Clock,
        environ: Mapping[str, str], sign_in: Callable[[], SignInDefaults] = SignInDefaults,
        values: Callable[[], ServerValues] = ServerValues, apps: bool = False,
        call_s: Callable[[], float] = lambda: CALL_S,
    ) -> None:  # fmt: skip
        self._folder, self._secrets, self._reviewer = folder, secrets, reviewer
        self._sink, self.clock, self._environ, self._sign_in = sink, clock, environ, sign_in
        self._values, self._apps, self._call_s = values, apps, call_s
        self.pids = PidFile(folder / "processes")
        self.eras = Eras(folder / "server-eras.json", clock)
        self._keepers: dict[tuple[str, str | None], Keeper] = {}
        self._wirings: dict[str, Wiring] = {}
        self._apart: set[str] = set()
        """Sessions with connections of their own."""
        self._pending: dict[str, set[str]] = {}
        """Servers told of within the last `QUIET_S`, and the lists that changed since."""
        self._told: dict[str, object] = {}
        self._closed = False

    async def open(self) -> list[tuple[int, str]]:
        """Load what is remembered; end what a dead host left behind. Returns those ended."""
        await self.eras.load()
        return await asyncio.to_thread(self.pids.sweep)

    def wiring(self, config: ServerConfig) -> Wiring:
        """The surroundings of a server, made once; a newer configuration takes the older one's place."""
        known = self._wirings.get(config.name)
        if known is not None:
            known.config = config
            return known
        made = self._make(config, lambda lists: self._lists_changed(config.name, lists))
        self._wirings[config.name] = made
        return made

    def wiring_for_test(self, config: ServerConfig) -> Wiring:
        """Surroundings for one trial that nobody is told of; its lines go to the server's log file."""
        return self._make(config, lambda _lists: None)

    def _make(self, config: ServerConfig, changed: Callable[[tuple[str, ...]], None]) -> Wiring:
        redact = Redactor()
        return Wiring(
            config=config,
            reviewer=self._reviewer,
            secrets=self._secrets,
            clock=self.clock,
            environ=self._environ,
            values=self._values,
            pids=self.pids,
            eras=self.eras,
            redact=redact,
            wire=WireLog(self.clock, redact),
            log=ServerLog(self._folder / "logs" / f"{config.name}.log", self.clock, redact),
            sign_in=SignIn(
                config.name, self._secrets, redact, lambda: changed(()), self._folder / "locks", self._sign_in
            ),
            changed=changed,
            apps=self._apps,
            call_s=self._call_s,
        )

    def keeper(self, config: ServerConfig, session: str | None = None) -> Keeper:
        """The keeper for a session: the shared one, or the session's own where the server's scope wants it."""
        key = (config.name, self._owner(config, session))
        found = self._keepers.get(key)
        if found is None:
            name = config.name
            found = Keeper(self.wiring(config), lambda lists: self._announce(name, lists), key[1])
            self._keepers[key] = found
        return found

    def find(self, config: ServerConfig, session: str | None = None) -> Keeper | None:
        """The keeper for a session, if there is one; for no session, any."""
        found = self._keepers.get((config.name, self._owner(config, session)))
        return found or (next(iter(self.of_server(config.name)), None) if session is None else None)

    def set_apart(self, session: str, apart: bool) -> None:
        """Give a session connections of its own: a server whose roots differ by chat cannot be shared."""
        (self._apart.add if apart else self._apart.discard)(session)

    def _owner(self, config: ServerConfig, session: str | None) -> str | None:
        """The session that a connection belongs to; None: it is shared."""
        if config.scope is ServerScope.CALL:
            return None
        return session if config.scope is ServerScope.SESSION or session in self._apart else None

    def of_server(self, name: str) -> tuple[Keeper, ...]:
        """All keepers of a server."""
        return tuple(k for (server, _), k in self._keepers.items() if server == name)

    def shared(self) -> tuple[Keeper, ...]:
        """The keepers that sessions share."""
        return tuple(k for (_, owner), k in self._keepers.items() if owner is None)

    def of_session(self, session: str) -> tuple[Keeper, ...]:
        """The keepers that belong to one session alone."""
        return tuple(k for (_, owner), k in self._keepers.items() if owner == session)

    def status(self, config: ServerConfig) -> ServerStatus:
        """A server as it stands; of several connections the liveliest speaks for it."""
        keepers = sorted(self.of_server(config.name), key=lambda k: _RANK.index(k.state))
        if keepers and (config.enabled or keepers[0].wanted):
            return replace(keepers[0].status(), sign_in=self.wiring(config).sign_in.state)
        return ServerStatus(
            name=config.name,
            state=ServerState.STOPPED if config.enabled else ServerState.DISABLED,
            transport=config.transport,
            enabled=config.enabled,
            target=config.target,
        )

    async def start(self, keeper: Keeper) -> None:
        """Start a server because a person wants it: they may be asked to sign in."""
        with keeper.wiring.sign_in.invited():
            await keeper.start(retry=True)

    async def stop(self, name: str) -> None:
        """Stop a server for everybody."""
        await asyncio.gather(*(k.stop() for k in self.of_server(name)))

    async def drop(self, keepers: tuple[Keeper, ...]) -> None:
        """Stop keepers and forget them."""
        await asyncio.gather(*(k.stop() for k in keepers))
        self._keepers = {key: k for key, k in self._keepers.items() if k not in keepers}

    async def forget(self, name: str) -> None:
        """Stop a server and forget all about it but its log file."""
        await self.drop(self.of_server(name))
        if wiring := self._wirings.pop(name, None):
            await wiring.log.close()

    async def close(self) -> None:
        """Stop all servers, in parallel."""
        stops = [asyncio.create_task(k.stop()) for k in self._keepers.values()]
        if stops:
            await asyncio.wait(stops, timeout=CLOSE_S)
        self._closed = True
        await asyncio.gather(*(w.log.close() for w in self._wirings.values()))

    # ---- telling
    def _lists_changed(self, name: str, lists: tuple[str, ...]) -> None:
        for keeper in self.of_server(name):
            keeper.lists_changed()
        self._announce(name, lists)

    def tell(self, name: str, lists: tuple[str, ...] = ()) -> None:
        """Tell that something about a server is other now."""
        self._announce(name, lists)

    def _announce(self, name: str, lists: tuple[str, ...] = ()) -> None:
        if not lists:
            self._emit(name, ())  # a state is news at once; lists may change many times in a moment
            return
        if name in self._pending:
            self._pending[name].update(lists)
            return
        self._emit(name, lists)
        self._pending[name] = set()
        asyncio.get_running_loop().call_later(QUIET_S, self._quiet_over, name)

    def _quiet_over(self, name: str) -> None:
        if changed := self._pending.pop(name, None):
            self._announce(name, tuple(sorted(changed)))

    def _emit(self, name: str, lists: tuple[str, ...]) -> None:
        wiring = self._wirings.get(name)
        if wiring is None or self._closed:
            return
        status = self.status(wiring.config)
        reason = status.error.code if status.error else ""
        if not lists and self._told.get(name) == status:
            return
        self._told[name] = status
        self._sink(ServerChanged(name, status.state.value, reason, status, lists))
