"""The profiles below one home, as the command line wants them."""

from __future__ import annotations

from pathlib import Path


class Tenants:
    """Lists, makes and deletes profiles. Blocking; called off the loop."""

    def __init__(self, home: Path | None) -> None:
        self._home = home

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

    def delete(self, name: str) -> None:
        """Delete a profile with all it holds.

        Raises:
            UserFault: `not_found`; `session_busy`, a host has it open.
        """
        from desktop_host.profiles.store import Profiles

        Profiles(self._home).delete(name)
