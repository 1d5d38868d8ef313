"""The library as a face sees it: what is there, how it fares, and what may be done with it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from desktop_host.core.remote_skills import RemoteSkill
from desktop_host.core.skills import SkillMatch, SkillNeed, SkillPin, SkillProblem, SkillStatus, SkillVersion


@dataclass(frozen=True, slots=True)
class SkillPlace:
    """A folder in which skills are looked for, in the order of their precedence."""

    kind: str
    """`run` (for this run), `project`, `profile`, `extra` (from the settings), `foreign` (of another host), `bundled`,
    `remote` (served over MCP)."""
    path: str
    trusted: bool = True
    """A project's folder counts only once a person trusts it."""
    writable: bool = False
    exists: bool = True


@dataclass(frozen=True, slots=True)
class SkillVersionRow:
    """One version as the library shows it."""

    version: str
    status: SkillStatus
    weight: float
    digest: str
    path: str
    """The version's folder."""
    problems: tuple[SkillProblem, ...] = ()
    loaded: bool = True
    stale: bool = False
    """The files are broken now; the last good reading is in use."""
    changed: float = 0.0
    """When its files last changed (seconds since the epoch)."""


@dataclass(frozen=True, slots=True)
class SkillRow:
    """One skill as the library shows it."""

    name: str
    label: str
    description: str
    source: str
    """Kind of its place."""
    path: str
    """The folder of the skill (of all its versions)."""
    version: str
    """The version with the greatest weight."""
    versions: tuple[SkillVersionRow, ...] = ()
    enabled: bool = True
    loaded: bool = True
    """Whether at least one version can be used."""
    shadowed_by: str | None = None
    """Path of the skill of the same name that is used instead."""
    problems: tuple[SkillProblem, ...] = ()
    """Of the skill as a whole (a broken rollout.toml) and of its versions."""
    granted: bool = False
    """Whether the tools it asks for are allowed without asking while it is active."""
    needs: tuple[SkillNeed, ...] = ()
    """What it needs and is not there now."""
    removable: bool = False

    @property
    def state(self) -> str:
        """`ok`, `warning`, `broken`, `disabled` or `shadowed`."""
        if self.shadowed_by:
            return "shadowed"
        if not self.loaded:
            return "broken"
        if not self.enabled:
            return "disabled"
        return "warning" if self.problems else "ok"


@dataclass(frozen=True, slots=True)
class SkillFile:
    """One file of a skill."""

    path: str
    """Relative, with `/`."""
    size: int
    sha256: str
    kind: str
    """`body`, `script`, `reference`, `asset` or `other`."""


@dataclass(frozen=True, slots=True)
class SkillDetail:
    """A version with all that can be read of it."""

    skill: SkillVersion
    row: SkillRow
    files: tuple[SkillFile, ...]
    source: str
    """The whole text of SKILL.md."""


@dataclass(frozen=True, slots=True)
class LintReport:
    """How one skill reads: `loaded` = usable after repair, `ok` = valid by the strict rules of the open format."""

    path: str
    name: str
    id: str
    version: str
    ok: bool
    loaded: bool
    problems: tuple[SkillProblem, ...]


@dataclass(frozen=True, slots=True)
class InstallPreview:
    """What would be installed, before it is."""

    name: str
    version: str
    description: str
    files: tuple[SkillFile, ...]
    scripts: tuple[str, ...]
    allowed_tools: tuple[str, ...]
    size: int
    problems: tuple[SkillProblem, ...]
    replaces: str | None = None
    """Digest of what is installed under this name and version now."""
    origin: str = ""


@dataclass(frozen=True, slots=True)
class SessionPin:
    """A session that keeps a version of a skill."""

    session: str
    title: str
    pin: SkillPin
    newest: bool
    """Whether that is what a new session would get."""


@dataclass(frozen=True, slots=True)
class VersionResults:
    """How a version did, from the journals of the sessions that used it."""

    version: str
    digest: str
    sessions: int = 0
    turns: int = 0
    failed_turns: int = 0
    tool_errors: int = 0
    thumbs_up: int = 0
    thumbs_down: int = 0
    cost_usd: float | None = 0.0
    input_tokens: int = 0
    output_tokens: int = 0


@dataclass(frozen=True, slots=True)
class FileChange:
    """One file that differs between two versions."""

    path: str
    change: str
    """`added`, `removed` or `changed`."""
    diff: str = ""
    """Unified diff of text files."""


@dataclass(frozen=True, slots=True)
class SkillChange:
    """An entry of a skill's history."""

    t: float
    version: str
    digest: str
    event: str
    """`installed`, `trusted`, `changed`, `removed`, `rollout`, `granted`, `revoked`."""
    files: tuple[FileChange, ...] = ()
    detail: str = ""


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

    async def approve_remote(self, id_: str, digest: str) -> None:
        """Let a server's skill be used, as it was shown with this digest.

        Raises:
            UserFault: `not_found`; `bad_skill`, it is another by now.
        """
        ...

    async def revoke_remote(self, id_: str) -> None: ...
