"""Skills as values: versions, triggers, pins and the plan for one message."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class SkillStatus(StrEnum):
    """How far a version is trusted by whoever publishes it."""

    STABLE = "stable"
    BETA = "beta"
    DEPRECATED = "deprecated"


@dataclass(frozen=True, slots=True)
class SkillProblem:
    """Something about a skill's files that a person should know.

    What is wrong and how to mend it are the locale's `skill.problem.<code>` and `skill.fix.<code>`, both with
    `detail`.
    """

    code: str
    severity: str
    """`error`: the skill cannot be used; `warning`: it is used, after repair or as it is."""
    line: int = 0
    """Line of the file, from 1; 0 where no line is to blame."""
    detail: str = ""
    """The value, field, path or cause that the sentence names."""
    strict: bool = False
    """Whether the strict rules of the open format refuse this."""
    file: str = "SKILL.md"


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
    """Its id: lower case, no spaces; what `/name` and the command line take."""
    version: str
    """Empty where the files name none."""
    digest: str
    """sha256 over the path and the sha256 of every file."""
    description: str
    body: str
    triggers: Triggers = Triggers()
    priority: int = 0
    allowed_tools: tuple[str, ...] = ()
    requires: tuple[str, ...] = ()
    conflicts: tuple[str, ...] = ()
    label: str = ""
    """The name as the file has it."""
    fallback: tuple[str, ...] = ()
    """Skills to use instead where this one fails."""
    route: str | None = None
    """REF or route of the model that it prefers."""
    servers: tuple[str, ...] = ()
    """Aliases of servers that it needs."""
    license: str = ""
    compatibility: str = ""
    argument_hint: str = ""
    model_invocable: bool = True
    """Whether the model and the triggers may wake it; False: only the person."""
    user_invocable: bool = True


@dataclass(frozen=True, slots=True)
class SkillPin:
    """A session's choice of a version, kept by digest."""

    name: str
    version: str
    digest: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a skill was chosen, or why not: a code and what it is about."""

    code: str
    """`keyword`, `semantic`, `person`, `required`, `pinned`, `priority` speak for it; `excluded`, `disabled`,
    `below_threshold`, `conflict`, `missing`, `manual_only`, `limit`, `not_wanted`, `broken`, `suggest_only`,
    `model_decides` against it."""
    value: str = ""
    score: float | None = None

    def __str__(self) -> str:
        score = "" if self.score is None else f" {self.score:.2f}"
        return f"{self.code.replace('_', ' ')}{score}" + (f": {self.value}" if self.value else "")


@dataclass(frozen=True, slots=True)
class SkillMatch:
    """What a sentence does to one skill."""

    name: str
    version: str
    score: float
    chosen: bool
    reasons: tuple[Reason, ...] = ()
    refused: Reason | None = None
    suggested: bool = False
    """Good enough to be offered, not to be chosen."""


@dataclass(frozen=True, slots=True)
class SkillNeed:
    """Something that a chosen skill needs and that is not there."""

    skill: str
    kind: str
    """`server`, `skill`, `model`."""
    name: str


@dataclass(frozen=True, slots=True)
class SkillPlan:
    """Which skills one message wakes."""

    chosen: tuple[SkillPin, ...] = ()
    bodies: tuple[str, ...] = ()
    """The text of each chosen skill, in the order of `chosen`; empty text where the session has it already."""
    suggested: tuple[str, ...] = ()
    """Names to offer to the person."""
    needs: tuple[SkillNeed, ...] = ()
    route: str | None = None
    """The model that the primary skill prefers."""
    untrusted: tuple[str, ...] = ()
    """Project folders of the session that hold skills and are not trusted; told once."""
