"""Every problem a skill can have: whether it keeps the skill from loading and whether the open format refuses it."""

from __future__ import annotations

from desktop_host.core.skills import SkillProblem


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


ERRORS = _words(
    """empty-file no-frontmatter unclosed frontmatter-not-mapping description-missing file-too-large unreadable
    too-many-files skill-too-large"""
)
"""The skill does not load."""

STRICT = _words(
    """bom utf16 not-utf8 empty-file no-frontmatter unclosed comment-first blank-first dots-close yaml-repaired
    yaml-line-fallback tab-indent frontmatter-not-mapping duplicate-key flow-style anchor yaml-tag name-missing
    name-not-text name-charset name-too-long name-mismatch description-missing description-not-text
    description-too-long compatibility-not-text compatibility-too-long unexpected-field file-too-large unreadable
    indentation"""
)
"""The strict rules of the open format refuse it (as its reference checker does)."""

OTHER = _words(
    """yaml-comment empty-body long-body lowercase-file inline-command bad-number frontmatter-too-long
    version-mismatch symlink-outside symlink-broken file-skipped too-many-files skill-too-large rollout-unreadable
    rollout-unknown-version rollout-weights rollout-status requires-unknown requires-cycle nested-skill"""
)
"""Worth knowing; the open format has no rule about it."""

CODES = ERRORS | STRICT | OTHER


def problem(code: str, line: int = 0, detail: str = "", file: str = "SKILL.md") -> SkillProblem:
    """A problem of a known code."""
    severity = "error" if code in ERRORS else "warning"
    return SkillProblem(code, severity, line, detail[:300], code in STRICT, file)
