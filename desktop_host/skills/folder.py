"""One skill's folder: which files it has, their digests, and reading without ever leaving it."""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from desktop_host.core.errors import UserFault
from desktop_host.core.skill_admin import SkillFile
from desktop_host.core.skills import SkillProblem
from desktop_host.skills.problems import problem

MAX_FILES = 10_000
MAX_SKILL = 50 * 2**20
MAX_FILE = 10 * 2**20
"""Bytes. A larger file is left out of the skill, and told."""
SKIPPED = frozenset({".git", ".hg", ".svn", "node_modules", "__pycache__", ".venv", "__MACOSX", ".DS_Store"})
NAMES = ("SKILL.md", "skill.md", "Skill.md")
"""Names under which the main file is found, the right one first."""

_KINDS = {"scripts": "script", "references": "reference", "assets": "asset", "templates": "asset"}


@dataclass(frozen=True, slots=True)
class Manifest:
    """The files of a skill's folder, by relative path, with their digests."""

    files: tuple[SkillFile, ...]
    digest: str
    main: str
    """Name of the main file; empty where there is none."""
    problems: tuple[SkillProblem, ...] = ()
    changed: float = 0.0
    """Newest change of a file (seconds since the epoch)."""
    real: str = ""
    """Real path of the folder."""
    seen: tuple[object, ...] = field(default=(), repr=False, compare=False)
    """What the walk saw of every file: the same again means that nothing has changed."""

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(f.size for f in self.files)


@dataclass(slots=True)
class DigestCache:
    """sha256 of files and what their stat said then, so that an unchanged file is not read again."""

    known: dict[str, tuple[tuple[int, int, int, int, int], str]] = field(default_factory=dict)
    """By path: a file that is saved a thousand times stays one entry."""
    _last: tuple[str, bytes] = ("", b"")

    def of(self, path: str, info: os.stat_result) -> str:
        """The sha256 (hex) of a file."""
        key = (info.st_dev, info.st_ino, info.st_size, info.st_mtime_ns, info.st_ctime_ns)
        before = self.known.get(path)
        if before is not None and before[0] == key:
            return before[1]
        if len(self.known) > 200_000:
            self.known.clear()
        data = contents(path, info.st_size)
        if path.lower().endswith("skill.md"):
            self._last = (path, data)
        sha = hashlib.sha256(data).hexdigest()
        self.known[path] = (key, sha)
        return sha

    def taken(self, path: str) -> bytes:
        """The bytes of a main file, as they were digested where that was just now."""
        last, self._last = self._last, ("", b"")
        return last[1] if last[0] == path else contents(path)


_BINARY = os.O_RDONLY | getattr(os, "O_BINARY", 0)


def contents(path: str, size: int = 65_536) -> bytes:
    """The bytes of a regular file; three calls of the system where its size is known, not seven."""
    descriptor = os.open(path, _BINARY)
    try:
        data = os.read(descriptor, size + 1)
        if len(data) == size:
            return data
        parts = [data]
        while more := os.read(descriptor, 2**20):
            parts.append(more)
        return b"".join(parts)
    finally:
        os.close(descriptor)


def main_file(folder: Path | str) -> str:
    """Name of the main file of a skill's folder as it is written on disk; empty where there is none."""
    try:
        with os.scandir(folder) as entries:
            return _main([e.name for e in entries if e.name.lower() == "skill.md" and e.is_file()])
    except OSError:
        return ""


def _main(names: list[str]) -> str:
    return next((n for n in NAMES if n in names), min(names, default=""))


class RealPaths:
    """Real paths of many folders side by side: what lies above them is looked at once. For the time of one scan."""

    def __init__(self) -> None:
        self._known: dict[str, str] = {}

    def of(self, folder: str | Path) -> str:
        """The real path of a folder."""
        path = os.fspath(folder)
        above, name = os.path.split(path)
        if not above or name in ("", ".", "..") or os.path.islink(path):
            return os.path.realpath(path)
        real = self._known.get(above)
        if real is None:
            real = self._known[above] = os.path.realpath(above)
        return os.path.join(real, name)


