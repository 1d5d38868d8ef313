"""Whether an address serves the HTTP transport that is not configured: told, never taken by itself."""

from __future__ import annotations

import asyncio
import json

import httpx2

from desktop_host.core.servers import Http, Launch, Sse, Stdio
from desktop_host.servers.http import plain_transport

LOOK_S = 3.0
"""Time limit of the look, in seconds."""
_REFUSALS = frozenset({400, 404, 405, 406, 415})
"""Answers of a server that is asked in the wrong way (transports specification, backwards compatibility)."""
_HELLO = {
    "jsonrpc": "2.0", "id": 0, "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "desktop-host", "version": "0"},
    },
}  # fmt: skip


async def serves_the_other(launch: Launch, status: int | None) -> bool:
    """Look without the person's headers; False also where nothing can be learned.

    Args:
        launch: how the server is configured; its URL holds no placeholder that matters.
        status: what it answered.
    """
    if isinstance(launch, Stdio) or status not in _REFUSALS or "${" in launch.url:
        return False
    try:
        transport = await asyncio.to_thread(plain_transport, launch.url)
        async with asyncio.timeout(LOOK_S), httpx2.AsyncClient(transport=transport, trust_env=False) as client:
            return await (_streams(client, launch) if isinstance(launch, Http) else _takes_messages(client, launch))
    except (httpx2.HTTPError, httpx2.InvalidURL, TimeoutError, OSError):
        return False


async def _streams(client: httpx2.AsyncClient, launch: Http) -> bool:
    """An HTTP+SSE server answers GET with a stream whose first event is `endpoint`."""
    async with client.stream("GET", launch.url, headers={"Accept": "text/event-stream"}) as answer:
        if answer.status_code != 200 or not answer.headers.get("content-type", "").startswith("text/event-stream"):
            return False
        seen = ""
        async for chunk in answer.aiter_text():
            seen += chunk
            if "event: endpoint" in seen or "event:endpoint" in seen:
                return True
            if len(seen) > 4096:
                return False
    return False


async def _takes_messages(client: httpx2.AsyncClient, launch: Sse) -> bool:
    """A Streamable HTTP server answers a POST of `initialize`."""
    headers = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
    async with client.stream("POST", launch.url, content=json.dumps(_HELLO), headers=headers) as answer:
        kind = answer.headers.get("content-type", "")
        return answer.status_code == 200 and kind.startswith(("application/json", "text/event-stream"))
