"""What a look at the host's health finds, and the report that can be made of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from desktop_host.core.errors import HostError
from desktop_host.core.values import EMPTY, FrozenDict


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check. A face words it: `doctor.<check>`, `say` with `params`, `remedy`."""

    check: str
    """Name of the check; `server:NAME` for a server."""
    ok: bool
    say: str = ""
    """Locale key of what was found, or `error:<code>` for a fault with `params`; empty: nothing to say."""
    params: FrozenDict = EMPTY
    """What the sentence needs: names, paths and numbers, never a secret."""
    remedy: str = ""
    """Locale key of what to do; empty where nothing is to be done, or where the fault's own is meant."""
    place: str = ""
    """Where it is to be mended: a file, an address, a setting, a server, a chat."""
    act: str = ""
    """What the app can do about it: `mend` (`Diagnostics.mend`), `unlock`, `models`, `costs`, `settings`,
    `servers`, `server:NAME`, `chat:SESSION`, `file:PATH`."""
    took_ms: float = 0.0


@dataclass(frozen=True, slots=True)
class Reach:
    """Whether the address of models answers."""

    name: str
    """Name of the place for people."""
    url: str
    """Without user name, password and query."""
    fault: HostError | None = None
    skew_s: float | None = None
    """Our clock minus the address's, by the `Date` of its answer; None: it told none."""


@dataclass(frozen=True, slots=True)
class ReportPart:
    """One file of the report, its secrets taken out already."""

    name: str
    text: str


class Diagnostics(Protocol):
    """Looks at a profile. Belongs to the host's loop."""

    def checks(self) -> tuple[str, ...]:
        """Names of the checks there are now, in the order in which they are shown."""
        ...

    async def run(
        self, names: tuple[str, ...] | None = None, told: Callable[[Finding], None] | None = None
    ) -> tuple[Finding, ...]:
        """Run checks (None: all), each within its time limit; `told` hears each as soon as it is done.

        A check never raises; cancelling stops all that still run.
        """
        ...

    async def mend(self, check: str) -> Finding:
        """Do what the app can do about a check whose `act` is `mend` or `unlock`; returns what it finds then.

        Raises:
            HostError: it could not be done.
        """
        ...

    async def report(self, findings: tuple[Finding, ...]) -> tuple[ReportPart, ...]:
        """What a report would hold: nothing is written. No conversation, no secret, no name of the person."""
        ...

    async def save(self, target: Path, parts: tuple[ReportPart, ...]) -> Path:
        """Write a report as a zip that only its owner can read.

        Raises:
            KnownFault: `disk_full` or `database_error` (`reason` `not_writable`).
        """
        ...
