"""What passes between the host and a server during a call: results, progress, and what a server may ask."""

from __future__ import annotations

from dataclasses import dataclass

from desktop_host.core.messages import ContentBlock, Message, Outcome
from desktop_host.core.tools import ToolSpec
from desktop_host.core.values import EMPTY, FrozenDict, Json


@dataclass(frozen=True, slots=True)
class ToolOutcome:
    """What a call gave."""

    outcome: Outcome
    content: tuple[ContentBlock, ...] = ()
    structured: Json = None
    duration_ms: float = 0.0
    raw: Json = None
    """The result as it came over the wire; for the person's view only."""


@dataclass(frozen=True, slots=True)
class Progress:
    """A progress report of a running call."""

    progress: float
    total: float | None = None
    message: str | None = None


@dataclass(frozen=True, slots=True)
class RunningCall:
    """A request to a server that was open when the server asked."""

    key: str
    """Tells it from every other request of this run."""
    name: str
    """Of the tool or the prompt, or the address of the resource."""
    arguments: FrozenDict = EMPTY
    kind: str = "tool"
    """`tool`, `prompt` or `resource`."""


@dataclass(frozen=True, slots=True)
class Origin:
    """Who asks: a server, and the session and call it was attributed to (None where that is unknown)."""

    server: str
    session: str | None = None
    call_id: str | None = None
    calls: tuple[RunningCall, ...] = ()
    """The request during which it asks; several where it is one of these and nothing tells which."""


@dataclass(frozen=True, slots=True)
class SamplingRequest:
    """A server asks the host's model (MCP `sampling/createMessage`)."""

    messages: tuple[Message, ...]
    max_tokens: int
    system: str | None = None
    temperature: float | None = None
    stop: tuple[str, ...] = ()
    hints: tuple[str, ...] = ()
    cost_priority: float | None = None
    speed_priority: float | None = None
    intelligence_priority: float | None = None
    tools: tuple[ToolSpec, ...] = ()
    """The server's own; the host never runs them."""
    tool_choice: str = "auto"
    context: str = "none"
    """What it would like to see of other servers (`thisServer`, `allServers`); never granted, only shown."""


@dataclass(frozen=True, slots=True)
class SamplingReply:
    """What goes back to the server."""

    blocks: tuple[ContentBlock, ...]
    model: str
    stop: str
    """MCP's words: `endTurn`, `maxTokens`, `stopSequence`, `toolUse`, `refusal`."""


@dataclass(frozen=True, slots=True)
class FormRequest:
    """A server asks the person to fill a form (MCP elicitation, form mode)."""

    message: str
    schema: FrozenDict


@dataclass(frozen=True, slots=True)
class UrlRequest:
    """A server asks the person to open a URL (MCP elicitation, URL mode)."""

    message: str
    url: str
    elicitation_id: str | None = None
    purpose: str = ""
    """`sign_in`: the host itself asks, to sign in to the server; `more_access`: it is signed in, and a call needs
    more rights. Faces say so in the person's language."""


@dataclass(frozen=True, slots=True)
class ElicitReply:
    """The person's answer: `accept`, `decline`, `cancel`, or `stop`: and ask nothing more during this call."""

    action: str
    content: FrozenDict | None = None
