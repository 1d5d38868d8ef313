"""Calls from outside, through the gateway: the same gate, the same budgets, kept as a session of their own."""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from fnmatch import fnmatchcase
from typing import TypeVar

from desktop_host.core.errors import HostError, UserFault
from desktop_host.core.events import (
    AssistantSaid,
    ServerChanged,
    ToolRequested,
    ToolSettled,
    ToolStarted,
    TurnEnded,
    TurnStarted,
    UserSaid,
)
from desktop_host.core.exchange import Origin, Progress, ToolOutcome
from desktop_host.core.host_calls import Asking, Caller
from desktop_host.core.host_tools import ALIAS
from desktop_host.core.messages import Message, Outcome, Role, Text, ToolCall
from desktop_host.core.permissions import Effect, Rule
from desktop_host.core.server_ports import Completion, ServerReach
from desktop_host.core.servers import PromptSpec, ResourceSpec, ServerState
from desktop_host.core.sessions import SessionOptions, TurnStatus, TurnStop
from desktop_host.core.tools import ToolSpec
from desktop_host.core.values import EMPTY, FrozenDict
from desktop_host.engine.bus import Reader
from desktop_host.engine.host import Host
from desktop_host.engine.parts import Parts
from desktop_host.engine.sessions import Sessions

T = TypeVar("T")
LISTS = frozenset({"tools", "resources", "prompts"})
_log = logging.getLogger(__name__)


