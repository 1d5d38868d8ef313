"""The profiles below one home, as the faces want them."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from desktop_host.profiles.store import ProfileFolder


class Tenants:
    """Lists, makes, copies, moves and deletes profiles. Blocking; called off the loop."""

    def __init__(self, home: Path | None) -> None:
        self._home = home
        self._windows: list[subprocess.Popen[bytes]] = []

    def names(self) -> tuple[str, ...]:
        """The profiles there are, sorted."""
        from desktop_host.profiles.store import Profiles

        return tuple(sorted(Profiles(self._home).names()))

    def create(self, name: str) -> None:
        """Make a profile.

        Raises:
            UserFault: `usage`, a bad name or one that is taken.
        """
        from desktop_host.profiles.store import Profiles

        Profiles(self._home).create(name)

    def clone(self, name: str, new: str) -> None:
        """A copy of a profile: settings, servers, skills and conversations, without its secrets.

        Raises:
            UserFault: `not_found`; `usage`, the new name is bad or taken.
            KnownFault: `disk_full` or `database_error`.
        """
        from desktop_host.profiles.archive import export_profile, import_profile
        from desktop_host.profiles.store import Profiles, checked_name

        profiles = Profiles(self._home)
        profiles.refuse_taken(checked_name(new))
        with tempfile.TemporaryDirectory(prefix=".clone-", dir=profiles.folder) as room:
            archive = export_profile(profiles, name, Path(room) / "profile.zip")
            import_profile(profiles, archive, new, trusted=True)

    def export(self, name: str, target: Path) -> Path:
        """Write a profile, without its secrets, to a zip file.

        Raises:
            UserFault: `not_found`.
            KnownFault: `disk_full` or `database_error`.
        """
        from desktop_host.profiles.archive import export_profile
        from desktop_host.profiles.store import Profiles

        return export_profile(Profiles(self._home), name, target)

    def take_in(self, source: Path, name: str | None = None) -> str:
        """Make a profile of a zip file, its servers switched off; returns its name.

        Raises:
            UserFault: `not_found`, `bad_archive`; `usage`, the name is bad or taken.
        """
        from desktop_host.profiles.archive import import_profile
        from desktop_host.profiles.store import Profiles

        return import_profile(Profiles(self._home), source, name)

    def take_session(self, name: str, text: str) -> str:
        """Keep the file of a session, which this program packed just now, in a profile; returns its id there.

        No host is opened: no server of that profile starts, and its window may be open in another process.

        Raises:
            UserFault: `not_found`, no such profile; `bad_bundle`.
            KnownFault: `disk_full` or `database_error`.
        """
        from desktop_host.profiles.store import Profiles

        self._require(name)
        profile = Profiles(self._home).open(name)
        try:
            return asyncio.run(_take(profile, text))
        finally:
            profile.close()

    def open_window(self, name: str, session: str = "") -> None:
        """Open a profile in a window of its own, maybe at a session; one that is open already comes forward.

        Raises:
            UserFault: `not_found`.
        """
        self._require(name)
        home = ["--home", str(self._home)] if self._home else []
        at = [f"desktop-host://chat/{session}"] if session else []
        self._windows = [w for w in self._windows if w.poll() is None]
        window = subprocess.Popen(
            [sys.executable, "-m", "desktop_host", *home, "--profile", name, *at],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
        self._windows.append(window)

    def delete(self, name: str) -> None:
        """Delete a profile with all it holds.

        Raises:
            UserFault: `not_found`; `session_busy`, a host has it open.
        """
        from desktop_host.profiles.store import Profiles

        Profiles(self._home).delete(name)

    def _require(self, name: str) -> None:
        from desktop_host.core.errors import UserFault

        if name not in self.names():
            raise UserFault("not_found", f"there is no profile {name!r}", kind="profile", reason="profile", name=name)


async def _take(profile: ProfileFolder, text: str) -> str:
    from desktop_host.app.record import opened_history
    from desktop_host.engine.moving import take_in

    async with opened_history(profile) as history:
        return await take_in(history, text, ours=True)
