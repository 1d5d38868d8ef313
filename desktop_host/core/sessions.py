"""Sessions and turns: the three-state machine and what is kept of a session."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from desktop_host.core.permissions import Rule


class SessionState(StrEnum):
    """Where a session stands. `Interrupted` is no state: it is how its last turn ended."""

    IDLE = "idle"
    RUNNING = "running"
    WAITING_TOOL = "waiting_tool"


class Signal(StrEnum):
    """What moves a session from one state to the next."""

    BEGIN = "begin"
    CALL_TOOLS = "call_tools"
    TOOLS_SETTLED = "tools_settled"
    FINISH = "finish"
    FAIL = "fail"
    INTERRUPT = "interrupt"


TRANSITIONS: dict[tuple[SessionState, Signal], SessionState] = {
    (SessionState.IDLE, Signal.BEGIN): SessionState.RUNNING,
    (SessionState.RUNNING, Signal.CALL_TOOLS): SessionState.WAITING_TOOL,
    (SessionState.WAITING_TOOL, Signal.TOOLS_SETTLED): SessionState.RUNNING,
    (SessionState.RUNNING, Signal.FINISH): SessionState.IDLE,
    (SessionState.RUNNING, Signal.FAIL): SessionState.IDLE,
    (SessionState.RUNNING, Signal.INTERRUPT): SessionState.IDLE,
    (SessionState.WAITING_TOOL, Signal.FAIL): SessionState.IDLE,
    (SessionState.WAITING_TOOL, Signal.INTERRUPT): SessionState.IDLE,
}


def step(state: SessionState, signal: Signal) -> SessionState:
    """The next state.

    Raises:
        RuntimeError: the pair is not in the table, which is a bug of the caller.
    """
    try:
        return TRANSITIONS[state, signal]
    except KeyError:
        raise RuntimeError(f"no transition from {state} on {signal}") from None


class TurnStatus(StrEnum):
    """How a turn ended. OPEN in the journal of a dead host means: recover it."""

    OPEN = "open"
    DONE = "done"
    FAILED = "failed"
    INTERRUPTED = "interrupted"


class TurnStop(StrEnum):
    """Why a turn ended."""

    END = "end"
    LENGTH = "length"
    REFUSAL = "refusal"
    MAX_STEPS = "max_steps"
    BUDGET = "budget"
    ERROR = "error"
    INTERRUPTED = "interrupted"


@dataclass(frozen=True, slots=True)
class SessionOptions:
    """What a session runs with; None means the profile's setting. Kept with the session."""

    model: str | None = None
    """REF of a model (`design` of the command line: `anthropic/<model>`, `compat:<url>#<model>`, `local`, …)."""
    system: str | None = None
    """The person's own system text."""
    servers: tuple[str, ...] | None = None
    """Aliases whose tools this session may use; None: all that are enabled, (): none."""
    roots: tuple[str, ...] = ()
    """Folders (absolute paths) that servers are told of."""
    rules: tuple[Rule, ...] = ()
    """Rules of this session, beside the profile's."""
    effort: str | None = None
    max_steps: int | None = None
    turn_timeout_s: float | None = None
    skills: tuple[str, ...] | None = None
    budget_usd: float | None = None
    token_budget: int | None = None
    parent: str | None = None
    """The session of whose turn this one is a part. It is not listed, is paid for by it and is deleted with it."""
    depth: int = 0
    """How many sessions stand above it."""


@dataclass(frozen=True, slots=True)
class SessionRow:
    """One line of a list of sessions."""

    session: str
    title: str
    created: float
    """Seconds since the epoch."""
    updated: float
    messages: int
    state: SessionState = SessionState.IDLE
    pinned: bool = False
    last_turn: TurnStatus | None = None
    snippet: str | None = None
    """Where a search matched; None outside a search."""
