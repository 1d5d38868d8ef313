"""Calls of tools that only run as a task (MCP 2025-11-25, `execution.taskSupport: required`).

The call gives a task at once. Its result is asked for right away and comes when the task has ended; what the
server asks the person meanwhile travels on that request. Until then the task's status is read for its words.
The revision without handshake has its tasks in `modern_tasks`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

import mcp_types as T
from mcp import Client, MCPError
from pydantic import TypeAdapter

from desktop_host.servers.tap import WHOLE

KEPT_MS = 3_600_000
"""How long (ms) the server is asked to keep a task: as long as a call may last."""
SOONEST_S, LATEST_S = 0.2, 10.0
"""Bounds for the pace of reading the status, whatever the server wishes."""
CANCEL_S = 5.0

_ANYTHING: Any = TypeAdapter(dict[str, Any])


@dataclass(slots=True)
class Underway:
    """One call and the task it may have become; outlives the connection over which it began."""

    told: Callable[[str | None], None] = field(default=lambda _message: None)
    """Gets the status message at each sign of life."""
    task: str | None = None
    """Id of the task, once there is one: from then on the call must never be sent again."""


UNDERWAY: ContextVar[Underway | None] = ContextVar("desktop_host_underway", default=None)
"""The call that the SDK is sending, for what it hands back to us."""


@contextmanager
def noted(call: Underway) -> Iterator[None]:
    """While open, what the SDK hands back belongs to `call`."""
    token = UNDERWAY.set(call)
    try:
        yield
    finally:
        UNDERWAY.reset(token)


def supports(client: Client) -> bool:
    """Whether the server runs tool calls as tasks."""
    tasks = client.server_capabilities.tasks
    return tasks is not None and tasks.requests is not None and tasks.requests.tools is not None


async def run_task(client: Client, tool: str, arguments: dict[str, Any], call: Underway) -> dict[str, Any]:
    """Call a tool as a task and wait for its result, as it came. Cancelling this cancels the task.

    Args:
        client: a connected client whose server `supports` tasks.
        tool: its name.
        arguments: for the tool.
        call: where the task's id is kept. One that has an id already is followed, not started.

    Raises:
        MCPError: the server refused the call, or lost the task.
    """
    task: dict[str, Any] = {}
    if call.task is None:
        body = {"name": tool, "arguments": arguments, "task": {"ttl": KEPT_MS}}
        got = _whole(await ask(client.session, "tools/call", body))
        made = got.get("task")
        if not isinstance(made, dict) or not isinstance(made.get("taskId"), str):
            return got  # It ran at once, task or not.
        task, call.task = made, made["taskId"]
    identity = {"taskId": call.task}
    result = asyncio.create_task(ask(client.session, "tasks/result", identity))
    try:
        while True:
            call.told(text(task))
            await asyncio.wait({result}, timeout=pace(task, "pollInterval"))
            if result.done():
                return _whole(result.result())
            task = await ask(client.session, "tasks/get", identity)
    except asyncio.CancelledError:
        await asyncio.shield(give_up(client.session, call.task))
        raise
    finally:
        result.cancel()
        await asyncio.wait({result})
        if not result.cancelled():
            result.exception()


async def give_up(session: Any, task: str) -> None:
    """Tell the server that nobody waits for a task any more."""
    try:
        async with asyncio.timeout(CANCEL_S):
            await ask(session, "tasks/cancel", {"taskId": task})
    except (MCPError, TimeoutError):
        return  # It has ended already, or the server is gone.


class _Plain(T.Request[Any, Any]):
    """Without the type parameters, all but `_meta` would be dropped from the parameters."""


class _Asked(_Plain):
    name_param = "taskId"


async def ask(session: Any, method: str, params: dict[str, Any]) -> dict[str, Any]:
    """Send a request of the task verbs and give its result as it came.

    Raises:
        MCPError: the server refused it.
    """
    kind: Any = _Asked if "taskId" in params else _Plain  # Modern HTTP routes by the task's id.
    made: dict[str, Any] = await session.send_request(kind(method=method, params=params), _ANYTHING)
    return made


def _whole(result: dict[str, Any]) -> dict[str, Any]:
    whole = (result.get("_meta") or {}).get(WHOLE)
    return whole if isinstance(whole, dict) else result


def text(task: dict[str, Any]) -> str | None:
    """What a task says of itself."""
    said = task.get("statusMessage")
    return said if isinstance(said, str) else None


def pace(task: dict[str, Any], key: str) -> float:
    """Seconds until the status is read again: what the server wishes under `key` (ms), within bounds."""
    wished = task.get(key)
    seconds = wished / 1000 if isinstance(wished, (int, float)) and not isinstance(wished, bool) else 1.0
    return min(max(seconds, SOONEST_S), LATEST_S)
