"""Skills that servers serve (SEP-2640), for the skills' room: asked for one by one, never ahead of need."""

from __future__ import annotations

from typing import TYPE_CHECKING

from desktop_host.core.errors import PeerFault
from desktop_host.core.servers import ServerConfig, ServerState
from desktop_host.core.values import FrozenDict
from desktop_host.servers.book import Book
from desktop_host.servers.desk import Desk
from desktop_host.servers.loading import sdk
from desktop_host.servers.pool import Pool

if TYPE_CHECKING:
    from desktop_host.servers.connection import Connection

EXTENSION = "io.modelcontextprotocol/skills"
"""Identifier of the extension; a server that does not declare it is asked for nothing."""


class ServedSkills:
    """The `RemoteSkills` of the connected servers."""

    def __init__(self, book: Book, pool: Pool, desk: Desk) -> None:
        self._book, self._pool, self._desk = book, pool, desk
        self._sizes: dict[tuple[str, str], int] = {}
        """Bytes of a file as its server announced them, by alias and URI."""

    def serving(self) -> tuple[str, ...]:
        return tuple(c.name for c in self._book.all() if self._serves(c))

    async def listing(self, server: str) -> tuple[FrozenDict, ...]:
        config, wire = self._book.get(server), await sdk("skills_wire")

        async def work(connection: Connection) -> tuple[FrozenDict, ...]:
            found: tuple[FrozenDict, ...] = await wire.listing(connection)
            return found

        return self._noted(server, await self._desk.over(config, work))

    async def entry(self, server: str, uri: str) -> FrozenDict:
        config, wire = self._book.get(server), await sdk("skills_wire")

        async def work(connection: Connection) -> tuple[FrozenDict, ...]:
            return (await wire.entry(connection, uri),)

        return self._noted(server, await self._desk.over(config, work))[0]

    async def read(self, server: str, uri: str) -> bytes:
        config, wire = self._book.get(server), await sdk("skills_wire")

        async def work(connection: Connection) -> bytes:
            data: bytes = await wire.read(connection, uri)
            return data

        found: bytes = await self._desk.over(config, work)
        announced = self._sizes.get((server, uri))
        if announced is not None and announced != len(found):
            raise PeerFault(
                "protocol_error",
                f"{server}: {uri} has {len(found)} bytes, not the {announced} announced",
                server=server,
            )
        return found

    def _serves(self, config: ServerConfig) -> bool:
        status = self._pool.status(config)
        extensions = status.capabilities.get("extensions")
        return status.state is ServerState.READY and isinstance(extensions, FrozenDict) and EXTENSION in extensions

    def _noted(self, server: str, entries: tuple[FrozenDict, ...]) -> tuple[FrozenDict, ...]:
        for entry in entries:
            for row in entry.get("resources") or ():
                uri, size = (row.get("uri"), row.get("size")) if isinstance(row, FrozenDict) else (None, None)
                if isinstance(uri, str) and isinstance(size, int):
                    self._sizes[server, uri] = size
        return entries
