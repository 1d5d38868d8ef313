"""The port `SkillAdmin`: what a face does with the library."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from desktop_host.core.admin import SettingsStore
from desktop_host.core.errors import UserFault
from desktop_host.core.ports import History
from desktop_host.core.remote_skills import RemoteSkill
from desktop_host.core.skill_admin import (
    FileChange,
    InstallPreview,
    LintReport,
    SessionPin,
    SkillChange,
    SkillDetail,
    SkillPlace,
    SkillRow,
    UntrustedProject,
    VersionResults,
)
from desktop_host.core.skills import SkillMatch, SkillStatus
from desktop_host.skills import install as packages
from desktop_host.skills.compare import compare
from desktop_host.skills.file_faults import file_fault
from desktop_host.skills.folder import inside, main_file
from desktop_host.skills.frontmatter import decode
from desktop_host.skills.library import FOREIGN_FOLDERS, Library, paths_of
from desktop_host.skills.lint import lint
from desktop_host.skills.remote import RemoteLibrary
from desktop_host.skills.results import results_of, sessions_with
from desktop_host.skills.rollout import FILE, Rollout, route, settle, write
from desktop_host.skills.rows import row_of
from desktop_host.skills.scan import Found, discover
from desktop_host.skills.source import SkillChoices
from desktop_host.skills.state import State


class LibraryAdmin:
    """`SkillAdmin` over a library."""

    def __init__(
        self, library: Library, choices: SkillChoices, settings: SettingsStore, history: History,
        served: RemoteLibrary | None = None,
    ) -> None:  # fmt: skip
        self._served = served
        self._library = library
        self._choices = choices
        self._settings = settings
        self._history = history
        self._writing = asyncio.Lock()

    # ---- looking
    async def skills(self) -> tuple[SkillRow, ...]:
        snapshot = await self._library.ready()
        return tuple(self._row(f) for f in snapshot.all)

    async def skill(self, name: str, version: str | None = None) -> SkillDetail:
        found, entry = await self._library.find(name, version)
        text = decode(entry.raw, lambda _code, _line, _detail: None)
        return SkillDetail(entry.skill, self._row(found), entry.manifest.files, text)

    async def read_file(self, name: str, path: str, version: str | None = None) -> bytes:
        _, entry = await self._library.find(name, version)
        return await asyncio.to_thread(lambda: inside(entry.folder, path).read_bytes())

    async def places(self) -> tuple[SkillPlace, ...]:
        return await asyncio.to_thread(self._library.places)

    async def foreign_places(self) -> tuple[SkillPlace, ...]:
        return await asyncio.to_thread(self._foreign)

    def _foreign(self) -> tuple[SkillPlace, ...]:
        used = {os.path.realpath(p.path) for p in self._library.places()}
        folders = [Path(f).expanduser() for f in FOREIGN_FOLDERS]
        return tuple(
            SkillPlace("foreign", str(f))
            for f in folders
            if f.is_dir() and os.path.realpath(f) not in used and next(discover(f), None)
        )

    async def rescan(self) -> tuple[str, ...]:
        return await self._library.rescan()

    async def lint(self, paths: tuple[Path, ...]) -> tuple[LintReport, ...]:
        return await asyncio.to_thread(lint, paths)

    async def match(self, text: str, session: str | None = None) -> tuple[SkillMatch, ...]:
        return await self._choices.match(text, session)

    # ---- places
    async def add_place(self, folder: Path) -> None:
        await self._set_paths("skills.folders", folder, True)

    async def remove_place(self, folder: Path) -> None:
        await self._set_paths("skills.folders", folder, False)

    async def trust_project(self, folder: Path, on: bool) -> None:
        await self._set_paths("skills.trusted_projects", folder, on)

    async def untrusted(self, roots: tuple[str, ...]) -> tuple[UntrustedProject, ...]:
        return await asyncio.to_thread(self._library.untrusted, roots)

    async def _set_paths(self, key: str, folder: Path, on: bool) -> None:
        from desktop_host.core.settings import get

        where = await asyncio.to_thread(lambda: folder.expanduser().absolute())
        now = paths_of(str(get(self._settings.current(), key)))
        paths = [*(p for p in now if p != where), *([where] if on else [])]
        await self._settings.set(key, ";".join(str(p) for p in paths))
        await self._library.rescan()

    # ---- changing
    async def preview(self, path: Path) -> tuple[InstallPreview, ...]:
        snapshot = await self._library.ready()

        def look() -> tuple[InstallPreview, ...]:
            with packages.opened(path, self._library.folder) as found:
                return tuple(packages.preview(p, snapshot.skills.get(p.name), path.name) for p in found)

        return await asyncio.to_thread(look)

    async def preview_file(self, path: Path, name: str, file: str) -> bytes:
        def look() -> bytes:
            with packages.opened(path, self._library.folder) as found:
                one = next((p for p in found if p.name == name), None)
                if one is None:
                    raise UserFault("not_found", f"{path.name} holds no skill {name!r}", kind="skill", name=name)
                return inside(one.entry.folder, file).read_bytes()

        return await asyncio.to_thread(look)

    async def install(self, path: Path, *, replace: bool = False) -> tuple[SkillRow, ...]:
        snapshot = await self._library.ready()

        def put() -> list[tuple[str, str, str]]:
            with packages.opened(path, self._library.folder) as found:
                done = []
                for one in found:
                    mine = _mine(snapshot.all, one.name)
                    if packages.install(one, self._library.folder, mine, over=replace):
                        skill = one.entry.skill
                        done.append((one.name, skill.version, skill.digest))
                    else:
                        done.append((one.name, "", ""))
                return done

        async with self._writing:
            done = await asyncio.to_thread(put)
            await self._library.rescan()
            for name, version, digest in done:
                if digest:
                    await self._note(name, version, digest, "installed", str(path))
        rows = self._library.snapshot
        return tuple(self._row(rows.skills[name]) for name, _, _ in done if name in rows.skills)

    async def remove(self, name: str, version: str | None = None) -> None:
        snapshot = await self._library.ready()
        found, entry = await self._library.find(name, version)
        target = _mine(snapshot.all, found.name) or found
        async with self._writing:
            await asyncio.to_thread(packages.remove, target, version)
            await self._library.rescan()
            await self._note(found.name, version or "", entry.skill.digest, "removed", "")

    async def export(self, name: str, target: Path) -> Path:
        found, _ = await self._library.find(name)
        return await asyncio.to_thread(packages.export, found, target)

    async def enable(self, name: str, on: bool) -> None:
        found, _ = await self._library.find(name)

        def how(data: State) -> None:
            names = [n for n in data.get("disabled", []) if n != found.name]
            data["disabled"] = names if on else [*names, found.name]

        await asyncio.to_thread(self._library.state.change, how)
        self._library.announce(found.name)

    async def grant_tools(self, name: str, on: bool) -> None:
        found, entry = await self._library.find(name)

        def how(data: State) -> None:
            grants = data.setdefault("grants", {})
            grants.pop(found.name, None)
            if on:
                grants[found.name] = list(entry.skill.allowed_tools)

        await asyncio.to_thread(self._library.state.change, how)
        tools = " ".join(entry.skill.allowed_tools)
        await self._note(found.name, entry.skill.version, entry.skill.digest, "granted" if on else "revoked", tools)
        self._library.announce(found.name)

    async def set_rollout(
        self, name: str, weights: Mapping[str, float], statuses: Mapping[str, SkillStatus] | None = None
    ) -> SkillRow:
        found, entry = await self._library.find(name)
        new = settle(found.rollout, weights, statuses or {})
        async with self._writing:
            await asyncio.to_thread(self._write_rollout, found, new)
            await self._library.rescan()
            said = ", ".join(f"{v or '-'}={s.weight:g}" for v, s in new.items())
            await self._note(found.name, "", entry.skill.digest, "rollout", said)
        return self._row(self._library.snapshot.skills[found.name])

    def _write_rollout(self, found: Found, new: Rollout) -> None:
        if found.place.writable and main_file(found.folder) == "":
            path = found.folder / FILE
            draft = path.with_name(f".{FILE}.part")
            try:
                draft.write_text(write(path.read_text("utf-8") if path.is_file() else "", new), "utf-8")
                os.replace(draft, path)
            except OSError as error:
                raise file_fault(error, path, f"{path} cannot be written") from error
            return

        def how(data: State) -> None:
            data.setdefault("rollouts", {})[found.name] = {
                v: {"status": s.status.value, "weight": s.weight} for v, s in new.items()
            }

        self._library.state.change(how)

    async def _note(self, name: str, version: str, digest: str, event: str, detail: str) -> None:
        change = SkillChange(time.time(), version, digest, event, (), detail)
        await asyncio.to_thread(self._library.state.note, [(name, change)])

    # ---- versions
    async def pins(self, name: str) -> tuple[SessionPin, ...]:
        found, _ = await self._library.find(name)
        out = []
        async for session, title, pin in sessions_with(self._history, found.name):
            version = route(session, found.name, found.rollout)
            newest = found.entries[version].skill.digest == pin.digest
            out.append(SessionPin(session, title, pin, newest))
        return tuple(out)

    async def results(self, name: str) -> tuple[VersionResults, ...]:
        found, _ = await self._library.find(name)
        known = {v: e.skill.digest for v, e in found.entries.items()}
        return await results_of(self._history, found.name, known)

    async def diff(self, name: str, old: str, new: str) -> tuple[FileChange, ...]:
        _, before = await self._library.find(name, old)
        _, after = await self._library.find(name, new)
        return await asyncio.to_thread(compare, before, after)

    async def changes(self, name: str) -> tuple[SkillChange, ...]:
        await self._library.ready()
        found = self._library.snapshot.find(name)
        self._library.state.refresh()
        rows = self._library.state.changes(found.name if found else name)
        if found is None and not rows:
            await self._library.find(name)
        return rows

    # ---- skills of servers
    async def remote_skills(self, *, refresh: bool = False) -> tuple[RemoteSkill, ...]:
        if self._served is None:
            return ()
        return await self._served.refresh() if refresh else self._served.skills()

    def remote_problems(self) -> Mapping[str, tuple[str, ...]]:
        return {name: told for name, told in self._served.problems.items() if told} if self._served else {}

    async def read_remote(self, id_: str, path: str) -> bytes:
        return await self._remote().look(id_, path)

    async def approve_remote(self, id_: str, digest: str) -> None:
        await self._remote().approve(id_, digest)

    async def revoke_remote(self, id_: str) -> None:
        await self._remote().revoke(id_)

    def _remote(self) -> RemoteLibrary:
        if self._served is None:
            raise UserFault("not_found", "no server serves skills", kind="skill", name="")
        return self._served

    def _row(self, found: Found) -> SkillRow:
        return row_of(found, self._library, self._choices)


def _mine(every: tuple[Found, ...], name: str) -> Found | None:
    """The skill of this id that lies in the profile, shadowed or not."""
    found = next((f for f in every if f.name == name and f.place.kind == "profile"), None)
    return replace(found, shadowed_by=None) if found else None
