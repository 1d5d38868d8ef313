"""The three built-in tools by which a model works with skills: use one, read its files, run its scripts."""

from __future__ import annotations

import asyncio
import os
import shutil
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from desktop_host.core.admin import SettingsStore
from desktop_host.core.errors import HostError
from desktop_host.core.events import Event
from desktop_host.core.exchange import Progress, ToolOutcome
from desktop_host.core.host_tools import ALIAS
from desktop_host.core.messages import Outcome, Text
from desktop_host.core.skill_events import SkillPinned
from desktop_host.core.tools import ToolHints, ToolSpec
from desktop_host.core.values import FrozenDict, freeze
from desktop_host.skills import scripts
from desktop_host.skills.pins import Pinned
from desktop_host.skills.remote import RemoteLibrary
from desktop_host.skills.source import SkillChoices

Emit = Callable[[str | None, Event], Awaitable[None]]
GROUP = "skills"
READ_LIMIT = 60_000
"""Characters of one read."""
MAX_CALLS = 32
"""Skills that may be taken up in one turn: a chain that goes in circles ends."""


def _object(required: list[str], **properties: object) -> FrozenDict:
    schema: FrozenDict = freeze({
        "type": "object", "properties": properties, "required": required, "additionalProperties": False,
    })  # fmt: skip
    return schema


_NAME = {"type": "string", "description": "Name of the skill"}
SPECS = (
    ToolSpec(
        ALIAS, "use_skill",
        "Get the instructions of a skill, by its name in the list of skills, and follow them. Call it before you begin "
        "a task that the skill fits. A skill may call another with this tool and hand it what is done so far.",
        _object(["name"], name=_NAME,
                input={"type": "string", "description": "The task for it, and the results it should build on"}),
        title="Use a skill", hints=ToolHints(read_only=True, open_world=False), group=GROUP,
    ),
    ToolSpec(
        ALIAS, "read_skill_file",
        "Read a file of a skill that its instructions refer to.",
        _object(["skill", "path"], skill=_NAME,
                path={"type": "string", "description": "Relative to the skill, e.g. references/guide.md"},
                offset={"type": "integer", "minimum": 0, "description": "Character to begin at"}),
        title="Read a skill's file", hints=ToolHints(read_only=True, open_world=False), group=GROUP,
    ),
    ToolSpec(
        ALIAS, "run_skill_script",
        "Run a script of a skill as its instructions say and get what it prints.",
        _object(["skill", "script"], skill=_NAME,
                script={"type": "string", "description": "Relative to the skill, e.g. scripts/check.py"},
                arguments={"type": "array", "items": {"type": "string"}},
                stdin={"type": "string", "description": "Text for its standard input"}),
        title="Run a skill's script", hints=ToolHints(read_only=False, destructive=True, open_world=True), group=GROUP,
    ),
)  # fmt: skip


