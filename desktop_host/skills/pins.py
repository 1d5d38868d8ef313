"""What a session keeps of skills: its pins as blobs, what it was given, and how its runs stand."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from desktop_host.core.errors import HostError, UserFault
from desktop_host.core.events import Branched, SkillPinned, SkillsChosen
from desktop_host.core.ports import Clock, History
from desktop_host.core.skill_admin import SkillFile
from desktop_host.core.skills import SkillPin, SkillVersion
from desktop_host.skills.document import parse
from desktop_host.skills.folder import digest_of, kind_of
from desktop_host.skills.scan import Entry

STATE = "skills"
"""Key of a session's state."""
MAX_RUNS = 100


@dataclass(frozen=True, slots=True)
class Pinned:
    """A version as a session keeps it, whatever becomes of the files."""

    pin: SkillPin
    skill: SkillVersion
    files: tuple[SkillFile, ...]
    main: str
    source: str
    """Kind of the place it came from."""
    foreign: bool = False
    """It came with a session from elsewhere: what a person granted here to a skill of its name is not for it."""

    def file(self, path: str) -> SkillFile:
        """One of its files.

        Raises:
            UserFault: `not_found`; `bad_skill` for a path that leads out of the folder.
        """
        if path.startswith(("/", "~")) or ".." in path.split("/") or "\\" in path or "\0" in path:
            raise UserFault("bad_skill", f"{path!r} is not inside the skill's folder", reason="outside", file=path)
        wanted = path.removeprefix("./")
        found = next((f for f in self.files if f.path == wanted), None)
        if found is None:
            names = ", ".join(f.path for f in self.files[:30])
            raise UserFault("not_found", f"{self.skill.name} has no file {path!r}; it has: {names}", kind="file",
                            name=path)  # fmt: skip
        return found


@dataclass(slots=True)
class SessionSkills:
    """A session's memory of skills; kept with the session after each change."""

    pins: dict[str, Pinned] = field(default_factory=dict)
    given: dict[str, str] = field(default_factory=dict)
    """Id to the digest of the body that stands in the conversation."""
    runs: list[dict[str, Any]] = field(default_factory=list)
    """Hand-overs in order: `{skill, version, input, by, t, status}`; status is `running`, or how its turn ended."""
    active: tuple[str, ...] = ()
    """Ids that were chosen or used in the running turn."""
    ranked: tuple[str, ...] = ()
    """Ids of the last choice, best first: where to fall back to."""
    said: str = ""
    """The person's last message."""
    root: str = ""
    """Of a sub-task: the session in which the person is; its versions and working copies are used."""
    warned: bool = False
    """Whether it was told that a project of the session holds skills that do not count."""


