"""Settings of the gateway that the window serves."""

from __future__ import annotations

from dataclasses import dataclass

from desktop_host.core.settings_fields import flag, lines, number


@dataclass(frozen=True, slots=True)
class GatewaySettings:
    """What other apps on this computer may use through this one."""

    on: bool = flag(False)
    """Served while the window is open."""
    port: int = number(8010, 1024, 65535)
    """On 127.0.0.1."""
    hidden: str = lines("")
    """Aliases of servers that are not offered, one a line."""
    allow: str = lines("")
    """Globs over `alias.tool`, one a line: what runs without a question."""
