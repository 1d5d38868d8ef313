"""What the gateway needs of the engine: the profile's tools, resources and prompts, for callers from outside."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable
from dataclasses import dataclass
from typing import Protocol

from desktop_host.core.exchange import (
    ElicitReply,
    FormRequest,
    Progress,
    SamplingReply,
    SamplingRequest,
    ToolOutcome,
    UrlRequest,
)
from desktop_host.core.messages import Message
from desktop_host.core.server_ports import Completion
from desktop_host.core.servers import PromptSpec, ResourceSpec
from desktop_host.core.sharing import Heard
from desktop_host.core.tools import ToolSpec
from desktop_host.core.values import EMPTY, FrozenDict, Json


@dataclass(frozen=True, slots=True)
class Caller:
    """Who calls from outside: a key of the gateway, or whoever started it over standard input."""

    name: str
    """`main`, or the name of the key."""
    tools: tuple[str, ...] = ("*",)
    """Globs over `alias.tool`: what this caller can see at all. Resources and prompts go by `alias.*`."""
    allow: tuple[str, ...] = ()
    """Globs over `alias.tool`: what may run without being asked for."""


@dataclass(frozen=True, slots=True)
class GatewayKey:
    """A caller over HTTP and the digest of its bearer token."""

    caller: Caller
    sha256: str
    """Hex digits; the token itself is kept in the vault alone."""


@dataclass(frozen=True, slots=True)
class GatewaySpec:
    """How the gateway is served."""

    stdio: Caller | None = None
    """Over standard input and output, for this caller."""
    address: tuple[str, int] | None = None
    """Over Streamable HTTP; port 0 takes a free one."""
    keys: tuple[GatewayKey, ...] = ()
    """Who may come over HTTP."""
    ready: Callable[[str], None] = lambda _url: None
    """Told the address once requests are taken."""
    heard: Callable[[Heard], None] = lambda _heard: None
    """Told each request that a client made."""


class Asking(Protocol):
    """The client that made a call, as far as it can be asked while that call runs."""

    @property
    def name(self) -> str:
        """Of the client's connection: two calls with one name can be answered by each other's client."""
        ...

    def takes(self, request: SamplingRequest | FormRequest | UrlRequest) -> bool:
        """Whether the client has declared that it can answer this."""
        ...

    async def sample(self, server: str, tool: str, request: SamplingRequest) -> SamplingReply:
        """Let the client's model answer a server, which is named to it.

        Raises:
            UserFault: `permission`, the client refused or did not answer.
        """
        ...

    async def elicit(self, server: str, tool: str, request: FormRequest | UrlRequest) -> ElicitReply:
        """Let the client ask its person; what cannot be asked counts as cancelled."""
        ...

    def log(self, server: str, level: str, logger: str | None, data: Json) -> None:
        """Hand on a line that the server logged during the call; returns at once."""
        ...


class HostCalls(Protocol):
    """The host, as the gateway sees it. Every call goes through the same gate, budgets and journal as a chat's."""

    async def open(self, caller: Caller) -> None:
        """Start the servers that this caller can see; returns when each is ready or has failed."""
        ...

    async def tools(self, caller: Caller) -> tuple[ToolSpec, ...]:
        """The tools that this caller can see: enabled, of its set, and not denied by a rule."""
        ...

    async def call(
        self,
        caller: Caller,
        spec: ToolSpec,
        arguments: FrozenDict,
        progress: Callable[[Progress], None],
        client: Asking | None = None,
    ) -> ToolOutcome:
        """Run one call. What is refused comes back as an outcome that says why; cancelling cancels on the wire.

        What the server asks meanwhile goes to `client` where that can answer and this host's policy does not refuse.
        """
        ...

    async def resources(self, caller: Caller) -> tuple[ResourceSpec, ...]:
        """Resources and templates of the servers that this caller can see; one that fails is left out."""
        ...

    async def read(self, caller: Caller, server: str, uri: str, client: Asking | None = None) -> ToolOutcome:
        """Read a resource; `client` as in `call`.

        Raises:
            UserFault: `not_found`, also for a server that this caller cannot see.
            KnownFault: the server cannot be used.
        """
        ...

    async def prompts(self, caller: Caller) -> tuple[PromptSpec, ...]:
        """Prompts, as `resources`."""
        ...

    async def prompt(
        self, caller: Caller, server: str, name: str, arguments: FrozenDict, client: Asking | None = None
    ) -> tuple[Message, ...]:
        """A filled prompt; raises as `read`."""
        ...

    async def complete(
        self, caller: Caller, server: str, ref: str, argument: str, value: str, context: FrozenDict = EMPTY
    ) -> Completion:
        """Proposals of the server for an argument of a prompt (`ref`: its name) or of a template (its URI).

        Raises:
            UserFault: `not_found`, a server that this caller cannot see.
        """
        ...

    def watch(self, caller: Caller, server: str, uri: str) -> AsyncGenerator[str, None]:
        """Yields the resource's URI at each update; raises as `read`."""
        ...

    def changes(self) -> AsyncIterator[frozenset[str]]:
        """Which lists (`tools`, `resources`, `prompts`) have become others, until the host closes."""
        ...

    async def close(self) -> None:
        """Let go of what was opened for callers; a caller who ran nothing leaves no trace."""
        ...