class Pins:
    """Reads and writes what sessions keep of skills."""

    def __init__(self, history: History, clock: Clock) -> None:
        self._history = history
        self._clock = clock
        self._open: dict[str, SessionSkills] = {}
        self._loading: dict[str, asyncio.Lock] = {}

    def known(self, session: str) -> SessionSkills | None:
        """A session's memory, if it is open."""
        return self._open.get(session)

    def forget(self, session: str) -> None:
        """Drop a session from memory; its record stays."""
        self._open.pop(session, None)

    async def of(self, session: str) -> SessionSkills:
        """A session's memory, read from its record the first time."""
        lock = self._loading.setdefault(session, asyncio.Lock())
        async with lock:
            found = self._open.get(session)
            if found is None:
                found = await self.read(session)
                settled(found.runs, "interrupted")  # left by a host that died
                self._open[session] = found
        self._loading.pop(session, None)
        return found

    async def read(self, session: str) -> SessionSkills:
        """What the record of a session says; one that is not open here may have changed since."""
        state = await self._history.state(session, STATE)
        memory = SessionSkills()
        if not isinstance(state, dict):
            return await self._branched(session) or memory
        memory.given = dict(state.get("given", {}))
        memory.runs = list(state.get("runs", []))
        memory.root = str(state.get("root", ""))
        for name, row in state.get("pins", {}).items():
            memory.pins[name] = await self._restored(name, row)
        return memory

    async def _branched(self, session: str) -> SessionSkills | None:
        """What a branch takes over from its source: the pins that its own events speak of, and the bodies they gave."""
        events = [s.event for s in await self._history.read(session)]
        source = next((e.source for e in reversed(events) if isinstance(e, Branched)), None)
        if source is None:
            return None
        try:
            theirs = await self._history.state(source, STATE)
        except HostError:
            return None  # the source is deleted: skills are chosen anew
        rows = theirs.get("pins", {}) if isinstance(theirs, dict) else {}
        memory = SessionSkills()
        pins: tuple[SkillPin, ...]
        for event in events:
            if isinstance(event, SkillPinned):
                pins, given = (event.pin,), {event.pin.name}
            elif isinstance(event, SkillsChosen):
                pins, given = event.skills, {p.name for p in event.skills if f'<skill name="{p.name}"' in event.text}
            else:
                continue
            for pin in pins:
                if pin.name in rows and rows[pin.name]["digest"] == pin.digest:
                    memory.pins[pin.name] = await self._restored(pin.name, rows[pin.name])
                if pin.name in given:
                    memory.given[pin.name] = pin.digest
        await self.keep(session, memory)
        return memory

    async def keep(self, session: str, memory: SessionSkills) -> None:
        """Write a session's memory to its record."""
        pins = {
            name: {
                "version": p.pin.version, "digest": p.pin.digest, "reason": p.pin.reason, "main": p.main,
                "folder": p.skill.label, "source": p.source, "files": [[f.path, f.size, f.sha256] for f in p.files],
                **({"foreign": True} if p.foreign else {}),
            }
            for name, p in memory.pins.items()
        }  # fmt: skip
        state = {"pins": pins, "given": memory.given, "runs": memory.runs[-MAX_RUNS:], "root": memory.root}
        await self._history.put_state(session, STATE, state)

    async def pin(self, session: str, entry: Entry, source: str, reason: str) -> Pinned:
        """Keep a version for a session: every file as a blob, and the pin in its record.

        Raises:
            KnownFault: the files cannot be kept.
        """
        memory = await self.of(session)
        files = []
        for path, data in await asyncio.to_thread(_contents, entry):
            sha = await self._history.put_blob(data)
            files.append(SkillFile(path, len(data), sha, kind_of(path)))
        digest = digest_of(files)
        skill = replace(entry.skill, digest=digest)
        pinned = Pinned(
            SkillPin(skill.name, skill.version, digest, reason), skill, tuple(files), entry.manifest.main, source
        )
        memory.pins[skill.name] = pinned
        await self.keep(session, memory)
        return pinned

    async def blob(self, file: SkillFile) -> bytes:
        """The bytes of a pinned file."""
        return await self._history.blob(file.sha256)

    async def run(self, session: str, skill: str, version: str, given: str, by: str) -> None:
        """Note that a skill was taken up, with what it was handed."""
        memory = await self.of(session)
        memory.runs.append({
            "skill": skill, "version": version, "input": given[:2000], "by": by, "t": self._clock.now(),
            "status": "running",
        })  # fmt: skip
        await self.keep(session, memory)

    async def settle(self, session: str, status: str) -> None:
        """Note how the runs of a turn ended."""
        memory = self.known(session)
        if memory is not None and settled(memory.runs, status):
            await self.keep(session, memory)

    async def _restored(self, name: str, row: dict[str, Any]) -> Pinned:
        files = tuple(SkillFile(str(p), int(n), str(sha), kind_of(str(p))) for p, n, sha in row["files"])
        foreign = bool(row.get("foreign"))
        # What a file from elsewhere says of itself is not believed.
        digest = digest_of(files) if foreign else str(row["digest"])
        pin = SkillPin(name, str(row["version"]), digest, str(row.get("reason", "")))
        main = str(row.get("main", "SKILL.md"))
        sha = next((f.sha256 for f in files if f.path == main), "")
        try:
            raw = await self._history.blob(sha) if sha else b""
        except HostError:
            raw = b""  # the pin stays visible; its text is gone and a new choice is made
        label = str(row.get("folder") or name)
        skill = (await asyncio.to_thread(parse, raw, label, main, pin.version)).skill
        skill = replace(skill, name=name, version=pin.version, digest=pin.digest)
        return Pinned(pin, skill, files, main, str(row.get("source", "")), foreign)


def settled(runs: list[dict[str, Any]], status: str) -> bool:
    """Give the runs that are under way this status; whether there were any."""
    under_way = [r for r in runs if r.get("status") == "running"]
    for run in under_way:
        run["status"] = status
    return bool(under_way)


def _contents(entry: Entry) -> list[tuple[str, bytes]]:
    """The bytes of every file as they are now; SKILL.md as it was last read well."""
    out = []
    for file in entry.manifest.files:
        path: Path = entry.folder / file.path
        if file.path == entry.manifest.main:
            out.append((file.path, entry.raw))
            continue
        try:
            out.append((file.path, path.read_bytes()))
        except FileNotFoundError:
            continue
    return out
