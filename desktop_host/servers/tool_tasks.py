"""Calls of tools that only run as a task (MCP 2025-11-25, `execution.taskSupport: required`).

The call gives a task at once. Its result is asked for right away and comes when the task has ended; what the
server asks the person meanwhile travels on that request. Until then the task's status is read for its words.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
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


def supports(client: Client) -> bool:
    """Whether the server runs tool calls as tasks."""
    tasks = client.server_capabilities.tasks
    return tasks is not None and tasks.requests is not None and tasks.requests.tools is not None


async def run_task(
    client: Client, tool: str, arguments: dict[str, Any], told: Callable[[str | None], None]
) -> dict[str, Any]:
    """Call a tool as a task and wait for its result, as it came. Cancelling this cancels the task.

    Args:
        client: a connected client whose server `supports` tasks.
        tool: its name.
        arguments: for the tool.
        told: gets the status message at each sign of life.

    Raises:
        MCPError: the server refused the call, or lost the task.
    """
    body = {"name": tool, "arguments": arguments, "task": {"ttl": KEPT_MS}}
    got = _whole(await _ask(client, "tools/call", body))
    task = got.get("task")
    if not isinstance(task, dict) or not isinstance(task.get("taskId"), str):
        return got  # It ran at once, task or not.
    identity = {"taskId": task["taskId"]}
    result = asyncio.create_task(_ask(client, "tasks/result", identity))
    try:
        while True:
            told(_text(task))
            await asyncio.wait({result}, timeout=_pace(task))
            if result.done():
                return _whole(result.result())
            task = await _ask(client, "tasks/get", identity)
    except asyncio.CancelledError:
        await asyncio.shield(_give_up(client, identity))
        raise
    finally:
        result.cancel()
        await asyncio.wait({result})
        if not result.cancelled():
            result.exception()


async def _give_up(client: Client, identity: dict[str, Any]) -> None:
    try:
        async with asyncio.timeout(CANCEL_S):
            await _ask(client, "tasks/cancel", identity)
    except (MCPError, TimeoutError):
        return  # It has ended already, or the server is gone.


async def _ask(client: Client, method: str, params: dict[str, Any]) -> dict[str, Any]:
    request: Any = T.Request[Any, Any](method=method, params=params)
    made: dict[str, Any] = await client.session.send_request(request, _ANYTHING)
    return made


def _whole(result: dict[str, Any]) -> dict[str, Any]:
    whole = (result.get("_meta") or {}).get(WHOLE)
    return whole if isinstance(whole, dict) else result


def _text(task: dict[str, Any]) -> str | None:
    said = task.get("statusMessage")
    return said if isinstance(said, str) else None


def _pace(task: dict[str, Any]) -> float:
    wished = task.get("pollInterval")
    seconds = wished / 1000 if isinstance(wished, (int, float)) else 1.0
    return min(max(seconds, SOONEST_S), LATEST_S)
