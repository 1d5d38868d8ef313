"""The one stream of events that goes up: what happened, in an order that any reader can fold.

Journaled events are written before they are published; `delivery` says what a full reader may lose.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, TypeAlias

from desktop_host.core.asks import Ask
from desktop_host.core.delivery import Delivery, Kept, Passing
from desktop_host.core.events_model import (
    AssistantSaid,
    Compacted,
    CompactionUndone,
    RetryScheduled,
    RouteChanged,
    UsageRecorded,
)  # fmt: skip
from desktop_host.core.messages import ContentBlock, Message, Outcome
from desktop_host.core.permissions import Effect
from desktop_host.core.servers import ServerStatus
from desktop_host.core.session_events import Branched, FeedbackGiven, PageSaid, SubtaskChanged
from desktop_host.core.sessions import SessionState, TurnStatus, TurnStop
from desktop_host.core.skill_events import SkillPinned
from desktop_host.core.skills import SkillPin
from desktop_host.core.values import EMPTY, FrozenDict, Json

__all__ = [
    "AskRaised", "AskSettled", "AssistantSaid", "Attachment", "Branched", "Compacted", "CompactionUndone", "Event",
    "FeedbackGiven", "LibraryChanged", "Notice", "PageSaid", "RetryScheduled", "RouteChanged", "ServerChanged",
    "SessionOpened", "SessionRenamed", "SkillPinned", "SkillsChosen", "Stamped", "StateChanged", "SubtaskChanged",
    "ThinkingStreamed", "TokenDelta", "ToolProgress", "ToolRequested", "ToolSettled", "ToolStarted", "ToolsChanged",
    "TurnEnded", "TurnStarted", "UsageRecorded", "UserSaid", "subject",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Attachment:
    """A file the person attached; its content stands in the message's blocks."""

    name: str
    mime_type: str
    size: int


@dataclass(frozen=True, slots=True)
class SessionOpened(Kept):
    """A session was made."""

    type: ClassVar[str] = "session_opened"
    model: str
    title: str


@dataclass(frozen=True, slots=True)
class SessionRenamed(Kept):
    """A session got another title."""

    type: ClassVar[str] = "session_renamed"
    title: str


@dataclass(frozen=True, slots=True)
class UserSaid(Kept):
    """The person's message; `blocks` are its attachments for the model."""

    type: ClassVar[str] = "user_said"
    text: str
    attachments: tuple[Attachment, ...] = ()
    blocks: tuple[ContentBlock, ...] = ()
    fresh: bool = False
    """Asked again on purpose: no earlier answer may serve."""
    prelude: tuple[Message, ...] = ()
    """Messages before this one that came with a server's prompt."""
    source: str = ""
    """Where the message came from, if not from the person's keyboard: `prompt:<server>.<name>`."""


@dataclass(frozen=True, slots=True)
class TurnStarted(Kept):
    """A turn began; `resumed` where it goes on with an interrupted one."""

    type: ClassVar[str] = "turn_started"
    resumed: bool = False


@dataclass(frozen=True, slots=True)
class SkillsChosen(Kept):
    """The skills this message woke."""

    type: ClassVar[str] = "skills_chosen"
    skills: tuple[SkillPin, ...] = ()
    text: str = ""
    """What was appended to the user's message, so that a replay sends the same bytes."""
    suggested: tuple[str, ...] = ()
    """Skills to offer to the person; not used by themselves."""


@dataclass(frozen=True, slots=True)
class TokenDelta(Passing):
    """Visible text as it streams."""

    type: ClassVar[str] = "token_delta"
    delivery: ClassVar[Delivery] = Delivery.MERGE
    text: str


@dataclass(frozen=True, slots=True)
class ThinkingStreamed(Passing):
    """Shown reasoning as it streams."""

    type: ClassVar[str] = "thinking_delta"
    delivery: ClassVar[Delivery] = Delivery.DROP
    text: str


@dataclass(frozen=True, slots=True)
class ToolRequested(Kept):
    """The model asked for a call and the gate decided."""

    type: ClassVar[str] = "tool_requested"
    call_id: str
    server: str
    tool: str
    wire_name: str
    arguments: FrozenDict
    verdict: Effect
    reason: str = ""
    title: str = ""
    page: str = ""
    """Where a page of a server asked for it and not the model (MCP Apps): the tool that the page belongs to."""
    told: bool = True
    """Whether the model hears of a page's call: not where the tool is for pages alone."""


