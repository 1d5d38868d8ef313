"""The profiles below one home: a folder each, with an identity of its own that survives a rename.

Blocking; call it off the loop.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import sys
import unicodedata
import uuid
import weakref
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from desktop_host.core.errors import HostError, KnownFault, UserFault
from desktop_host.profiles import atomic
from desktop_host.profiles.vault import forget_profile

IDENTITY = "profile.id"
_LOCK = ".profile.lock"
_NAME = re.compile(r"[\w][\w .@+-]{0,62}[\w@+-]|[\w]")
_RESERVED = {"con", "prn", "aux", "nul", *(f"{d}{n}" for d in ("com", "lpt") for n in range(10))}
"""Names that Windows keeps for devices, with any ending."""


@dataclass(frozen=True, eq=False)
class ProfileFolder:
    """An open profile. While this object lives, other processes can neither rename nor delete the profile."""

    name: str
    uuid: str
    """Names the profile's secrets; another one for each profile ever made."""
    path: Path
    _hold: weakref.finalize[..., ProfileFolder] | None = field(default=None, repr=False)

    def close(self) -> None:
        """Let go, sooner than by the end of the object."""
        if self._hold:
            self._hold()


def checked_name(name: str) -> str:
    """A name that is one harmless folder name on every system.

    Raises:
        UserFault: `usage` with the name.
    """
    plain = unicodedata.normalize("NFC", name)
    stem = plain.partition(".")[0].strip().lower()
    if not _NAME.fullmatch(plain) or stem in _RESERVED or len(plain.encode("utf-8", "replace")) > 200:
        raise UserFault(
            "usage", f"{name[:80]!r} cannot be the name of a profile: 1 to 64 letters, digits, spaces or . _ - + @",
            name=name[:80], reason="bad_profile_name",
        )  # fmt: skip
    return plain


def default_home() -> Path:
    """The platform's folder for our data."""
    import platformdirs

    return Path(platformdirs.user_data_dir("desktop-host", appauthor=False))


class Profiles:
    """All profiles of a home.

    Args:
        home: folder below which all is kept; None: the platform's folder.
    """

    def __init__(self, home: Path | None = None) -> None:
        self.home = (home or default_home()).expanduser().absolute()
        self.folder = self.home / "profiles"

    def names(self) -> tuple[str, ...]:
        """The profiles there are, sorted."""
        with _io_faults(self.folder):
            if not self.folder.is_dir():
                return ()
            found = [p for p in self.folder.iterdir() if (p / IDENTITY).is_file() and not self._links_here(p)]
            return tuple(sorted(p.name for p in found if _is_name(p.name)))

    def path(self, name: str) -> Path:
        """Where a profile lies or would lie.

        Raises:
            UserFault: `usage`, a bad name.
        """
        return self.folder / checked_name(name)

    def open(self, name: str) -> ProfileFolder:
        """A profile; made on first use.

        Raises:
            UserFault: `usage`, a bad name, or a folder that is another profile's (a link to it, or a copy with its
                identity: then both would share one place in the keyring).
            KnownFault: `disk_full`, `database_error` (the folder cannot be written).
        """
        path = self.path(name)
        with _io_faults(path):
            self._refuse_double(path)
            self._private(self.home, self.folder, path, path / "skills", path / "logs")
            hold = _share(path)
            profile = ProfileFolder(path.name, _identity(path / IDENTITY), path)
        if hold is not None:
            object.__setattr__(profile, "_hold", weakref.finalize(profile, os.close, hold))
        return profile

    def create(self, name: str) -> None:
        """Make a profile.

        Raises:
            UserFault: `usage`, a bad name or one that is taken (also but for upper and lower case).
            KnownFault: as `open`.
        """
        wanted = checked_name(name)
        self.refuse_taken(wanted)
        self.open(wanted).close()

    def rename(self, old: str, new: str) -> None:
        """Give a profile another name; its secrets stay with it.

        Raises:
            UserFault: `not_found`; `usage`, the new name is bad or taken; `session_busy`, a host has it open.
        """
        source, target = self._existing(old), self.path(new)
        if target.name.casefold() != source.name.casefold():
            self.refuse_taken(target.name)
        with _io_faults(source), _alone(source):
            source.rename(target)

    def delete(self, name: str) -> tuple[str, ...]:
        """Delete a profile with all it holds, its secrets too. Asks nothing.

        Returns:
            The names of secrets that the system's keyring would not give up; they stay there.

        Raises:
            UserFault: `not_found`; `session_busy`, a host has it open.
        """
        path = self._existing(name)
        with _io_faults(path), _alone(path):
            left = forget_profile(_identity(path / IDENTITY), path)
            # Away in one step: a delete that is cut off leaves no half profile under the name.
            doomed = self.folder / f".deleted-{uuid.uuid4().hex}"
            path.rename(doomed)
            shutil.rmtree(doomed)
        return left

    def adopt(self, folder: Path, name: str) -> None:
        """Make a folder that lies beside the profiles one of them, under an identity of its own.

        Raises:
            UserFault: `usage`, a bad name or one that is taken.
        """
        wanted = checked_name(name)
        self.refuse_taken(wanted)
        _identity(folder / IDENTITY)
        with _io_faults(folder):
            folder.rename(self.folder / wanted)

    def incoming(self) -> Path:
        """A new private folder beside the profiles, on the same disk."""
        path = self.folder / f".incoming-{uuid.uuid4().hex}"
        with _io_faults(path):
            self._private(self.home, self.folder, path)
        return path

    def _existing(self, name: str) -> Path:
        path = self.path(name)
        if path.is_symlink() or not (path / IDENTITY).is_file():
            raise UserFault("not_found", f"there is no profile {name!r}", kind="profile", reason="profile", name=name)
        return path

    def refuse_taken(self, name: str) -> None:
        if name.casefold() in {n.casefold() for n in self.names()} or (self.folder / name).exists():
            raise UserFault("usage", f"there is a profile {name!r} already", name=name, reason="profile_exists")

    def _refuse_double(self, path: Path) -> None:
        """A profile is one folder with one identity; of a copy and its original the copy is refused."""
        if self._links_here(path):
            to = path.resolve().name
            raise UserFault("usage", f"{path} links to {to}", name=path.name, reason="profile_link", other=to)
        mine = path / IDENTITY
        if not mine.is_file():
            return
        own = mine.read_bytes().strip()
        for other in self.folder.iterdir():
            theirs = other / IDENTITY
            if other.name == path.name or self._links_here(other) or not theirs.is_file():
                continue
            # Copying keeps the times of a file but that of its last change here.
            if theirs.read_bytes().strip() == own and theirs.stat().st_ctime_ns < mine.stat().st_ctime_ns:
                raise UserFault(
                    "usage", f"{path} is a copy of the profile {other.name} with its identity", name=path.name,
                    reason="profile_copied", other=other.name, path=str(mine),
                )  # fmt: skip

    def _links_here(self, path: Path) -> bool:
        """Whether a folder is a link to one beside it."""
        return path.is_symlink() and path.resolve().parent == self.folder.resolve()

    def _private(self, *folders: Path) -> None:
        for folder in folders:
            folder.mkdir(mode=0o700, parents=folder == self.home, exist_ok=True)
            if folder != self.home and os.name != "nt" and folder.stat().st_mode & 0o077:
                folder.chmod(0o700)


