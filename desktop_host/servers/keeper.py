"""Keeps one server connected: start, restart with backoff, give up, stop. One keeper for each server and session."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from types import ModuleType
from typing import TYPE_CHECKING

from desktop_host.core.errors import KnownFault
from desktop_host.core.servers import (
    FailureReport,
    PromptSpec,
    ResourceSpec,
    ServerScope,
    ServerState,
    ServerStatus,
)
from desktop_host.core.tools import ToolSpec
from desktop_host.core.values import EMPTY, FrozenDict
from desktop_host.servers.failure import fault
from desktop_host.servers.loading import sdk
from desktop_host.servers.token_count import TokenCount
from desktop_host.servers.wiring import Wiring

if TYPE_CHECKING:
    from desktop_host.servers.connection import Connection

TRIES = 5
"""Restarts in a row before it is given up."""
LONGEST_S = 60.0
STABLE_S = 30.0
"""Seconds of being ready after which earlier failures are forgotten."""
GIVEN_UP = (ServerState.FAILED, ServerState.NEEDS_AUTH)
RETIRE_S = 10.0
"""How long a connection that was replaced may still end its calls."""
PATIENCE_S = 10.0
"""How long a call waits for a server that is on its way back."""


class Keeper:
    """The life of one server, for all sessions or (`session` set) for one."""

    def __init__(self, wiring: Wiring, announce: Callable[[tuple[str, ...]], None], session: str | None = None) -> None:
        self.wiring, self.session = wiring, session
        self._announce = announce
        self.state = ServerState.STOPPED
        self.since = wiring.clock.now()
        self.error: FailureReport | None = None
        self.restarts = 0
        self.connection: Connection | None = None
        self.tools: tuple[ToolSpec, ...] = ()
        """Known tools; kept while the server is on its way back."""
        self.resources: tuple[ResourceSpec, ...] = ()
        self.prompts: tuple[PromptSpec, ...] = ()
        self._cost = TokenCount()
        self._facts: tuple[str | None, FrozenDict, FrozenDict, str | None] = (None, EMPTY, EMPTY, None)
        self._task: asyncio.Task[None] | None = None
        self._settled = asyncio.Event()
        self._ready = asyncio.Event()
        self._renew = asyncio.Event()
        self._retiring: set[asyncio.Task[None]] = set()
        self._patience_s = RETIRE_S

    # ---- verbs
    @property
    def wanted(self) -> bool:
        """Whether it runs, or is on its way to."""
        return self._task is not None and not self._task.done()

    async def start(self, *, retry: bool = False) -> None:
        """Start it unless it runs; returns when it is ready or its first try has failed. Raises nothing.

        A server that was given up is started again with `retry` only: by a person, not by every turn.
        """
        if not self.wanted:
            if self.state in GIVEN_UP and not retry:
                return
            self._settled.clear()
            self._ready.clear()
            self.restarts = 0
            self._task = asyncio.create_task(self._keep())
        await self._settled.wait()

    async def stop(self) -> None:
        """Stop it; returns when its process has ended (about 5 s at most)."""
        task = self._task
        if task is not None and not task.done():
            self._set(ServerState.STOPPING)
            task.cancel()
            await asyncio.wait({task, *self._retire_now()})
        self._task = None
        self._clear()
        self.error = None
        self._set(ServerState.STOPPED)
        self._release()

    async def ensure(self) -> None:
        """Start it if need be; as `current`, but also where each call has a connection of its own.

        Raises:
            KnownFault: why it cannot be used.
        """
        if self.wiring.config.scope is not ServerScope.CALL:
            await self.current()
            return
        await self.start()
        if self.state is not ServerState.READY:
            raise self.fault()

    async def current(self, patience_s: float = PATIENCE_S) -> Connection:
        """The open connection; starts the server if need be and waits for one that is on its way back.

        Raises:
            KnownFault: why there is none.
        """
        if (connection := self._open()) is not None:
            return connection
        await self.start()
        if self._open() is None:
            if self.connection is not None:
                self._ready.clear()  # It ended a moment ago and the keeper has not come to it yet.
            if self.wanted and not self._ready.is_set():
                try:
                    async with asyncio.timeout(patience_s):
                        await self._ready.wait()
                except TimeoutError:
                    pass  # The state below tells why.
        if (connection := self._open()) is None:
            raise self.fault()
        return connection

    def _open(self) -> Connection | None:
        connection = self.connection
        return connection if connection is not None and not connection.gone.is_set() else None

    async def renew(self, stale: Connection) -> Connection:
        """Replace a connection whose MCP session the server has forgotten; many callers renew it once."""
        if self.connection is stale:
            self._replace(RETIRE_S)
        return await self.current(self.wiring.config.timeouts.connect_s)

    def swap(self) -> bool:
        """Go on over a new connection, as now configured; what runs ends over the old one. False: nothing runs."""
        if (connection := self._open()) is None or not connection.floor.calls:
            return False
        self._replace(self.wiring.config.timeouts.call_max_s)
        self._set(ServerState.STARTING)
        return True

    def _replace(self, patience_s: float) -> None:
        self._ready.clear()
        self.connection, self._patience_s = None, patience_s
        self._renew.set()

    def unreachable(self, connection: Connection, why: str) -> None:
        """A call found that the server is gone although the stream has not told so (HTTP)."""
        if self.connection is connection and not connection.gone.is_set():
            connection.give_up(why)

    def fault(self) -> KnownFault:
        """Why the server cannot be used now."""
        name = self.wiring.config.name
        if self.error is not None:
            return fault(self.error, name)
        return KnownFault("server_lost", f"{name} is {self.state.value}", retryable=True, server=name)

    def status(self) -> ServerStatus:
        """The server now."""
        config = self.wiring.config
        era, server, capabilities, instructions = self._facts
        return ServerStatus(
            name=config.name, state=self.state, transport=config.transport, enabled=config.enabled, era=era,
            server=server, capabilities=capabilities, instructions=instructions, tools=len(self.tools),
            resources=len(self.resources), prompts=len(self.prompts), since=self.since, restarts=self.restarts,
            pid=self.connection.pid if self.connection else None, error=self.error or self._list_error(),
            target=config.target, tokens=self._cost(self.tools),
        )  # fmt: skip

    def _list_error(self) -> FailureReport | None:
        """A server that is ready but did not give its tools says why."""
        why = self.connection.catalog.errors.get("tools") if self.connection else None
        told = f"the list of tools could not be fetched: {why}"
        said = FrozenDict({"detail": str(why)})
        return FailureReport("protocol_error", told, what="failure.no_list", params=said) if why else None

    def lists_changed(self) -> None:
        """Take over what the catalog of the connection now holds."""
        if self.connection is not None:
            catalog = self.connection.catalog
            self.tools, self.resources, self.prompts = catalog.tools, catalog.resources, catalog.prompts

    # ---- the life
    async def _keep(self) -> None:
        module = await sdk()
        clock = self.wiring.clock
        failures = 0
        while True:
            self._renew.clear()
            self._set(ServerState.STARTING)
            try:
                connection = await self._connected(module)
            except module.ConnectFailed as failed:
                self.error = failed.report
                if failed.final:
                    self._give_up(failed.report.code)
                    return
            else:
                began = clock.monotonic()
                try:
                    if self.wiring.config.scope is ServerScope.CALL:
                        await connection.close()
                        self._be_ready()
                        await self._renew.wait()
                        continue
                    self.connection = connection
                    self._be_ready()
                    await _first(connection.gone, self._renew, connection.worn)
                    if connection.worn.is_set() and not connection.gone.is_set():
                        self._renew.set()
                finally:
                    self.connection = None
                    self._ready.clear()
                    if self._renew.is_set():
                        self._retire(connection)
                    else:
                        await connection.close()
                if self._renew.is_set():
                    continue
                self.error = connection.lost
                if clock.monotonic() - began >= STABLE_S:
                    failures = 0
            failures += 1
            if failures > TRIES:
                self._give_up("server_failed")
                return
            self.restarts += 1
            self._set(ServerState.WAITING)
            self._settled.set()
            await clock.sleep(min(2.0 ** (failures - 1), LONGEST_S) * random.uniform(0.8, 1.2))

    def _retire_now(self) -> set[asyncio.Task[None]]:
        for task in self._retiring:
            task.cancel()
        return set(self._retiring)

    def _retire(self, connection: Connection) -> None:
        """Its session was forgotten, or it was made of other settings: what runs over it may end."""
        task = asyncio.create_task(connection.retire(self._patience_s))
        self._patience_s = RETIRE_S
        self._retiring.add(task)
        task.add_done_callback(self._retiring.discard)

    async def _connected(self, module: ModuleType) -> Connection:
        connection: Connection = await module.connect(self.wiring, self.session)
        try:
            catalog = connection.catalog
            await module.first_lists(connection)
            self.tools, self.resources, self.prompts = catalog.tools, catalog.resources, catalog.prompts
            self._facts = (connection.era, connection.server, connection.capabilities, connection.instructions)
        except BaseException:
            await connection.close()
            raise
        return connection

    def _be_ready(self) -> None:
        self.error = None
        self._set(ServerState.READY, ("tools",))
        self._ready.set()
        self._settled.set()

    def _give_up(self, code: str) -> None:
        self._clear()
        self._set(ServerState.NEEDS_AUTH if code == "auth" else ServerState.FAILED)
        self._release()

    def _release(self) -> None:
        """Nobody need wait any longer: there will be no connection."""
        self._settled.set()
        self._ready.set()

    def _clear(self) -> None:
        self.tools, self.resources, self.prompts = (), (), ()
        self._facts = (None, EMPTY, EMPTY, None)

    def _set(self, state: ServerState, lists: tuple[str, ...] = ()) -> None:
        if state is not self.state:
            self.state, self.since = state, self.wiring.clock.now()
        self._announce(lists)


async def _first(*events: asyncio.Event) -> None:
    waits = {asyncio.create_task(e.wait()) for e in events}
    try:
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for wait in waits:
            wait.cancel()