@dataclass(frozen=True, slots=True)
class ToolStarted(Kept):
    """A call starts now. Journaled first: without it an open call is known not to have run."""

    type: ClassVar[str] = "tool_started"
    delivery: ClassVar[Delivery] = Delivery.DROP
    call_id: str


@dataclass(frozen=True, slots=True)
class ToolProgress(Passing):
    """A running call reports."""

    type: ClassVar[str] = "tool_progress"
    delivery: ClassVar[Delivery] = Delivery.DROP
    call_id: str
    progress: float
    total: float | None = None
    message: str | None = None
    left_s: float | None = None
    """Estimate of the seconds that are left."""


@dataclass(frozen=True, slots=True)
class ToolSettled(Kept):
    """A call ended. Carries all, so that a dropped ToolStarted harms nobody."""

    type: ClassVar[str] = "tool_settled"
    call_id: str
    outcome: Outcome
    content: tuple[ContentBlock, ...] = ()
    structured: Json = None
    duration_ms: float = 0.0
    problem: str = ""
    """Where the host, not the server, made the outcome: the code of why, for the person's own language."""
    meta: Json = None
    """`_meta` of the result of a tool that has a page: for that page, never for the model."""


@dataclass(frozen=True, slots=True)
class AskRaised(Kept):
    """A question to the person is open."""

    type: ClassVar[str] = "ask_raised"
    ask: Ask


@dataclass(frozen=True, slots=True)
class AskSettled(Kept):
    """A question was answered, by a person or by policy."""

    type: ClassVar[str] = "ask_settled"
    ask_id: str
    action: str
    by: str


@dataclass(frozen=True, slots=True)
class Notice(Kept):
    """Something the person should know; `code` is the key of its text."""

    type: ClassVar[str] = "notice"
    code: str
    params: FrozenDict = EMPTY


@dataclass(frozen=True, slots=True)
class ToolsChanged(Kept):
    """The tools of this session's servers are others than those the model was told of."""

    type: ClassVar[str] = "tools_changed"
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    applied: bool = False


@dataclass(frozen=True, slots=True)
class TurnEnded(Kept):
    """A turn is over."""

    type: ClassVar[str] = "turn_ended"
    status: TurnStatus
    stop: TurnStop
    text: str = ""
    error: FrozenDict | None = None
    """`{code, message, params}` of what failed it."""


@dataclass(frozen=True, slots=True)
class StateChanged(Passing):
    """The session moved to another state."""

    type: ClassVar[str] = "state_changed"
    state: SessionState
    queued: int = 0
    """Messages waiting behind the running turn."""


@dataclass(frozen=True, slots=True)
class ServerChanged(Passing):
    """A server is in another state, or its `lists` are others.

    Lists are `tools`, `resources`, `prompts`, `watched` (which resources are) and `resource:<uri>` (its contents).
    """

    type: ClassVar[str] = "server_changed"
    server: str
    state: str
    reason: str = ""
    status: ServerStatus | None = None
    lists: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class LibraryChanged(Passing):
    """The skills library changed."""

    type: ClassVar[str] = "library_changed"
    skills: tuple[str, ...] = ()


Event: TypeAlias = (
    SessionOpened | SessionRenamed | UserSaid | TurnStarted | SkillsChosen | TokenDelta | ThinkingStreamed
    | AssistantSaid | ToolRequested | ToolStarted | ToolProgress | ToolSettled | AskRaised | AskSettled
    | RouteChanged | UsageRecorded | RetryScheduled | Compacted | CompactionUndone | Notice | ToolsChanged | TurnEnded
    | StateChanged | ServerChanged | LibraryChanged | SkillPinned | Branched | FeedbackGiven | SubtaskChanged
    | PageSaid
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Stamped:
    """An event with its place. `seq` rises strictly within a session; gaps are allowed."""

    seq: int
    t: float
    """Seconds since the epoch."""
    session: str
    """Empty for events that belong to no session (servers, library)."""
    turn: int
    """Number of the turn within the session, from 1; 0 outside a turn."""
    event: Event


def subject(stamped: Stamped) -> tuple[str, str, str]:
    """What a LATEST event is the newest of."""
    event = stamped.event
    return (stamped.session, event.type, event.server if isinstance(event, ServerChanged) else "")
