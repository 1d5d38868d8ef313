"""Skills that servers serve (SEP-2640, `io.modelcontextprotocol/skills`), as the servers' room hands them over."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from desktop_host.core.values import FrozenDict


@dataclass(frozen=True, slots=True)
class RemoteSkill:
    """One skill of one server, as far as its listing tells."""

    server: str
    uri: str
    """URI of its SKILL.md; with the server's alias it is the skill's identity, the name never is."""
    id: str
    """`<server>--<name>`: no local skill can have it, so none is shadowed."""
    name: str
    description: str
    digest: str
    """Over every URI and its digest: what an approval holds for."""
    approved: bool
    changed: bool = False
    """It was approved, but is another now."""
    files: tuple[str, ...] = ()
    """Listed paths relative to SKILL.md."""


class RemoteSkills(Protocol):
    """Servers whose skills may be listed and read. Nothing is fetched before it is asked for."""

    def serving(self) -> tuple[str, ...]:
        """Aliases of connected servers that declare the extension."""
        ...

    async def listing(self, server: str) -> tuple[FrozenDict, ...]:
        """All pages of `skills/list`: entries `{uri, frontmatter, resources: [{uri, digest}]}`.

        Raises:
            KnownFault: `server_lost`, `server_failed`.
            PeerFault: `protocol_error`.
        """
        ...

    async def entry(self, server: str, uri: str) -> FrozenDict:
        """`skills/get`: one entry as it is now. Raises as `listing`."""
        ...

    async def read(self, server: str, uri: str) -> bytes:
        """The bytes of a resource, from that server only. Raises as `listing`."""
        ...
