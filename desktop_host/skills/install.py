"""Into the profile and out of it: preview, install, remove, export. All of it blocking; called in a thread."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from desktop_host.core.errors import KnownFault, UserFault
from desktop_host.core.skill_admin import InstallPreview
from desktop_host.core.skills import SkillStatus
from desktop_host.skills import archive
from desktop_host.skills.document import slug
from desktop_host.skills.file_faults import file_fault
from desktop_host.skills.folder import main_file
from desktop_host.skills.rollout import FILE, Rollout, Share, ordered, write
from desktop_host.skills.scan import Entry, Found, Scanner, discover


@dataclass(frozen=True, slots=True)
class Package:
    """One skill that could be installed."""

    name: str
    folder: Path
    versions: tuple[tuple[str, Path, Entry], ...]
    """Version by the layout ("" for a plain skill), folder, reading."""

    @property
    def entry(self) -> Entry:
        """The newest version."""
        newest = ordered(v for v, _, _ in self.versions)[-1]
        return next(e for v, _, e in self.versions if v == newest)


@contextlib.contextmanager
def opened(source: Path, scratch: Path) -> Iterator[tuple[Package, ...]]:
    """The skills that a folder or an archive holds; unpacked below `scratch` for the time of the context.

    Raises:
        UserFault: `not_found`, `bad_archive`, `bad_skill` (it holds no skill).
    """
    if source.is_dir():
        yield _packages(source, source.name)
        return
    if source.is_file() and source.name.lower() == "skill.md":
        yield _packages(source.parent, source.parent.name)
        return
    if not source.exists():
        raise UserFault("not_found", f"there is no file or folder {source}", kind="file", name=str(source))
    if source.suffix.lower() not in archive.SUFFIXES:
        raise archive.refuse("not_zip", f"{source.name} is no folder, .zip or .skill", file=source.name)
    scratch.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=scratch, prefix=".incoming-", ignore_cleanup_errors=True) as folder:
        inner = Path(folder) / (slug(source.stem) or "skill")
        inner.mkdir()
        archive.unpack(source, inner)
        yield _packages(inner, source.name)


def _packages(root: Path, origin: str) -> tuple[Package, ...]:
    scanner = Scanner()
    found: dict[str, Package] = {}
    for folder, versions in discover(root):
        read = tuple((v, f, scanner.entry(f, v)) for v, f in versions)
        name = slug(folder.name) if versions[0][0] else read[0][2].skill.name
        if name in found:
            raise UserFault("bad_skill", f"{origin} holds two skills named {name}", reason="twice", name=name)
        found[name] = Package(name, folder, read)
    if not found:
        raise UserFault("bad_skill", f"{origin} holds no SKILL.md", reason="no_skill", name=origin)
    return tuple(found.values())


def preview(package: Package, present: Found | None, origin: str) -> InstallPreview:
    """What would be installed."""
    entry = package.entry
    same = present.entries.get(entry.skill.version) if present and present.place.kind == "profile" else None
    return InstallPreview(
        package.name,
        entry.skill.version,
        entry.skill.description,
        entry.manifest.files,
        tuple(f.path for f in entry.manifest.files if f.kind == "script"),
        entry.skill.allowed_tools,
        sum(e.manifest.size for _, _, e in package.versions),
        tuple(p for _, _, e in package.versions for p in e.problems),
        same.manifest.digest if same else None,
        origin,
    )


def install(package: Package, folder: Path, present: Found | None, *, over: bool) -> bool:
    """Put a skill into the profile's folder; False where the very same is there already.

    A plain skill of another version than the one that is there stands beside it, as beta without sessions.

    Raises:
        UserFault: `bad_skill`, it does not load, or this version is there with other files and `over` is not set.
        KnownFault: `disk_full`, `permission` or `database_error`.
    """
    for _, _, entry in package.versions:
        bad = next((p for p in entry.problems if p.severity == "error"), None)
        if bad is not None:
            text = f"{package.name} cannot be used: {bad.code} (line {bad.line})"
            raise UserFault("bad_skill", text, reason="broken", name=package.name, file=bad.file, line=bad.line,
                            problem=bad.code)  # fmt: skip
    mine = present if present is not None and present.place.kind == "profile" else None
    plain = package.versions[0][0] == ""
    if mine is None or not plain:
        if mine is not None and not over:
            raise _installed(package.name, "")
        _swap(folder, package.name, lambda to: _copy_all(package, to))
        return True
    entry = package.entry
    same = mine.entries.get(entry.skill.version)
    if same is not None and same.manifest.digest == entry.manifest.digest:
        return False
    if same is not None and not over:
        raise _installed(package.name, entry.skill.version)
    if same is not None and len(mine.entries) == 1 and main_file(mine.folder):
        _swap(folder, mine.folder.name, lambda to: archive.copy(entry.folder, entry.manifest, to))
        return True
    _beside(package, mine, folder)
    return True


def _installed(name: str, version: str) -> UserFault:
    said = f" {version}" if version else ""
    return UserFault("bad_skill", f"{name}{said} is installed already, with other files", reason="installed",
                     name=name, version=version)  # fmt: skip


def _copy_all(package: Package, to: Path) -> None:
    for version, _folder, entry in package.versions:
        archive.copy(entry.folder, entry.manifest, to / version / package.name if version else to)
    rollout = package.folder / FILE
    if package.versions[0][0] and rollout.is_file():
        shutil.copyfile(rollout, to / FILE)


def _beside(package: Package, mine: Found, folder: Path) -> None:
    """Lay out several versions side by side, the new one without sessions yet."""
    entry = package.entry
    version = entry.skill.version
    if not version or "" in mine.entries:
        raise UserFault("bad_skill", f"{package.name}: only versions with a number can stand side by side",
                        reason="no_version", name=package.name)  # fmt: skip

    def build(to: Path) -> None:
        for known, old in mine.entries.items():
            if known != version:
                archive.copy(old.folder, old.manifest, to / known / package.name)
        archive.copy(entry.folder, entry.manifest, to / version / package.name)
        shares: Rollout = {v: s for v, s in mine.rollout.items()}
        shares.setdefault(version, Share(SkillStatus.BETA, 0.0))
        text = (mine.folder / FILE).read_text("utf-8") if (mine.folder / FILE).is_file() else ""
        (to / FILE).write_text(write(text, {v: shares[v] for v in ordered(shares)}), "utf-8")

    _swap(folder, package.name, build)
    if mine.folder.name != package.name and mine.folder.parent == folder:
        shutil.rmtree(mine.folder, ignore_errors=True)


def _swap(folder: Path, name: str, build: object) -> None:
    """Build a folder aside and put it in place in one step; what was there goes afterwards."""
    assert callable(build)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder, prefix=".incoming-", ignore_cleanup_errors=True) as scratch:
            new, old = Path(scratch) / name, Path(scratch) / ".old"
            new.mkdir()
            build(new)
            target = folder / name
            if target.exists():
                os.replace(target, old)
            try:
                os.replace(new, target)
            except OSError:
                if old.exists():
                    os.replace(old, target)
                raise
    except PermissionError as error:
        raise KnownFault("permission", f"{folder} cannot be written: {error}", path=str(folder)) from error
    except OSError as error:
        raise file_fault(error, folder, f"{folder} cannot be written") from error


def remove(found: Found, version: str | None) -> None:
    """Delete a skill of the profile, or one of its versions.

    Raises:
        UserFault: `usage`, it does not lie in the profile.
        KnownFault: `permission`.
    """
    if found.place.kind != "profile":
        raise UserFault("usage", f"{found.name} lies in {found.folder}, outside the profile; switch it off instead",
                        reason="not_removable", name=found.name, path=str(found.folder))  # fmt: skip
    try:
        if version is None or len(found.entries) == 1:
            shutil.rmtree(found.folder)
            return
        shutil.rmtree(found.entries[version].folder.parent)
        left = {v: s for v, s in found.rollout.items() if v != version}
        total = sum(s.weight for s in left.values())
        newest = next(reversed(left))
        shares = {v: replace(s, weight=s.weight / total if total else float(v == newest)) for v, s in left.items()}
        text = (found.folder / FILE).read_text("utf-8") if (found.folder / FILE).is_file() else ""
        (found.folder / FILE).write_text(write(text, shares), "utf-8")
    except OSError as error:
        raise KnownFault("permission", f"{found.folder} cannot be deleted: {error}", path=str(found.folder)) from error


def export(found: Found, target: Path) -> Path:
    """Write a skill, with all its versions, as an archive."""
    if target.suffix.lower() not in archive.SUFFIXES:
        target = target / f"{found.name}.skill" if target.is_dir() else target.with_name(target.name + ".skill")
    files: list[tuple[str, Path]] = []
    plain = len(found.entries) == 1 and found.main.folder == found.folder
    for version, entry in found.entries.items():
        prefix = "" if plain else f"{version}/{found.name}/"
        files += [(prefix + f.path, entry.folder / f.path) for f in entry.manifest.files]
    if not plain and (found.folder / FILE).is_file():
        files.append((FILE, found.folder / FILE))
    archive.pack(found.name, files, target)
    return target
