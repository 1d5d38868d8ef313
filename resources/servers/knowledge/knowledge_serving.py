"""Serving: a room for each tenant, over standard input and output or over Streamable HTTP."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import sys
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from knowledge_chain import Chain
from knowledge_index import BadRequest, Index
from knowledge_server import KnowledgeServer, build, matching
from knowledge_tenants import Tenant, holder, read_tenants
from knowledge_watch import Watch
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

LOOK_S = 0.5
"""How often the tenants' file is looked at."""

OpenIndex = Callable[[Tenant], Index]


@dataclass
class Room:
    """All that one tenant has."""

    tenant: Tenant
    index: Index
    server: KnowledgeServer
    watch: Watch
    app: ASGIApp | None = None
    owner: asyncio.Task[None] | None = None
    leave: asyncio.Event = field(default_factory=asyncio.Event)

    @classmethod
    def make(cls, tenant: Tenant, index: Index, name: str, chain: Path | None) -> Room:
        """Put a tenant's room together; the first scan begins."""
        linked = tenant.chain or chain
        server = build(
            index, name=name, tools=tenant.tools, may_add=tenant.allows,
            chain=Chain(linked, name) if linked is not None else None,
        )  # fmt: skip
        watch = Watch(index)
        watch.start()
        return cls(tenant, index, server, watch)

    async def open(self, host: str) -> None:
        """Serve HTTP; returns when requests can be taken."""
        self.app = self.server.streamable_http_app(host=host)
        ready = asyncio.Event()

        async def own() -> None:
            async with self.server.session_manager.run():
                ready.set()
                await self.leave.wait()

        self.owner = asyncio.create_task(own())
        await ready.wait()

    async def close(self) -> None:
        """End its connections and its index."""
        self.leave.set()
        if self.owner is not None:
            await self.owner
        await asyncio.to_thread(self.watch.close)
        self.index.close()


class Rooms:
    """The rooms of all tenants, kept as the file has them."""

    def __init__(self, file: Path | None, first: dict[str, Tenant], open_index: OpenIndex, name: str,
                 chain: Path | None, host: str | None) -> None:  # fmt: skip
        self._file, self._tenants, self._open_index, self._name = file, first, open_index, name
        self._chain, self._host = chain, host
        self.rooms: dict[str, Room] = {}

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[Rooms]:
        """Open all rooms, follow the file, close all rooms."""
        await self._follow(self._tenants)
        looking = asyncio.create_task(self._look()) if self._file is not None else None
        try:
            yield self
        finally:
            if looking is not None:
                looking.cancel()
            await asyncio.gather(*(room.close() for room in self.rooms.values()))

    def find(self, key: str | None) -> Room | None:
        """The room that a key opens."""
        if self._file is None:
            return next(iter(self.rooms.values()))
        digests = [(name, room.tenant.key_sha256) for name, room in self.rooms.items()]
        found = holder(key or "", digests)
        return self.rooms.get(found) if key and found is not None else None

    async def _follow(self, wanted: dict[str, Tenant]) -> None:
        for name in self.rooms.keys() - wanted.keys():
            await self.rooms.pop(name).close()
        for name, tenant in wanted.items():
            room = self.rooms.get(name)
            if room is not None and (room.tenant.folders, room.tenant.chain) != (tenant.folders, tenant.chain):
                await self.rooms.pop(name).close()
                room = None
            if room is None:
                index = await asyncio.to_thread(self._open_index, tenant)
                room = Room.make(tenant, index, self._name, self._chain)
                if self._host is not None:
                    await room.open(self._host)
                self.rooms[name] = room
            elif room.tenant != tenant:
                room.tenant = tenant
                room.server.offer(matching(tenant.tools))

    async def _look(self) -> None:
        assert self._file is not None
        seen = _stamp(self._file)
        while True:
            await asyncio.sleep(LOOK_S)
            now = _stamp(self._file)
            if now == seen:
                continue
            seen = now
            try:
                tenants = read_tenants(self._file)
                if self._host is None:  # One tenant over stdio; the others are nobody's here.
                    tenants = {name: tenants[name] for name in self.rooms if name in tenants}
                    if not tenants:
                        raise BadRequest(f"{self._file}: this tenant is gone.")
                await self._follow(tenants)
            except (BadRequest, OSError) as error:
                print(f"knowledge: {error} The tenants stay as they were.", file=sys.stderr)


def _stamp(file: Path) -> tuple[int, int] | None:
    try:
        stat = file.stat()
        return stat.st_mtime_ns, stat.st_size
    except OSError:
        return None


async def serve_stdio(rooms: Rooms) -> None:
    """Serve the one room on standard input and output until the input ends."""
    async with rooms.running():
        (room,) = rooms.rooms.values()
        await room.server.run_stdio_async()


async def serve_http(rooms: Rooms, host: str, port: int) -> None:
    """Serve Streamable HTTP at `http://host:port/mcp`; port 0 takes a free one. The address is told on stderr."""
    import uvicorn
    from knowledge_line import Line

    async def door(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        headers = {k.lower(): v.decode("latin-1") for k, v in scope["headers"]}
        bearer = headers.get(b"authorization", "")
        key = headers.get(b"x-api-key") or (bearer[7:].strip() if bearer[:7].lower() == "bearer " else None)
        room = rooms.find(key)
        if room is None or room.app is None:
            refused = JSONResponse({"error": "an API key is needed: header X-API-Key"}, 401,
                                   {"WWW-Authenticate": 'Bearer realm="knowledge"'})  # fmt: skip
            await refused(scope, receive, send)
            return
        await room.app(scope, receive, send)

    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.create_server((host, port), family=family) as listener:
        shown = f"[{host}]" if ":" in host else host
        async with rooms.running():
            print(f"knowledge: serving http://{shown}:{listener.getsockname()[1]}/mcp", file=sys.stderr, flush=True)
            config: Any = uvicorn.Config(
                door, log_level="warning", lifespan="off", timeout_graceful_shutdown=3, http=Line, ws="none"
            )
            await uvicorn.Server(config).serve(sockets=[listener])
