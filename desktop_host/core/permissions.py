"""Who may run what: rules, verdicts and the one function that decides.

Precedence (`decide`): hard rules > deny > ask > allow > group default > profile default. A rule that does
not compile denies. A tool's own hints count only where its server is trusted.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from fnmatch import fnmatchcase

from desktop_host.core.values import FrozenDict, canonical


class Effect(StrEnum):
    """What a rule or the gate says."""

    ALLOW = "allow"
    ASK = "ask"
    DENY = "deny"


class Life(StrEnum):
    """How long a person's answer holds."""

    ONCE = "once"
    SESSION = "session"
    PROFILE = "profile"


class Scope(StrEnum):
    """What a person's answer covers."""

    CALL = "call"
    TOOL = "tool"
    SERVER = "server"


@dataclass(frozen=True, slots=True)
class Rule:
    """One permission rule."""

    effect: Effect
    pattern: str
    """Glob over `alias.tool`, e.g. `files.read_*` or `files.*`."""
    arguments: str | None = None
    """Regular expression searched in the canonical JSON of the arguments; None matches all."""
    tool_digest: str | None = None
    """If set, the rule holds only for the tool definition it was given for."""
    life: Life = Life.PROFILE
    origin: str = "settings"
    """Where it came from: `hard`, `settings`, `person`, `command-line`, `skill`."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the gate decided, and why. The toolbox runs nothing without one."""

    effect: Effect
    reason: str
    """Code of the deciding rule: `hard`, `deny_rule`, `ask_rule`, `allow_rule`, `group`, `profile`,
    `broken_rule`, `trusted_read_only`, `person`."""
    rule: Rule | None = None


@dataclass(frozen=True, slots=True)
class CallFacts:
    """What `decide` may look at."""

    full_name: str
    arguments: FrozenDict
    tool_digest: str
    read_only: bool = False
    """The tool's own hint."""
    trusted: bool = False
    """Whether the person trusts the server, so that its hints count."""


_RANK = {Effect.DENY: 0, Effect.ASK: 1, Effect.ALLOW: 2}


def matches(rule: Rule, call: CallFacts) -> bool:
    """Whether `rule` speaks about `call`.

    Raises:
        re.error: the argument pattern does not compile.
    """
    if not fnmatchcase(call.full_name, rule.pattern):
        return False
    if rule.arguments is not None and not re.search(rule.arguments, canonical(call.arguments)):
        return False
    # Only what was granted binds to a definition: a deny must not lapse when the tool's text changes.
    return not (rule.effect is Effect.ALLOW and rule.tool_digest not in (None, call.tool_digest))


def decide(
    call: CallFacts,
    rules: Iterable[Rule],
    *,
    group_default: Effect | None = None,
    profile_default: Effect = Effect.ASK,
) -> Verdict:
    """Decide one call. Pure and monotone: adding a deny rule never turns a refusal into a permission."""
    hits: list[Rule] = []
    for rule in rules:
        try:
            hit = matches(rule, call)
        except (re.error, RecursionError):
            return Verdict(Effect.DENY, "broken_rule", rule)
        if hit:
            hits.append(rule)
    hard = [r for r in hits if r.origin == "hard"]
    if hard:
        worst = min(hard, key=lambda r: _RANK[r.effect])
        return Verdict(worst.effect, "hard", worst)
    if hits:
        worst = min(hits, key=lambda r: _RANK[r.effect])
        return Verdict(worst.effect, f"{worst.effect}_rule", worst)
    if group_default is not None:
        return Verdict(group_default, "group")
    if call.trusted and call.read_only and profile_default is Effect.ASK:
        return Verdict(Effect.ALLOW, "trusted_read_only")
    return Verdict(profile_default, "profile")