def survey(folder: Path, cache: DigestCache, before: Manifest | None = None, real: str = "") -> Manifest:
    """List and digest the files of a skill. Links that lead out of the folder are left out and told.

    Args:
        folder: the skill's folder.
        cache: digests that are known.
        before: an earlier reading, returned as it is where no file has changed.
        real: the folder's real path where the caller knows it.
    """
    root = real or os.path.realpath(folder)
    files: list[SkillFile] = []
    problems: list[SkillProblem] = []
    changed, size = 0.0, 0
    walked = list(_walk(root, problems))
    seen = (
        *((r, i.st_dev, i.st_ino, i.st_size, i.st_mtime_ns, i.st_ctime_ns, i.st_mode) for _, r, i in walked),
        *problems,
    )
    if before is not None and before.seen == seen and before.real == root:
        return before
    for path, relative, info in walked:
        if not stat.S_ISREG(info.st_mode):
            problems.append(problem("file-skipped", 0, "not a regular file", relative))
            continue
        if info.st_size > MAX_FILE:
            problems.append(problem("file-skipped", 0, f"{info.st_size:,} bytes", relative))
            continue
        size += info.st_size
        if size > MAX_SKILL:
            problems.append(problem("skill-too-large", 0, f"{MAX_SKILL:,}", relative))
            break
        try:
            sha = cache.of(path, info)
        except OSError as error:
            problems.append(problem("file-skipped", 0, error.strerror or str(error), relative))
            continue
        changed = max(changed, info.st_mtime)
        files.append(SkillFile(relative, info.st_size, sha, kind_of(relative)))
    files.sort(key=lambda f: f.path)
    main = _main([f.path for f in files if f.path.lower() == "skill.md"])
    return Manifest(tuple(files), digest_of(files), main, tuple(problems), changed, root, seen)


def _walk(root: str, problems: list[SkillProblem]) -> Iterator[tuple[str, str, os.stat_result]]:
    """Files below a real folder: `(path, relative path, stat)`. Strings, not paths: this runs for every skill."""
    count = 0
    waiting = [(root, "")]
    seen = {root}
    while waiting:
        folder, above = waiting.pop()
        try:
            with os.scandir(folder) as listed:
                entries = sorted(listed, key=lambda e: e.name)
        except OSError as error:
            problems.append(problem("file-skipped", 0, error.strerror or "", above or "."))
            continue
        for entry in entries:
            if entry.name in SKIPPED:
                continue
            relative = f"{above}{entry.name}"
            if entry.is_symlink() and not _inside(root, entry.path, relative, problems):
                continue
            try:
                if entry.is_dir():
                    real = os.path.realpath(entry.path) if entry.is_symlink() else entry.path
                    if real not in seen:
                        seen.add(real)
                        waiting.append((entry.path, f"{relative}/"))
                    continue
                info = entry.stat()
            except OSError as error:
                problems.append(problem("file-skipped", 0, error.strerror or str(error), relative))
                continue
            count += 1
            if count > MAX_FILES:
                problems.append(problem("too-many-files", 0, f"{MAX_FILES:,}", relative))
                return
            yield entry.path, relative, info


def _inside(root: str, path: str, relative: str, problems: list[SkillProblem]) -> bool:
    """Whether a link stays within the skill; told where not."""
    real = os.path.realpath(path)
    if not os.path.exists(real):
        problems.append(problem("symlink-broken", 0, os.readlink(path), relative))
        return False
    if real != root and not real.startswith(root + os.sep):
        problems.append(problem("symlink-outside", 0, real, relative))
        return False
    return True


def digest_of(files: list[SkillFile] | tuple[SkillFile, ...]) -> str:
    """The digest of a version: sha256 over every path and its sha256, in the order of the paths."""
    # The canonical JSON of the rows, put together here: `json.dumps` costs more than the rest of a skill's digest.
    rows = sorted((f.path, f.sha256) for f in files)
    text = ",".join(f'[{_quoted(path)},"{sha}"]' for path, sha in rows)
    return hashlib.sha256(f"[{text}]".encode()).hexdigest()


_quoted = json.JSONEncoder(ensure_ascii=False).encode


def kind_of(relative: str) -> str:
    """What a file is for, by where it lies."""
    if relative.lower() == "skill.md":
        return "body"
    return _KINDS.get(relative.partition("/")[0].lower(), "other") if "/" in relative else "other"


def inside(folder: Path, relative: str) -> Path:
    """The real path of a file of a skill.

    Raises:
        UserFault: `bad_skill`, the path leads out of the folder, by `..`, as an absolute path or by a link;
            `not_found`.
    """
    outside = UserFault(
        "bad_skill", f"{relative!r} is not inside the skill's folder", reason="outside", file=relative
    )  # fmt: skip
    if "\0" in relative or "\\" in relative or ":" in relative.partition("/")[0] or relative.startswith(("/", "~")):
        raise outside
    root = Path(os.path.realpath(folder))
    real = Path(os.path.realpath(root / relative))
    if real == root or not real.is_relative_to(root):
        raise outside
    if not real.is_file():
        raise UserFault("not_found", f"the skill has no file {relative!r}", kind="file", name=relative)
    return real