class OutsideCalls:
    """The `HostCalls` of a host."""

    def __init__(self, parts: Parts, sessions: Sessions, servers: ServerReach) -> None:
        self._parts = parts
        self._sessions = sessions
        self._servers = servers
        self._made: dict[str, asyncio.Task[str]] = {}
        self._used: set[str] = set()
        self._running: dict[str, asyncio.Semaphore] = {}

    async def open(self, caller: Caller) -> None:
        await self._parts.tools.prepare(await self._session(caller), self._aliases(caller), ())

    async def tools(self, caller: Caller) -> tuple[ToolSpec, ...]:
        session = await self._session(caller)
        found = []
        for spec in self._parts.tools.session_tools(session, self._aliases(caller)):
            if not spec.enabled or spec.server == ALIAS or not _sees(caller, spec.full_name):
                continue
            verdict = await self._parts.gate.decide(spec, ToolCall("", spec.wire_name), _rules(caller))
            if verdict.effect is not Effect.DENY:
                found.append(spec)
        return tuple(found)

    async def call(
        self,
        caller: Caller,
        spec: ToolSpec,
        arguments: FrozenDict,
        progress: Callable[[Progress], None],
        client: Asking | None = None,
    ) -> ToolOutcome:
        session = await self._session(caller)
        self._used.add(session)
        await self._sessions.actor(session)  # Open: what servers spend while they run the call is this session's.
        call = ToolCall(uuid.uuid4().hex, spec.wire_name, arguments)
        verdict = await self._parts.gate.decide(spec, call, _rules(caller))
        decided = verdict
        if verdict.effect is Effect.ASK:
            verdict, _rule = await self._parts.gate.ask(session, spec, call, lambda: _rules(caller))
            await self._parts.gate.recheck()
        _log.info("gateway: %s calls %s: %s", caller.name, spec.full_name, verdict.effect.value)
        started = self._parts.clock.monotonic()
        if verdict.effect is not Effect.ALLOW:
            outcome = _refused(spec, decided.effect is Effect.ASK)
        else:
            limit = self._parts.settings.current().tools.parallel
            try:
                async with self._running.setdefault(caller.name, asyncio.Semaphore(limit)):
                    with self._parts.askers.held(session, call.id, spec.server, spec.name, client):
                        outcome = await self._parts.tools.call(session, call.id, spec, arguments, verdict, progress)
            except asyncio.CancelledError:
                await asyncio.shield(self._keep(session, spec, call, decided.effect, ToolOutcome(Outcome.CANCELLED), 0))
                raise
            except HostError as fault:
                outcome = ToolOutcome(Outcome.ERROR, (Text(fault.message),))
        took = outcome.duration_ms or (self._parts.clock.monotonic() - started) * 1000
        await self._keep(session, spec, call, decided.effect, outcome, took)
        return outcome

    async def _keep(
        self, session: str, spec: ToolSpec, call: ToolCall, effect: Effect, outcome: ToolOutcome, took: float
    ) -> None:
        """Journal a call as a turn of its own, whole: calls from outside run side by side."""
        context = (await self._sessions.actor(session)).context
        settled = ToolSettled(call.id, outcome.outcome, outcome.content, outcome.structured, took)
        ran = outcome.outcome is not Outcome.DENIED
        async with context.exclusive:
            context.log.turn += 1
            await context.emit(
                UserSaid(f"{spec.full_name}", source="gateway"),
                TurnStarted(),
                AssistantSaid(Message(Role.ASSISTANT, (call,)), "gateway"),
                ToolRequested(call.id, spec.server, spec.name, call.wire_name, call.arguments, effect, "",
                              spec.display_name),
                *((ToolStarted(call.id),) if ran else ()),
                settled,
                TurnEnded(TurnStatus.DONE, TurnStop.END),
            )  # fmt: skip

    async def close(self) -> None:
        made = await asyncio.gather(*self._made.values(), return_exceptions=True)
        for session in made:
            if isinstance(session, str):
                await self._sessions.release(session)
                await self._parts.tools.release(session)
                if session not in self._used:
                    await self._parts.history.delete(session)

    # ---- resources and prompts
    async def resources(self, caller: Caller) -> tuple[ResourceSpec, ...]:
        return await self._gather(caller, self._servers.resources)

    async def prompts(self, caller: Caller) -> tuple[PromptSpec, ...]:
        return await self._gather(caller, self._servers.prompts)

    async def read(self, caller: Caller, server: str, uri: str, client: Asking | None = None) -> ToolOutcome:
        self._known(caller, server)
        _log.info("gateway: %s reads a resource of %s", caller.name, server)
        async with self._asking(caller, server, client) as origin:
            return await self._servers.read_resource(server, uri, origin)

    async def prompt(
        self, caller: Caller, server: str, name: str, arguments: FrozenDict, client: Asking | None = None
    ) -> tuple[Message, ...]:
        self._known(caller, server)
        async with self._asking(caller, server, client) as origin:
            return await self._servers.get_prompt(server, name, arguments, origin)

    async def complete(
        self, caller: Caller, server: str, ref: str, argument: str, value: str, context: FrozenDict = EMPTY
    ) -> Completion:
        self._known(caller, server)
        return await self._servers.complete(server, ref, argument, value, context)

    def watch(self, caller: Caller, server: str, uri: str) -> AsyncGenerator[str, None]:
        self._known(caller, server)
        return self._servers.watch(server, uri)

    async def changes(self) -> AsyncIterator[frozenset[str]]:
        reader: Reader = self._parts.bus.subscribe(None, capacity=100, lossless=False)
        try:
            async for batch in reader:
                changed: set[str] = set()
                for stamped in batch:
                    if isinstance(stamped.event, ServerChanged):
                        gone = stamped.event.state not in (ServerState.READY.value, ServerState.STARTING.value)
                        changed |= LISTS if gone else LISTS & set(stamped.event.lists)
                        changed |= LISTS if stamped.event.state == ServerState.READY.value else frozenset()
                if changed:
                    yield frozenset(changed)
        finally:
            reader.close()

    # ---- inside
    @asynccontextmanager
    async def _asking(self, caller: Caller, server: str, client: Asking | None) -> AsyncGenerator[Origin, None]:
        """While open, what the server asks for this read can be put to its client."""
        session, number = await self._session(caller), uuid.uuid4().hex
        with self._parts.askers.held(session, number, server, "", client):
            yield Origin(server, session, number)

    def _aliases(self, caller: Caller) -> tuple[str, ...]:
        """The servers of which the caller can see anything."""
        wanted = [pattern.partition(".")[0] for pattern in caller.tools]
        names = [c.name for c in self._servers.configs() if c.enabled]
        return tuple(name for name in names if any(fnmatchcase(name, pattern) for pattern in wanted))

    def _known(self, caller: Caller, server: str) -> None:
        if server not in self._aliases(caller):
            raise UserFault("not_found", f"there is no server {server!r}", reason="server", name=server)

    async def _gather(self, caller: Caller, ask: Callable[[str], Awaitable[tuple[T, ...]]]) -> tuple[T, ...]:
        async def one(name: str) -> tuple[T, ...]:
            status = self._servers.status(name)
            if status.state is not ServerState.READY:
                return ()
            try:
                return await ask(name)
            except HostError as fault:
                _log.info("gateway: %s gave no list: %s", name, fault.message)
                return ()

        found = await asyncio.gather(*(one(name) for name in self._aliases(caller)))
        return tuple(item for items in found for item in items)

    async def _session(self, caller: Caller) -> str:
        """The session in which a caller's calls are kept: one for each time the gateway is served and used."""
        if caller.name not in self._made:
            options = SessionOptions(rules=_rules(caller))
            made = self._sessions.create(options, f"Gateway: {caller.name}")
            self._made[caller.name] = asyncio.create_task(made)
        return await asyncio.shield(self._made[caller.name])


def outside(host: Host) -> OutsideCalls:
    """A host for callers from outside."""
    return OutsideCalls(host._parts, host._sessions, host.servers)


def _sees(caller: Caller, full_name: str) -> bool:
    return any(fnmatchcase(full_name, pattern) for pattern in caller.tools)


def _rules(caller: Caller) -> tuple[Rule, ...]:
    return tuple(Rule(Effect.ALLOW, pattern, origin="command-line") for pattern in caller.allow)


def _refused(spec: ToolSpec, asked: bool) -> ToolOutcome:
    why = (
        f"nobody is here to be asked. Whoever serves the gateway can allow it with --allow {spec.full_name!r},"
        " or for good in the app"
        if asked
        else "a rule of this profile denies it"
    )
    outcome = ToolOutcome(Outcome.DENIED, (Text(f"{spec.full_name} was not run: {why}."),))
    return outcome
