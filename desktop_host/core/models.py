"""What is asked of a model and what comes back, the same for every vendor."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TypeAlias

from desktop_host.core.messages import Message, StopReason
from desktop_host.core.tools import ToolSpec
from desktop_host.core.values import FrozenDict


class Purpose(StrEnum):
    """Why a model is asked. CHAT, SAMPLING, TITLE and SUMMARY by default; the others are routes to switch on."""

    CHAT = "chat"
    SAMPLING = "sampling"
    TITLE = "title"
    SUMMARY = "summary"
    REASONING = "reasoning"
    CODE = "code"
    CLASSIFICATION = "classification"
    TOOL_CHOICE = "tool_choice"
    SAFETY_CHECK = "safety_check"
    CREATIVE = "creative"


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One request. Adapters turn it into a vendor's body and never change its meaning silently."""

    messages: tuple[Message, ...]
    system: str = ""
    tools: tuple[ToolSpec, ...] = ()
    max_tokens: int | None = None
    temperature: float | None = None
    purpose: Purpose = Purpose.CHAT
    tool_choice: str = "auto"
    """`auto`, `required` or `none`."""
    stop: tuple[str, ...] = ()
    effort: str | None = None
    """`low`, `medium`, `high`, `xhigh`, `max`; None: the model's own default."""
    conversation: str = ""
    """Stable id of the conversation: the vendors' cache key, and what a script's place is counted by."""
    step_index: int = 0
    """How many requests of this purpose the conversation made before (read from the journal)."""
    cacheable: bool = False
    """Whether an earlier answer to the same question may serve."""
    price_limit: bool = False
    """Money is limited: a model of unknown price may not answer."""


@dataclass(frozen=True, slots=True)
class Quote:
    """What a request will cost at most: `fixed_usd + output tokens * per_token_usd`."""

    fixed_usd: float
    per_token_usd: float = 0.0


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one request. `input` EXCLUDES what was read from or written to the vendor's cache."""

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    reasoning: int = 0
    cost_usd: float | None = None
    """None: unknown (never 0 for unknown). Loopback and embedded models cost 0."""

    def __add__(self, other: Usage) -> Usage:
        cost = None if self.cost_usd is None or other.cost_usd is None else self.cost_usd + other.cost_usd
        return Usage(
            self.input + other.input, self.output + other.output, self.cache_read + other.cache_read,
            self.cache_write + other.cache_write, self.reasoning + other.reasoning, cost,
        )  # fmt: skip

    @property
    def total(self) -> int:
        """All tokens that passed through the model."""
        return self.input + self.output + self.cache_read + self.cache_write

    def priced(self, cost_usd: float | None) -> Usage:
        """The same tokens with a price."""
        return replace(self, cost_usd=cost_usd)


@dataclass(frozen=True, slots=True)
class TextDelta:
    """A piece of the visible answer."""

    text: str


@dataclass(frozen=True, slots=True)
class ThinkingDelta:
    """A piece of shown reasoning."""

    text: str


@dataclass(frozen=True, slots=True)
class ToolCallDelta:
    """A piece of the arguments of a call that is being written; for display only."""

    call_id: str
    wire_name: str
    json: str


@dataclass(frozen=True, slots=True)
class RetryWaiting:
    """The request failed and will be sent again after `delay_s` seconds; nothing of it was shown."""

    attempt: int
    """1 for the first retry."""
    delay_s: float
    code: str
    message: str


@dataclass(frozen=True, slots=True)
class ModelSwitched:
    """Another model of the route answers; before the first visible token only."""

    from_ref: str
    to_ref: str
    reason: str


@dataclass(frozen=True, slots=True)
class ModelNotice:
    """Something the person should know (`tool_quarantined`, `thinking_dropped`, `temperature_dropped`, …)."""

    code: str
    params: FrozenDict


@dataclass(frozen=True, slots=True)
class Completed:
    """The end of the stream. Exactly one, last; without it the stream was cut and the adapter raises."""

    message: Message
    usage: Usage
    stop: StopReason
    model: str
    """The model that answered, as the vendor names it."""
    detail: str | None = None
    """The vendor's words on a refusal."""
    cached: bool = False
    """An earlier answer of the host's own store; no model was asked."""


ModelEvent: TypeAlias = (
    TextDelta | ThinkingDelta | ToolCallDelta | RetryWaiting | ModelSwitched | ModelNotice | Completed
)


@dataclass(frozen=True, slots=True)
class ModelEntry:
    """A model a person can pick."""

    ref: str
    title: str
    source: str
    """`anthropic`, `openai`, `local`, or the name of an endpoint."""
    ready: bool
    """Whether it can be used now (key set, weights present)."""
    reason: str | None = None
    """Code of why not: `no_key`, `no_weights`, `no_runtime`, `unreachable`."""
    context_window: int | None = None
    size_bytes: int | None = None
    """Weights to fetch, for local models."""
    note: str | None = None
    """Key of an honest sentence about its limits."""
    licence: str = ""
    """SPDX name of what its weights are published under, for local models; empty: not known."""
    speed: int | None = None
    """1 (slow) to 5 (fast); None: nobody said."""
    intelligence: int | None = None
    """1 (weak) to 5 (strong); None: nobody said."""


@dataclass(frozen=True, slots=True)
class ModelProgress:
    """How far a fetch of weights is."""

    name: str
    phase: str
    """`download`, `verify`, `done`."""
    done_bytes: int
    total_bytes: int
