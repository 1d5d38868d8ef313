"""The library as values: places, skills and their versions, files, previews, results, history."""

from __future__ import annotations

from dataclasses import dataclass

from desktop_host.core.skills import SkillNeed, SkillPin, SkillProblem, SkillStatus, SkillVersion


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
class UntrustedProject:
    """A folder of a chat that holds skills which do not count, for nobody trusts it."""

    folder: str
    skills: tuple[str, ...]
    """Their names, by the folders they lie in."""


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