class SkillTools:
    """`HostTools` over the skills of a session."""

    def __init__(
        self, choices: SkillChoices, settings: SettingsStore, emit: Emit, runs: Path,
        remote: RemoteLibrary | None = None,
    ) -> None:  # fmt: skip
        self._choices = choices
        self._remote = remote
        self._settings = settings
        self._emit = emit
        self._runs = runs
        """Folder of the working copies: `<session>/<digest>/<skill>`."""
        self._laying: dict[str, asyncio.Lock] = {}

    def specs(self, session: str) -> tuple[ToolSpec, ...]:
        """The tools, where there is any skill to use."""
        memory = self._choices.pins.known(session)
        served = self._remote is not None and any(s.approved for s in self._remote.skills())
        return SPECS if self._choices.library.snapshot.skills or (memory and memory.pins) or served else ()

    async def call(
        self, session: str, call_id: str, spec: ToolSpec, arguments: FrozenDict,
        progress: Callable[[Progress], None],
    ) -> ToolOutcome:  # fmt: skip
        """Run one of the three."""
        started = time.monotonic()
        try:
            match spec.name:
                case _ if self._served(str(arguments.get("name") or arguments.get("skill") or "")):
                    outcome = await self._of_server(spec.name, arguments)
                case "use_skill":
                    outcome = await self._use(session, str(arguments.get("name", "")), str(arguments.get("input", "")))
                case "read_skill_file":
                    outcome = await self._read(session, arguments)
                case _:
                    outcome = await self._script(session, arguments)
        except HostError as error:
            # A wrong path is the model's slip; only a skill that fails as a whole is worth another.
            slip = error.params.get("reason") == "outside" or error.params.get("kind") == "file"
            name = str(arguments.get("name") or arguments.get("skill") or "")
            outcome = _told(Outcome.ERROR, error.message + ("" if slip else self._fallback(session, name)))
        took = (time.monotonic() - started) * 1000
        return ToolOutcome(outcome.outcome, outcome.content, outcome.structured, took)

    async def release(self, session: str) -> None:
        """Forget a session; its working copies stay with it until it is deleted."""
        self._choices.pins.forget(session)

    async def sweep(self, sessions: frozenset[str]) -> None:
        """Delete the working copies of sessions that are no more."""
        await asyncio.to_thread(_sweep, self._runs, sessions)

    async def _use(self, session: str, name: str, given: str) -> ToolOutcome:
        memory = await self._choices.pins.of(session)
        if len(memory.active) >= MAX_CALLS:
            return _told(Outcome.ERROR, f"{MAX_CALLS} skills are active already; finish with those.")
        before = set(memory.pins)
        pinned = await self._choices.take_up(session, name, given)
        if pinned.skill.name not in before:
            await self._emit(session, SkillPinned(pinned.pin))
        memory.given[pinned.skill.name] = pinned.pin.digest
        parts = [self._choices.block(pinned, given)]
        handed = [r for r in memory.runs if r["skill"] != pinned.skill.name][-3:]
        if handed and memory.runs[-1]["by"] != "model":
            done = "; ".join(f"{r['skill']} ({r['input'][:200]})" for r in handed)
            parts.append(f"Handed over from: {done}")
        for need in self._choices.needs(pinned.skill):
            parts.append(
                f"Not there: the {need.kind} {need.name}, which this skill needs. Say so, and work without it."
            )
        required = [r for r in pinned.skill.requires if r not in memory.active]
        if required:
            parts.append(f"It builds on: {', '.join(required)}. Call use_skill for each first.")
        return _told(Outcome.OK, "\n\n".join(parts))

    def _served(self, name: str) -> bool:
        return self._remote is not None and any(s.id == name for s in self._remote.skills())

    async def _of_server(self, tool: str, arguments: FrozenDict) -> ToolOutcome:
        """A skill over MCP: read from its server each time and verified; its scripts never run."""
        assert self._remote is not None
        if tool == "use_skill":
            return _told(Outcome.OK, await self._remote.load(str(arguments.get("name", ""))))
        if tool != "read_skill_file":
            return _told(Outcome.DENIED, "Scripts of skills that a server serves are not run.")
        path = str(arguments.get("path", ""))
        return _text(path, await self._remote.read(str(arguments.get("skill", "")), path), arguments)

    async def _read(self, session: str, arguments: FrozenDict) -> ToolOutcome:
        pinned = await self._pinned(session, str(arguments.get("skill", "")))
        file = pinned.file(str(arguments.get("path", "")))
        return _text(file.path, await self._choices.pins.blob(file), arguments)

    async def _script(self, session: str, arguments: FrozenDict) -> ToolOutcome:
        pinned = await self._pinned(session, str(arguments.get("skill", "")))
        file = pinned.file(str(arguments.get("script", "")))
        if not self._choices.known(pinned):
            name = pinned.skill.name
            return _told(
                Outcome.DENIED, f"{name} came with this chat from elsewhere; its scripts do not run. The person can "
                f"install it and press “Use newest”.",
            )  # fmt: skip
        limits = self._settings.current().skills
        folder = await self._copy(session, pinned)
        result = await scripts.run(
            folder / file.path, tuple(str(a) for a in arguments.get("arguments") or ()), skill=pinned.skill.name,
            folder=folder, stdin=str(arguments.get("stdin") or ""), timeout_s=limits.script_timeout_s,
            output_limit=limits.script_output_kb * 1024,
        )  # fmt: skip
        text = result.output + (f"\n[stderr]\n{result.error}" if result.error.strip() else "")
        structured: FrozenDict = freeze({"exit_code": result.code, "timed_out": result.timed_out, "cut": result.cut})
        if result.timed_out:
            text += f"\n[stopped after {limits.script_timeout_s} s]"
            return ToolOutcome(
                Outcome.TIMED_OUT, (Text(text + self._fallback(session, pinned.skill.name)),), structured
            )
        if result.too_loud:
            text += f"\n[stopped: it printed more than {scripts.HARD_OUTPUT >> 20} MiB]"
        if result.code != 0:
            if not result.too_loud:
                text += f"\n[exit code {result.code}]"
            return ToolOutcome(Outcome.ERROR, (Text(text + self._fallback(session, pinned.skill.name)),), structured)
        return ToolOutcome(Outcome.OK, (Text(text or "(no output)"),), structured)

    async def _pinned(self, session: str, name: str) -> Pinned:
        from desktop_host.skills.document import slug

        memory = await self._choices.pins.of(session)
        pinned = memory.pins.get(slug(name))
        return pinned if pinned is not None else await self._choices.take_up(session, name, "")

    async def _copy(self, session: str, pinned: Pinned) -> Path:
        """The session's working copy of a pinned skill; files of the skill are as pinned, others stay as they are."""
        folder = self._runs / self._choices.home(session) / pinned.pin.digest[:16] / pinned.skill.name
        async with self._laying.setdefault(str(folder), asyncio.Lock()):
            wrong = await asyncio.to_thread(_differing, folder, pinned)
            for path, sha in wrong:
                data = await self._choices.pins.blob(pinned.file(path))
                script = next(f.kind for f in pinned.files if f.sha256 == sha) == "script"
                await asyncio.to_thread(_lay, folder / path, data, script)
        self._laying.pop(str(folder), None)
        return folder

    def _fallback(self, session: str, name: str) -> str:
        """What to try instead of a skill that failed: those it names, else the next best of the last choice."""
        memory = self._choices.pins.known(session)
        pinned = memory.pins.get(name) if memory else None
        named = list(pinned.skill.fallback) if pinned else []
        if not named and memory is not None:
            named = [n for n in memory.ranked if n != name and n not in memory.active][:1]
        usable = [n for n in named if n in self._choices.library.snapshot.skills]
        return f"\nInstead, call use_skill with {' or '.join(usable)}." if usable else ""


