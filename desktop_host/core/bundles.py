"""Bundles of servers (`.mcpb`, `.dxt`): what a file holds, what is installed, and the port to both."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from desktop_host.core.servers import ServerConfig
from desktop_host.core.values import EMPTY, FrozenDict


@dataclass(frozen=True, slots=True)
class BundleField:
    """One entry of a bundle's `user_config`."""

    key: str
    type: str
    """`string`, `number`, `boolean`, `directory` or `file`."""
    title: str
    description: str = ""
    required: bool = False
    multiple: bool = False
    secret: bool = False
    """`sensitive`: goes to the vault, never to a file."""
    default: object = None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class BundlePreview:
    """What a `.mcpb` or `.dxt` file holds; nothing of it was unpacked or run."""

    path: Path
    name: str
    """The bundle's own name."""
    title: str
    version: str
    description: str
    author: str
    kind: str
    """`node`, `python`, `binary` or `uv`."""
    manifest_version: str
    config: ServerConfig
    """What would be started, `${__dirname}` and `${user_config.x}` not filled in yet."""
    fields: tuple[BundleField, ...] = ()
    tools: tuple[str, ...] = ()
    """Names of the tools that the manifest tells of."""
    files: int = 0
    size: int = 0
    """Bytes when unpacked."""
    icon: bytes | None = None
    """A PNG of at most 256 KiB."""
    links: FrozenDict = EMPTY
    """`homepage`, `documentation`, `support`, `repository` where given."""
    installed: str | None = None
    """The alias under which a bundle of this name is installed: installing updates it."""
    installed_version: str | None = None
    warnings: tuple[str, ...] = ()
    """Codes: `bundle_signature_unverified`, `bundle_signature_broken`, `bundle_signed`,
    `bundle_self_signed`, `bundle_unsigned`, `bundle_old_manifest`, `bundle_other_platform`,
    `bundle_runtime_missing`, `shell_command`, `env_runs_code`."""
    signer: str = ""
    """The name in the certificate of its signature, which fits; nobody vouches for it where it is its own."""
    runtime: str | None = None
    """The program that will run it (`node`, `python3`, `uv`), or None for a binary."""


@dataclass(frozen=True, slots=True)
class InstalledBundle:
    """A bundle below the profile's folder."""

    alias: str
    name: str
    title: str
    version: str
    folder: Path
    values: FrozenDict = field(default=EMPTY)
    """The person's `user_config`; secrets as `${keyring:NAME}`."""


class BundleAdmin(Protocol):
    """Bundles: looked into, installed, updated, removed."""

    async def preview(self, path: Path) -> BundlePreview:
        """Look into a bundle.

        Raises:
            UserFault: `bad_bundle` with `reason` and `file`; `not_found`.
        """
        ...

    async def install(self, path: Path, values: FrozenDict = EMPTY, *, enabled: bool = True) -> ServerConfig:
        """Unpack a bundle and add its server, or update the one installed under the bundle's name.

        Args:
            path: the `.mcpb` or `.dxt` file.
            values: what the person gave for `user_config`, plain; secrets go to the vault. On an update, fields
                that are left out keep their values.
            enabled: whether the server may start.

        Raises:
            UserFault: `bad_bundle` (with `field` where a value is missing or wrong).
            KnownFault: `disk_full`, `vault_unavailable`, `vault_locked`.
        """
        ...

    async def installed(self) -> tuple[InstalledBundle, ...]:
        """The bundles of the profile."""
        ...

    async def remove(self, alias: str) -> bool:
        """Remove a bundle's server, its files and its secrets; returns as `ServerAdmin.remove`.

        Raises:
            UserFault: `not_found`.
        """
        ...
