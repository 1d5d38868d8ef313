"""The deprecated HTTP+SSE transport, with an event limit that lets ordinary results pass.

The SDK's own has a fixed limit of 1 MiB for one event and ends silently when a POST fails.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any
from urllib.parse import urljoin

import httpx2
from mcp.shared.message import SessionMessage
from mcp_types import ErrorData, JSONRPCError, JSONRPCRequest, jsonrpc_message_adapter

from desktop_host.core.errors import PeerFault
from desktop_host.servers.framing import Inbox
from desktop_host.servers.http import EVENT_LIMIT, HTTP_FAILED


class SseTransport:
    """Yields the streams of an SSE server; `client` is entered and left by the caller."""

    def __init__(self, url: str, client: httpx2.AsyncClient) -> None:
        self._url, self._client = url, client
        self._endpoint: asyncio.Future[str] | None = None
        self._inbox = Inbox(lambda _size: None)
        self._reader: asyncio.Task[None] | None = None

    async def __aenter__(self) -> tuple[Any, Any]:
        self._endpoint = asyncio.get_running_loop().create_future()
        self._reader = asyncio.create_task(self._read(self._endpoint))
        try:
            await self._endpoint
        except BaseException:
            await self.__aexit__()
            raise
        return self._inbox, _Post(self._endpoint.result(), self._client, self._inbox)

    async def __aexit__(self, *_: object) -> None:
        self._inbox.end()
        if self._reader is not None:
            self._reader.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._reader

    async def _read(self, endpoint: asyncio.Future[str]) -> None:
        headers = {"Accept": "text/event-stream", "Cache-Control": "no-store"}
        try:
            async with self._client.stream("GET", self._url, headers=headers) as response:
                response.raise_for_status()
                async for event in httpx2.EventSource(response, max_event_size=EVENT_LIMIT):
                    if event.event == "endpoint" and not endpoint.done():
                        endpoint.set_result(urljoin(self._url, event.data))
                    elif event.event == "message" and event.data:
                        self._take(event.data)
            if not endpoint.done():
                endpoint.set_exception(PeerFault("server_failed", "the stream ended before it named an endpoint"))
        except (httpx2.HTTPError, httpx2.SSEError, httpx2.StreamError) as error:
            if not endpoint.done():
                endpoint.set_exception(error)
        finally:
            self._inbox.end()  # The tap sees it at once, and the connection is known to be lost.
            if not endpoint.done():
                endpoint.cancel()

    def _take(self, data: str) -> None:
        try:
            self._inbox.put(SessionMessage(jsonrpc_message_adapter.validate_json(data, by_name=False)), len(data))
        except ValueError as error:
            self._inbox.put(error, 100)  # Reaches the server's log by the message handler.


class _Post:
    """The writing end: one POST for each message."""

    def __init__(self, endpoint: str, client: httpx2.AsyncClient, inbox: Inbox) -> None:
        self._endpoint, self._client, self._inbox = endpoint, client, inbox

    async def send(self, item: SessionMessage) -> None:
        """POST one message; a refusal becomes the error answer of that request."""
        body = item.message.model_dump(by_alias=True, mode="json", exclude_unset=True)
        response = await self._client.post(self._endpoint, json=body)
        if response.status_code < 300 or not isinstance(item.message, JSONRPCRequest):
            return
        told = f"HTTP {response.status_code}"
        with contextlib.suppress(ValueError, KeyError, TypeError):
            told = str(response.json()["error"]["message"])
        error = ErrorData(code=HTTP_FAILED, message=told, data={"status": response.status_code})
        self._inbox.put(SessionMessage(JSONRPCError(jsonrpc="2.0", id=item.message.id, error=error)), 100)

    async def aclose(self) -> None:
        """Nothing to close: the stream belongs to the reader."""

    async def __aenter__(self) -> _Post:
        return self

    async def __aexit__(self, *_: object) -> None:
        return None
