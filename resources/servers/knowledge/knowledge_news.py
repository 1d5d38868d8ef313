"""Tells clients of both protocol eras that lists or resources have changed, from any thread.

2026-07-28: a client holds `subscriptions/listen` open and the SDK's bus serves it. Until 2025-11-25: the server
remembers who subscribed to what and who is connected, and sends notifications over the standing connection.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from typing import Any

import anyio
from mcp.server import NotificationOptions, ServerRequestContext
from mcp.server.context import CallNext, HandlerResult
from mcp.server.mcpserver import MCPServer
from mcp.server.subscriptions import (
    InMemorySubscriptionBus,
    PromptsListChanged,
    ResourcesListChanged,
    ResourceUpdated,
    ToolsListChanged,
)
from mcp.shared.exceptions import MCPError
from mcp.types import EmptyResult, SubscribeRequestParams, UnsubscribeRequestParams
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

CONNECTIONS = 1_000
"""Standing connections remembered; beyond that the oldest is told nothing any more."""
_LISTS = {"tools": ToolsListChanged, "resources": ResourcesListChanged, "prompts": PromptsListChanged}


class News:
    """What one server tells its clients. `join` it to the server once."""

    def __init__(self) -> None:
        self.bus = InMemorySubscriptionBus()
        self._sessions: OrderedDict[str, Any] = OrderedDict()
        self._subscribed: dict[str, set[str]] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._telling: set[asyncio.Task[None]] = set()

    def join(self, server: MCPServer[Any]) -> None:
        """Serve subscriptions of both eras on this server."""
        low = server._lowlevel_server  # No public hook: the SDK serves `resources/subscribe` on its low level only.
        low.add_request_handler("resources/subscribe", SubscribeRequestParams, self._subscribe)
        low.add_request_handler("resources/unsubscribe", UnsubscribeRequestParams, self._unsubscribe)
        plain = low.create_initialization_options
        changing = NotificationOptions(prompts_changed=True, resources_changed=True, tools_changed=True)
        low.create_initialization_options = lambda *_a, **_k: plain(changing)  # type: ignore[method-assign]  # No hook.
        server.middleware.append(self._meet)

    async def _meet(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        self._loop = asyncio.get_running_loop()
        if ctx.protocol_version not in MODERN_PROTOCOL_VERSIONS and ctx.method == "notifications/initialized":
            self._sessions[_connection(ctx)] = ctx.session
            while len(self._sessions) > CONNECTIONS:
                gone, _session = self._sessions.popitem(last=False)
                self._forget(gone)
        return await call_next(ctx)

    async def _subscribe(self, ctx: ServerRequestContext[Any, Any], params: SubscribeRequestParams) -> EmptyResult:
        self._subscribed.setdefault(params.uri, set()).add(_connection(ctx))
        return EmptyResult()

    async def _unsubscribe(self, ctx: ServerRequestContext[Any, Any], params: UnsubscribeRequestParams) -> EmptyResult:
        self._subscribed.get(params.uri, set()).discard(_connection(ctx))
        return EmptyResult()

    def _forget(self, connection: str) -> None:
        self._sessions.pop(connection, None)
        for listening in self._subscribed.values():
            listening.discard(connection)

    # ---- telling
    def list_changed(self, *lists: str) -> None:
        """`tools`, `resources` or `prompts` are others now. From any thread."""
        self._soon(lambda: self._tell_lists(lists))

    def updated(self, uris: Iterable[str]) -> None:
        """These resources changed. From any thread."""
        told = tuple(uris)
        self._soon(lambda: self._tell_updated(told))

    def _soon(self, work: Callable[[], Awaitable[None]]) -> None:
        loop = self._loop
        if loop is None or loop.is_closed():
            return  # Nobody has ever connected.

        def begin() -> None:
            task = loop.create_task(work())  # type: ignore[arg-type]
            self._telling.add(task)
            task.add_done_callback(self._telling.discard)

        loop.call_soon_threadsafe(begin)

    async def _tell_lists(self, lists: tuple[str, ...]) -> None:
        for name in lists:
            await self.bus.publish(_LISTS[name]())
            for connection, session in list(self._sessions.items()):
                send = {
                    "tools": session.send_tool_list_changed,
                    "resources": session.send_resource_list_changed,
                    "prompts": session.send_prompt_list_changed,
                }[name]
                await self._send(connection, send)

    async def _tell_updated(self, uris: tuple[str, ...]) -> None:
        for uri in uris:
            await self.bus.publish(ResourceUpdated(uri=uri))
            for connection in list(self._subscribed.get(uri, ())):
                session = self._sessions.get(connection)
                if session is not None:
                    await self._send(connection, partial(session.send_resource_updated, uri))

    async def _send(self, connection: str, send: Callable[[], Awaitable[None]]) -> None:
        try:
            with anyio.fail_after(5):
                await send()
        except (MCPError, TimeoutError, anyio.BrokenResourceError, anyio.ClosedResourceError):
            self._forget(connection)


def _connection(ctx: ServerRequestContext[Any, Any]) -> str:
    headers = getattr(ctx.request, "headers", None)
    return (headers.get("mcp-session-id") if headers is not None else None) or "stdio"
