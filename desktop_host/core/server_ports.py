"""More of what a face can do with servers: links, other hosts' files, completion, marks, files, pictures."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Protocol

from desktop_host.core.admin import ServerAdmin
from desktop_host.core.servers import ImportedServer, ServerConfig, ServerStatus
from desktop_host.core.values import EMPTY, FrozenDict


class Clash(StrEnum):
    """What happens where a name is taken already."""

    RENAME = "rename"
    SKIP = "skip"
    REPLACE = "replace"
    REFUSE = "refuse"


@dataclass(frozen=True, slots=True)
class FoundConfig:
    """A file of another host that names servers; nothing of it was started or taken over."""

    app: str
    """`claude-desktop`, `claude-code`, `cursor`, `vscode`, `windsurf`, `zed`, `cherry-studio` or `lm-studio`."""
    title: str
    """The product's name as people know it."""
    path: Path
    servers: tuple[ImportedServer, ...] = ()
    problem: str | None = None
    """Why the file could not be read; its servers are empty then."""


@dataclass(frozen=True, slots=True)
class Completion:
    """What a server proposes for an argument."""

    values: tuple[str, ...] = ()
    total: int | None = None
    has_more: bool = False


@dataclass(frozen=True, slots=True)
class SavedResource:
    """A resource that was written to a file of the host's own, for the platform to open."""

    uri: str
    path: Path
    mime_type: str | None
    size: int
    """Bytes."""


@dataclass(frozen=True, slots=True)
class InstallLink:
    """A link `desktop-host://install?…` as it was read. Nothing was started; everything of it must be shown."""

    servers: tuple[ImportedServer, ...]
    source: str
    """The link itself, secrets left out."""


class ServerReach(ServerAdmin, Protocol):
    """All that a face can do with servers by name."""

    async def found(self, home: Path | None = None) -> tuple[FoundConfig, ...]:
        """The files of other hosts on this machine that name servers; `home`: the folder looked below."""
        ...

    async def read_all(self, text: str) -> tuple[ImportedServer, ...]:
        """As `parse`, with the names as they are written: for `take_over` with another strategy than RENAME."""
        ...

    async def twins(self, servers: tuple[ImportedServer, ...]) -> FrozenDict:
        """Which imported servers are there already: the configured server's name by the imported one's."""
        ...

    async def take_over(
        self, servers: tuple[ImportedServer, ...], clash: Clash = Clash.RENAME
    ) -> tuple[ServerConfig, ...]:
        """Add imported servers; `clash` says what happens to names that are taken.

        Raises:
            UserFault: `bad_config` with `reason` `name_taken` (REFUSE; nothing was added then).
        """
        ...

    def link(self, url: str) -> InstallLink:
        """Read a `desktop-host://install?…` link; starts and saves nothing.

        Raises:
            UserFault: `bad_config` with `reason` `bad_link`.
        """
        ...

    async def complete(self, name: str, ref: str, argument: str, value: str, context: FrozenDict = EMPTY) -> Completion:
        """Proposals for an argument while it is typed.

        Args:
            name: alias of the server.
            ref: the name of a prompt, or the URI template of a resource (whatever holds `://`).
            argument: the argument's name.
            value: what was typed so far.
            context: the arguments that are filled in already.

        Returns:
            Nothing where the server does not complete, or takes longer than 5 s.
        """
        ...

    async def set_log_level(self, name: str, level: str) -> None:
        """Ask a server for messages from `level` on, now and from now on; restarts nothing.

        Raises:
            UserFault: `bad_config` (no such level), `not_found`.
        """
        ...

    async def roots_changed(self, session: str | None) -> None:
        """Tell running servers that the folders of a session (None: of the profile) may be others now."""
        ...

    async def save_resource(self, name: str, uri: str) -> SavedResource:
        """Read a resource into a file below the profile's `files` folder, for the platform to open.

        Raises:
            UserFault: `not_found`.
            KnownFault: `disk_full`.
        """
        ...

    async def subscribe(self, name: str, uri: str, on: bool = True) -> None:
        """Keep an eye on a resource: each update is told as `ServerChanged` with `resource:<uri>` in its lists.

        The eye survives a lost connection. It closes when the server is stopped or switched off, or no longer lets
        the resource be watched; `watched` in the lists tells that it did.

        Raises:
            HostError: the server cannot be used, or does not let the resource be watched.
        """
        ...

    def learn_secrets(self, name: str, values: frozenset[str]) -> None:
        """Hide these values in the server's log and trace from now on."""
        ...

    def subscribed(self, name: str) -> tuple[str, ...]:
        """The resources of a server that are watched by `subscribe`."""
        ...

    async def resend(self, name: str, method: str, params: FrozenDict) -> FrozenDict:
        """Send a request of the wire again, as the person changed it; gives the result as it came.

        Raises:
            UserFault: `usage`, the method belongs to the connection itself; `not_found`.
            PeerFault: `protocol_error`, the server refused it.
        """
        ...

    async def icon(self, name: str, kind: str = "server", item: str = "", dark: bool = False) -> bytes | None:
        """The picture that a server gives itself, or one of its things; starts nothing.

        Args:
            name: alias of the server.
            kind: `server`, `tool`, `resource` or `prompt`.
            item: name of the tool or prompt, or the resource's address; without a picture the server's own.
            dark: whether it will stand on a dark ground.

        Returns:
            An image file as it came from outside (256 KiB at most), not to be trusted; None where there is none.

        Raises:
            UserFault: `not_found`.
        """
        ...

    async def mend(self, name: str) -> ServerStatus:
        """Do what the server's failure names as its `fix`, as far as the host can, and start the server anew.

        Raises:
            UserFault: `usage`, there is nothing that the host could do by itself; `not_found`.
            KnownFault: `permission`, the file's permissions cannot be changed.
        """
        ...

    async def login(self, name: str) -> ServerStatus:
        """Sign in to a remote server; a person is asked to open the browser.

        Raises:
            UserFault: `usage`, it is no server that is signed in to; `not_found`.
        """
        ...

    async def cancel_login(self, name: str) -> None:
        """Give up a sign-in that is under way."""
        ...

    async def logout(self, name: str) -> bool:
        """Stop the server and forget its tokens; whether the authorization server was told."""
        ...
