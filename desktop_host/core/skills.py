"""Skills as values: versions, triggers, pins and the plan for one message."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Triggers:
    """When a skill wakes."""

    keywords: tuple[str, ...] = ()
    examples: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    threshold: float | None = None


@dataclass(frozen=True, slots=True)
class SkillVersion:
    """One version of a skill."""

    name: str
    version: str
    digest: str
    description: str
    body: str
    triggers: Triggers = Triggers()
    priority: int = 0
    allowed_tools: tuple[str, ...] = ()
    requires: tuple[str, ...] = ()
    conflicts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SkillPin:
    """A session's choice of a version, kept by digest."""

    name: str
    version: str
    digest: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class SkillPlan:
    """Which skills one message wakes."""

    chosen: tuple[SkillPin, ...] = ()
    bodies: tuple[str, ...] = ()
    """The text of each chosen skill, in the order of `chosen`."""
