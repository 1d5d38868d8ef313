"""What a conversation is made of: blocks and messages, neutral of vendor and of MCP revision."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from desktop_host.core.values import EMPTY, FrozenDict, Json


class Role(StrEnum):
    """Who speaks. Tool results travel in user messages, as MCP and Anthropic have it."""

    USER = "user"
    ASSISTANT = "assistant"


class StopReason(StrEnum):
    """Why a model stopped; the union of what vendors say."""

    END = "end"
    TOOLS = "tools"
    LENGTH = "length"
    STOP_SEQUENCE = "stop_sequence"
    PAUSE = "pause"
    REFUSAL = "refusal"
    CONTEXT = "context"


class Outcome(StrEnum):
    """How a tool call ended. UNKNOWN: the host died while it ran, so it may or may not have had its effect."""

    OK = "ok"
    ERROR = "error"
    DENIED = "denied"
    CANCELLED = "cancelled"
    TIMED_OUT = "timed_out"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Text:
    """Plain or Markdown text."""

    text: str
    annotations: FrozenDict | None = None
    """MCP annotations (audience, priority, lastModified) as they came."""


@dataclass(frozen=True, slots=True)
class Thinking:
    """Reasoning that the model chose to show. Never sent to another vendor."""

    text: str


@dataclass(frozen=True, slots=True)
class Image:
    """An image; `data` is base64."""

    data: str
    mime_type: str
    annotations: FrozenDict | None = None


@dataclass(frozen=True, slots=True)
class Audio:
    """A sound; `data` is base64."""

    data: str
    mime_type: str
    annotations: FrozenDict | None = None


@dataclass(frozen=True, slots=True)
class ResourceLink:
    """A pointer to a resource of a server. Never fetched by itself."""

    uri: str
    name: str
    title: str | None = None
    description: str | None = None
    mime_type: str | None = None
    size: int | None = None
    annotations: FrozenDict | None = None


@dataclass(frozen=True, slots=True)
class EmbeddedResource:
    """The contents of a resource: either `text` or `blob` (base64) is set."""

    uri: str
    mime_type: str | None = None
    text: str | None = None
    blob: str | None = None
    annotations: FrozenDict | None = None


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call the model asked for. Always complete: adapters gather the fragments."""

    id: str
    wire_name: str
    """The name as the model wrote it; the conversation's tool table maps it to a server and a tool."""
    arguments: FrozenDict = EMPTY
    problem: str | None = None
    """Set where the arguments could not be read (cut off, not JSON): such a call is answered, never run."""


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The one answer to a `ToolCall`."""

    call_id: str
    content: tuple[ContentBlock, ...]
    outcome: Outcome = Outcome.OK
    structured: Json = None


def for_model(blocks: tuple[ContentBlock, ...]) -> tuple[ContentBlock, ...]:
    """The blocks that a model may have: what a server meant for the person alone (`audience`) is left out."""
    return tuple(b for b in blocks if "assistant" in (_audience(b) or ("assistant",)))


def by_priority(blocks: tuple[ContentBlock, ...], limit: int) -> tuple[ContentBlock, ...]:
    """The blocks, those of higher MCP `priority` first where the texts do not fit into `limit` characters."""
    if sum(len(getattr(b, "text", None) or "") for b in blocks) <= limit:
        return blocks
    return tuple(sorted(blocks, key=lambda b: -_priority(b)))


def _priority(block: ContentBlock) -> float:
    notes = getattr(block, "annotations", None)
    value = notes.get("priority") if isinstance(notes, dict) else None
    return float(value) if isinstance(value, (int, float)) else 0.5


def _audience(block: ContentBlock) -> tuple[str, ...]:
    notes = getattr(block, "annotations", None)
    listed = notes.get("audience") if isinstance(notes, dict) else None
    return tuple(listed) if isinstance(listed, (list, tuple)) else ()


ContentBlock: TypeAlias = Text | Thinking | Image | Audio | ResourceLink | EmbeddedResource | ToolCall | ToolResult


@dataclass(frozen=True, slots=True)
class Native:
    """A vendor's own form of an assistant turn, kept so that it can be sent back byte for byte."""

    dialect: str
    """`anthropic`, `responses` or `chat`."""
    endpoint: str
    """Base URL it came from; native data never goes to another address."""
    model: str
    data: Json


@dataclass(frozen=True, slots=True)
class Message:
    """One message. It has no id: identity is the journal's."""

    role: Role
    blocks: tuple[ContentBlock, ...]
    native: Native | None = None

    @property
    def text(self) -> str:
        """All text blocks, joined by blank lines."""
        return "\n\n".join(b.text for b in self.blocks if isinstance(b, Text))

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """The tool calls of the message, in order."""
        return tuple(b for b in self.blocks if isinstance(b, ToolCall))


def user(*blocks: ContentBlock | str) -> Message:
    """A user message; strings become text blocks."""
    return Message(Role.USER, tuple(Text(b) if isinstance(b, str) else b for b in blocks))


def assistant(*blocks: ContentBlock | str) -> Message:
    """An assistant message; strings become text blocks."""
    return Message(Role.ASSISTANT, tuple(Text(b) if isinstance(b, str) else b for b in blocks))
