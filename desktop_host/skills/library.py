"""The library: places, the snapshot of what lies there, and the telling of what changed."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from itertools import islice
from pathlib import Path

from desktop_host.core.admin import SettingsStore
from desktop_host.core.errors import UserFault
from desktop_host.core.events import LibraryChanged
from desktop_host.core.places import shipped
from desktop_host.core.ports import EventSink
from desktop_host.core.skill_admin import FileChange, SkillChange, SkillPlace, UntrustedProject
from desktop_host.skills.folder import Manifest
from desktop_host.skills.scan import Entry, Found, Scanner, Snapshot, discover
from desktop_host.skills.state import SkillState

_log = logging.getLogger(__name__)

PROJECT_FOLDERS = (".agents/skills", ".claude/skills")
"""Where a project keeps skills, the first with precedence."""
TOLD_SKILLS = 20
"""Names of an untrusted project's skills that are told."""
FOREIGN_FOLDERS = ("~/.agents/skills", "~/.claude/skills", "~/.codex/skills", "~/.gemini/skills", "~/.copilot/skills")
"""Where other hosts keep a person's skills; used on request only."""


class Library:
    """Snapshots of the skills, one after the other. Belongs to the host's loop; reading happens in a thread."""

    def __init__(
        self, profile: Path, settings: SettingsStore, tell: EventSink, run_folders: tuple[Path, ...] = ()
    ) -> None:
        self.folder = profile / "skills"
        self.profile = profile
        self.state = SkillState(profile)
        self.snapshot = Snapshot()
        self._settings = settings
        self._tell = tell
        self._run_folders = run_folders
        self._scanner = Scanner()
        self._reading = asyncio.Lock()
        self._first: asyncio.Task[tuple[str, ...]] | None = None
        self._scanned = False

    # ---- places
    def places(self) -> tuple[SkillPlace, ...]:
        """All places, the one with the highest precedence first; blocking (a stat for each)."""
        settings = self._settings.current().skills
        rows = [("run", p, True) for p in self._run_folders]
        for project in paths_of(settings.trusted_projects):
            rows += [("project", project / sub, True) for sub in PROJECT_FOLDERS]
        rows.append(("profile", self.folder, True))
        foreign = {Path(f).expanduser() for f in FOREIGN_FOLDERS}
        rows += [("foreign" if p in foreign else "extra", p, True) for p in paths_of(settings.folders)]
        rows.append(("bundled", shipped("skills"), True))
        places: dict[str, SkillPlace] = {}
        for kind, path, trusted in rows:
            writable = kind == "profile" or (kind in ("run", "extra", "project") and os.access(path, os.W_OK))
            place = SkillPlace(kind, str(path), trusted, writable, path.is_dir())
            places.setdefault(os.path.realpath(path), place)
        return tuple(places.values())

    def untrusted(self, roots: tuple[str, ...]) -> tuple[UntrustedProject, ...]:
        """Those of these folders that hold skills and are not trusted; blocking."""
        trusted = {os.path.realpath(p) for p in paths_of(self._settings.current().skills.trusted_projects)}
        found = []
        for root in roots:
            if os.path.realpath(root) in trusted:
                continue
            there = (f.name for sub in PROJECT_FOLDERS for f, _ in discover(Path(root) / sub))
            names = tuple(dict.fromkeys(islice(there, TOLD_SKILLS)))
            if names:
                found.append(UntrustedProject(root, names))
        return tuple(found)

    def project_of(self, found: Found) -> Path | None:
        """The project that a skill belongs to; None for skills of the person."""
        return Path(found.place.path).parent.parent if found.place.kind == "project" else None

    # ---- reading
    async def ready(self) -> Snapshot:
        """The snapshot, after the first scan."""
        if not self._scanned:
            if self._first is None:
                self._first = asyncio.create_task(self.rescan())
            await asyncio.shield(self._first)
        return self.snapshot

    async def rescan(self, touched: frozenset[str] | None = None) -> tuple[str, ...]:
        """Look at all places and take what is there; returns the ids of what changed.

        With `touched` (real paths) only the skills that hold one of these are read again.
        """
        async with self._reading:
            first = not self._scanned
            before = self.snapshot
            after = await asyncio.to_thread(self._scan, touched)
            changed = _changed(before, after)
            self.snapshot = after
            self._scanned = True
            if changed and not first:
                await asyncio.to_thread(self._remember, before, after, changed)
                self._tell(LibraryChanged(changed))
        return changed

    def watched_folders(self) -> tuple[Path, ...]:
        """The folders that a change may come from: the places, and what links within them lead to; blocking."""
        places = [p for p in self.places() if p.exists and p.trusted and p.kind != "bundled"]
        folders = {p.path: os.path.realpath(p.path) for p in places}
        outside = {
            e.manifest.real
            for found in self.snapshot.all
            if found.place.path in folders
            for e in found.entries.values()
            if not f"{e.manifest.real}{os.sep}".startswith(folders[found.place.path] + os.sep)
        }
        return tuple(Path(f) for f in sorted({*folders.values(), *outside}))

    def state_changed(self) -> bool:
        """Whether another process changed what a person decided; blocking."""
        return self.state.refresh()

    def announce(self, *names: str) -> None:
        """Tell that these skills are another way than before, though their files are not."""
        self._tell(LibraryChanged(names))

    async def close(self) -> None:
        """End a first scan that still runs."""
        if self._first is not None and not self._first.done():
            self._first.cancel()
            await asyncio.gather(self._first, return_exceptions=True)

    def _scan(self, touched: frozenset[str] | None) -> Snapshot:
        self.state.refresh()
        places = tuple(p for p in self.places() if p.exists)
        return self._scanner.scan(places, self.state.rollouts(), touched)

    def entry(self, folder: Path, version: str = "") -> Entry:
        """Read one folder outside the snapshot; blocking."""
        return Scanner().entry(folder, version)

    def _remember(self, before: Snapshot, after: Snapshot, changed: tuple[str, ...]) -> None:
        """Keep in the history of each trusted skill what its files became."""
        notes = []
        for name in changed:
            new, old = after.skills.get(name), before.skills.get(name)
            if new is None or new.place.kind == "bundled":
                continue
            for version, entry in new.entries.items():
                known = old.entries.get(version) if old else None
                if known is None or known.manifest.digest == entry.manifest.digest:
                    continue
                files = changes_between(known.manifest, entry.manifest)
                notes.append((name, SkillChange(time.time(), version, entry.manifest.digest, "changed", files)))
        self.state.note(notes)

    # ---- asking
    async def find(self, name: str, version: str | None = None) -> tuple[Found, Entry]:
        """A skill and one of its versions (None: the main one).

        Raises:
            UserFault: `not_found` with names that are near.
        """
        snapshot = await self.ready()
        found = snapshot.find(name)
        if found is None:
            import difflib

            near = ", ".join(difflib.get_close_matches(name, snapshot.skills, n=3, cutoff=0.4))
            raise UserFault("not_found", f"there is no skill {name!r}" + (f"; near: {near}" if near else ""),
                            kind="skill", name=name, nearest=near)  # fmt: skip
        if version is None:
            return found, found.main
        entry = found.entries.get("" if version == "-" else version)
        if entry is None:
            choices = ", ".join(v or "-" for v in found.entries)
            raise UserFault("not_found", f"{found.name} has no version {version!r}; there are: {choices}",
                            kind="version", name=version, choices=choices)  # fmt: skip
        return found, entry


def paths_of(text: str) -> list[Path]:
    """Folders of a setting: separated by `;` or lines."""
    parts = [p.strip() for p in text.replace("\n", ";").split(";")]
    return [Path(p).expanduser() for p in parts if p]


def changes_between(old: Manifest, new: Manifest) -> tuple[FileChange, ...]:
    """The files that differ between two readings, without their texts."""
    before, after = {f.path: f.sha256 for f in old.files}, {f.path: f.sha256 for f in new.files}
    rows = [FileChange(p, "added") for p in after.keys() - before.keys()]
    rows += [FileChange(p, "removed") for p in before.keys() - after.keys()]
    rows += [FileChange(p, "changed") for p in before.keys() & after.keys() if before[p] != after[p]]
    return tuple(sorted(rows, key=lambda c: c.path))


def _changed(before: Snapshot, after: Snapshot) -> tuple[str, ...]:
    old = {str(f.folder): (f.name, f.signature) for f in before.all}
    new = {str(f.folder): (f.name, f.signature) for f in after.all}
    paths = {p for p in old.keys() | new.keys() if old.get(p) != new.get(p)}
    return tuple(sorted({side[p][0] for side in (old, new) for p in paths if p in side}))
