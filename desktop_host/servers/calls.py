"""One tool call over a connection: its deadline, its cancellation, and an outcome for whatever happens."""

from __future__ import annotations

import itertools
import time
from collections.abc import Awaitable, Callable
from typing import Any

import mcp_types as T
from mcp import InputRequiredRoundsExceededError, MCPError
from opentelemetry import trace
from pydantic import ValidationError

from desktop_host.core.errors import HostError, KnownFault, PeerFault, UserFault
from desktop_host.core.exchange import Origin, Progress, RunningCall, ToolOutcome
from desktop_host.core.messages import Outcome, Text
from desktop_host.core.values import EMPTY, FrozenDict, freeze, thaw
from desktop_host.servers import translate
from desktop_host.servers.connection import Connection
from desktop_host.servers.failure import main_leaf
from desktop_host.servers.http import HTTP_FAILED
from desktop_host.servers.modern_tasks import follow
from desktop_host.servers.tap import WHOLE
from desktop_host.servers.tool_tasks import Underway, noted, run_task
from desktop_host.servers.url_asks import opened
from desktop_host.servers.wiring import CALLING, MARKS, CallInFlight, Deadline, idle_s

_numbers = itertools.count(1)
MOST_PAGES = 10
"""How often one call may want pages to be visited first; as many rounds as the modern era has."""
LOG_LEVEL = "io.modelcontextprotocol/logLevel"
RESOURCE_NOT_FOUND = -32002
"""The older code for a resource that is not there."""


class SessionLost(Exception):
    """The server no longer knows our MCP session, so this request did not run: connect anew and send it again."""


class ServerGone(Exception):
    """The server ended, or could not be reached, while the call was open."""


def failed(
    code: str, text: str, *, outcome: Outcome = Outcome.ERROR, duration_ms: float = 0.0, **facts: str
) -> ToolOutcome:
    """An outcome that the host makes; `raw` tells the code and what else is known."""
    return ToolOutcome(outcome, (Text(text),), None, duration_ms, FrozenDict({"host_error": code, **facts}))


def running(name: str, arguments: FrozenDict = EMPTY, kind: str = "tool") -> RunningCall:
    """A request that is about to be sent, told from every other of this run."""
    return RunningCall(f"{next(_numbers):08d}", name, arguments, kind)


async def within_deadline(
    connection: Connection,
    work: Callable[[Deadline], Awaitable[Any]],
    *,
    about: RunningCall,
    session: str | None,
    call_id: str | None,
) -> Any:
    """Run one request that may take long; the connection's callbacks know on whose behalf it runs.

    Raises:
        TimeoutError: the deadline passed; the request was cancelled on the wire.
    """
    call = CallInFlight(connection.floor, session, call_id, Deadline(connection.wiring.timeouts), about)
    connection.floor.calls.add(call)
    token = CALLING.set(call)
    try:
        async with call.deadline.timer:
            call.running = True
            if connection.floor.asks:
                call.deadline.hold(True)
            return await work(call.deadline)
    finally:
        call.running = False
        CALLING.reset(token)
        connection.floor.leave(call)


async def call_tool(
    connection: Connection,
    tool: str,
    arguments: FrozenDict,
    *,
    session: str | None,
    call_id: str | None,
    progress: Callable[[Progress], None] | None,
    underway: Underway,
) -> ToolOutcome:
    """Send `tools/call` and wait for its end; a call that has become a task is followed.

    Raises:
        SessionLost, ServerGone: connect anew and call this again with the same `underway`.
    """
    started = time.perf_counter()
    name = connection.wiring.config.name
    report, open_ = progress, True
    about = running(tool, arguments)

    def took() -> float:
        return (time.perf_counter() - started) * 1000

    async def send(deadline: Deadline) -> Any:
        async def on_progress(progress: float, total: float | None, message: str | None) -> None:
            if open_:  # It may still come after the result.
                deadline.touch()
                if report is not None:
                    report(Progress(progress, total, message))

        def on_status(message: str | None) -> None:
            deadline.touch()
            if report is not None:
                report(Progress(0, None, message))

        client, underway.told = connection.client, on_status
        trace.get_current_span().set_attributes({
            "mcp.protocol.version": connection.era,
            "network.transport": "pipe" if connection.wiring.config.transport == "stdio" else "tcp",
        })  # fmt: skip
        if underway.task is not None and connection.modern:
            return await follow(client.session, underway)
        if underway.task is not None or tool in connection.catalog.as_tasks:
            return await run_task(client, tool, thaw(arguments), underway)
        level = {LOG_LEVEL: connection.wiring.config.log_level} if connection.modern else {}
        meta: Any = {**MARKS.get(), **level} or None
        for tries in itertools.count(1):
            try:
                with noted(underway):
                    return await client.call_tool(tool, thaw(arguments), progress_callback=on_progress, meta=meta)
            except MCPError as error:
                if tries > MOST_PAGES or underway.task is not None:
                    raise
                origin = Origin(connection.floor.server, session, call_id, (about,))
                # Ends when the server is content, or when the person (or who stands in for them) has had enough.
                if error.code != T.URL_ELICITATION_REQUIRED or not await opened(connection, error, origin):
                    raise

    try:
        result = await within_deadline(connection, send, about=about, session=session, call_id=call_id)
    except TimeoutError:
        limits = connection.wiring.timeouts
        told = (
            f"{name} gave no sign of life for {idle_s(limits):g} s (at most {limits.call_max_s:g} s in all); cancelled"
        )
        return failed("tool_timed_out", told, outcome=Outcome.TIMED_OUT, duration_ms=took())
    except HostError as error:
        return failed(error.code, error.message, duration_ms=took())
    except (MCPError, ValidationError, RuntimeError, BaseExceptionGroup) as raised:
        return _explained(connection, main_leaf(raised), took())
    finally:
        open_ = False
    whole = result if isinstance(result, dict) else (result.meta or {}).get(WHOLE)
    if not isinstance(whole, dict):
        return failed(
            "protocol_error", f"{name} answered {tool!r} with something that is no result", duration_ms=took()
        )
    return translate.tool_outcome(whole, took())


