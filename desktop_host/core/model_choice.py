"""Which model answers a server: its hints in order, then its priorities, then the chat's own. Pure.

The rules are those of MCP's `modelPreferences`: hints are tried first, in their order, as substrings; a hint that
names another vendor's model may stand for one of the same kind; the priorities (0 to 1) weigh cost, speed and
intelligence. The host has the last word: what is chosen here is shown to the person, who may choose another.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

BEST = 5
"""Highest step of speed and intelligence; the lowest is 1."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A model that could answer now."""

    ref: str
    title: str = ""
    cost_usd: float | None = None
    """Estimate for this request; None: the price is unknown."""
    speed: int | None = None
    """1 (slow) to 5 (fast); None: nobody said."""
    intelligence: int | None = None
    """1 (weak) to 5 (strong); None: nobody said."""
    score: float | None = None
    """By the priorities, from 0 to 1; None where there were none."""


@dataclass(frozen=True, slots=True)
class Wishes:
    """What a server would like: `modelPreferences`."""

    hints: tuple[str, ...] = ()
    cost: float | None = None
    speed: float | None = None
    intelligence: float | None = None

    @property
    def weighed(self) -> bool:
        """Whether any priority weighs something."""
        return any(self.weights)

    @property
    def weights(self) -> tuple[float, float, float]:
        """Cost, speed and intelligence within 0 to 1; what was left out weighs nothing."""
        given = (self.cost, self.speed, self.intelligence)
        first, second, third = (min(1.0, max(0.0, w or 0.0)) for w in given)
        return first, second, third


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """The model and why."""

    ref: str
    reason: str
    """`hint` (its name holds a hint), `kin` (it is of the kind a hint names), `priorities`, `route` (the person's
    route for sampling), `script` (a scripted chat keeps its script) or `chat`."""
    hint: str = ""
    """The hint that decided."""
    candidates: tuple[Candidate, ...] = ()
    """All that could answer, the chat's own first; with their scores where priorities were weighed."""


def choose(
    own: str,
    candidates: Sequence[Candidate],
    wishes: Wishes,
    *,
    reason: str = "chat",
    kin: Sequence[tuple[str, ...]] = (),
) -> ModelChoice:
    """Choose for one request.

    Args:
        own: the model that answers where nothing else is wished; it stands among the candidates.
        candidates: all that could answer, `own` first.
        wishes: of the server.
        reason: why `own` is the model: `chat`, `route` or `script`. Priorities do not move a route or a script.
        kin: words that name models of one kind across vendors, such as `("haiku", "luna")`.

    A tie goes to the chat's own model, then to the one that is listed first.
    """
    scored = tuple(_scored(c, candidates, wishes) for c in candidates) if wishes.weighed else tuple(candidates)
    for hint in wishes.hints:
        wanted = hint.strip().lower()
        if not wanted:
            continue
        for one in scored:
            if wanted in one.ref.lower():
                return ModelChoice(one.ref, "hint", hint, scored)
        words = [word for group in kin if any(w in wanted for w in group) for word in group]
        for one in scored:
            if any(word in one.ref.lower() for word in words):
                return ModelChoice(one.ref, "kin", hint, scored)
    if wishes.weighed and reason == "chat" and scored:
        best = max(scored, key=lambda c: (c.score or 0.0, c.ref == own))  # `max` keeps the first of equals.
        return ModelChoice(best.ref, "priorities", "", scored)
    return ModelChoice(own, reason, "", scored)


def _scored(one: Candidate, every: Sequence[Candidate], wishes: Wishes) -> Candidate:
    """A candidate with its score: each priority times what it has of it. What is unknown counts as nothing."""
    weights = wishes.weights
    dearest = max((c.cost_usd for c in every if c.cost_usd is not None), default=0.0)
    cheap = 0.0 if one.cost_usd is None else 1.0 if dearest <= 0 else 1.0 - one.cost_usd / dearest
    has = (cheap, _step(one.speed), _step(one.intelligence))
    score = sum(w * h for w, h in zip(weights, has, strict=True)) / sum(weights)
    return Candidate(one.ref, one.title, one.cost_usd, one.speed, one.intelligence, round(score, 4))


def _step(value: int | None) -> float:
    return 0.0 if value is None else (min(BEST, max(1, value)) - 1) / (BEST - 1)
