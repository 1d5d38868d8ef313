"""What is done with one server by name: its tools called, its resources and prompts read, itself tested."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import replace
from types import ModuleType
from typing import TYPE_CHECKING, Any

from desktop_host.core.errors import HostError, KnownFault, PeerFault, UserFault
from desktop_host.core.exchange import Origin, Progress, ToolOutcome
from desktop_host.core.messages import Message, Outcome, Text
from desktop_host.core.servers import (
    PromptSpec,
    ResourceSpec,
    ServerConfig,
    ServerScope,
    ServerTest,
)
from desktop_host.core.tools import ToolSpec
from desktop_host.core.values import EMPTY, FrozenDict, freeze
from desktop_host.servers import translate
from desktop_host.servers.arguments import ArgumentCheck, without_nulls
from desktop_host.servers.keeper import Keeper
from desktop_host.servers.loading import sdk
from desktop_host.servers.pool import Pool

if TYPE_CHECKING:
    from desktop_host.servers.connection import Connection


class Desk:
    """Verbs on a server; each starts it if it does not run."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._check = ArgumentCheck()

    def tools(self, config: ServerConfig, session: str | None) -> tuple[ToolSpec, ...]:
        """The tools now known; switched-off ones carry `enabled=False`."""
        keeper = self._pool.find(config, session)
        if keeper is None:
            return ()
        off, only = set(config.disabled_tools), config.enabled_tools

        def hidden(tool: ToolSpec) -> bool:
            return tool.enabled and (tool.name in off or (only is not None and tool.name not in only))

        return tuple(replace(t, enabled=False) if hidden(t) else t for t in keeper.tools)

    def gone(self, full_name: str, why: str = "") -> ToolOutcome:
        """The outcome for a tool that is not there (any more)."""
        text = f"The tool {full_name!r} is no longer available{why}."
        return ToolOutcome(Outcome.ERROR, (Text(text),), raw=FrozenDict({"host_error": "not_found"}))

    async def call(
        self,
        config: ServerConfig,
        tool: str,
        arguments: FrozenDict,
        *,
        session: str | None,
        call_id: str | None,
        progress: Callable[[Progress], None] | None,
    ) -> ToolOutcome:
        """Check the arguments and run one call; everything that goes wrong is an outcome."""
        calls = await sdk("calls")
        keeper = self._pool.keeper(config, session)
        try:
            await keeper.ensure()
        except KnownFault as fault:
            return self._lost(config, fault.code, fault.message, calls)
        spec = next((t for t in self.tools(config, session) if t.name == tool), None)
        if spec is None or not spec.enabled:
            why = "" if spec is None else " (it is switched off)"
            return self.gone(f"{config.name}.{tool}", why)
        arguments = without_nulls(spec, arguments)
        if (problem := await self._check.problem(spec, arguments)) is not None:
            made: ToolOutcome = calls.failed(
                "usage", problem.text, field=problem.field, faults=problem.faults, form=problem.form
            )
            return made

        underway = calls.Underway()

        async def run(connection: Connection) -> ToolOutcome:
            outcome: ToolOutcome = await calls.call_tool(
                connection, tool, arguments,
                session=session, call_id=call_id, progress=progress, underway=underway,
            )  # fmt: skip
            return outcome

        try:
            done: ToolOutcome = await self._with(keeper, run, calls, lambda: underway.task is not None)
            if (told := await self._check.unlike_announced(spec, done)) is not None:
                self._pool.wiring(config).log.add("message", told, "warning")
            return done
        except HostError as fault:
            return self._lost(config, fault.code, fault.message, calls)

    async def resources(self, config: ServerConfig) -> tuple[ResourceSpec, ...]:
        """Resources and templates.

        Raises:
            KnownFault: the server cannot be used, or did not give the list.
        """
        found: tuple[ResourceSpec, ...] = await self._list(config, "resources")
        return found

    async def prompts(self, config: ServerConfig) -> tuple[PromptSpec, ...]:
        """Prompts; raises as `resources`."""
        found: tuple[PromptSpec, ...] = await self._list(config, "prompts")
        return found

    async def read_resource(self, config: ServerConfig, uri: str, origin: Origin | None = None) -> ToolOutcome:
        """The contents of a resource as embedded blocks.

        Raises:
            UserFault: `not_found`.
            PeerFault: the server refused.
        """
        started = time.perf_counter()
        whole = await self._ask(config, "resource", uri, EMPTY, lambda c: c.client.read_resource(uri), origin)
        listed = whole.get("contents")
        made = tuple(translate.contents(x) for x in listed if isinstance(x, dict)) if isinstance(listed, list) else ()
        took = (time.perf_counter() - started) * 1000
        return ToolOutcome(Outcome.OK, made, None, took, freeze(whole))

    async def get_prompt(
        self, config: ServerConfig, prompt: str, arguments: FrozenDict, origin: Origin | None = None
    ) -> tuple[Message, ...]:
        """A filled prompt; raises as `read_resource`."""
        texts = {k: v if isinstance(v, str) else str(v) for k, v in arguments.items()}
        whole = await self._ask(
            config, "prompt", prompt, arguments, lambda c: c.client.get_prompt(prompt, texts), origin
        )
        listed = whole.get("messages")
        return tuple(translate.message(m) for m in listed) if isinstance(listed, list) else ()

    async def watch(self, config: ServerConfig, uri: str) -> AsyncGenerator[str, None]:
        """Yield the URI at each update. A connection that was lost is watched again; one update stands for the gap.

        Raises:
            UserFault: `usage`, the server has no connection that lasts.
            KnownFault: the server cannot be used.
            PeerFault: it does not let the resource be watched.
        """
        from mcp import MCPError

        if config.scope is ServerScope.CALL:
            raise UserFault("usage", f"{config.name} has a connection for each call only; it cannot be watched")
        keeper = self._pool.keeper(config)
        gap = False
        while True:
            connection = await keeper.current(config.timeouts.connect_s)
            if gap:
                yield uri
            try:
                async with aclosing(connection.watch(uri)) as updates:
                    async for updated in updates:
                        yield updated
            except MCPError as error:
                if not connection.gone.is_set():
                    raise PeerFault(
                        "protocol_error", f"{config.name} does not let {uri} be watched: {error.message}",
                        server=config.name,
                    ) from error  # fmt: skip
            gap = True
            await self._pool.clock.sleep(1.0)

    async def test(self, config: ServerConfig) -> ServerTest:
        """Connect afresh, list, and tell what was seen; the running server is left alone."""
        module = await sdk()
        wiring = self._pool.wiring_for_test(config)
        started = time.perf_counter()
        try:
            connection: Connection = await module.connect(wiring)
        except module.ConnectFailed as failed:
            return ServerTest(config.name, False, error=failed.report)
        connected = time.perf_counter()
        try:
            await connection.catalog.load()
            listed = time.perf_counter()
            catalog = connection.catalog
            return ServerTest(
                name=config.name,
                ok=not catalog.errors.get("tools"),
                era=connection.era,
                server=connection.server,
                capabilities=connection.capabilities,
                tools=len(catalog.tools),
                resources=len(catalog.resources),
                prompts=len(catalog.prompts),
                connect_ms=(connected - started) * 1000,
                list_ms=(listed - connected) * 1000,
                error=module.list_failure(connection),
            )
        finally:
            await connection.close()
            await wiring.log.close()

    async def over(self, config: ServerConfig, work: Callable[[Connection], Awaitable[Any]]) -> Any:
        """Run `work` over a connection to the server, which is started if need be.

        Raises:
            KnownFault: the server cannot be used.
        """
        keeper = self._pool.keeper(config)
        await keeper.ensure()
        return await self._with(keeper, work, await sdk("calls"))

    # ---- inside
    async def _with(
        self,
        keeper: Keeper,
        work: Callable[[Connection], Awaitable[Any]],
        calls: ModuleType,
        goes_on: Callable[[], bool] = lambda: False,
    ) -> Any:
        """Run over the keeper's connection, or over one of its own where the scope is the call.

        `goes_on`: asked when the server was lost; `work` can take up over a new connection what it began.
        """
        config = keeper.wiring.config
        if config.scope is ServerScope.CALL:
            module = await sdk()
            try:
                own: Connection = await module.connect(keeper.wiring)
            except module.ConnectFailed as failed:
                raise KnownFault(failed.report.code, failed.report.message, server=config.name) from failed
            try:
                await own.catalog.load(("tools",))  # Modern servers may want arguments mirrored into headers.
                return await work(own)
            except (calls.ServerGone, calls.SessionLost) as gone:
                raise KnownFault("server_lost", f"{config.name} was lost: {gone}", server=config.name) from gone
            finally:
                await own.close()
        connection = await keeper.current()
        for attempt in (1, 2):
            try:
                return await work(connection)
            except calls.SessionLost as lost:
                if attempt == 2:
                    raise KnownFault("server_lost", f"{config.name} forgot the session twice") from lost
                connection = await keeper.renew(connection)
            except calls.ServerGone as gone:
                keeper.unreachable(connection, f"{config.name} could not be reached: {gone}")
                if attempt == 2 or not goes_on():
                    raise KnownFault("server_lost", f"{config.name} was lost during the call: {gone}") from gone
                await connection.gone.wait()
                connection = await keeper.current(config.timeouts.connect_s)
        raise AssertionError("unreachable")

    async def _ask(
        self,
        config: ServerConfig,
        kind: str,
        what: str,
        arguments: FrozenDict,
        send: Callable[[Connection], Awaitable[Any]],
        origin: Origin | None,
    ) -> dict[str, Any]:
        calls = await sdk("calls")

        async def work(connection: Connection) -> dict[str, Any]:
            whole: dict[str, Any] = await calls.ask(connection, calls.running(what, arguments, kind), send, origin)
            return whole

        keeper = self._pool.keeper(config)
        await keeper.ensure()
        made: dict[str, Any] = await self._with(keeper, work, calls)
        return made

    async def _list(self, config: ServerConfig, kind: str) -> Any:
        keeper = self._pool.keeper(config)
        if config.scope is ServerScope.CALL:
            await keeper.ensure()
            return getattr(keeper, kind)
        catalog = (await keeper.current()).catalog
        await catalog.ensure(kind)
        if why := catalog.errors.get(kind):
            raise PeerFault("protocol_error", f"{config.name} did not give its {kind}: {why}", server=config.name)
        return getattr(catalog, kind)

    def _lost(self, config: ServerConfig, code: str, message: str, calls: ModuleType) -> ToolOutcome:
        made: ToolOutcome = calls.failed(code, f"The server {config.name!r} could not run the call: {message}")
        return made