def _told(outcome: Outcome, text: str) -> ToolOutcome:
    return ToolOutcome(outcome, (Text(text),))


def _text(path: str, data: bytes, arguments: FrozenDict) -> ToolOutcome:
    """A part of a text file, from `offset` on."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return _told(Outcome.ERROR, f"{path} is no text ({len(data):,} bytes); use a script of the skill for it.")
    offset = int(arguments.get("offset") or 0)
    part = text[offset : offset + READ_LIMIT]
    left = len(text) - offset - len(part)
    more = f"\n[… {left:,} characters follow; read on with offset {offset + len(part)} …]" if left > 0 else ""
    return _told(Outcome.OK, part + more)


def _differing(folder: Path, pinned: Pinned) -> list[tuple[str, str]]:
    import hashlib

    wrong = []
    for file in pinned.files:
        path = folder / file.path
        try:
            same = not path.is_symlink() and hashlib.sha256(path.read_bytes()).hexdigest() == file.sha256
        except OSError:
            same = False
        if not same:
            wrong.append((file.path, file.sha256))
    return wrong


def _lay(path: Path, data: bytes, script: bool) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.part")
    draft.write_bytes(data)
    draft.chmod(0o700 if script else 0o600)
    os.replace(draft, path)


def _sweep(runs: Path, sessions: frozenset[str]) -> None:
    if not runs.is_dir():
        return
    for folder in runs.iterdir():
        if folder.name not in sessions:
            shutil.rmtree(folder, ignore_errors=True)
