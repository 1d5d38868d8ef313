"""Skills over MCP: listed without prefetch, approved by digest, verified on every load, never in a local one's place.

A skill's files are fetched when they are read, each checked against the digest that was approved; nothing of it is
ever run, and its `allowed-tools` count for nothing.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import re
import time
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import Any

from desktop_host.core.errors import HostError, UserFault
from desktop_host.core.remote_skills import RemoteSkill, RemoteSkills
from desktop_host.core.values import FrozenDict, canonical, thaw
from desktop_host.skills.document import one_line, parse, slug
from desktop_host.skills.frontmatter import take_apart
from desktop_host.skills.state import SkillState, State

MAIN_LIMIT = 256 * 1024
FILE_LIMIT = 10 * 2**20
"""Bytes."""
MAX_ENTRIES = 10_000
LIST_LIMIT_S = 5.0
"""How long a message waits for the listings of servers."""
STALE_S = 600.0
"""After how long a listing is asked for again."""
MAX_PATH = 1024
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Listed:
    """An entry that was read and found sound."""

    skill: RemoteSkill
    frontmatter: dict[str, Any]
    resources: dict[str, str]
    """Path relative to the folder of SKILL.md to its digest; SKILL.md itself by its own name."""
    uris: dict[str, str]


class RemoteLibrary:
    """The skills of servers. Belongs to the host's loop."""

    def __init__(self, source: RemoteSkills, state: SkillState) -> None:
        self._source = source
        self._state = state
        self._listed: dict[str, _Listed] = {}
        self._asked: dict[str, float] = {}
        self.problems: dict[str, tuple[str, ...]] = {}
        """Per server, what of its listing could not be used."""

    async def refresh(self, server: str | None = None) -> tuple[RemoteSkill, ...]:
        """List what servers serve now (None: all); a server that fails keeps what it listed before."""
        for alias in self._source.serving() if server is None else (server,):
            try:
                entries = await self._source.listing(alias)
            except HostError as error:
                self.problems[alias] = (error.message,)
                _log.warning("the skills of %s could not be listed: %s", alias, error)
                continue
            found, bad = _read_all(alias, entries)
            self.problems[alias] = tuple(bad)
            self._listed = {k: v for k, v in self._listed.items() if v.skill.server != alias} | found
        return self.skills()

    async def ensure(self) -> None:
        """List the servers that were not asked yet or not for a while; within `LIST_LIMIT_S`, else another time."""
        now = time.monotonic()
        due = [s for s in self._source.serving() if now - self._asked.get(s, -STALE_S) >= STALE_S]
        self._asked |= dict.fromkeys(due, now)
        try:
            async with asyncio.timeout(LIST_LIMIT_S):
                await asyncio.gather(*(self.refresh(alias) for alias in due))
        except TimeoutError:
            _log.warning("listing the skills of %s took too long", ", ".join(due))

    def skills(self) -> tuple[RemoteSkill, ...]:
        """What is listed, with the state of its approval."""
        self._state.refresh()
        serving = set(self._source.serving())
        return tuple(self._with_approval(e.skill) for e in self._listed.values() if e.skill.server in serving)

    async def look(self, id_: str, path: str) -> bytes:
        """One listed file for the person to read before or after an approval: fetched now and verified.

        Raises:
            UserFault: `not_found`; `bad_skill`, the server serves another file than it announced.
            KnownFault: the server cannot be reached.
        """
        return await self._fetch(self._find(id_), path, MAIN_LIMIT if path == "SKILL.md" else FILE_LIMIT)

    async def approve(self, id_: str, digest: str) -> None:
        """Let a skill be used as it was shown: the approval holds for this set of files only.

        Raises:
            UserFault: `not_found`; `bad_skill`, it is another by now.
        """
        listed = self._find(id_)
        if listed.skill.digest != digest:
            raise _not_approved(listed.skill)

        def how(data: State) -> None:
            data.setdefault("remote", {})[_identity(listed.skill)] = digest

        await asyncio.to_thread(self._state.change, how)

    async def revoke(self, id_: str) -> None:
        """Take an approval back."""
        skill = self._find(id_).skill
        await asyncio.to_thread(self._state.change, lambda data: data.get("remote", {}).pop(_identity(skill), None))

    async def load(self, id_: str) -> str:
        """The body of an approved skill, fetched and verified.

        Raises:
            UserFault: `not_found`; `bad_skill`, not approved, or its files or frontmatter are not what was announced.
            KnownFault: the server cannot be reached.
        """
        listed = self._approved(id_)
        raw = await self._fetch(listed, "SKILL.md", MAIN_LIMIT)
        told: list[str] = []
        meta = take_apart(raw, lambda code, _line, _detail: told.append(code)).meta
        if _comparable(meta) != _comparable(listed.frontmatter):
            await self._again(listed)
            raise UserFault("bad_skill", f"the frontmatter of {id_} is not what its server announced", reason="digest",
                            name=id_, file="SKILL.md", server=listed.skill.server)  # fmt: skip
        document = parse(raw, listed.skill.name)
        others = [p for p in listed.resources if p != "SKILL.md"]
        head = f'<skill name="{id_}" source="server {listed.skill.server}">'
        files = f"Files (tool read_skill_file, skill {id_!r}): {', '.join(others[:40])}\n" if others else ""
        body = document.skill.body.replace("</skill>", "<\\/skill>")
        return f"{head}\n{body}\n{files}</skill>"

    async def read(self, id_: str, path: str) -> bytes:
        """One listed file of an approved skill, verified. Raises as `load`."""
        return await self._fetch(self._approved(id_), path.removeprefix("./"), FILE_LIMIT)

    # ---- inner
    def _find(self, id_: str) -> _Listed:
        listed = self._listed.get(id_)
        if listed is None:
            raise UserFault("not_found", f"no server serves a skill {id_!r} now", kind="skill", name=id_)
        return listed

    def _with_approval(self, skill: RemoteSkill) -> RemoteSkill:
        known = self._state.approved().get(_identity(skill))
        return replace(skill, approved=known == skill.digest, changed=known not in (None, skill.digest))

    def _approved(self, id_: str) -> _Listed:
        listed = self._find(id_)
        if not self._with_approval(listed.skill).approved:
            raise _not_approved(listed.skill)
        return listed

    async def _fetch(self, listed: _Listed, path: str, limit: int) -> bytes:
        uri = listed.uris.get(path)
        if uri is None:
            raise UserFault("not_found", f"{listed.skill.id} lists no file {path!r}", kind="file", name=path)
        data = await self._source.read(listed.skill.server, uri)
        if len(data) > limit or "sha256:" + hashlib.sha256(data).hexdigest() != listed.resources[path]:
            await self._again(listed)
            raise UserFault("bad_skill", f"{path} of {listed.skill.id} is not what its server announced",
                            reason="digest", name=listed.skill.id, file=path, server=listed.skill.server)  # fmt: skip
        return data

    async def _again(self, listed: _Listed) -> None:
        """After a mismatch: take the entry as it is now; its approval no longer holds unless it is the same."""
        skill = listed.skill
        try:
            entry = await self._source.entry(skill.server, skill.uri)
            found, _bad = _read_all(skill.server, (entry,))
        except HostError:
            found = {}
        self._listed.pop(skill.id, None)
        self._listed |= found
        if all(f.skill.digest == skill.digest for f in found.values()):
            # It announces the same and serves another: what a person approved cannot be had from it.
            await asyncio.to_thread(self._state.change, lambda data: data.get("remote", {}).pop(_identity(skill), None))


