"""Settings of what models may cost: budgets, quotas, kept answers, routes, and prices of a person's own."""

from __future__ import annotations

from dataclasses import dataclass

from desktop_host.core.settings_fields import amount, choice, number, text

MAX_USD = 1_000_000


@dataclass(frozen=True, slots=True)
class Budgets:
    """What may be spent, in US dollars; 0: no limit."""

    session_usd: float = amount(0.0, 0, MAX_USD)
    """Per chat, for its whole life."""
    day_usd: float = amount(0.0, 0, MAX_USD)
    month_usd: float = amount(0.0, 0, MAX_USD)
    server_day_usd: float = amount(0.0, 0, MAX_USD)
    """What the sampling of one server may cost in a day."""
    turn_tokens: int = number(0, 0, 100_000_000)
    """Tokens of one turn, its tool rounds included; 0: no limit."""
    at_limit: str = choice("downgrade", "downgrade", "stop")
    """`downgrade`: go on with the next model of `downgrade` that the budget still covers; else stop."""
    downgrade: str = text("")
    """REFs, separated by commas, from dear to cheap."""


@dataclass(frozen=True, slots=True)
class Quotas:
    """How many requests of models a day may have."""

    tier: str = choice("none", "none", "free", "paid")
    free: int = number(50, 1, 1_000_000)
    paid: int = number(500, 1, 1_000_000)

    @property
    def calls(self) -> int | None:
        """Requests a day, or None without a limit."""
        return {"free": self.free, "paid": self.paid}.get(self.tier)


@dataclass(frozen=True, slots=True)
class Cache:
    """Whether earlier answers may serve again."""

    answers: str = choice("exact", "off", "exact", "similar")
    """`exact`: the same question in the same conversation; `similar`: also one in nearly the same words or,
    with the extra [semantic], of nearly the same meaning."""
    max_age_hours: int = number(24, 1, 8760)
    similar_percent: int = number(92, 50, 100)
    """How alike two first questions of a chat must be."""


@dataclass(frozen=True, slots=True)
class Routing:
    """How routes behave."""

    memory_minutes: int = number(5, 0, 1440)
    """How long a model that failed is tried last."""
    compact_percent: int = number(80, 0, 99)
    """How full the context window may get before the conversation is summarised; 0: only when a model refuses it."""
    context_window: int = number(0, 0, 100_000_000)
    """Tokens; 0: as the model says."""


@dataclass(frozen=True, slots=True)
class Price:
    """A price of the person's own, in US dollars per million tokens; it wins over the table."""

    model: str
    """Name of the model, or a glob."""
    input: float
    output: float
    cache_read: float | None = None
    """None: like `input`."""
    cache_write: float | None = None


@dataclass(frozen=True, slots=True)
class Trait:
    """What a person says of a model, so that servers' wishes can be weighed; it wins over the shipped table."""

    model: str
    """Name of the model or its REF, or a glob."""
    speed: int
    """1 (slow) to 5 (fast)."""
    intelligence: int
    """1 (weak) to 5 (strong)."""
