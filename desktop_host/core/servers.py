"""MCP servers as the person configures them, and what can be known of one that runs."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeAlias

from desktop_host.core.auth import AUTOMATIC, Auth, SignInState
from desktop_host.core.values import EMPTY, FrozenDict

LOG_LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
"""The levels of MCP logging, the chattiest first."""


class Protocol(StrEnum):
    """Which MCP revision to speak."""

    AUTO = "auto"
    LEGACY = "legacy"
    MODERN = "2026-07-28"


class ServerScope(StrEnum):
    """Who shares a connection. CALL (a connection per call) is for HTTP only."""

    PROFILE = "profile"
    SESSION = "session"
    CALL = "call"


class ServerState(StrEnum):
    """Where a server stands."""

    DISABLED = "disabled"
    STOPPED = "stopped"
    STARTING = "starting"
    READY = "ready"
    STOPPING = "stopping"
    WAITING = "waiting"
    """Lost; waiting to be started again."""
    FAILED = "failed"
    """Given up; the reason says why."""
    NEEDS_AUTH = "needs_auth"


@dataclass(frozen=True, slots=True)
class Stdio:
    """A server that the host starts as a child process. Values may hold `${keyring:NAME}` and `${VAR}`."""

    command: str
    args: tuple[str, ...] = ()
    env: FrozenDict = EMPTY
    cwd: str | None = None
    encoding: str = "utf-8"
    encoding_errors: str = "replace"


@dataclass(frozen=True, slots=True)
class Http:
    """A Streamable HTTP server."""

    url: str
    headers: FrozenDict = EMPTY
    auth: Auth = AUTOMATIC


@dataclass(frozen=True, slots=True)
class Sse:
    """A server of the deprecated HTTP+SSE transport."""

    url: str
    headers: FrozenDict = EMPTY
    auth: Auth = AUTOMATIC


Launch: TypeAlias = Stdio | Http | Sse


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Seconds. `call_s` (None: the profile's) counts from the last sign of life: progress extends it, asks stop it."""

    connect_s: float = 60.0
    call_s: float | None = None
    call_max_s: float = 3600.0


@dataclass(frozen=True, slots=True)
class SamplingPolicy:
    """Whether a server may ask the host's model."""

    mode: str = "ask"
    """`off`, `ask` or `allow`."""
    max_tokens: int = 4096
    daily_tokens: int = 50_000
    daily_usd: float = 0.0
    """Most money in US dollars a day, beside the profile's own limit; 0: none of its own, or (`allow`) $1."""
    per_minute: int = 10


@dataclass(frozen=True, slots=True)
class ServerConfig:
    """One configured server."""

    name: str
    """The alias: `[a-z0-9-]{1,32}`; unique in the profile and the first part of its tools' names."""
    launch: Launch
    title: str | None = None
    enabled: bool = True
    protocol: Protocol = Protocol.AUTO
    scope: ServerScope = ServerScope.PROFILE
    trusted: bool = False
    """Whether the hints of its tools (read-only and so on) may be believed."""
    disabled_tools: tuple[str, ...] = ()
    enabled_tools: tuple[str, ...] | None = None
    """If given, only these tools are used; None: all that are not in `disabled_tools`."""
    log_level: str = "info"
    """Least level of the messages that the server is asked to log (`LOG_LEVELS`)."""
    sampling: SamplingPolicy = SamplingPolicy()
    timeouts: Timeouts = Timeouts()
    extra: FrozenDict = EMPTY
    """Keys of the file that we do not know: kept and written back."""

    @property
    def transport(self) -> str:
        """`stdio`, `http` or `sse`."""
        match self.launch:
            case Stdio():
                return "stdio"
            case Http():
                return "http"
            case Sse():
                return "sse"

    @property
    def target(self) -> str:
        """What is started or connected to, for display; holds no resolved secret."""
        match self.launch:
            case Stdio(command=command, args=args):
                return " ".join([command, *args])
            case Http(url=url) | Sse(url=url):
                return url


FIXES = (
    "restart", "edit", "sign_in", "more_time", "make_executable", "use_sse", "use_http", "node", "uv", "docker", "bun",
    "deno",
)  # fmt: skip
"""What may mend a server, with one press: start it again, change its settings, sign in, give it three times as long
to start, make its file executable, take the other HTTP transport, get the named program."""


