"""The library as a face sees it: what is there, how it fares, and what may be done with it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from desktop_host.core.remote_skills import RemoteSkill
from desktop_host.core.skill_rows import (
    FileChange,
    InstallPreview,
    LintReport,
    SessionPin,
    SkillChange,
    SkillDetail,
    SkillFile,
    SkillPlace,
    SkillRow,
    SkillVersionRow,
    UntrustedProject,
    VersionResults,
)
from desktop_host.core.skills import SkillMatch, SkillStatus

__all__ = [
    "FileChange", "InstallPreview", "LintReport", "SessionPin", "SkillAdmin", "SkillChange", "SkillDetail",
    "SkillFile", "SkillPlace", "SkillRow", "SkillVersionRow", "UntrustedProject", "VersionResults",
]  # fmt: skip


class SkillAdmin(Protocol):
    """The skills of a profile. Names are ids or labels; both find a skill.

    All methods wait for the first scan. Unless said otherwise they raise UserFault `not_found` for a name that
    is not there.
    """

    async def skills(self) -> tuple[SkillRow, ...]:
        """Every skill found, broken and shadowed ones included, by name."""
        ...

    async def skill(self, name: str, version: str | None = None) -> SkillDetail: ...
    async def read_file(self, name: str, path: str, version: str | None = None) -> bytes:
        """One file of a skill.

        Raises:
            UserFault: `not_found`, or a path outside the skill's folder (`bad_skill`).
        """
        ...

    async def places(self) -> tuple[SkillPlace, ...]: ...
    async def foreign_places(self) -> tuple[SkillPlace, ...]:
        """Folders of other hosts on this computer that hold skills and are not in use."""
        ...

    async def add_place(self, folder: Path) -> None:
        """Look for skills in one more folder, from now on (setting `skills.folders`)."""
        ...

    async def remove_place(self, folder: Path) -> None: ...
    async def trust_project(self, folder: Path, on: bool) -> None:
        """Let the skills of a project folder count, or not any more."""
        ...

    async def untrusted(self, roots: tuple[str, ...]) -> tuple[UntrustedProject, ...]:
        """Those of these folders that hold skills and are not trusted."""
        ...

    async def rescan(self) -> tuple[str, ...]:
        """Look at all places now; returns the names of what changed."""
        ...

    async def lint(self, paths: tuple[Path, ...]) -> tuple[LintReport, ...]:
        """Read skills anywhere on disk: a skill's folder, a folder of skills, a SKILL.md.

        Raises:
            UserFault: `not_found`, nothing is there.
        """
        ...

    async def match(self, text: str, session: str | None = None) -> tuple[SkillMatch, ...]:
        """What a sentence would wake, best first, with reasons; every usable skill has a line."""
        ...

    async def preview(self, path: Path) -> tuple[InstallPreview, ...]:
        """What a folder, a `.zip` or a `.skill` holds.

        Raises:
            UserFault: `bad_archive`, `bad_skill`, `not_found`.
        """
        ...

    async def preview_file(self, path: Path, name: str, file: str) -> bytes:
        """One file of a skill that `preview` found there; nothing is installed.

        Raises:
            UserFault: `bad_archive`, `not_found`, or a path outside the skill's folder (`bad_skill`).
        """
        ...

    async def install(self, path: Path, *, replace: bool = False) -> tuple[SkillRow, ...]:
        """Copy skills into the profile.

        Raises:
            UserFault: `bad_archive`, `bad_skill` (also: it is installed already and `replace` is not set).
            KnownFault: `disk_full`, `permission`.
        """
        ...

    async def remove(self, name: str, version: str | None = None) -> None:
        """Delete a skill of the profile, or one version of it. Sessions that pinned it keep it."""
        ...

    async def export(self, name: str, target: Path) -> Path:
        """Write a skill as a `.zip` (or `.skill`); returns the file."""
        ...

    async def enable(self, name: str, on: bool) -> None: ...
    async def grant_tools(self, name: str, on: bool) -> None:
        """Allow the tools that a skill asks for (`allowed-tools`) while it is active, or take that back."""
        ...

    async def set_rollout(
        self, name: str, weights: Mapping[str, float], statuses: Mapping[str, SkillStatus] | None = None
    ) -> SkillRow:
        """Share out new sessions among versions. Weights of versions not named: see `rollout.settle`.

        Raises:
            UserFault: `usage`, unknown version, or weights that do not sum to 1.
        """
        ...

    async def pins(self, name: str) -> tuple[SessionPin, ...]: ...
    async def results(self, name: str) -> tuple[VersionResults, ...]: ...
    async def diff(self, name: str, old: str, new: str) -> tuple[FileChange, ...]: ...
    async def changes(self, name: str) -> tuple[SkillChange, ...]:
        """What happened to a skill, newest first."""
        ...

    async def remote_skills(self, *, refresh: bool = False) -> tuple[RemoteSkill, ...]:
        """Skills that servers serve; `refresh` asks the servers anew."""
        ...

    def remote_problems(self) -> Mapping[str, tuple[str, ...]]:
        """What could not be used of the last listings, by server."""
        ...

    async def read_remote(self, id_: str, path: str) -> bytes:
        """One file of a server's skill, for the person to read: fetched now and checked against its digest.

        Raises:
            UserFault: `not_found`; `bad_skill`, it is not what its server announced.
            KnownFault: the server cannot be reached.
        """
        ...

    async def approve_remote(self, id_: str, digest: str) -> None:
        """Let a server's skill be used, as it was shown with this digest.

        Raises:
            UserFault: `not_found`; `bad_skill`, it is another by now.
        """
        ...

    async def revoke_remote(self, id_: str) -> None: ...
