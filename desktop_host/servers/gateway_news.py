"""Tells the gateway's clients what changed: streams of 2026-07-28, and standing connections of the older era."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import OrderedDict
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from functools import partial
from typing import Any

from mcp import MCPError
from mcp.server import NotificationOptions, ServerRequestContext
from mcp.server.context import CallNext, HandlerResult
from mcp.server.lowlevel import Server
from mcp.server.subscriptions import (
    InMemorySubscriptionBus,
    ListenHandler,
    PromptsListChanged,
    ResourcesListChanged,
    ResourceUpdated,
    ToolsListChanged,
)
from mcp_types import (
    INVALID_PARAMS,
    EmptyResult,
    SubscribeRequestParams,
    SubscriptionsListenRequestParams,
    UnsubscribeRequestParams,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from desktop_host.core.errors import HostError

CONNECTIONS = 1_000
WATCHED = 1_000
"""Resources that one caller's clients may watch at once."""
SEND_S = 5.0
"""A client that takes nothing for so long is told nothing any more."""
_LISTS: dict[str, Callable[[], Any]] = {
    "tools": ToolsListChanged, "resources": ResourcesListChanged, "prompts": PromptsListChanged,
}  # fmt: skip
_log = logging.getLogger(__name__)

Watch = Callable[[str], AsyncGenerator[str, None]]
"""Yields at each update of the resource behind one of the gateway's addresses; raises at once for one that is none."""


class GatewayNews:
    """What one caller's server tells its clients. Resources are watched only while somebody listens."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._bus = InMemorySubscriptionBus()
        self._listen = ListenHandler(self._bus)
        self._sessions: OrderedDict[str, Any] = OrderedDict()
        self._subscribed: dict[str, set[str]] = {}
        self._watching: dict[str, tuple[asyncio.Task[None], int]] = {}

    def join(self, server: Server[Any]) -> None:
        """Serve subscriptions of both eras on this server."""
        server.add_request_handler("subscriptions/listen", SubscriptionsListenRequestParams, self._on_listen)
        server.add_request_handler("resources/subscribe", SubscribeRequestParams, self._on_subscribe)
        server.add_request_handler("resources/unsubscribe", UnsubscribeRequestParams, self._on_unsubscribe)
        server.middleware.append(self._meet)
        plain = server.create_initialization_options
        changing = NotificationOptions(prompts_changed=True, resources_changed=True, tools_changed=True)
        # The transports make the options themselves, with nothing that changes.
        server.create_initialization_options = lambda *_a, **_k: plain(changing)  # type: ignore[method-assign]  # No hook.

    async def close(self) -> None:
        """Watch nothing any more."""
        self._listen.close()
        for task, _count in self._watching.values():
            task.cancel()
        await asyncio.gather(*(task for task, _count in self._watching.values()), return_exceptions=True)

    async def lists_changed(self, lists: Iterable[str]) -> None:
        """These lists are others now."""
        for name in lists:
            await self._bus.publish(_LISTS[name]())
            await asyncio.gather(*(
                self._send(connection, {
                    "tools": session.send_tool_list_changed, "resources": session.send_resource_list_changed,
                    "prompts": session.send_prompt_list_changed,
                }[name])
                for connection, session in self._sessions.items()
            ))  # fmt: skip

    # ---- inside
    async def _meet(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        if ctx.protocol_version not in MODERN_PROTOCOL_VERSIONS and ctx.method == "notifications/initialized":
            self._sessions[connection_of(ctx)] = ctx.session
            while len(self._sessions) > CONNECTIONS:
                self._forget(next(iter(self._sessions)))
        return await call_next(ctx)

    async def _on_listen(self, ctx: ServerRequestContext[Any, Any], params: SubscriptionsListenRequestParams) -> Any:
        # What cannot be watched is left out of what is granted.
        uris = tuple(u for u in params.notifications.resource_subscriptions or () if self._begin(u) is None)
        granted = params.notifications.model_copy(update={"resource_subscriptions": list(uris) or None})
        params = params.model_copy(update={"notifications": granted})
        try:
            return await self._listen(ctx, params)
        finally:
            for uri in uris:
                self._end(uri)

    async def _on_subscribe(self, ctx: ServerRequestContext[Any, Any], params: SubscribeRequestParams) -> EmptyResult:
        if connection_of(ctx) not in self._subscribed.get(params.uri, ()):
            if (problem := self._begin(params.uri)) is not None:
                raise MCPError(code=INVALID_PARAMS, message=problem)
            self._subscribed.setdefault(params.uri, set()).add(connection_of(ctx))
        return EmptyResult()

    async def _on_unsubscribe(
        self, ctx: ServerRequestContext[Any, Any], params: UnsubscribeRequestParams
    ) -> EmptyResult:
        self._leave(params.uri, connection_of(ctx))
        return EmptyResult()

    def _leave(self, uri: str, connection: str) -> None:
        listening = self._subscribed.get(uri, set())
        if connection in listening:
            listening.discard(connection)
            if not listening:
                del self._subscribed[uri]
            self._end(uri)

    def _forget(self, connection: str) -> None:
        self._sessions.pop(connection, None)
        for uri in list(self._subscribed):
            self._leave(uri, connection)

    def _begin(self, uri: str) -> str | None:
        """Watch a resource for one more listener; returns why it cannot be."""
        task, count = self._watching.get(uri, (None, 0))
        if task is None:
            if len(self._watching) >= WATCHED:
                return f"more than {WATCHED} resources are being watched"
            try:
                task = asyncio.create_task(self._follow(uri, self._watch(uri)))
            except HostError as fault:
                return fault.message
        self._watching[uri] = (task, count + 1)
        return None

    def _end(self, uri: str) -> None:
        task, count = self._watching.pop(uri)
        if count > 1:
            self._watching[uri] = (task, count - 1)
        else:
            task.cancel()

    async def _follow(self, uri: str, updating: AsyncGenerator[str, None]) -> None:
        try:
            async with contextlib.aclosing(updating) as updates:
                async for _updated in updates:
                    await self._bus.publish(ResourceUpdated(uri=uri))
                    for connection in list(self._subscribed.get(uri, ())):
                        session = self._sessions.get(connection)
                        if session is not None:
                            await self._send(connection, partial(session.send_resource_updated, uri))
        except HostError as fault:
            _log.info("gateway: %s is not watched: %s", uri, fault.message)

    async def _send(self, connection: str, send: Callable[[], Awaitable[None]]) -> None:
        try:
            await asyncio.wait_for(send(), SEND_S)
        except (MCPError, TimeoutError, OSError):
            self._forget(connection)


def connection_of(ctx: ServerRequestContext[Any, Any]) -> str:
    """Names a client's connection: its MCP session, or standard input."""
    headers = getattr(ctx.request, "headers", None)
    return (headers.get("mcp-session-id") if headers is not None else None) or "stdio"