def _is_name(name: str) -> bool:
    try:
        return checked_name(name) == name
    except UserFault:
        return False


def _identity(path: Path) -> str:
    """The uuid in a file; the first of several processes to make it wins."""
    if not path.exists():
        draft = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
        atomic.write(draft, str(uuid.uuid4()).encode())
        try:
            os.link(draft, path)
        except FileExistsError:
            pass
        except OSError:
            # A file system without hard links: two first starts at the same moment may then disagree.
            if not path.exists():
                os.replace(draft, path)
        finally:
            draft.unlink(missing_ok=True)
    try:
        return str(uuid.UUID(path.read_text("utf-8").strip()))
    except ValueError:
        told = f"{path} holds no identity"
        raise KnownFault("database_error", told, reason="bad_identity", path=str(path)) from None


@contextlib.contextmanager
def _io_faults(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise atomic.fault_of(error, path) from error


if sys.platform == "win32":  # pragma: no cover - Windows, not run

    def _share(path: Path) -> int | None:
        return None

    @contextlib.contextmanager
    def _alone(path: Path) -> Iterator[None]:
        """Windows itself refuses to move a folder with open files."""
        try:
            yield
        except PermissionError as error:
            raise _busy(path) from error
else:
    import fcntl

    def _share(path: Path) -> int | None:
        """Hold a profile together with others; None where the file system has no locks."""
        handle = os.open(path / _LOCK, os.O_CREAT | os.O_RDWR, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(handle)
            raise _busy(path) from None
        except OSError:
            os.close(handle)
            return None
        return handle

    @contextlib.contextmanager
    def _alone(path: Path) -> Iterator[None]:
        """Hold a profile alone."""
        handle = os.open(path / _LOCK, os.O_CREAT | os.O_RDWR, 0o600)
        try:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise _busy(path) from None
            yield
        finally:
            os.close(handle)


def _busy(path: Path) -> HostError:
    return UserFault(
        "session_busy", f"profile {path.name} is open in another process", name=path.name, reason="profile_open"
    )  # fmt: skip
