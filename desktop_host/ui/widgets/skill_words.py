"""Skills in words and tones: states, sources, problems, needs and reasons."""

from __future__ import annotations

import re
import time

from desktop_host.core.skill_admin import SkillRow
from desktop_host.core.skills import Reason, SkillMatch, SkillNeed, SkillProblem, SkillStatus
from desktop_host.i18n import current, tr

TONES = {"ok": "success", "warning": "warning", "broken": "danger", "disabled": "", "shadowed": ""}
STATUS_TONES = {SkillStatus.STABLE: "success", SkillStatus.BETA: "info", SkillStatus.DEPRECATED: "warning"}
_REASON = re.compile(r"\A(?P<code>[a-z]+(?: [a-z]+)*)(?: (?P<score>\d\.\d\d))?(?:: (?P<value>.*))?\Z", re.S)


def state_text(row: SkillRow) -> str:
    """The state in a word."""
    return tr(f"skill.state.{row.state}")


def source_text(source: str) -> str:
    """Where a skill comes from, in a word."""
    key = f"skill.source.{source}"
    return tr(key) if current().has(key) else source


def version_text(version: str) -> str:
    """A version as it is shown; files may name none."""
    return version or tr("skills.no_version")


def problem_text(problem: SkillProblem) -> tuple[str, str]:
    """What is wrong, and how to mend it."""
    told = {"detail": problem.detail or "?", "file": problem.file, "line": problem.line}
    what, fix = f"skill.problem.{problem.code}", f"skill.fix.{problem.code}"
    words = current()
    return (
        words.text(what, **told) if words.has(what) else f"{problem.code}: {problem.detail}".rstrip(": "),
        words.text(fix, **told) if words.has(fix) else "",
    )


def place_text(problem: SkillProblem) -> str:
    """File and line."""
    return f"{problem.file}:{problem.line}" if problem.line else problem.file


def need_text(need: SkillNeed) -> str:
    """What is missing, in a sentence."""
    key = f"skills.need.{need.kind}"
    return tr(key if current().has(key) else "skills.need.other", skill=need.skill, name=need.name)


def reason_text(reason: Reason) -> str:
    """One reason in the person's language."""
    if reason.code in ("below_threshold", "semantic") and reason.score is not None:
        return tr(f"skills.reason.{reason.code}", score=f"{reason.score:.2f}", value=reason.value)
    key = f"skill.reason.{reason.code}"
    name = tr(key) if current().has(key) else reason.code.replace("_", " ")
    score = "" if reason.score is None else f" {reason.score:.2f}"
    return f"{name}{score}" + (f": {reason.value}" if reason.value else "")


def why_text(reason: str) -> str:
    """The reason kept with a pin (codes in English, separated by `;`) in the person's language."""
    told = []
    for part in filter(None, (p.strip() for p in reason.split(";"))):
        found = _REASON.match(part)
        code = found["code"].replace(" ", "_") if found else ""
        if found and current().has(f"skill.reason.{code}"):
            score = float(found["score"]) if found["score"] else None
            told.append(reason_text(Reason(code, found["value"] or "", score)))
        else:
            key = f"skills.why.{code}"
            told.append(tr(key) if code and current().has(key) else part)
    return " · ".join(told)


def verdict(match: SkillMatch) -> tuple[str, str, str]:
    """`(icon, tone, words)` of what a sentence does to a skill."""
    if match.chosen:
        return "check", "success", tr("skills.test.wakes")
    if match.suggested:
        return "info", "info", tr("skills.test.offered")
    return "close", "muted", tr("skills.test.sleeps")


def match_text(match: SkillMatch) -> str:
    """Why, and why not."""
    parts = [reason_text(r) for r in match.reasons]
    if match.refused is not None:
        why = reason_text(match.refused)
        parts.append(tr("skills.test.but", reason=why) if parts else why)
    return " · ".join(parts) or tr("skills.test.nothing")


def when(t: float) -> str:
    """A day and time (local)."""
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(t)) if t else ""


def percent(weight: float) -> str:
    """A weight as a share."""
    return f"{weight * 100:.0f} %"
