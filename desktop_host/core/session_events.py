"""Events about a conversation as a whole: where it came from, what the person thinks of a turn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from desktop_host.core.delivery import Kept


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
class QueuedMessage:
    """A message that waits behind the running turn. No event: it is journaled when its turn begins."""

    id: str
    text: str
    """Empty for a turn that is to be resumed."""
    attachments: int = 0