async def ask(
    connection: Connection,
    about: RunningCall,
    send: Callable[[Connection], Awaitable[Any]],
    origin: Origin | None = None,
) -> dict[str, Any]:
    """Run a read (a resource, a prompt) and return its whole result; `origin`: on whose behalf.

    Raises:
        UserFault: `not_found`.
        PeerFault: the server refused or broke the protocol.
        KnownFault: `tool_timed_out`.
        SessionLost, ServerGone: see `call_tool`.
    """
    name, what = connection.wiring.config.name, about.name

    async def work(_deadline: Deadline) -> Any:
        return await send(connection)

    try:
        session = origin.session if origin is not None else connection.floor.session
        call_id = origin.call_id if origin is not None else None
        result = await within_deadline(connection, work, about=about, session=session, call_id=call_id)
    except TimeoutError as error:
        raise KnownFault("tool_timed_out", f"{name} did not answer in time for {what!r}", server=name) from error
    except (MCPError, ValidationError, RuntimeError, BaseExceptionGroup) as raised:
        leaf = main_leaf(raised)
        if isinstance(leaf, MCPError) and leaf.code in (T.INVALID_PARAMS, RESOURCE_NOT_FOUND):
            raise UserFault("not_found", f"{name}: {leaf.message}", server=name, name=what) from leaf
        outcome = _explained(connection, leaf, 0.0)
        told = " ".join(b.text for b in outcome.content if isinstance(b, Text))
        raise PeerFault("protocol_error", told, server=name) from leaf
    whole = (result.meta or {}).get(WHOLE)
    if not isinstance(whole, dict):
        raise PeerFault("protocol_error", f"{name} answered {what!r} with something that is no result", server=name)
    return whole


def _explained(connection: Connection, error: BaseException, took: float) -> ToolOutcome:
    """An outcome for what went wrong on the wire.

    Raises:
        SessionLost: see `call_tool`.
        ServerGone: the server is gone or out of reach.
    """
    name, redact = connection.wiring.config.name, connection.wiring.redact
    if isinstance(error, MCPError):
        if connection.facts.session_lost and "session" in error.message.lower():
            raise SessionLost from error
        gone = connection.gone.is_set() or (error.code == T.CONNECTION_CLOSED and error.message == "Connection closed")
        if gone or (error.code == HTTP_FAILED and connection.facts.unreachable):
            raise ServerGone(error.message) from error
        if (
            connection.modern and (error.code, error.message) in connection.floor.refusals
        ):  # Ours: that era has no word for a question without answer.
            told = f"The call ended: {name} asked for something that it did not get ({redact(error.message)})."
            return ToolOutcome(Outcome.ERROR, (Text(told),), None, took, freeze({"host_error": "permission"}))
        text = redact(f"{error.message} (code {error.code})")
        if "no back-channel" in error.message or "back-channel" in error.message:
            text += ". The server asks the host in the way of the older protocol: set its protocol to legacy."
        return ToolOutcome(
            Outcome.ERROR,
            (Text(f"{name} refused the call: {text}"),),
            None,
            took,
            freeze({"error": {"code": error.code, "message": redact(error.message)}}),
        )
    if isinstance(error, InputRequiredRoundsExceededError):
        return failed("protocol_error", f"{name} kept asking for input and was stopped", duration_ms=took)
    if isinstance(error, (ValidationError, RuntimeError)):
        first = str(error).splitlines()[0] if str(error) else type(error).__name__
        return failed("protocol_error", redact(f"{name} broke the protocol: {first}"), duration_ms=took)
    raise error
