"""What a face may do with the profiles of a home."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol


class ProfilesPort(Protocol):
    """Where profiles are kept. Blocking; called in a thread of its own."""

    def names(self) -> tuple[str, ...]:
        """The profiles there are, sorted."""
        ...

    def create(self, name: str) -> None:
        """Make a profile.

        Raises:
            UserFault: `usage`, a bad name or one that is taken.
        """
        ...

    def clone(self, name: str, new: str) -> None:
        """Copy all of a profile but its secrets.

        Raises:
            UserFault: `not_found`; `usage`, the new name is bad or taken.
        """
        ...

    def export(self, name: str, target: Path) -> Path:
        """Write a profile, without its secrets, to a zip file.

        Raises:
            UserFault: `not_found`.
            KnownFault: `disk_full`.
        """
        ...

    def take_in(self, source: Path, name: str | None = None) -> str:
        """Make a profile of a zip file; returns its name.

        Raises:
            UserFault: `not_found`, `bad_archive`; `usage`, the name is bad or taken.
        """
        ...

    def delete(self, name: str) -> None:
        """Delete a profile with all it holds.

        Raises:
            UserFault: `not_found`; `session_busy`, a host has it open.
        """
        ...

    def take_session(self, name: str, text: str) -> str:
        """Keep the file of a session, which this program packed just now, in a profile; returns its id there.

        Raises:
            UserFault: `not_found`, no such profile; `bad_bundle`.
            KnownFault: `disk_full` or `database_error`.
        """
        ...

    def open_window(self, name: str, session: str = "") -> None:
        """Open a profile in a window of its own, maybe at a session; one that is open already comes forward.

        Raises:
            UserFault: `not_found`.
        """
        ...
