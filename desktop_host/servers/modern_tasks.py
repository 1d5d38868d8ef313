"""Calls that a server answers with a task (extension `io.modelcontextprotocol/tasks`, revision 2026-07-28).

We declare the extension; whether a call becomes a task is the server's choice. The task is read by `tasks/get`
until it has ended, what it asks meanwhile (`input_required`) is answered by `tasks/update` through the same
callbacks as any question, and whoever stops the call stops the task by `tasks/cancel`. A server that cannot be
reached for a while costs nothing but time: there is no session to lose.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Annotated, Any, Literal

import mcp_types as T
from mcp import InputRequiredRoundsExceededError, MCPError
from mcp.client import ClientRequestContext
from mcp.client.extension import ClaimContext, ClientExtension, ResultClaim
from pydantic import Field, TypeAdapter

from desktop_host.core.errors import KnownFault
from desktop_host.servers.http import HTTP_FAILED, HTTP_STATUS
from desktop_host.servers.tap import WHOLE
from desktop_host.servers.tool_tasks import LATEST_S, UNDERWAY, Underway, ask, give_up, pace, text

EXTENSION = "io.modelcontextprotocol/tasks"
MOST_QUESTIONS = 20
"""Questions of one task; a server that asks on and on is stopped."""
_PASSING = (HTTP_FAILED, HTTP_STATUS)
"""Codes that tell of the way to the server: the task runs on behind it."""
_REQUEST: Any = TypeAdapter(Annotated[T.InputRequest, Field(discriminator="method")])


class TaskHandle(T.Result):
    """What a call became (`CreateTaskResult`)."""

    result_type: Literal["task"] = "task"
    task_id: str
    status_message: str | None = None
    poll_interval_ms: float | None = None


class Tasks(ClientExtension):
    """The extension as a client declares it."""

    identifier = EXTENSION

    def claims(self) -> Sequence[ResultClaim[Any]]:
        """The one further shape that a call may be answered with."""
        return (ResultClaim(result_type="task", model=TaskHandle, resolve=_resolve),)


async def _resolve(handle: TaskHandle, context: ClaimContext) -> T.CallToolResult:
    call = UNDERWAY.get() or Underway()
    call.task = handle.task_id
    first = {"statusMessage": handle.status_message, "pollIntervalMs": handle.poll_interval_ms}
    whole = await follow(context.session, call, first)
    return T.CallToolResult(content=[], is_error=bool(whole.get("isError")), _meta={WHOLE: whole})


async def follow(session: Any, call: Underway, first: dict[str, Any] | None = None) -> dict[str, Any]:
    """Wait for the end of a task and give its result, as it came. Cancelling this cancels the task.

    Args:
        session: the SDK's `ClientSession`, on this connection or on one made since.
        call: with the task's id.
        first: the task as it was when it began.

    Raises:
        MCPError: the call failed, the server lost the task, or a question of it was refused.
        KnownFault: `tool_failed`, the server cancelled the task.
        pydantic.ValidationError: a question that is none.
        InputRequiredRoundsExceededError: it asked on and on.
    """
    assert call.task is not None
    questions = _Questions(session, call.task)
    try:
        return await _followed(session, call, call.task, questions, first or {})
    except (asyncio.CancelledError, _Refused) as ended:
        await asyncio.shield(give_up(session, call.task))
        if isinstance(ended, _Refused):
            raise ended.why from None
        raise
    finally:
        await questions.close()


async def _followed(
    session: Any, call: Underway, identity: str, questions: _Questions, task: dict[str, Any]
) -> dict[str, Any]:
    failures = 0
    call.told(text(task))
    wait_s = 0.0 if not task else pace(task, "pollIntervalMs")
    while True:
        await questions.wait(wait_s)
        try:
            await questions.send()
            task = await ask(session, "tasks/get", {"taskId": identity})
        except MCPError as error:
            if error.code not in _PASSING:
                raise
            failures += 1  # No sign of life: the call's own deadline ends this.
            wait_s = min(0.5 * 2.0**failures, LATEST_S)
            continue
        failures, wait_s = 0, pace(task, "pollIntervalMs")
        call.told(text(task))
        match task.get("status"):
            case "completed":
                result = task.get("result")
                return result if isinstance(result, dict) else {}
            case "failed":
                raise _failure(task)
            case "cancelled":
                raise KnownFault("tool_failed", f"the server cancelled the task{_because(task)}")
            case _:
                questions.take(task.get("inputRequests"))


class _Refused(Exception):
    """A question was not answered, so the call must end."""

    def __init__(self, why: Exception) -> None:
        super().__init__(str(why))
        self.why = why


class _Questions:
    """What a task asks, each once, and the answers on their way back."""

    def __init__(self, session: Any, task: str) -> None:
        self._session, self._task = session, task
        self._known: set[str] = set()
        self._open: dict[str, asyncio.Task[Any]] = {}
        self._answers: dict[str, Any] = {}

    def take(self, requests: Any) -> None:
        """Begin with what is new, and drop what the server asks no longer."""
        now = requests if isinstance(requests, dict) else {}
        for key in [k for k in self._open if k not in now]:
            self._open.pop(key).cancel()
        self._answers = {k: v for k, v in self._answers.items() if k in now}
        for key, raw in now.items():
            if key in self._known:
                continue
            self._known.add(key)
            if len(self._known) > MOST_QUESTIONS:
                raise _Refused(InputRequiredRoundsExceededError(MOST_QUESTIONS))
            try:
                request = _REQUEST.validate_python(raw, by_name=False)
            except ValueError as error:
                raise _Refused(error) from None
            self._open[key] = asyncio.create_task(self._answer(key, request))

    async def wait(self, seconds: float) -> None:
        """Wait until an answer is there, or it is time to look again.

        Raises:
            _Refused: one was refused.
        """
        if not self._open:
            await asyncio.sleep(0 if self._answers else seconds)
            return
        done, _ = await asyncio.wait(self._open.values(), timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        for key in [k for k, task in self._open.items() if task in done]:
            answer = self._open.pop(key).result()
            if isinstance(answer, T.ErrorData):
                raise _Refused(MCPError.from_error_data(answer))
            self._answers[key] = answer.model_dump(by_alias=True, mode="json", exclude_none=True)

    async def send(self) -> None:
        """Send the answers that are there; kept until the server has them.

        Raises:
            MCPError: it could not be reached, or refused them.
        """
        if self._answers:
            await ask(self._session, "tasks/update", {"taskId": self._task, "inputResponses": self._answers})
            self._answers = {}

    async def close(self) -> None:
        """Take back what is still asked."""
        for task in self._open.values():
            task.cancel()
        await asyncio.gather(*self._open.values(), return_exceptions=True)

    async def _answer(self, key: str, request: Any) -> Any:
        meta = request.params.meta if request.params else None
        context = ClientRequestContext(session=self._session, request_id=key, meta=meta)
        return await self._session.dispatch_input_request(context, request)


def _failure(task: dict[str, Any]) -> MCPError:
    error = task.get("error")
    told: dict[str, Any] = error if isinstance(error, dict) else {}
    code, message = told.get("code"), told.get("message")
    return MCPError(
        code if isinstance(code, int) else T.INTERNAL_ERROR,
        message if isinstance(message, str) and message else f"the task failed{_because(task)}",
    )


def _because(task: dict[str, Any]) -> str:
    said = text(task)
    return f": {said}" if said else ""
