"""One connection to one server: a task that enters and leaves the SDK's `Client`, everybody else only calls."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
from collections.abc import AsyncGenerator
from typing import Any

import mcp_types as T
from mcp import Client, MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from desktop_host.core.errors import KnownFault
from desktop_host.core.servers import FailureReport
from desktop_host.core.values import EMPTY, FrozenDict, freeze
from desktop_host.servers import failure
from desktop_host.servers.callbacks import Callbacks
from desktop_host.servers.catalog import Catalog
from desktop_host.servers.client import introduce, make_client
from desktop_host.servers.connect_failed import PROBE_S, judged
from desktop_host.servers.http import HttpFacts
from desktop_host.servers.other_transport import serves_the_other
from desktop_host.servers.stdio import StdioTransport
from desktop_host.servers.tap import Tap
from desktop_host.servers.transports import make_transport
from desktop_host.servers.watch import Subscriptions, follow_modern, listen_to_lists, mind_stream
from desktop_host.servers.wiring import Deadline, Floor, Wiring


class Connection:
    """Open it, use `client`, close it. `gone` is set as soon as the stream has ended."""

    def __init__(self, wiring: Wiring, session: str | None = None) -> None:
        self.wiring = wiring
        self.floor = Floor(wiring.config.name, session)
        self.subscriptions = Subscriptions()
        self.facts = HttpFacts()
        self.gone = asyncio.Event()
        self.worn = asyncio.Event()
        """Set where it still answers calls, but notifications come no more: it should be replaced."""
        self.lost: FailureReport | None = None
        """Why it ended, unless we closed it."""
        self.era = ""
        self.server: FrozenDict = EMPTY
        self.capabilities: FrozenDict = EMPTY
        self.instructions: str | None = None
        self._client: Client | None = None
        self._catalog: Catalog | None = None
        self._stdio: StdioTransport | None = None
        self._seen = failure.Evidence()
        self._first_line = 0
        self._leave = asyncio.Event()
        self._closing = self._broken = False
        self._why = ""
        self._owner: asyncio.Task[None] | None = None
        self._chores: set[asyncio.Task[Any]] = set()

    @property
    def client(self) -> Client:
        """The SDK's client.

        Raises:
            KnownFault: `server_lost`, it is not open.
        """
        if self._client is None or self.gone.is_set():
            raise KnownFault("server_lost", f"{self.wiring.config.name} is not connected", server=self.floor.server)
        return self._client

    @property
    def catalog(self) -> Catalog:
        """What the server offers; there from `open` on."""
        assert self._catalog is not None
        return self._catalog

    @property
    def modern(self) -> bool:
        """Whether the era without handshake was negotiated."""
        return self.era in MODERN_PROTOCOL_VERSIONS

    @property
    def pid(self) -> int | None:
        """The server's process, where we started one."""
        return self._stdio.pid if self._stdio else None

    async def open(self, mode: str) -> None:
        """Connect in `mode` (as the SDK's `Client` has it).

        Raises:
            ConnectFailed: with the report.
        """
        ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        # An empty context: what runs here must not be taken for the call that happened to start it.
        self._owner = asyncio.create_task(self._own(mode, ready), context=contextvars.Context())
        try:
            await asyncio.shield(ready)
        except asyncio.CancelledError:
            await self.close()
            raise

    async def retire(self, patience_s: float) -> None:
        """Close once the calls that still run over it have ended, at the latest after `patience_s`."""
        try:
            async with asyncio.timeout(patience_s):
                while self.floor.calls:
                    self.floor.empty.clear()
                    await self.floor.empty.wait()
        except TimeoutError:
            pass  # They are told that the connection was closed.
        finally:
            await self.close()

    async def close(self) -> None:
        """Leave; ends a child process within about 5 s. Safe to call twice."""
        self._closing = True
        self._leave.set()
        owner = self._owner
        if owner is None or owner.done():
            return
        if self._client is None:
            owner.cancel()
        await asyncio.wait({owner})

    def give_up(self, why: str) -> None:
        """Leave soon, without waiting: a call found that the server is gone."""
        self._broken, self._why = True, why
        self._leave.set()

    def load_soon(self, kinds: tuple[str, ...]) -> None:
        """Fetch lists without waiting for them."""
        self._chore(self.catalog.load(kinds))

    async def roots_changed(self) -> None:
        """Tell a legacy server that the roots are others (modern servers ask each time)."""
        if self._client is not None and not self.modern and not self.gone.is_set():
            try:
                async with asyncio.timeout(5):
                    await self._client.session.send_notification(T.RootsListChangedNotification())
            except TimeoutError:
                self._note("the server does not read; it was not told that the roots changed")

    async def watch(self, uri: str) -> AsyncGenerator[str, None]:
        """Yield the URI at each update of a resource, until the connection or the server ends it."""
        follow = (
            follow_modern(self.client, uri) if self.modern else self.subscriptions.follow(self.client, uri, self.gone)
        )
        async with contextlib.aclosing(follow) as updates:
            async for updated in updates:
                yield updated

    # ---- the owner task
    async def _own(self, mode: str, ready: asyncio.Future[None]) -> None:
        config = self.wiring.config
        self._first_line = self.wiring.log.count
        limit = Deadline.to_connect(config.timeouts)
        error: BaseException | None = None
        try:
            async with contextlib.AsyncExitStack() as stack:
                async with self.floor.within(limit):
                    transport = await make_transport(
                        self.wiring, stack, self._seen, self.facts, self.floor,
                        on_start=self._started, on_line=self._line, on_signed_out=self.worn.set,
                    )  # fmt: skip
                    self._stdio = transport if isinstance(transport, StdioTransport) else None
                    tap = Tap(transport, self.wiring.wire, self.wiring.redact, self._ended, self.floor.session)
                    answers = Callbacks(self.wiring, self.floor, self._list_changed, self._resource_updated)
                    client = await stack.enter_async_context(make_client(self.wiring, tap, mode, answers))
                    if mode in MODERN_PROTOCOL_VERSIONS:
                        await introduce(client, mode)
                    self._adopt(client)
                if not ready.done():
                    ready.set_result(None)
                await self._leave.wait()
                self.gone.set()
                await self._stop_chores()
        except BaseException as raised:
            error = raised
        finally:
            self.gone.set()
            await self._finish(error, limit.timer.expired(), ready)
        task = asyncio.current_task()
        if isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling():
            raise error

    async def _finish(self, error: BaseException | None, expired: bool, ready: asyncio.Future[None]) -> None:
        await self._stop_chores()
        seen, stdio = self._seen, self._stdio
        if stdio is not None:
            seen.exit_code, seen.bad_stdout = stdio.own_exit_code, stdio.bad_line
            if stdio.pid is not None:
                await asyncio.to_thread(self.wiring.pids.remove, stdio.pid)
        seen.http_status = self.facts.status
        seen.timed_out = expired
        config, lines, redact = self.wiring.config, self.wiring.log.since(self._first_line), self.wiring.redact
        if ready.done():
            if self._broken or not self._closing:
                end = failure.lost(config.name, seen.exit_code, self._why)
                self.lost = failure.report(config, end, seen, lines, redact)
                code = "" if seen.exit_code is None else f" (exit code {seen.exit_code})"
                self._note(f"the connection ended{code}")
            return
        if self._closing:
            ready.cancel()
            return
        cause = (
            self.facts.fault
            or error
            or KnownFault("server_failed", f"{config.name} closed the connection", server=config.name, what="hung_up")
        )
        if self.facts.fault is None:
            seen.other_transport = await serves_the_other(config.launch, failure.status_of(cause, seen))
        made = failure.report(config, cause, seen, lines, redact)
        ready.set_exception(judged(made, cause, self.facts, expired and config.timeouts.connect_s <= PROBE_S))

    def _ended(self) -> None:
        """The stream is over; noticed by the tap at once, also between calls."""
        self._broken = self._broken or not self._closing
        self._leave.set()
        if self._client is not None:
            self.gone.set()

    def _adopt(self, client: Client) -> None:
        self.era = client.protocol_version
        info = client.server_info
        self.server = freeze(info.model_dump(by_alias=True, mode="json", exclude_none=True)) if info else EMPTY
        self.capabilities = freeze(client.server_capabilities.model_dump(by_alias=True, mode="json", exclude_none=True))
        self.instructions = client.instructions
        self._catalog = Catalog(self.wiring, self.floor, client, self.wiring.changed)
        self._client, self.facts.status, self.facts.fault = client, None, None
        if self.modern:
            self._chore(listen_to_lists(client, self._catalog, self.wiring.clock, self._note))
            return
        self._chore(mind_stream(self.facts, self.wiring.clock, self._note, self.worn))
        if "logging" in self.capabilities:
            self._chore(self.log_level_changed())

    def _chore(self, work: Any) -> None:
        task = asyncio.create_task(work)
        self._chores.add(task)
        task.add_done_callback(self._chores.discard)

    async def _stop_chores(self) -> None:
        if self._catalog is not None:
            await self._catalog.close()
        chores = set(self._chores)
        for task in chores:
            task.cancel()
        if chores:
            await asyncio.wait(chores)

    async def log_level_changed(self) -> None:
        """Tell a legacy server from which level on it should log (modern ones are told with each call)."""
        if self._client is None or self.modern or "logging" not in self.capabilities:
            return
        level: Any = self.wiring.config.log_level
        request = T.SetLevelRequest(params=T.SetLevelRequestParams(level=level))
        try:
            await self._client.session.send_request(request, T.EmptyResult, request_read_timeout_seconds=10)
        except (MCPError, ValidationError) as error:
            self._note(f"the log level could not be set: {error}")

    def _note(self, text: str) -> None:
        self.wiring.log.add("host", text, "info")

    # ---- making the parts
    def _list_changed(self, kind: str) -> None:
        if self._catalog is not None and not self._leave.is_set():
            self._catalog.refresh_soon(kind)

    def _resource_updated(self, uri: str) -> None:
        self.subscriptions.updated(uri)
        self.wiring.changed((f"resource:{uri}",))

    def _started(self, pid: int) -> None:
        self._chore(asyncio.to_thread(self.wiring.pids.add, pid, self.wiring.config.name))

    def _line(self, source: str, text: str) -> None:
        self.wiring.log.add(source, text, "warning" if source == "stdout" else None)
