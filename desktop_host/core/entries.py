"""The rows of a conversation as it is shown; `transcript.fold` makes them of events."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from desktop_host.core import events as ev
from desktop_host.core.asks import Ask
from desktop_host.core.messages import ContentBlock, Message, Outcome
from desktop_host.core.permissions import Effect
from desktop_host.core.skills import SkillPin
from desktop_host.core.values import EMPTY, FrozenDict, Json


@dataclass(frozen=True, slots=True)
class UserEntry:
    """What the person said."""

    key: str
    turn: int
    text: str
    attachments: tuple[ev.Attachment, ...] = ()
    blocks: tuple[ContentBlock, ...] = ()
    skills: tuple[SkillPin, ...] = ()
    source: str = ""
    """`prompt:<server>.<name>` where it is a server's prompt; `subtask:<session>` where it is a part of that one."""
    suggested: tuple[str, ...] = ()
    """Skills that were offered and not used."""
    prelude: tuple[Message, ...] = ()
    """Messages that came before this one with a server's prompt; the model has them, too."""


@dataclass(frozen=True, slots=True)
class AssistantEntry:
    """What the model said; `streaming` while it is still coming."""

    key: str
    turn: int
    text: str = ""
    thinking: str = ""
    model: str = ""
    streaming: bool = False
    partial: bool = False
    cached: bool = False
    """An earlier answer of the host's own store; the person may ask again."""
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float | None = None
    """Of the request behind this reply; None: unknown, or nothing was asked."""
    good: bool | None = None
    """What the person thinks of it."""


@dataclass(frozen=True, slots=True)
class SubtaskEntry:
    """One part of a call that was handed to several sub-tasks."""

    last: ev.SubtaskChanged
    """How it stands."""
    started_at: float
    """Of its first state, seconds since the epoch."""
    changed_at: float


@dataclass(frozen=True, slots=True)
class ToolEntry:
    """One call, from the model's wish to its result."""

    key: str
    turn: int
    call_id: str
    server: str = ""
    tool: str = ""
    title: str = ""
    arguments: FrozenDict = EMPTY
    verdict: Effect = Effect.ASK
    started: bool = False
    started_at: float | None = None
    outcome: Outcome | None = None
    content: tuple[ContentBlock, ...] = ()
    structured: Json = None
    duration_ms: float = 0.0
    progress: float | None = None
    total: float | None = None
    message: str | None = None
    left_s: float | None = None
    problem: str = ""
    """Code of why the host could not have the call done."""
    subtasks: tuple[SubtaskEntry, ...] = ()
    """In the order of the call."""
    page: str = ""
    """The tool whose page asked for it; empty where the model did."""
    meta: Json = None
    """`_meta` of the result, for the tool's page."""


@dataclass(frozen=True, slots=True)
class NoticeEntry:
    """A line of the host's own: a notice, a retry, a changed model, changed tools, how a turn ended."""

    key: str
    turn: int
    code: str
    params: FrozenDict = EMPTY
    until: float | None = None
    """For a scheduled retry: when (seconds since the epoch)."""


@dataclass(frozen=True, slots=True)
class AskEntry:
    """A question to the person. `action` is set once it is answered."""

    key: str
    turn: int
    ask: Ask
    action: str | None = None
    by: str | None = None


Entry: TypeAlias = UserEntry | AssistantEntry | ToolEntry | NoticeEntry | AskEntry
