"""Folders on disk to a snapshot of the library: which skills there are, in which versions, and who shadows whom."""

from __future__ import annotations

import os
import re
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from desktop_host.core.skill_admin import SkillPlace
from desktop_host.core.skills import SkillProblem, SkillVersion
from desktop_host.skills.document import SkillDocument, parse, slug
from desktop_host.skills.folder import SKIPPED, DigestCache, Manifest, RealPaths, main_file, survey
from desktop_host.skills.problems import problem
from desktop_host.skills.rollout import FILE, Rollout, default_for, main_version, read

MAX_DEPTH = 6
MAX_FOLDERS = 5_000
"""Folders looked into per place, skills themselves not counted."""

_VERSION = re.compile(r"v?\d[\w.+-]*")


@dataclass(frozen=True, slots=True)
class Entry:
    """One version of a skill as it lies on disk."""

    folder: Path
    skill: SkillVersion
    document: SkillDocument
    manifest: Manifest
    problems: tuple[SkillProblem, ...]
    raw: bytes
    """The bytes of SKILL.md."""
    stale: bool = False
    """The files are broken now; `skill` is the last good reading."""

    @property
    def loaded(self) -> bool:
        """Whether it can be used."""
        return self.stale or not any(p.severity == "error" for p in self.problems)


@dataclass(frozen=True, slots=True)
class Found:
    """One skill at one place, with all its versions."""

    name: str
    folder: Path
    place: SkillPlace
    entries: dict[str, Entry]
    """Version to entry, oldest first."""
    rollout: Rollout
    problems: tuple[SkillProblem, ...] = ()
    shadowed_by: str | None = None

    @property
    def main(self) -> Entry:
        """The version with the greatest weight."""
        return self.entries[self.version]

    @property
    def version(self) -> str:
        """The name of the main version."""
        usable = {v: s for v, s in self.rollout.items() if self.entries[v].loaded}
        return main_version(usable or self.rollout)

    @property
    def loaded(self) -> bool:
        """Whether any version can be used."""
        return any(e.loaded for e in self.entries.values())

    @property
    def signature(self) -> tuple[object, ...]:
        """Differs when anything of the skill differs."""
        parts = [(v, e.skill.digest, e.manifest.digest, e.problems) for v, e in self.entries.items()]
        return (str(self.folder), tuple(parts), tuple(self.rollout.items()), self.problems, self.shadowed_by)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The library at one moment; never changed, only replaced."""

    all: tuple[Found, ...] = ()
    skills: dict[str, Found] = field(default_factory=dict)
    """Id to the skill that counts, by id."""

    def find(self, name: str) -> Found | None:
        """A skill by id or label."""
        return self.skills.get(name) or self.skills.get(slug(name))


def discover(root: Path) -> Iterator[tuple[Path, list[tuple[str, Path]]]]:
    """The skills below a place: each folder with its versions as `(version, folder)`; version "" for a plain one."""
    waiting: deque[tuple[str, int, bool]] = deque([(str(root), 0, os.path.realpath(root) != str(root))])
    seen: set[str] = set()
    looked = 0
    while waiting:
        folder, depth, linked = waiting.popleft()
        real = os.path.realpath(folder) if linked else folder
        if real in seen:
            continue
        seen.add(real)
        main, children = _listed(folder)
        path = Path(folder)
        if main:
            yield path, [("", path)]
            continue
        versions = _versions(path)
        if versions:
            yield path, versions
            continue
        looked += 1
        if depth < MAX_DEPTH and looked <= MAX_FOLDERS:
            # Below a link every path is another than its real one, so it stays marked.
            waiting.extend((child, depth + 1, linked or link) for child, link in children)


def _listed(folder: str) -> tuple[str, list[tuple[str, bool]]]:
    """The main file of a folder, and the folders in it with whether they are links."""
    children = []
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                name = entry.name
                if name.lower() == "skill.md" and entry.is_file():
                    return name, []
                if name not in SKIPPED and not name.startswith(".") and entry.is_dir():
                    children.append((entry.path, entry.is_symlink()))
    except OSError:
        return "", []
    children.sort()
    return "", children


def _children(folder: Path) -> list[Path]:
    return [Path(child) for child, _ in _listed(str(folder))[1]]


def _versions(folder: Path) -> list[tuple[str, Path]]:
    """The versions of a folder laid out as `<name>/<version>/<name>/SKILL.md`."""
    weighted = (folder / FILE).is_file()
    found = []
    for child in _children(folder):
        inner = child / folder.name
        if (weighted or _VERSION.fullmatch(child.name)) and main_file(inner):
            found.append((child.name, inner))
    return found


class Scanner:
    """Reads places. Blocking; keeps what it read, so that a second look costs a stat per file."""

    def __init__(self) -> None:
        self._digests = DigestCache()
        self._reals = RealPaths()
        self._entries: dict[tuple[str, str], tuple[Manifest, Entry]] = {}
        """What lies in each folder now, and its reading (the last good one where it is broken)."""
        self._good: dict[tuple[str, str], Entry] = {}
        self._touched: frozenset[str] | None = None
        self._holders: frozenset[str] = frozenset()
        """The touched paths and all folders above them."""

    def scan(
        self, places: tuple[SkillPlace, ...], rollouts: dict[str, Rollout] | None = None,
        touched: frozenset[str] | None = None,
    ) -> Snapshot:  # fmt: skip
        """Look at all trusted places, the one with the highest precedence first.

        With `touched` (real paths) only skills that hold one of these are read again; which skills there are is
        looked up in any case.
        """
        self._touched = touched
        self._reals = RealPaths()
        self._holders = frozenset(_above(touched or frozenset()))
        every: list[Found] = []
        first: dict[str, Found] = {}
        read_now: set[tuple[str, str]] = set()
        for place in places:
            if not place.trusted:
                continue
            for folder, versions in discover(Path(place.path)):
                read_now.update((str(f), v) for v, f in versions)
                found = self._found(folder, versions, place, rollouts or {})
                winner = first.setdefault(found.name, found)
                every.append(found if winner is found else replace(found, shadowed_by=str(winner.folder)))
        for gone in self._entries.keys() - read_now:
            del self._entries[gone]
            self._good.pop(gone, None)
        every.sort(key=lambda f: (f.name, f.shadowed_by is not None, str(f.folder)))
        return Snapshot(tuple(every), {name: first[name] for name in sorted(first)})

    def _found(
        self, folder: Path, versions: list[tuple[str, Path]], place: SkillPlace, rollouts: dict[str, Rollout]
    ) -> Found:
        entries = {v: self.entry(f, v) for v, f in versions}
        problems: list[SkillProblem] = []
        if versions[0][0] == "":
            only = next(iter(entries.values()))
            entries = {only.skill.version: only}
            rollout = default_for([only.skill.version])
            name = only.skill.name
        else:
            rollout, told = self.rollout(folder, list(entries))
            problems += told
            entries = {v: entries[v] for v in rollout}
            name = slug(folder.name) or "skill"
            entries = {v: replace(e, skill=replace(e.skill, name=name)) for v, e in entries.items()}
            wanted = rollouts.get(name)
            if wanted and wanted.keys() == rollout.keys():
                rollout = {v: wanted[v] for v in rollout}
        return Found(name, folder, place, entries, rollout, tuple(problems))

    def rollout(self, folder: Path, versions: list[str]) -> tuple[Rollout, tuple[SkillProblem, ...]]:
        """The weights that a folder's file gives its versions."""
        try:
            text = (folder / FILE).read_text("utf-8")
        except FileNotFoundError:
            return default_for(versions), ()
        except (OSError, UnicodeDecodeError) as error:
            return default_for(versions), (problem("rollout-unreadable", 1, str(error), FILE),)
        return read(text, versions)

    def entry(self, folder: Path, version: str) -> Entry:
        """One version; where it is broken now, the last good reading of it."""
        key = (str(folder), version)
        before = self._entries.get(key)
        if before is not None and self._spared(before[1].manifest.real):
            return before[1]
        manifest = survey(folder, self._digests, before and before[0], self._reals.of(folder))
        if before and manifest is before[0]:
            return before[1]
        entry = self._read(folder, version, manifest)
        if entry.loaded:
            self._good[key] = entry
        elif (good := self._good.get(key)) is not None:
            entry = replace(good, problems=entry.problems, stale=True, document=entry.document)
        self._entries[key] = (manifest, entry)
        return entry

    def _spared(self, real: str) -> bool:
        """Whether nothing in or above a folder was touched."""
        if self._touched is None or real in self._holders:
            return False
        while (above := os.path.dirname(real)) != real:
            if above in self._touched:
                return False
            real = above
        return True

    def _read(self, folder: Path, version: str, manifest: Manifest) -> Entry:
        raw, problems = b"", manifest.problems
        try:
            raw = self._digests.taken(os.path.join(manifest.real, manifest.main)) if manifest.main else b""
        except OSError as error:
            problems = (*problems, problem("unreadable", 0, error.strerror or str(error)))
        document = parse(raw, folder.name, manifest.main or "SKILL.md", version, manifest.digest)
        return Entry(folder, document.skill, document, manifest, (*document.problems, *problems), raw)


def _above(paths: frozenset[str]) -> Iterator[str]:
    """The paths and all folders above them."""
    seen: set[str] = set()
    for path in paths:
        while path not in seen:
            seen.add(path)
            yield path
            path = os.path.dirname(path)
