"""The zip behind a `.mcpb` or `.dxt` file: read with limits, unpacked without trusting a single name in it."""

from __future__ import annotations

import errno
import os
import re
import shutil
import stat
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Any

from desktop_host.core.errors import KnownFault, UserFault

MAX_FILES = 50_000
MAX_BYTES = 2 * 2**30
MAX_RATIO = 200
"""How many times larger than packed the contents may be (above 64 MiB, where it begins to hurt)."""
MANIFEST_LIMIT = 2 * 2**20
ICON_LIMIT = 262_144
SIGNED = b"MCPB_SIG_V1"
_CHUNK = 2**18
_RESERVED = re.compile(r"(?i)(con|prn|aux|nul|com\d|lpt\d)(\..*)?")


def bad(path: Path, reason: str, message: str, **params: Any) -> UserFault:
    """The fault of a bundle."""
    return UserFault("bad_bundle", f"{path}: {message}", reason=reason, file=str(path), **params)


class BundleArchive:
    """An open bundle whose names and sizes were checked. Blocking."""

    def __init__(self, path: Path, packed: zipfile.ZipFile, signed: bool) -> None:
        self.path, self.signed = path, signed
        self._packed = packed
        self._top = self._one_folder()
        self.entries = self._checked()
        """Contents by their path inside the bundle."""
        self.size = sum(i.file_size for i in self.entries.values())

    def read(self, name: str, limit: int) -> bytes | None:
        """The bytes of one entry; None where there is none or it is larger than `limit`.

        Raises:
            UserFault: `bad_bundle`, it is damaged.
        """
        info = self.entries.get(PurePosixPath(name).as_posix())
        if info is None or info.file_size > limit:
            return None
        with self._damage(), self._packed.open(info) as source:
            return source.read(limit + 1)[:limit]

    def unpack(self, folder: Path) -> None:
        """Write everything below `folder`, which must not exist.

        Raises:
            UserFault: `bad_bundle`, it is damaged or larger than it said.
            KnownFault: `disk_full`.
        """
        try:
            folder.mkdir(mode=0o700, parents=True)
            if shutil.disk_usage(folder).free < self.size + 16 * 2**20:
                raise KnownFault("disk_full", f"{self.path.name} needs {self.size:,} bytes", file=str(folder))
            for name, info in self.entries.items():
                self._write(info, folder / name)
        except OSError as error:
            shutil.rmtree(folder, ignore_errors=True)
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                raise KnownFault("disk_full", f"no room to unpack {self.path.name}", file=str(folder)) from error
            raise bad(self.path, "not_unpacked", f"it cannot be unpacked: {error.strerror}") from error
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise

    def _write(self, info: zipfile.ZipInfo, target: Path) -> None:
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        written = 0
        with self._damage(), self._packed.open(info) as source, target.open("xb") as out:
            while chunk := source.read(_CHUNK):
                written += len(chunk)
                if written > info.file_size:
                    raise bad(self.path, "bomb", f"{info.filename} is larger than it said")
                out.write(chunk)
        runs = bool(info.external_attr >> 16 & 0o111)
        target.chmod(0o700 if runs else 0o600)

    @contextmanager
    def _damage(self) -> Iterator[None]:
        try:
            yield
        except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, NotImplementedError, ValueError) as error:
            raise bad(self.path, "damaged", f"it is damaged: {error}") from error

    def _one_folder(self) -> str:
        """`x/` where all lies in one folder x instead of at the top, as some packers do."""
        names = [i.filename for i in self._packed.infolist() if not i.filename.startswith("__MACOSX/")]
        if "manifest.json" in names:
            return ""
        tops = {n.partition("/")[0] for n in names}
        return f"{tops.pop()}/" if len(tops) == 1 and any(n.count("/") == 1 for n in names) else ""

    def _checked(self) -> dict[str, zipfile.ZipInfo]:
        infos = self._packed.infolist()
        if len(infos) > MAX_FILES:
            raise bad(self.path, "too_many_files", f"it holds {len(infos):,} files; {MAX_FILES:,} is the limit")
        out: dict[str, zipfile.ZipInfo] = {}
        seen: set[str] = set()
        total = packed = 0
        for info in infos:
            if info.is_dir() or info.filename.startswith("__MACOSX/"):
                continue
            name = self._name(info)
            if name.casefold() in seen:
                raise bad(self.path, "twice", f"{name!r} stands in it twice")
            seen.add(name.casefold())
            total, packed = total + info.file_size, packed + info.compress_size
            out[name] = info
        if total > MAX_BYTES:
            raise bad(self.path, "too_large", f"it unpacks to {total:,} bytes; {MAX_BYTES:,} is the limit")
        if total > 64 * 2**20 and total > packed * MAX_RATIO:
            raise bad(self.path, "bomb", f"{packed:,} bytes would unpack to {total:,}")
        return out

    def _name(self, info: zipfile.ZipInfo) -> str:
        raw = info.filename
        mode = info.external_attr >> 16
        if stat.S_ISLNK(mode) or (stat.S_IFMT(mode) and not stat.S_ISREG(mode)):
            raise bad(self.path, "link", f"{raw!r} is a link or a device")
        if info.flag_bits & 0x1:
            raise bad(self.path, "encrypted", f"{raw!r} is encrypted")
        name = raw.removeprefix(self._top)
        parts = PurePosixPath(name).parts
        unsafe = (
            not parts or raw.startswith("/") or "\\" in raw or ":" in raw or ".." in parts or len(name) > 500
            or any(ord(c) < 32 for c in raw) or any(_RESERVED.fullmatch(p) or p != p.rstrip(". ") for p in parts)
        )  # fmt: skip
        if unsafe:
            raise bad(self.path, "unsafe_path", f"{raw!r} would be written outside its folder, or nowhere")
        return "/".join(parts)


@contextmanager
def opened(path: Path) -> Iterator[BundleArchive]:
    """Open a bundle. Blocking.

    Raises:
        UserFault: `not_found`, or `bad_bundle` with `reason`.
    """
    try:
        with path.open("rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - 2**20))
            signed = SIGNED in file.read()
            with zipfile.ZipFile(file) as packed:
                yield BundleArchive(path, packed, signed)
    except FileNotFoundError:
        raise UserFault("not_found", f"there is no file {path}", reason="file", file=str(path)) from None
    except zipfile.BadZipFile as error:
        raise bad(path, "no_zip", f"it is no bundle: {error}") from error
    except OSError as error:
        raise bad(path, "not_readable", f"it cannot be read: {error.strerror}") from error
