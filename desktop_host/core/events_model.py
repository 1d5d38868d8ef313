"""Events about the models of a conversation: what they said and used, who answers, what was summarised."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from desktop_host.core.delivery import Delivery, Kept
from desktop_host.core.messages import Message


@dataclass(frozen=True, slots=True)
class AssistantSaid(Kept):
    """One finished reply of the model, with its calls and its native form."""

    type: ClassVar[str] = "assistant_said"
    message: Message
    model: str
    partial: bool = False
    """Cut off by an interruption, an error or a crash; its calls were not run."""
    cached: bool = False
    """An earlier answer to the same question, kept by the host; the model was not asked."""

    @property
    def text(self) -> str:
        """The visible text."""
        return self.message.text


@dataclass(frozen=True, slots=True)
class RouteChanged(Kept):
    """Another model answers."""

    type: ClassVar[str] = "route_changed"
    from_ref: str
    to_ref: str
    reason: str


@dataclass(frozen=True, slots=True)
class UsageRecorded(Kept):
    """What one request used."""

    type: ClassVar[str] = "usage_recorded"
    model: str
    purpose: str
    input: int
    output: int
    cache_read: int = 0
    cache_write: int = 0
    reasoning: int = 0
    cost_usd: float | None = None
    server: str = ""
    """Alias of the server that asked (sampling)."""
    skills: tuple[str, ...] = ()
    """`name@version` of the skills that were active."""


@dataclass(frozen=True, slots=True)
class RetryScheduled(Kept):
    """A request failed and is sent again after `delay_s`; `until` is the clock's time of that."""

    type: ClassVar[str] = "retry_scheduled"
    delivery: ClassVar[Delivery] = Delivery.LATEST
    attempt: int
    delay_s: float
    code: str
    message: str
    until: float


@dataclass(frozen=True, slots=True)
class Compacted(Kept):
    """What was said so far is from here on told to the model as a summary; the person still sees all of it."""

    type: ClassVar[str] = "compacted"
    summary: str
    text: str
    """The whole text the model gets in place of the messages: summary and the skills that stay active."""
    keep_request: bool = False
    """The person's last message stays as it is: its turn goes on."""
    before: int = 0
    """Estimated tokens of the conversation before."""
    after: int = 0
    reason: str = "window"
    """`window` (nearly full), `overflow` (a model refused it) or `person`."""
    model: str = ""
    """Who summarised."""


@dataclass(frozen=True, slots=True)
class CompactionUndone(Kept):
    """A summary is void: the model gets the messages themselves again."""

    type: ClassVar[str] = "compaction_undone"
    compaction: int
    """`seq` of the `compacted` event."""
