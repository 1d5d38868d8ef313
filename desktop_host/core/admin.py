"""The administration a face reaches through the host: models, servers, secrets, settings."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from typing import Any, Protocol

from desktop_host.core.diagnosis import Reach
from desktop_host.core.exchange import Origin, Progress, ToolOutcome
from desktop_host.core.messages import Message
from desktop_host.core.models import ModelEntry, ModelProgress, ModelRequest, Quote
from desktop_host.core.ports import ChatModel
from desktop_host.core.routes import Considered, Needs
from desktop_host.core.servers import (
    ImportedServer,
    LogLine,
    PromptSpec,
    ResourceSpec,
    ServerConfig,
    ServerStatus,
    ServerTest,
    WireFrame,
)
from desktop_host.core.settings import Settings
from desktop_host.core.tools import ToolSpec
from desktop_host.core.values import FrozenDict


class ModelAdmin(Protocol):
    """The models of a profile."""

    async def open(self, ref: str) -> ChatModel:
        """The model behind a REF; imports its vendor when first needed.

        Raises:
            UserFault: `usage` for a REF that cannot be read.
            KnownFault: `auth` without a key, `model_missing` without weights or runtime.
        """
        ...

    async def entries(self, *, refresh: bool = False) -> tuple[ModelEntry, ...]:
        """What a person can pick; `refresh` asks the vendors and endpoints anew. Never raises for one of them."""
        ...

    async def fetch(self, name: str, progress: Callable[[ModelProgress], None]) -> None:
        """Fetch the weights of an embedded model by digest.

        Raises:
            UserFault: `not_found`.
            KnownFault: `network`, `disk_full`, `model_missing` (digest differs).
        """
        ...

    async def remove(self, name: str) -> None:
        """Delete the weights of an embedded model."""
        ...

    async def window(self, ref: str) -> int | None:
        """Context window in tokens of a model, or the smallest usable one of a route; None where nobody says."""
        ...

    async def quote(self, ref: str, request: ModelRequest, input_tokens: int) -> Quote | None:
        """What a request will cost at most; None where a price is unknown. Loopback and embedded models cost 0."""
        ...

    async def explain(self, name: str, needs: Needs) -> tuple[Considered, ...]:
        """What a route would do with a request, in the order in which its models would be asked.

        Raises:
            UserFault: `not_found`, there is no such route.
        """
        ...

    def kin(self) -> tuple[tuple[str, ...], ...]:
        """Words of model names that stand for one kind across vendors."""
        ...

    async def check(self, ref: str) -> None:
        """Send one tiny request, so that a key or an address can be tested.

        Raises:
            HostError: what is wrong.
        """
        ...

    async def reach(self) -> tuple[Reach, ...]:
        """Ask each address that is set up for its models; costs nothing. Never raises for one of them."""
        ...

    async def close(self) -> None:
        """Close connections and stop the embedded model."""
        ...


class ServerAdmin(Protocol):
    """Configure, start and look into servers."""

    def configs(self) -> tuple[ServerConfig, ...]:
        """All configured servers, in the file's order."""
        ...

    def statuses(self) -> tuple[ServerStatus, ...]:
        """All configured servers as they stand; each has a row and a reason."""
        ...

    def status(self, name: str) -> ServerStatus:
        """One server.

        Raises:
            UserFault: `not_found`.
        """
        ...

    async def add(self, config: ServerConfig, secrets: FrozenDict | None = None) -> ServerConfig:
        """Add a server; `secrets` go to the vault first. Starts nothing by itself unless enabled and running.

        Raises:
            UserFault: `bad_config`.
        """
        ...

    async def update(self, config: ServerConfig) -> None:
        """Change a server. A change that does not touch its launch never restarts it."""
        ...

    async def remove(self, name: str) -> bool:
        """Stop a server and forget it, with its secrets, files and tokens; tokens are revoked first.

        Returns:
            Whether nothing is left elsewhere: False where an authorization server could not be told that the tokens
            are over (they end there by themselves).

        Raises:
            UserFault: `not_found`.
        """
        ...

    async def enable(self, name: str, on: bool) -> None: ...
    async def set_tool_enabled(self, name: str, tool: str, on: bool) -> None: ...
    async def start(self, name: str) -> ServerStatus: ...
    async def stop(self, name: str) -> None: ...
    async def restart(self, name: str) -> ServerStatus: ...
    async def login(self, name: str) -> ServerStatus:
        """Sign in to a remote server; returns when it is ready or has failed. The person is asked to open a URL.

        Raises:
            UserFault: `not_found`; `usage`, it is none that the host signs in to.
        """
        ...

    async def cancel_login(self, name: str) -> None:
        """End a sign-in that waits for the person."""
        ...

    async def logout(self, name: str) -> bool:
        """Stop the server, revoke its tokens where that is offered, and delete them here.

        Returns whether the authorization server took note.

        Raises:
            UserFault: as `login`.
            KnownFault: `vault_locked` or `vault_unavailable`: nothing was deleted.
        """
        ...

    async def test(self, config: ServerConfig) -> ServerTest: ...

    async def autostart(self, aliases: tuple[str, ...] | None = None) -> None:
        """Start the enabled servers of profile scope, all at once; returns when each is ready or failed."""
        ...

    def tools(self, name: str) -> tuple[ToolSpec, ...]: ...
    async def call_tool(
        self, name: str, tool: str, arguments: FrozenDict, progress: Callable[[Progress], None] | None = None
    ) -> ToolOutcome:
        """Run a tool by hand: the person's own act. Hard denials still hold."""
        ...

    async def resources(self, name: str) -> tuple[ResourceSpec, ...]: ...
    async def read_resource(self, name: str, uri: str, origin: Origin | None = None) -> ToolOutcome:
        """Read a resource.

        Args:
            name: alias of the server.
            uri: its address.
            origin: on whose behalf, where that is a client outside: it is asked what the server asks meanwhile,
                and gets large contents whole instead of a link to a file.
        """
        ...

    async def prompts(self, name: str) -> tuple[PromptSpec, ...]: ...
    async def get_prompt(
        self, name: str, prompt: str, arguments: FrozenDict, origin: Origin | None = None
    ) -> tuple[Message, ...]:
        """Fill a prompt; `origin` as in `read_resource`."""
        ...

    def watch(self, name: str, uri: str) -> AsyncGenerator[str, None]:
        """Subscribe to a resource; yields its URI at each update."""
        ...

    def logs(self, name: str) -> tuple[LogLine, ...]: ...
    def trace(self, name: str) -> tuple[WireFrame, ...]: ...
    def closed(self, name: str) -> frozenset[int]:
        """The connections of the trace that are over (`WireFrame.connection`)."""
        ...

    def parse(self, text: str) -> tuple[ImportedServer, ...]:
        """Read anything a person may paste: a JSON snippet (comments, BOM, several objects), a command line, a URL.

        Raises:
            UserFault: `bad_config` with line and column.
        """
        ...

    def export(self) -> FrozenDict:
        """The configuration as `{"mcpServers": …}`, references in place of secrets."""
        ...

    async def close(self) -> None:
        """Stop all servers, in parallel."""
        ...


class SecretStore(Protocol):
    """The vault. Blocking backends run in a thread of their own; every call has a time limit."""

    async def get(self, name: str) -> str | None:
        """A secret, or None where there is none.

        Raises:
            KnownFault: `vault_unavailable` or `vault_locked`.
        """
        ...

    async def put(self, name: str, value: str) -> None: ...
    async def delete(self, name: str) -> bool:
        """Whether there was one."""
        ...

    async def names(self) -> tuple[str, ...]: ...
    async def probe(self) -> FrozenDict:
        """`{store, ok, detail, remedy}` after a write, a read and a delete."""
        ...


class SettingsStore(Protocol):
    """The settings file of a profile."""

    def current(self) -> Settings: ...
    async def set(self, key: str, value: Any) -> Settings:
        """Set one key.

        Raises:
            UserFault: `bad_settings`.
        """
        ...

    async def save(self, settings: Settings) -> None: ...
    def problems(self) -> tuple[FrozenDict, ...]:
        """What of the file is not used: `{"key", "code": "unknown_key" | "bad_value", "value", "wanted"}`."""
        ...
