"""Which skills a sentence wakes, and why: exclusions, keywords, similarity, then specificity and collaboration.

Order of the decisions: a skill that is off, not wanted or the person's alone is out; an exclusion that says more than
what speaks for the skill is a veto; a keyword or a similarity over the threshold makes a candidate. Candidates are
ordered by score (a keyword always beats similarity alone, the more specific keyword the less specific), then by
`priority`, then by similarity, then by name. The first is primary; others join only by a keyword. `requires` pulls
skills in before those that need them, `conflicts` drops the lower of two.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from desktop_host.core.skills import Reason, SkillMatch, SkillVersion
from desktop_host.skills.document import slug
from desktop_host.skills.matchers import Matcher, Thresholds
from desktop_host.skills.triggers import find, weight

_CALL = re.compile(r"\A/([^\s/]+)[ \t]*(.*)\Z", re.S)
INSTALLED_DEPTH = 8
"""How long a chain of `requires` may be."""


@dataclass(frozen=True, slots=True)
class Policy:
    """What the settings and the session say."""

    activation: str = "auto"
    auto: float | None = None
    suggest: float | None = None
    max_active: int = 3
    wanted: tuple[str, ...] | None = None
    """Ids this session is limited to; they wake with its first message. None: all."""
    called: str | None = None
    """Id of a skill that the person called by `/name`."""
    disabled: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Choice:
    """The outcome: all skills with their reasons, and the chosen ones in the order they are to be read."""

    matches: tuple[SkillMatch, ...]
    chosen: tuple[SkillMatch, ...]
    missing: tuple[tuple[str, str], ...] = ()
    """`(skill, required id)` that is not there or is off."""


def text_of(skill: SkillVersion) -> str:
    """What a sentence is compared with."""
    t = skill.triggers
    words = " ".join((*t.keywords, *t.examples))
    return f"{skill.name.replace('-', ' ')}. {skill.description[:1024]} {words}".strip()


def choose(query: str, skills: Mapping[str, SkillVersion], matcher: Matcher, policy: Policy) -> Choice:
    """Decide for one sentence. Pure; blocking where the matcher is."""
    everyone = list(skills.values())
    excluded = ["; ".join(s.triggers.exclude) for s in everyone]
    texts = [*(text_of(s) for s in everyone), *(e for e in excluded if e)]
    scores = matcher.scores(query, texts) if query.strip() else [0.0] * len(texts)
    against = iter(scores[len(everyone) :])
    limits = Thresholds(
        matcher.thresholds.auto if policy.auto is None else policy.auto,
        matcher.thresholds.suggest if policy.suggest is None else policy.suggest,
    )
    matches = [
        _judge(query, s, like, next(against) if e else 0.0, matcher.name, limits, policy)
        for s, like, e in zip(everyone, scores, excluded, strict=False)
    ]
    alike = {s.name: like for s, like in zip(everyone, scores, strict=False)}
    matches.sort(key=lambda m: (-m.score, -skills[m.name].priority, -alike[m.name], m.name))
    return _together(matches, skills, policy)


def _judge(
    query: str, skill: SkillVersion, like: float, unlike: float, matcher: str, limits: Thresholds, policy: Policy
) -> SkillMatch:
    t = skill.triggers
    hits, vetoes = find(t.keywords, query), find(t.exclude, query)
    reasons = [Reason("keyword", h.phrase) for h in hits]
    if like >= limits.suggest or (like > 0.01 and not hits):
        reasons.append(Reason("semantic", matcher, round(like, 4)))
    if skill.priority:
        reasons.append(Reason("priority", str(skill.priority)))
    says = weight(hits)
    score = 0.5 + 0.5 * math.tanh(says / 6) if hits else 0.5 * like
    match = SkillMatch(skill.name, skill.version, round(score, 4), False, tuple(reasons))
    person = policy.called == skill.name or (policy.wanted is not None and skill.name in policy.wanted)
    if skill.name in policy.disabled:
        return replace(match, refused=Reason("disabled"))
    if policy.wanted is not None and skill.name not in policy.wanted:
        return replace(match, refused=Reason("not_wanted"))
    if person:
        return replace(match, chosen=True, score=1.0, reasons=(Reason("person"), *match.reasons))
    if not skill.model_invocable:
        return replace(match, refused=Reason("manual_only"))
    # By phrase where one was found, else by what the exclusion means as a whole.
    if vetoes and weight(vetoes) > says + 2 * max(0.0, like - unlike):
        return replace(match, refused=Reason("excluded", vetoes[0].phrase), score=0.0)
    if not hits and unlike >= limits.suggest and unlike > like:
        return replace(match, refused=Reason("excluded", matcher, round(unlike, 4)), score=0.0)
    threshold = limits.auto if t.threshold is None else t.threshold
    if not hits and like < threshold:
        refused = Reason("below_threshold", f"{threshold:.2f}", round(like, 4))
        return replace(match, refused=refused, suggested=like >= min(limits.suggest, threshold))
    if policy.activation == "suggest":
        return replace(match, refused=Reason("suggest_only"), suggested=True)
    if policy.activation == "model":
        return replace(match, refused=Reason("model_decides"))
    return replace(match, chosen=True)


def _together(matches: list[SkillMatch], skills: Mapping[str, SkillVersion], policy: Policy) -> Choice:
    """Let candidates be chosen together: limit, conflicts, requirements."""
    taken: dict[str, SkillMatch] = {}
    refused: dict[str, Reason] = {}
    missing: list[tuple[str, str]] = []
    for match in (m for m in matches if m.chosen):
        by_person = match.reasons[:1] == (Reason("person"),)
        if taken and not by_person and not any(r.code == "keyword" for r in match.reasons):
            refused[match.name] = Reason("limit", "similarity")
            continue
        if len(taken) >= policy.max_active and not by_person:
            refused[match.name] = Reason("limit", str(policy.max_active))
            continue
        rival = next((n for n in taken if _conflict(skills[n], skills[match.name])), None)
        if rival is not None:
            refused[match.name] = Reason("conflict", rival)
            continue
        taken[match.name] = match
    order: list[str] = []
    for name in list(taken):
        _pull(name, "", skills, policy, taken, order, missing, (), {m.name: m for m in matches})
    final = []
    for match in matches:
        if match.name in taken:
            final.append(taken[match.name])
        elif match.name in refused:
            final.append(replace(match, chosen=False, refused=refused[match.name], suggested=True))
        else:
            final.append(match)
    return Choice(tuple(final), tuple(taken[n] for n in order), tuple(missing))


def _pull(
    name: str,
    by: str,
    skills: Mapping[str, SkillVersion],
    policy: Policy,
    taken: dict[str, SkillMatch],
    order: list[str],
    missing: list[tuple[str, str]],
    path: tuple[str, ...],
    found: Mapping[str, SkillMatch],
) -> None:
    """Put a skill after all that it requires. A cycle ends where it closes."""
    if name in path or name in order or len(path) > INSTALLED_DEPTH:
        return
    for need in skills[name].requires:
        if need not in skills or need in policy.disabled or any(_conflict(skills[need], skills[n]) for n in taken):
            missing.append((name, need))
            continue
        _pull(need, by or name, skills, policy, taken, order, missing, (*path, name), found)
    if name not in taken:
        reasons = (Reason("required", by), *found[name].reasons)
        taken[name] = replace(found[name], chosen=True, refused=None, suggested=False, reasons=reasons)
    order.append(name)


def _conflict(a: SkillVersion, b: SkillVersion) -> bool:
    return a.name != b.name and (b.name in a.conflicts or a.name in b.conflicts)


def called_by(text: str, skills: Mapping[str, SkillVersion]) -> tuple[str | None, str]:
    """The skill that a message calls by `/name`, and the rest of the message."""
    match = _CALL.match(text.strip())
    name = slug(match[1]) if match else ""
    if match and name in skills and skills[name].user_invocable:
        return name, match[2].strip()
    return None, ""