@dataclass(frozen=True, slots=True)
class FailureReport:
    """Why a server does not work, with all that is needed to mend it."""

    code: str
    message: str
    remedy: str = ""
    """Key of a likely cause and its mend (`remedy.server.*`)."""
    command: tuple[str, ...] = ()
    """The command as resolved; its arguments as configured, secrets not expanded."""
    path: str = ""
    """The PATH used."""
    cwd: str | None = None
    exit_code: int | None = None
    stderr: tuple[str, ...] = ()
    """The last lines (20 at most)."""
    bad_stdout: str | None = None
    """The first line of standard output that was no JSON-RPC."""
    what: str = ""
    """Key of what happened (`failure.*`); empty: the text of `code` says it."""
    params: FrozenDict = EMPTY
    """What the texts of `what` and `code` name: `command`, `seconds`, `status`, `detail`, …"""
    fix: str = ""
    """What would mend it at once, one of `FIXES`."""


@dataclass(frozen=True, slots=True)
class ServerStatus:
    """A server now."""

    name: str
    state: ServerState
    transport: str = "stdio"
    enabled: bool = True
    era: str | None = None
    """The negotiated protocol revision."""
    server: FrozenDict = EMPTY
    """serverInfo: name, version, title."""
    capabilities: FrozenDict = EMPTY
    instructions: str | None = None
    tools: int = 0
    resources: int = 0
    prompts: int = 0
    pid: int | None = None
    since: float | None = None
    """When it reached this state, seconds since the epoch."""
    restarts: int = 0
    error: FailureReport | None = None
    target: str = ""
    sign_in: SignInState = SignInState.NONE
    tokens: int = 0
    """Estimate of what the definitions of its tools cost in each request."""


@dataclass(frozen=True, slots=True)
class ServerTest:
    """The result of `servers test`."""

    name: str
    ok: bool
    era: str | None = None
    server: FrozenDict = EMPTY
    capabilities: FrozenDict = EMPTY
    tools: int = 0
    resources: int = 0
    prompts: int = 0
    connect_ms: float | None = None
    list_ms: float | None = None
    error: FailureReport | None = None


@dataclass(frozen=True, slots=True)
class ResourceSpec:
    """A resource, or a template where `template` is true (`uri` is then a URI template)."""

    server: str
    uri: str
    name: str
    title: str | None = None
    description: str | None = None
    mime_type: str | None = None
    size: int | None = None
    template: bool = False
    annotations: FrozenDict | None = None
    icons: tuple[FrozenDict, ...] = ()
    """As they came: `{src, mimeType, sizes, theme}`. Untrusted; a face fetches none but `data:` and https."""


@dataclass(frozen=True, slots=True)
class PromptArgument:
    """An argument of a prompt."""

    name: str
    title: str | None = None
    description: str | None = None
    required: bool = False


@dataclass(frozen=True, slots=True)
class PromptSpec:
    """A prompt of a server."""

    server: str
    name: str
    title: str | None = None
    description: str | None = None
    arguments: tuple[PromptArgument, ...] = ()
    icons: tuple[FrozenDict, ...] = ()


@dataclass(frozen=True, slots=True)
class WireFrame:
    """One JSON-RPC message as it passed the tap; secrets are redacted."""

    t: float
    """Seconds since the epoch."""
    direction: str
    """`out` (to the server) or `in`."""
    message: FrozenDict
    connection: int = 0
    """Which connection it passed; ids of requests count for each alone."""
    session: str | None = None
    """The conversation that the connection belongs to; None: to all."""


@dataclass(frozen=True, slots=True)
class LogLine:
    """A line of a server's log: its standard error, its protocol messages, or what the host noted."""

    t: float
    source: str
    """`stderr`, `stdout` (a line that was no JSON-RPC), `network` (HTTP), `message` (MCP logging) or `host`."""
    text: str
    level: str | None = None


@dataclass(frozen=True, slots=True)
class ImportedServer:
    """A server found in a snippet, a command line, a URL or another host's file; nothing was started."""

    config: ServerConfig
    secrets: FrozenDict = field(default=EMPTY)
    """Plain values that look like secrets, by the vault name proposed for each; the config already
    refers to them as `${keyring:NAME}`."""
    warnings: tuple[str, ...] = ()
    """Codes: `shell_command`, `env_runs_code`, `split_arguments`, `renamed`, `unknown_keys`, …"""
