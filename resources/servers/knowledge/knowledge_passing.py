"""Questions of a child on their way to our own client: asked under the child's name, in either protocol era.

An older client is asked in mid-call. One of 2026-07-28 gets an `input_required` result: the operation waits with
its connections open, and the client's next round, with the answers, finds it again.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from mcp.shared.exceptions import MCPError
from mcp.shared.message import ServerMessageMetadata
from mcp.types import (
    INVALID_REQUEST,
    CallToolResult,
    CreateMessageRequest,
    CreateMessageResult,
    ElicitRequest,
    ElicitRequestURLParams,
    ElicitResult,
    ErrorData,
    InputRequiredResult,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

PERSON_S = 600.0
"""How long a question waits for its answer."""
WAITING = 100
"""Operations that wait for answers at most; the oldest is given up for a new one."""


class Operation:
    """One search under way; its clock stands still while somebody is asked."""

    def __init__(self, name: str, seconds: float) -> None:
        self.id = secrets.token_urlsafe(16)
        self.name = name
        self.seconds = seconds
        self._loop = asyncio.get_running_loop()
        self._until = self._loop.time() + seconds
        self._held_since: float | None = None
        self.open: dict[str, tuple[Any, asyncio.Future[Any]]] = {}
        self._told: set[str] = set()
        self._changed = asyncio.Event()
        self.task: asyncio.Task[CallToolResult] | None = None
        self.context: Context[Any, Any] | None = None
        self._closing: set[asyncio.Task[Any]] = set()

    def left(self) -> float:
        """Seconds until the answer is wanted."""
        now = self._held_since if self._held_since is not None else self._loop.time()
        return max(0.0, self._until - now)

    async def within(self, tasks: set[asyncio.Task[Any]]) -> set[asyncio.Task[Any]]:
        """Wait for tasks until the time is over; returns those that are done."""
        pending = set(tasks)
        while pending:
            self._changed.clear()
            woken = asyncio.create_task(self._changed.wait())
            held = self._held_since is not None
            await asyncio.wait({*pending, woken}, timeout=None if held else self.left(),
                               return_when=asyncio.FIRST_COMPLETED)  # fmt: skip
            woken.cancel()
            pending = {task for task in pending if not task.done()}
            if self._held_since is None and self.left() <= 0:
                break
        return tasks - pending

    def leave(self, task: asyncio.Task[Any]) -> None:
        """A task that was cancelled closes its server in its own time."""
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

    # ---- questions
    def callbacks(
        self, child: str
    ) -> tuple[Callable[..., Awaitable[Any]] | None, Callable[..., Awaitable[Any]] | None]:
        """What the child may ask: what our client can answer, no more."""
        can = self.context.client_capabilities if self.context is not None else None

        async def sampling(_context: Any, params: Any) -> Any:
            note = f"(Asked by the server {child!r}, passed on by {self.name!r}.)"
            asked = params.model_copy(update={"system_prompt": f"{note}\n{params.system_prompt or ''}".strip()})
            return await self._ask(CreateMessageRequest(params=asked), CreateMessageResult)

        async def elicitation(_context: Any, params: Any) -> Any:
            asked = params.model_copy(update={"message": f"[{child}, through {self.name}] {params.message}"})
            return await self._ask(ElicitRequest(params=asked), ElicitResult)

        return (sampling if can is not None and can.sampling is not None else None,
                elicitation if can is not None and can.elicitation is not None else None)  # fmt: skip

    async def _ask(self, request: Any, answer: type[Any]) -> Any:
        if isinstance(request.params, ElicitRequestURLParams):
            return ErrorData(code=INVALID_REQUEST, message="addresses to open are not passed on")
        key = f"q{secrets.token_hex(4)}"
        future: asyncio.Future[Any] = self._loop.create_future()
        self._hold(key, request, future)
        try:
            context = self.context
            if context is not None and context.protocol_version not in MODERN_PROTOCOL_VERSIONS:
                meta = ServerMessageMetadata(related_request_id=context.request_context.request_id)
                send = context.session.send_request(request, answer, metadata=meta)
                return await asyncio.wait_for(send, PERSON_S)
            return await asyncio.wait_for(future, PERSON_S)
        except MCPError as error:
            return error.error
        except TimeoutError:
            return ErrorData(code=INVALID_REQUEST, message="nobody answered")
        finally:
            self._release(key)

    def _hold(self, key: str, request: Any, future: asyncio.Future[Any]) -> None:
        if not self.open:
            self._held_since = self._loop.time()
        self.open[key] = (request, future)
        self._changed.set()

    def _release(self, key: str) -> None:
        self.open.pop(key, None)
        if not self.open and self._held_since is not None:
            self._until += self._loop.time() - self._held_since
            self._held_since = None
        self._changed.set()

    def new_questions(self) -> dict[str, Any]:
        """The open questions that the client has not been told of."""
        fresh = {key: request for key, (request, future) in self.open.items()
                 if key not in self._told and not future.done()}  # fmt: skip
        self._told |= fresh.keys()
        return fresh

    async def changed(self) -> None:
        """Returns when a question was added or answered."""
        await self._changed.wait()


class Operations:
    """The searches that wait for their client's next round."""

    def __init__(self) -> None:
        self._waiting: dict[str, Operation] = {}

    def begin(self, operation: Operation, work: Coroutine[Any, Any, CallToolResult]) -> None:
        """Start; `next` sees it through."""
        operation.task = asyncio.create_task(work)

    def resumed(self, ctx: Context[Any, Any]) -> Operation | None:
        """The operation that this round goes on with; its answers are handed over.

        Raises:
            ToolError: it is over, or was given up.
        """
        if ctx.request_state is None:
            return None
        operation = self._waiting.pop(ctx.request_state, None)
        if operation is None:
            raise ToolError("The search waited too long for an answer and was given up. Search again.")
        for key, given in (ctx.input_responses or {}).items():
            _request, future = operation.open.get(key, (None, None))
            if future is not None and not future.done():
                future.set_result(given)
        return operation

    async def next(self, operation: Operation, ctx: Context[Any, Any]) -> CallToolResult | InputRequiredResult:
        """Go on until the end, or until a client of 2026-07-28 has to be asked."""
        assert operation.task is not None
        operation.context = ctx
        modern = ctx.protocol_version in MODERN_PROTOCOL_VERSIONS
        try:
            while True:
                if operation.task.done():
                    return operation.task.result()
                if modern and (asked := operation.new_questions()):
                    while len(self._waiting) >= WAITING:
                        self._give_up(next(iter(self._waiting)))
                    self._waiting[operation.id] = operation
                    operation._loop.call_later(PERSON_S, self._give_up, operation.id)
                    return InputRequiredResult(input_requests=asked, request_state=operation.id)
                woken = asyncio.create_task(operation.changed())
                await asyncio.wait({operation.task, woken}, timeout=1, return_when=asyncio.FIRST_COMPLETED)
                woken.cancel()
        except asyncio.CancelledError:
            operation.task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await operation.task
            raise

    def _give_up(self, operation: str) -> None:
        found = self._waiting.pop(operation, None)
        if found is not None and found.task is not None:
            found.task.cancel()
