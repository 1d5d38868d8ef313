"""The desktop's own way to the host: who opens `desktop-host://` links and bundles."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class LinkState:
    """Whether the desktop hands links and bundles to this host."""

    possible: bool
    """Whether the host can arrange it on this system."""
    on: bool
    place: str = ""
    """The file (or registry key) that says so."""
    program: str = ""
    """What is started with the link as its last argument."""


class InstallLinks(Protocol):
    """Registers this host with the desktop of this user. A link starts and saves nothing: the window shows it first."""

    async def state(self) -> LinkState:
        """How it stands."""
        ...

    async def put(self, on: bool) -> LinkState:
        """Register, or take it back.

        Raises:
            UserFault: `usage` with `reason` `no_links`, this system has no such way.
            KnownFault: `disk_full`, `permission`: the files cannot be written.
        """
        ...
