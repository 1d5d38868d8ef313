"""The report of a profile that cannot be opened: from its files alone."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from desktop_host.core.errors import HostError
from desktop_host.engine.host import HostSpec


async def rescue(spec: HostSpec, error: HostError, target: Path) -> tuple[Path, tuple[str, ...]]:
    """Write it; returns its path and the names of its files. Secrets that only the vault knows stand in no log.

    Raises:
        KnownFault: `disk_full` or `database_error`, it cannot be written.
    """
    from desktop_host.diagnostics import Redactor, report
    from desktop_host.diagnostics.findings import faulty
    from desktop_host.profiles.store import Profiles

    def write() -> tuple[str, ...]:
        redactor = Redactor()
        for name, value in os.environ.items():
            if report.is_secret_name(name):
                redactor.add(value)
        folder = Profiles(spec.home).path(spec.profile)
        parts = report.make(folder, (faulty("profile", error),), (), {}, redactor)
        report.write(target, parts)
        return tuple(part.name for part in parts)

    return target, await asyncio.to_thread(write)
