"""Calls of the gateway's clients while they run: progress, log lines, and questions of servers, in either era.

An older client is asked in mid-call. One of 2026-07-28 gets an `input_required` result: the call waits, and the
client's next round, with the answers, finds it by its state. Every question names the server and the tool.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import uuid
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, TypeAlias, TypeVar

import anyio
import mcp_types as T
from mcp import MCPError
from mcp.server import ServerRequestContext
from mcp.shared.message import ServerMessageMetadata
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from desktop_host.core.errors import UserFault
from desktop_host.core.exchange import (
    ElicitReply,
    FormRequest,
    Progress,
    SamplingReply,
    SamplingRequest,
    UrlRequest,
)
from desktop_host.core.values import Json, freeze, thaw
from desktop_host.servers import gateway_wire as wire
from desktop_host.servers.gateway_news import connection_of

R = TypeVar("R")
PERSON_S = 300.0
"""How long a question, and a call that waits for its next round, may stay without an answer."""
WAITING = 100
"""Calls of one caller that wait for their next round at most; the oldest is given up for a new one."""
SEND_S = 5.0
"""A client that takes nothing for so long is told nothing any more of this call."""
LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
LOG_LEVEL = "io.modelcontextprotocol/logLevel"
_BROKEN = (MCPError, TimeoutError, OSError, anyio.BrokenResourceError, anyio.ClosedResourceError)
_Context: TypeAlias = ServerRequestContext[Any, Any]


def modern(ctx: _Context) -> bool:
    """Whether the client speaks the era without handshake."""
    return ctx.protocol_version in MODERN_PROTOCOL_VERSIONS


class Operation:
    """One call under way; the engine's `Asking` for it."""

    def __init__(self, what: str, connection: str, ctx: _Context, level: str) -> None:
        self.state = ""
        """Finds it again; another one for each round."""
        self.what = what
        """What is called, filled or read, as the client named it: its later rounds must name the same."""
        # A question of a modern client belongs to one request; another request of it could not carry the answer.
        self._name = secrets.token_urlsafe(8) if modern(ctx) else connection
        self._ctx, self._level = ctx, level
        self._can = ctx.session.client_capabilities or T.ClientCapabilities()
        self._outbox: list[Progress | tuple[str, str, str | None, Json]] = []
        self._deaf = False
        self._open: dict[str, tuple[Any, asyncio.Future[Any]]] = {}
        self._told: set[str] = set()
        self._changed = asyncio.Event()
        self._task: asyncio.Task[Any] | None = None

    @property
    def name(self) -> str:
        """See `Asking`."""
        return self._name

    def begin(self, work: Coroutine[Any, Any, Any]) -> None:
        """Start the call; `step` sees it through."""
        self._task = asyncio.create_task(work)
        self._task.add_done_callback(lambda _done: self._changed.set())

    # ---- what the engine tells and asks
    def report(self, progress: Progress) -> None:
        """Tell the client how far the call is; returns at once."""
        self._outbox.append(progress)
        self._changed.set()

    def log(self, server: str, level: str, logger: str | None, data: Json) -> None:
        """See `Asking`."""
        self._outbox.append((server, level, logger, data))
        self._changed.set()

    def takes(self, request: SamplingRequest | FormRequest | UrlRequest) -> bool:
        """See `Asking`."""
        if isinstance(request, SamplingRequest):
            can = self._can.sampling
            return can is not None and (not request.tools or can.tools is not None)
        asked = self._can.elicitation
        if asked is None:
            return False
        return asked.url is not None if isinstance(request, UrlRequest) else asked.form is not None or asked.url is None

    async def sample(self, server: str, tool: str, request: SamplingRequest) -> SamplingReply:
        """See `Asking`."""
        asked = T.CreateMessageRequest(params=wire.sampling_params(request, server, tool))
        expected = T.CreateMessageResultWithTools if request.tools else T.CreateMessageResult
        try:
            return wire.sampling_reply(await self._ask(asked, expected))
        except _BROKEN as error:
            why = error.message if isinstance(error, MCPError) else "it did not answer"
            raise UserFault("permission", f"the gateway's client refused to sample: {why}", reason="refused") from error

    async def elicit(self, server: str, tool: str, request: FormRequest | UrlRequest) -> ElicitReply:
        """See `Asking`."""
        said = wire.asked_by(server, tool, request.message)
        params: T.ElicitRequestFormParams | T.ElicitRequestURLParams
        if isinstance(request, FormRequest):
            params = T.ElicitRequestFormParams(message=said, requested_schema=thaw(request.schema))
        else:
            number = None if modern(self._ctx) else request.elicitation_id or uuid.uuid4().hex
            params = T.ElicitRequestURLParams(message=said, url=request.url, elicitation_id=number)
        try:
            answer = await self._ask(T.ElicitRequest(params=params), T.ElicitResult)
        except _BROKEN:
            return ElicitReply("cancel")
        return ElicitReply(answer.action, freeze(answer.content) if answer.content is not None else None)

    async def _ask(self, request: Any, expected: type[Any]) -> Any:
        if not modern(self._ctx):
            meta = ServerMessageMetadata(related_request_id=self._ctx.request_id)
            send = self._ctx.session.send_request(request, expected, metadata=meta)
            return await asyncio.wait_for(send, PERSON_S)
        key, future = f"q{secrets.token_hex(6)}", asyncio.get_running_loop().create_future()
        self._open[key] = (request, future)
        self._changed.set()
        try:
            answer = await asyncio.wait_for(future, PERSON_S)
        finally:
            del self._open[key]
        if not isinstance(answer, expected):
            raise MCPError(code=T.INVALID_PARAMS, message=f"{type(answer).__name__} is no answer to what was asked")
        return answer

    # ---- what the client does
    def answered(self, given: Mapping[str, Any]) -> None:
        """A round brought these answers; what it left open is asked again."""
        for key, answer in given.items():
            _request, future = self._open.get(key, (None, None))
            if future is not None and not future.done():
                future.set_result(answer)
        self._told -= {key for key, (_request, future) in self._open.items() if not future.done()}

    async def step(self, ctx: _Context, level: str) -> Any:
        """Go on until the end, or until a client of 2026-07-28 has to be asked. Cancelling cancels the call."""
        assert self._task is not None
        self._ctx, self._level = ctx, level
        try:
            while True:
                self._changed.clear()
                await self._flush()
                if self._task.done():
                    return await self._task
                asked = {k: r for k, (r, f) in self._open.items() if k not in self._told and not f.done()}
                if asked:
                    self._told |= asked.keys()
                    self.state = secrets.token_urlsafe(24)
                    return T.InputRequiredResult(input_requests=asked, request_state=self.state)
                await self._changed.wait()
        except asyncio.CancelledError:
            await self.give_up()
            raise

    async def give_up(self) -> None:
        """Cancel the call, also on the wire."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _flush(self) -> None:
        """Send what was told, in order, before anything else."""
        while self._outbox:
            told = self._outbox.pop(0)
            if not self._deaf:
                try:
                    await asyncio.wait_for(self._send(told), SEND_S)
                except _BROKEN:
                    self._deaf = True

    async def _send(self, told: Progress | tuple[str, str, str | None, Json]) -> None:
        session = self._ctx.session
        if isinstance(told, Progress):
            await session.report_progress(told.progress, told.total, told.message)
            return
        server, level, logger, data = told
        if not self._level or level not in LEVELS or LEVELS.index(level) < LEVELS.index(self._level):
            return
        line = T.LoggingMessageNotificationParams(
            level=level,  # type: ignore[arg-type]  # One of LEVELS.
            logger=f"{server}: {logger}" if logger else server, data=thaw(data),
        )  # fmt: skip
        await session.send_notification(T.LoggingMessageNotification(params=line), self._ctx.request_id)


class Operations:
    """The calls of one caller, as far as they wait for a next round, and what its connections want logged."""

    def __init__(self) -> None:
        self._waiting: dict[str, Operation] = {}
        self._levels: dict[str, str] = {}
        self._given_up: set[asyncio.Task[None]] = set()

    def set_level(self, connection: str, level: str) -> None:
        """From which level on an older client wants log lines."""
        self._levels.pop(connection, None)
        self._levels[connection] = level
        if len(self._levels) > 1_000:
            self._levels.pop(next(iter(self._levels)))

    def _level(self, ctx: _Context, connection: str) -> str:
        """From which level on this request's client wants log lines; empty: none."""
        if not modern(ctx):
            return self._levels.get(connection, "info")
        asked = dict(ctx.meta or {}).get(LOG_LEVEL)
        return asked if asked in LEVELS else ""

    async def run(
        self,
        ctx: _Context,
        params: T.InputResponseRequestParams,
        what: str,
        work: Callable[[Operation], Coroutine[Any, Any, R]],
    ) -> R | T.InputRequiredResult:
        """Do `work`, or go on with it where this is a later round; `what` it is about, as the client named it.

        Raises:
            MCPError: there is no call that this round could go on with.
        """
        connection = connection_of(ctx)
        level = self._level(ctx, connection)
        operation = self._resumed(params, what)
        if operation is None:
            operation = Operation(what, connection, ctx, level)
            operation.begin(work(operation))
        result: R | T.InputRequiredResult = await operation.step(ctx, level)
        if isinstance(result, T.InputRequiredResult):
            self._wait(operation)
        return result

    def _resumed(self, params: T.InputResponseRequestParams, what: str) -> Operation | None:
        if params.request_state is None:
            return None
        found = self._waiting.get(params.request_state)
        if found is None or found.what != what:
            raise MCPError(code=T.INVALID_PARAMS, message="this request_state belongs to no call that waits; call anew")
        del self._waiting[found.state]
        found.answered(params.input_responses or {})
        return found

    def _wait(self, operation: Operation) -> None:
        while len(self._waiting) >= WAITING:
            self._give_up(next(iter(self._waiting.values())))
        self._waiting[operation.state] = operation
        asyncio.get_running_loop().call_later(PERSON_S, self._expire, operation.state)

    async def close(self) -> None:
        """Give up all that wait."""
        for operation in list(self._waiting.values()):
            self._give_up(operation)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(SEND_S):
                await asyncio.gather(*self._given_up)

    def _expire(self, state: str) -> None:
        if (operation := self._waiting.get(state)) is not None:
            self._give_up(operation)

    def _give_up(self, operation: Operation) -> None:
        self._waiting.pop(operation.state, None)
        task = asyncio.create_task(operation.give_up())
        self._given_up.add(task)
        task.add_done_callback(self._given_up.discard)
