"""Archives of skills, opened as if an enemy had packed them, and written."""

from __future__ import annotations

import re
import stat
import zipfile
from pathlib import Path, PurePosixPath
from typing import Any

from desktop_host.core.errors import UserFault
from desktop_host.skills.file_faults import file_fault
from desktop_host.skills.folder import MAX_FILE, MAX_FILES, MAX_SKILL, SKIPPED, Manifest

SUFFIXES = frozenset({".zip", ".skill"})
MAX_TOTAL = 200 * 2**20
"""Bytes of all files of an archive, unpacked."""
MAX_RATIO = 200
"""Unpacked to packed size of one file over 1 MiB: text packs to a tenth at best."""
MAX_PATH = 1024
_CHUNK = 1 << 16
_RESERVED = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\..*)?", re.I)


def refuse(reason: str, message: str, **params: Any) -> UserFault:
    """The fault of an archive that is not unpacked."""
    return UserFault("bad_archive", message, reason=reason, **params)


def unpack(archive: Path, target: Path) -> None:
    """Unpack a `.zip` or `.skill` into an empty folder. Blocking.

    Sizes are counted while unpacking: what the archive says of itself is not believed.

    Raises:
        UserFault: `bad_archive` with the entry that is to blame; nothing of it is to be used then.
        KnownFault: `disk_full` or `database_error`.
    """
    try:
        with zipfile.ZipFile(archive) as packed:
            entries = packed.infolist()
            if len(entries) > MAX_FILES:
                raise refuse("too_many", f"it has {len(entries):,} entries; {MAX_FILES:,} is the limit",
                             size=len(entries), limit=MAX_FILES)  # fmt: skip
            total = 0
            taken: set[str] = set()
            for entry in entries:
                path = _checked(entry)
                if path is None:
                    continue
                if path.as_posix().lower() in taken:
                    raise refuse("twice", f"{path} stands in it twice", file=str(path))
                taken.add(path.as_posix().lower())
                total += _write(packed, entry, target / path, MAX_TOTAL - total)
    except (zipfile.BadZipFile, EOFError, NotImplementedError, ValueError, zipfile.LargeZipFile) as error:
        raise refuse("not_zip", f"{archive.name} is no archive that can be read: {error}", file=archive.name) from None
    except FileNotFoundError:
        raise UserFault("not_found", f"there is no file {archive}", kind="file", name=str(archive)) from None
    except OSError as error:
        raise file_fault(error, target, f"{archive.name} cannot be unpacked") from error


def _checked(entry: zipfile.ZipInfo) -> PurePosixPath | None:
    """The path of an entry, None for what is left out."""
    name = entry.filename
    path = PurePosixPath(name)
    if (
        "\0" in name
        or "\\" in name
        or name.startswith(("/", "~"))
        or ".." in path.parts
        or re.match(r"[A-Za-z]:", name)
    ):
        raise refuse("outside", f"{name!r} leads out of the archive", file=name)
    if len(name) > MAX_PATH or any(len(p.encode()) > 255 for p in path.parts):
        raise refuse("long_path", f"{name[:80]}… is longer than {MAX_PATH} characters", file=name[:80])
    if any(_RESERVED.fullmatch(p) or p != p.rstrip(" .") for p in path.parts):
        raise refuse("reserved", f"{name!r} cannot be a file on every system", file=name)
    mode = entry.external_attr >> 16
    if stat.S_ISLNK(mode):
        raise refuse("symlink", f"{name!r} is a link", file=name)
    if mode and not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)) and stat.S_IFMT(mode):
        raise refuse("symlink", f"{name!r} is no plain file", file=name)
    if entry.flag_bits & 0x1:
        raise refuse("encrypted", f"{name!r} is encrypted", file=name)
    if entry.is_dir() or any(p in SKIPPED or p.startswith("._") for p in path.parts):
        return None
    return path


def _write(packed: zipfile.ZipFile, entry: zipfile.ZipInfo, target: Path, left: int) -> int:
    target.parent.mkdir(parents=True, exist_ok=True)
    size = 0
    with packed.open(entry) as source, target.open("xb") as file:
        while chunk := source.read(_CHUNK):
            size += len(chunk)
            if size > MAX_FILE or size > left:
                raise refuse("too_large", f"{entry.filename!r} unpacks to more than {min(MAX_FILE, left):,} bytes",
                             file=entry.filename, limit=min(MAX_FILE, left))  # fmt: skip
            if size > 2**20 and size > MAX_RATIO * max(1, entry.compress_size):
                raise refuse("bomb", f"{entry.filename!r} unpacks to over {MAX_RATIO} times its size",
                             file=entry.filename)  # fmt: skip
            file.write(chunk)
    if (entry.external_attr >> 16) & 0o100:
        target.chmod(0o755)
    return size


def copy(folder: Path, manifest: Manifest, target: Path) -> None:
    """Copy the files of a surveyed skill; what the survey left out (links that lead outside) stays behind. Blocking.

    Raises:
        UserFault: `bad_skill`, more than 50 MiB.
        KnownFault: `disk_full` or `database_error`.
    """
    import shutil

    if manifest.size > MAX_SKILL:
        raise UserFault("bad_skill", f"{folder.name} has {manifest.size:,} bytes; {MAX_SKILL:,} is the limit",
                        reason="too_large", name=folder.name)  # fmt: skip
    try:
        for file in manifest.files:
            to = target / file.path
            to.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(folder / file.path, to)
            if (folder / file.path).stat().st_mode & 0o100:
                to.chmod(0o755)
    except OSError as error:
        raise file_fault(error, target, f"{folder.name} cannot be copied") from error


def pack(name: str, files: list[tuple[str, Path]], target: Path) -> None:
    """Write an archive with one top folder; the same files give the same bytes. Blocking.

    Raises:
        KnownFault: `disk_full` or `database_error`.
    """
    draft = target.with_name(f".{target.name}.part")
    try:
        with zipfile.ZipFile(draft, "w", zipfile.ZIP_DEFLATED) as packed:
            for relative, path in sorted(files):
                entry = zipfile.ZipInfo(f"{name}/{relative}", (1980, 1, 1, 0, 0, 0))
                entry.compress_type = zipfile.ZIP_DEFLATED
                entry.external_attr = (stat.S_IFREG | (0o755 if path.stat().st_mode & 0o100 else 0o644)) << 16
                packed.writestr(entry, path.read_bytes())
        draft.replace(target)
    except OSError as error:
        draft.unlink(missing_ok=True)
        raise file_fault(error, target, f"{target} cannot be written") from error
