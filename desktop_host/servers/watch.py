"""Change notifications in both eras: lists held open on modern servers, resources by subscription or stream."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator, Callable

import mcp_types as T
from mcp import Client, MCPError
from mcp.client.subscriptions import (
    ListenNotSupportedError,
    PromptsListChanged,
    ResourcesListChanged,
    ResourceUpdated,
    SubscriptionLost,
    ToolsListChanged,
)

from desktop_host.core.ports import Clock
from desktop_host.servers.catalog import Catalog
from desktop_host.servers.http import HttpFacts

LONGEST_WAIT_S = 60.0
STREAM_S = 60.0
"""How long a legacy server may leave us without its stream of notifications before we connect anew."""
BACKLOG = 256
"""Updates kept for a reader that is slow; the oldest go first, for an update only says "read it again"."""

_KIND = {ToolsListChanged: "tools", ResourcesListChanged: "resources", PromptsListChanged: "prompts"}


async def listen_to_lists(client: Client, catalog: Catalog, clock: Clock, note: Callable[[str], None]) -> None:
    """Hold a `subscriptions/listen` stream as long as the connection lives; a dropped one is opened anew.

    There is no replay: after a gap all lists are fetched again. Ends where the server does not offer it.
    """
    kinds = {k: catalog.offers(k) for k in ("tools", "resources", "prompts")}
    wait = 1.0
    gap = False
    while any(kinds.values()):
        try:
            async with client.listen(
                tools_list_changed=kinds["tools"],
                prompts_list_changed=kinds["prompts"],
                resources_list_changed=kinds["resources"],
            ) as stream:
                honoured = stream.honored
                if not (
                    honoured.tools_list_changed or honoured.prompts_list_changed or honoured.resources_list_changed
                ):
                    return
                if gap:
                    for kind, on in kinds.items():
                        if on:
                            catalog.refresh_soon(kind)
                wait = 1.0
                async for event in stream:
                    if changed := _KIND.get(type(event)):
                        catalog.refresh_soon(changed)
        except ListenNotSupportedError:
            return
        except MCPError as error:
            if error.code in (T.METHOD_NOT_FOUND, T.INVALID_REQUEST, T.INVALID_PARAMS):
                note(f"changes of lists are not announced by this server: {error.message}")
                return
            if error.code == T.CONNECTION_CLOSED:
                note("the stream of changes was closed")
        except SubscriptionLost:
            note("the stream of changes was lost; opening it again")
        gap = True
        await clock.sleep(wait * random.uniform(0.8, 1.2))
        wait = min(wait * 2, LONGEST_WAIT_S)


async def mind_stream(facts: HttpFacts, clock: Clock, note: Callable[[str], None], worn: asyncio.Event) -> None:
    """Legacy HTTP: after two failed attempts the SDK gives up the stream of notifications and tells nobody.

    Sets `worn` where no stream has come back after `STREAM_S`.
    """
    while True:
        await facts.stream_ended.wait()
        facts.stream_ended.clear()
        await clock.sleep(STREAM_S)
        if facts.streams == 0:
            note("notifications come no more; connecting anew")
            worn.set()
            return


class Subscriptions:
    """Who wants to know of updates of which resource, on a legacy connection."""

    def __init__(self) -> None:
        self._queues: dict[str, set[asyncio.Queue[str]]] = {}

    def updated(self, uri: str) -> None:
        """Tell all who watch the resource, or one that it belongs to."""
        for watched, queues in self._queues.items():
            if uri == watched or uri.startswith(watched.rstrip("/") + "/"):
                for queue in queues:
                    if queue.full():
                        queue.get_nowait()
                    queue.put_nowait(uri)

    async def follow(self, client: Client, uri: str, gone: asyncio.Event) -> AsyncGenerator[str, None]:
        """Yield the URI of each update until the connection is gone.

        Raises:
            MCPError: the server does not let the resource be watched.
        """
        queue: asyncio.Queue[str] = asyncio.Queue(BACKLOG)
        first = uri not in self._queues
        self._queues.setdefault(uri, set()).add(queue)
        lost = asyncio.create_task(gone.wait())
        try:
            if first:
                request = T.SubscribeRequest(params=T.SubscribeRequestParams(uri=uri))
                await client.session.send_request(request, T.EmptyResult)
            while not gone.is_set():
                taken = asyncio.create_task(queue.get())
                try:
                    await asyncio.wait({taken, lost}, return_when=asyncio.FIRST_COMPLETED)
                    if taken.done():
                        yield taken.result()
                finally:
                    taken.cancel()
        finally:
            lost.cancel()
            self._queues[uri].discard(queue)
            if not self._queues[uri]:
                del self._queues[uri]
                if not gone.is_set():
                    await self._unsubscribe(client, uri)

    async def _unsubscribe(self, client: Client, uri: str) -> None:
        request = T.UnsubscribeRequest(params=T.UnsubscribeRequestParams(uri=uri))
        try:
            async with asyncio.timeout(5):
                await client.session.send_request(request, T.EmptyResult)
        except (MCPError, TimeoutError):
            return  # The server forgets us with the connection at the latest.


async def follow_modern(client: Client, uri: str) -> AsyncGenerator[str, None]:
    """Yield the URI of each update; returns when the stream has ended, however it did.

    Raises:
        MCPError: the server does not let the resource be watched.
    """
    try:
        async with client.listen(resource_subscriptions=[uri]) as stream:
            async for event in stream:
                if isinstance(event, ResourceUpdated):
                    yield event.uri
    except SubscriptionLost:
        return
