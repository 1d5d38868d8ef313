"""Everything that waits for a person: one union of questions, one of answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, TypeAlias

from desktop_host.core.errors import UserFault
from desktop_host.core.exchange import RunningCall, SamplingRequest
from desktop_host.core.messages import ContentBlock
from desktop_host.core.model_choice import ModelChoice
from desktop_host.core.permissions import Life, Scope
from desktop_host.core.tools import ToolHints
from desktop_host.core.values import FrozenDict


@dataclass(frozen=True, slots=True)
class Advice:
    """What a second model says of a call (route `safety_check`). It allows nothing by itself."""

    verdict: str
    """`safe`, `ask`, or `none`: it could not be had."""
    text: str = ""
    """Its words; a model's, so not to be trusted."""
    model: str = ""


@dataclass(frozen=True, slots=True)
class ApproveTool:
    """May this call run?"""

    kind: ClassVar[str] = "tool"
    ask_id: str
    session: str
    call_id: str
    server: str
    tool: str
    arguments: FrozenDict
    """Complete; a view may fold but never cut them."""
    title: str = ""
    description: str = ""
    hints: ToolHints = ToolHints()
    trusted: bool = False
    tool_digest: str = ""
    changed: bool = False
    """The person allowed this tool before, but its definition is another now."""
    previous_description: str | None = None
    locked: tuple[str, ...] = ()
    """Names of the arguments that the person has fixed and the model did not choose."""
    advice: Advice | None = None
    """A second opinion, where the person wants one."""
    part: str = ""
    """Name of the sub-task whose call it is."""


@dataclass(frozen=True, slots=True)
class FillForm:
    """A server wants a form filled."""

    kind: ClassVar[str] = "elicitation"
    ask_id: str
    session: str | None
    call_id: str | None
    server: str
    message: str
    schema: FrozenDict
    round: int = 1
    """How often the server has asked during this call, this time included."""
    calls: tuple[RunningCall, ...] = ()
    """The request during which it asks; several where it is one of these and nothing tells which."""
    part: str = ""


@dataclass(frozen=True, slots=True)
class OpenUrl:
    """A server wants a URL opened. Nothing is fetched before the answer."""

    kind: ClassVar[str] = "url"
    ask_id: str
    session: str | None
    call_id: str | None
    server: str
    message: str
    url: str
    round: int = 1
    calls: tuple[RunningCall, ...] = ()
    """As in `FillForm`."""
    opened: bool = False
    """It was opened during this call already: the server waits for what the person does there."""
    purpose: str = ""
    """`sign_in`, `more_access`: the host itself asks, as in `UrlRequest`; `message` is for scripts then."""
    part: str = ""


@dataclass(frozen=True, slots=True)
class SamplingCost:
    """What a request of a server will cost at most, and what it used today."""

    input_tokens: int = 0
    estimate_usd: float | None = None
    """None: the price is unknown."""
    spent_tokens: int = 0
    daily_tokens: int = 0
    spent_usd: float = 0.0
    daily_usd: float = 0.0
    """0: no limit."""
    asked_tokens: int = 0
    """What the server wanted, before its cap."""


DAILY_USD = 1.0
"""Money a day that is offered, and that holds where a file allows a server without naming any."""


@dataclass(frozen=True, slots=True)
class DailyCap:
    """From now on a server need not ask, as long as a day stays below both.

    Raises:
        UserFault: `usage`, one of them is no limit.
    """

    tokens: int
    usd: float

    def __post_init__(self) -> None:
        if self.tokens < 1 or not self.usd > 0:
            raise UserFault("usage", "a server is allowed for good only up to a number of tokens and a sum of money"
                            " a day, both above 0", reason="daily_cap")  # fmt: skip


@dataclass(frozen=True, slots=True)
class ReviewSampling:
    """A server wants to ask the host's model."""

    kind: ClassVar[str] = "sampling"
    ask_id: str
    session: str | None
    call_id: str | None
    server: str
    request: SamplingRequest
    model: str
    """The model that the preferences resolve to."""
    cost: SamplingCost | None = None
    calls: tuple[RunningCall, ...] = ()
    """As in `FillForm`."""
    choice: ModelChoice | None = None
    """Why it is this model, and which others could answer."""
    part: str = ""


@dataclass(frozen=True, slots=True)
class ReviewReply:
    """The model's reply, before it goes to the server."""

    kind: ClassVar[str] = "sampling_reply"
    ask_id: str
    session: str | None
    call_id: str | None
    server: str
    blocks: tuple[ContentBlock, ...]
    model: str
    calls: tuple[RunningCall, ...] = ()
    """As in `FillForm`."""
    left_out: tuple[str, ...] = ()
    """What of the request this model does not take: `temperature`, `stop`, …"""
    stop: str = "endTurn"
    """Why the model stopped, in MCP's words."""
    part: str = ""


Ask: TypeAlias = ApproveTool | FillForm | OpenUrl | ReviewSampling | ReviewReply


@dataclass(frozen=True, slots=True)
class Allow:
    """Yes; for how long, and for how much."""

    life: Life = Life.ONCE
    scope: Scope = Scope.CALL
    tool_digest: str | None = None
    """The definition the yes was given for; a yes to another one is void."""
    daily: DailyCap | None = None
    """Of sampling: always for this server, within this."""
    model: str | None = None
    """Of sampling: let this one of the offered models answer."""


@dataclass(frozen=True, slots=True)
class Refuse:
    """No."""

    life: Life = Life.ONCE
    scope: Scope = Scope.CALL
    stop: bool = False
    """Of a form or a URL: the server may ask nothing more during this call."""


@dataclass(frozen=True, slots=True)
class Filled:
    """The form's values."""

    values: FrozenDict
    whole: bool = False
    """The person saw the defaults: what is missing was left out on purpose."""


@dataclass(frozen=True, slots=True)
class Edited:
    """Yes, with this text in place of what was shown."""

    text: str
    daily: DailyCap | None = None
    model: str | None = None


@dataclass(frozen=True, slots=True)
class Dismiss:
    """Closed without an answer."""


Answer: TypeAlias = Allow | Refuse | Filled | Edited | Dismiss


def action_of(answer: Answer) -> str:
    """The word for an answer in `ask_settled`: allow, refuse, filled, edited or dismissed."""
    match answer:
        case Allow():
            return "allow"
        case Refuse():
            return "refuse"
        case Filled():
            return "filled"
        case Edited():
            return "edited"
        case Dismiss():
            return "dismissed"