def _identity(skill: RemoteSkill) -> str:
    return f"{skill.server} {skill.uri}"


def _not_approved(skill: RemoteSkill) -> UserFault:
    return UserFault("bad_skill", f"{skill.id} of the server {skill.server} is not approved as it is now",
                     reason="not_approved", name=skill.id, server=skill.server)  # fmt: skip


def _comparable(meta: dict[str, Any]) -> str:
    """Frontmatter as text: numbers and booleans of JSON equal the words in the file."""

    def plain(value: Any) -> Any:
        if isinstance(value, dict):
            return {str(k): plain(v) for k, v in value.items()}
        if isinstance(value, (list, tuple)):
            return [plain(v) for v in value]
        if isinstance(value, bool):
            return str(value).lower()
        return "" if value is None else " ".join(str(value).split())

    return canonical(plain(meta))


def _read_all(server: str, entries: tuple[FrozenDict, ...]) -> tuple[dict[str, _Listed], list[str]]:
    found: dict[str, _Listed] = {}
    bad: list[str] = []
    for entry in entries[:MAX_ENTRIES]:
        try:
            listed = _read(server, thaw(entry))
        except (KeyError, TypeError, ValueError) as error:
            bad.append(f"{str(entry.get('uri'))[:200]}: {error}")
            continue
        name = listed.skill.id
        if name in found:  # names are labels: the second of a name gets its place in its id
            mark = hashlib.sha256(listed.skill.uri.encode()).hexdigest()[:6]
            listed = replace(listed, skill=replace(listed.skill, id=f"{name}-{mark}"))
        found[listed.skill.id] = listed
    if len(entries) > MAX_ENTRIES:
        bad.append(f"{len(entries):,} entries; {MAX_ENTRIES:,} are read")
    return found, bad


def _read(server: str, entry: Any) -> _Listed:
    uri, frontmatter = entry["uri"], entry["frontmatter"]
    if not isinstance(uri, str) or not isinstance(frontmatter, dict):
        raise ValueError("uri and frontmatter are wanted")
    folder = uri.rsplit("/", 1)[0] + "/"
    resources: dict[str, str] = {}
    uris: dict[str, str] = {}
    for row in entry.get("resources") or ():
        at, digest = str(row["uri"]), str(row.get("digest", ""))
        path = "SKILL.md" if at == uri else at.removeprefix(folder)
        parts = PurePosixPath(path).parts
        if not _DIGEST.fullmatch(digest):
            raise ValueError(f"{path}: no sha256 digest")
        if len(path) > MAX_PATH or path == at or ".." in parts or path.startswith("/") or "\\" in path:
            raise ValueError(f"{at[:200]} is not below {folder}")
        if parts[-1].lower() == "skill.md" and path != "SKILL.md":
            continue  # a skill within a skill needs an approval of its own
        resources[path], uris[path] = digest, at
    if "SKILL.md" not in resources:
        raise ValueError("its own SKILL.md is not listed with a digest")
    name = one_line(str(frontmatter.get("name") or PurePosixPath(folder).name))
    digest = hashlib.sha256(canonical([uri, sorted(resources.items())]).encode()).hexdigest()
    skill = RemoteSkill(
        server, uri, f"{server}--{slug(name) or 'skill'}", name, one_line(str(frontmatter.get("description") or "")),
        digest, False, files=tuple(sorted(resources)),
    )  # fmt: skip
    return _Listed(skill, frontmatter, resources, uris)
