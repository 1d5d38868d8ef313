"""Open the skills of a profile: library, choices, tools and administration as one bundle."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from desktop_host.core.admin import SettingsStore
from desktop_host.core.errors import UserFault
from desktop_host.core.ports import Clock, EventSink, History
from desktop_host.core.remote_skills import RemoteSkills
from desktop_host.skills.admin import LibraryAdmin
from desktop_host.skills.library import Library
from desktop_host.skills.pins import Pins
from desktop_host.skills.remote import RemoteLibrary
from desktop_host.skills.source import Aliases, SkillChoices
from desktop_host.skills.tools import Emit, SkillTools
from desktop_host.skills.watcher import Watcher


@dataclass(frozen=True, slots=True)
class OpenSkills:
    """What the engine and the faces need of skills."""

    source: SkillChoices
    tools: SkillTools
    admin: LibraryAdmin
    library: Library


@asynccontextmanager
async def open_skills(
    profile: Path, settings: SettingsStore, history: History, clock: Clock, *, tell: EventSink, emit: Emit,
    servers: Aliases, run_folders: tuple[Path, ...] = (), remote: RemoteSkills | None = None,
) -> AsyncIterator[OpenSkills]:  # fmt: skip
    """Start reading and watching; both go on in the background until the context is left.

    Raises:
        UserFault: `not_found`, a folder named for this run is not there.
    """
    for folder in run_folders:
        if not await asyncio.to_thread(folder.is_dir):
            raise UserFault("not_found", f"there is no folder {folder}", kind="folder", name=str(folder))
    library = Library(profile, settings, tell, run_folders)
    served = RemoteLibrary(remote, library.state) if remote is not None else None
    choices = SkillChoices(library, Pins(history, clock), settings, servers, served)
    tools = SkillTools(choices, settings, emit, profile / "skill-runs", served)
    watcher = Watcher(library)
    watcher.start()
    sweeping = asyncio.create_task(_sweep(tools, history, profile / "skill-runs"))
    try:
        yield OpenSkills(choices, tools, LibraryAdmin(library, choices, settings, history, served), library)
    finally:
        sweeping.cancel()
        await asyncio.gather(sweeping, return_exceptions=True)
        await watcher.close()
        await library.close()


async def _sweep(tools: SkillTools, history: History, runs: Path) -> None:
    """Delete the working copies of sessions that were deleted."""
    if not await asyncio.to_thread(runs.is_dir):
        return
    sessions: set[str] = set()
    while rows := await history.rows(limit=1000, offset=len(sessions)):
        sessions |= {r.session for r in rows}
    await tools.sweep(frozenset(sessions))
