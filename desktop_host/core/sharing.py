"""The gateway as a window has it: switched on and off, its key, and who used it for what."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from desktop_host.core.errors import HostError


@dataclass(frozen=True, slots=True)
class Heard:
    """One request of a client outside."""

    at: float
    """Seconds since 1970."""
    caller: str
    """Name of the key."""
    client: str
    """What the client calls itself; never trusted."""
    method: str
    """MCP's method, e.g. `tools/call`."""
    what: str
    """The tool, prompt or address; empty where there is none."""
    ok: bool
    ms: float


@dataclass(frozen=True, slots=True)
class Guest:
    """A client that came since the gateway is on."""

    caller: str
    client: str
    last: float
    """When it was heard last, seconds since 1970."""
    requests: int


@dataclass(frozen=True, slots=True)
class Sharing:
    """How the gateway stands."""

    on: bool = False
    url: str = ""
    has_key: bool = False
    fault: HostError | None = None
    """Why it could not be switched on, or has ended."""
    guests: tuple[Guest, ...] = ()
    """Those heard last first."""
    heard: tuple[Heard, ...] = ()
    """The newest requests first."""


class Sharer(Protocol):
    """Serves the profile to other apps on this computer, as long as the host is open."""

    async def state(self) -> Sharing:
        """How it stands now."""
        ...

    async def turn(self, on: bool) -> Sharing:
        """Switch it on or off and keep that; where it is on already, it begins anew with the settings of now.

        A failure comes back in `Sharing.fault`.
        """
        ...

    async def new_key(self) -> str:
        """Make another bearer token, which is told this once; the one before no longer opens anything."""
        ...
