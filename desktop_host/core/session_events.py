"""Events about a conversation as a whole: where it came from, what the person thinks of a turn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from desktop_host.core.delivery import Kept
from desktop_host.core.values import FrozenDict, Json


@dataclass(frozen=True, slots=True)
class Branched(Kept):
    """All before this was said in another session, of which this one is a branch."""

    type: ClassVar[str] = "branched"
    source: str
    """Id of that session; it may be deleted since."""
    before_turn: int
    """The first turn of the source that the branch does not hold."""


@dataclass(frozen=True, slots=True)
class FeedbackGiven(Kept):
    """The person judged a turn."""

    type: ClassVar[str] = "feedback_given"
    turn: int
    good: bool | None
    """None: the earlier word is taken back."""
    note: str = ""


@dataclass(frozen=True, slots=True)
class PageSaid(Kept):
    """A page of a server has something for the model's context (MCP Apps, `ui/update-model-context`).

    The newest of each page counts; the model gets it with the person's next message.
    """

    type: ClassVar[str] = "page_said"
    call_id: str
    """The call in whose card the page stands."""
    server: str
    tool: str
    """The tool that the page belongs to."""
    text: str = ""
    structured: Json = None


@dataclass(frozen=True, slots=True)
class SubtaskChanged(Kept):
    """A part of a call that was handed to several sub-tasks is in another state."""

    type: ClassVar[str] = "subtask_changed"
    call_id: str
    number: int
    """Its place in the call, from 1."""
    name: str
    state: str
    """`waiting` (for those it builds on), `running`, `done`, `failed`, `skipped` (one that it builds on failed),
    `cancelled`, `unknown` (the host died)."""
    child: str = ""
    """The sub-task's own session; empty until it has one."""
    skill: str = ""
    """`name@version`, or the name alone."""
    instead_of: str = ""
    """The skill that failed before, where another stands in."""
    error: FrozenDict | None = None
    """`{code, message, params}` of what failed it, or what failed the skill it stands in for."""
    text: str = ""
    """Its result."""
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float | None = 0.0
    """None: unknown."""


@dataclass(frozen=True, slots=True)
class QueuedMessage:
    """A message that waits behind the running turn. No event: it is journaled when its turn begins."""

    id: str
    text: str
    """Empty for a turn that is to be resumed."""
    attachments: int = 0
