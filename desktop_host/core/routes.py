"""Routes: which models may do a task, in which order and under which conditions."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from desktop_host.core.models import Purpose

NAME = re.compile(r"[a-z][a-z0-9_-]{0,31}")
RESERVED = frozenset({"local", "script", "anthropic", "openai", "compat", "responses", "anthropic-compat"})
"""Words that begin REFs; no route may be named so."""
TASKS = tuple(p.value for p in Purpose)
UNASKED = frozenset({Purpose.TITLE, Purpose.CLASSIFICATION, Purpose.TOOL_CHOICE, Purpose.SAFETY_CHECK})
"""Tasks that are not done at all without a route of their own."""
SORTED = frozenset({Purpose.REASONING, Purpose.CODE, Purpose.CREATIVE})
"""Tasks that a message gets to only where `classification` sorts it."""


@dataclass(frozen=True, slots=True)
class Link:
    """One model of a chain, with the conditions under which it may be asked."""

    model: str
    """REF of a model (not of a route)."""
    max_context: int | None = None
    """Largest request in tokens; None: what its context window holds."""
    images: bool = True
    """Whether it is asked where the request holds images."""
    tools: bool = True
    """Whether it is asked where the request offers tools."""
    max_cost_usd: float | None = None
    """Highest estimated cost of one request; a model of unknown price never passes it."""


@dataclass(frozen=True, slots=True)
class Route:
    """A named chain. A route named like a task (`summary`, `code`, …) serves that task."""

    name: str
    chain: tuple[Link, ...]


@dataclass(frozen=True, slots=True)
class Needs:
    """What a request asks of a model."""

    tokens: int = 0
    images: bool = False
    tools: bool = False
    priced: bool = False
    """Money is limited: a model of unknown price may not answer."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of a model now."""

    ready: bool = True
    reason: str | None = None
    """Why it is not ready: `no_key`, `no_weights`, `no_runtime`, `unreachable`."""
    window: int | None = None
    cost_usd: float | None = None
    """Estimated cost of the request; None: unknown."""
    failed: str | None = None
    """Error code of a failure within the memory."""


@dataclass(frozen=True, slots=True)
class Considered:
    """What a route makes of one link for one request."""

    model: str
    usable: bool
    chosen: bool
    reasons: tuple[str, ...]
    """Codes: `first`, `next`, `failed_lately:<code>`, `no_key`, `too_long`, `no_images`, `no_tools`,
    `too_dear`, `price_unknown`."""
    facts: Facts = Facts()


def refusals(link: Link, needs: Needs, facts: Facts) -> tuple[str, ...]:
    """Why a link may not answer; empty where it may."""
    out: list[str] = []
    if not facts.ready:
        out.append(facts.reason or "not_ready")
    limit = min((n for n in (link.max_context, facts.window) if n), default=None)
    if limit is not None and needs.tokens > limit:
        out.append("too_long")
    if needs.images and not link.images:
        out.append("no_images")
    if needs.tools and not link.tools:
        out.append("no_tools")
    if facts.cost_usd is None and (needs.priced or link.max_cost_usd is not None):
        out.append("price_unknown")
    if facts.cost_usd is not None and link.max_cost_usd is not None and facts.cost_usd > link.max_cost_usd:
        out.append("too_dear")
    return tuple(out)


def consider(route: Route, needs: Needs, facts: Mapping[str, Facts]) -> tuple[Considered, ...]:
    """The links in the order in which they are asked; those that may not answer come last.

    A model that failed lately is tried after the others.
    """
    usable: list[tuple[bool, int, Link]] = []
    refused: list[Considered] = []
    for at, link in enumerate(route.chain):
        known = facts.get(link.model, Facts())
        why = refusals(link, needs, known)
        if why:
            refused.append(Considered(link.model, False, False, why, known))
        else:
            usable.append((known.failed is not None, at, link))
    usable.sort(key=lambda u: u[:2])
    out: list[Considered] = []
    for place, (_failed, _at, link) in enumerate(usable):
        known = facts.get(link.model, Facts())
        why = (f"failed_lately:{known.failed}",) if known.failed else ("next" if place else "first",)
        out.append(Considered(link.model, True, place == 0, why, known))
    return (*out, *refused)


def find(routes: Iterable[Route], name: str) -> Route | None:
    """The route of this name."""
    return next((r for r in routes if r.name == name), None)


def ref_for(routes: Iterable[Route], task: str, default: str) -> str:
    """What answers a task: its route where there is one, else `default`."""
    return task if find(routes, task) else default


def toml(routes: Iterable[Route]) -> str:
    """Routes as they stand in the settings file: to print, to paste, to edit."""
    parts = []
    for route in routes:
        links = ",\n".join(f"    {_link(link)}" for link in route.chain)
        parts.append(f"[[routes]]\nname = {json.dumps(route.name)}\nchain = [\n{links},\n]\n")
    return "\n".join(parts)


def _link(link: Link) -> str:
    given: dict[str, object] = {"max_context": link.max_context, "max_cost_usd": link.max_cost_usd}
    given |= {"images": None if link.images else False, "tools": None if link.tools else False}
    more = {key: value for key, value in given.items() if value is not None}
    if not more:
        return json.dumps(link.model, ensure_ascii=False)
    fields = {"model": link.model} | more
    return "{ " + ", ".join(f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in fields.items()) + " }"


class Health:
    """Which models failed lately, and how. Seconds are those of a monotonic clock."""

    def __init__(self) -> None:
        self._failed: dict[str, tuple[float, str]] = {}

    def failed(self, model: str, code: str, now: float) -> None:
        """Remember a failure."""
        self._failed[model] = (now, code)

    def answered(self, model: str) -> None:
        """It works again."""
        self._failed.pop(model, None)

    def recent(self, model: str, now: float, memory_s: float) -> str | None:
        """Code of the last failure, unless that is forgotten."""
        found = self._failed.get(model)
        return found[1] if found and now - found[0] < memory_s else None


def _chain(*models: str) -> tuple[Link, ...]:
    return tuple(Link(m) for m in models)


_SMALL, _LUNA = "openai/gpt-5.4-mini", "openai/gpt-6-luna"
_HAIKU, _SONNET, _OPUS = (f"anthropic/claude-{line}-5-5" for line in ("haiku", "sonnet", "opus"))

EXAMPLE: tuple[Route, ...] = (
    Route("chat", _chain(_SONNET, _HAIKU, _SMALL, "local")),
    Route("reasoning", _chain(_OPUS, _SONNET, "openai/gpt-5.6-sol")),
    Route("code", _chain(_SONNET, "openai/gpt-5.6-sol", "compat:https://api.deepseek.com/v1#deepseek-v4-pro")),
    Route("summary", _chain(_HAIKU, _LUNA, "local")),
    Route("classification", _chain(_LUNA, _HAIKU, "local")),
    Route("title", _chain(_LUNA, _HAIKU, "local")),
    Route("sampling", (Link(_HAIKU, max_cost_usd=0.05), Link("local", images=False))),
    Route("tool_choice", _chain(_LUNA, _HAIKU)),
    Route("safety_check", _chain(_OPUS, "openai/gpt-5.6-sol")),
    Route("creative", _chain("openai/gpt-5.6-terra", _SONNET)),
)
"""A table to start from: cheap for classification and titles, fast for summaries, strong for reasoning and safety."""
DOWNGRADE = f"{_SONNET}, {_HAIKU}, {_SMALL}, local"
"""An example of what may answer, in this order, once a budget is spent."""
