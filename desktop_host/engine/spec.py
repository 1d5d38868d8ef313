"""What a host is opened with."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from desktop_host.engine.inbox import HeadlessPolicy


@dataclass(frozen=True, slots=True)
class HostSpec:
    """What to open."""

    home: Path | None = None
    """Folder below which all is kept; None: the platform's folders."""
    profile: str = "default"
    headless: HeadlessPolicy | None = None
    """None: a person watches and answers through `Host.answer`."""
    mcp_config: tuple[Path, ...] = ()
    """Files with `{"mcpServers": …}` for this run only."""
    with_profile_servers: bool = True
    """With `mcp_config`: whether the profile's own servers stay."""
    skill_folders: tuple[Path, ...] = ()
    log_level: str = "INFO"
    autostart: bool = False
    """Start the enabled servers at once, where the setting `servers.autostart` agrees; else the first turn does."""
    own_record: bool = False
    """Leave `storage.url` aside: for what only looks at settings and secrets, so that a bad address can be mended."""
    passphrase: str = field(default="", repr=False)
    """Of the encrypted file of secrets, where it is needed before the host stands and can ask for it."""
