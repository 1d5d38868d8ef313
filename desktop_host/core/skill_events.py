"""Events of skills within a session."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from desktop_host.core.delivery import Kept
from desktop_host.core.skills import SkillPin


@dataclass(frozen=True, slots=True)
class SkillPinned(Kept):
    """A session keeps this version of a skill from now on: the model took it up, or a person chose it."""

    type: ClassVar[str] = "skill_pinned"
    pin: SkillPin
