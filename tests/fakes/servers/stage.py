"""A stage for real servers: the supervisor with a clock, a vault, a reviewer and a sink that tests look into."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from desktop_host.core.errors import UserFault
from desktop_host.core.events import Event, ServerChanged
from desktop_host.core.exchange import (
    ElicitReply,
    FormRequest,
    Origin,
    SamplingReply,
    SamplingRequest,
    ToolOutcome,
    UrlRequest,
)
from desktop_host.core.messages import Text
from desktop_host.core.permissions import Effect, Verdict
from desktop_host.core.servers import ServerConfig, ServerState, Stdio, Timeouts
from desktop_host.core.tools import ToolSpec
from desktop_host.core.values import EMPTY, FrozenDict, freeze
from desktop_host.servers.supervisor import Servers
from tests.fakes.memory_vault import MemoryVault

HERE = Path(__file__).parent
ALLOW = Verdict(Effect.ALLOW, "person")


class WallClock:
    """A `Clock` over real time; `scale` shortens sleeps (backoff), nothing else."""

    def __init__(self, scale: float = 1.0) -> None:
        self.scale = scale

    def now(self) -> float:
        return time.time()

    def monotonic(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds * self.scale)


@dataclass
class OpenReviewer:
    """A `Reviewer` that answers as told and remembers who asked what."""

    answer: ElicitReply = field(
        default_factory=lambda: ElicitReply("accept", FrozenDict({"name": "bob", "confirm": True}))
    )
    refuse_sampling: bool = False
    folders: dict[str | None, tuple[str, ...]] = field(default_factory=dict)
    asked: list[tuple[Origin, Any]] = field(default_factory=list)
    lines: list[tuple[Origin, str, Any]] = field(default_factory=list)
    gate: asyncio.Event | None = None
    """If set, every question waits for it."""

    async def sample(self, origin: Origin, request: SamplingRequest) -> SamplingReply:
        self.asked.append((origin, request))
        await self._wait()
        if self.refuse_sampling:
            raise UserFault("permission", "no")
        return SamplingReply((Text("a summary"),), "fake-model", "endTurn")

    async def elicit(self, origin: Origin, request: FormRequest | UrlRequest) -> ElicitReply:
        self.asked.append((origin, request))
        await self._wait()
        return self.answer

    def roots(self, session: str | None) -> tuple[str, ...]:
        return self.folders.get(session, ())

    def logged(self, origin: Origin, level: str, logger: str | None, data: Any) -> None:
        self.lines.append((origin, level, data))

    async def _wait(self) -> None:
        if self.gate is not None:
            await self.gate.wait()


@dataclass
class Stage:
    """The supervisor and what it told."""

    servers: Servers
    reviewer: OpenReviewer
    vault: MemoryVault
    events: list[Event]
    folder: Path

    async def call(
        self, name: str, tool: str, /, session: str = "s1", call_id: str = "c1", **arguments: Any
    ) -> ToolOutcome:
        """Call as the engine does."""
        spec = next((t for t in self.servers.session_tools(session, (name,)) if t.name == tool), ToolSpec(name, tool))
        return await self.servers.call(session, call_id, spec, freeze(arguments), ALLOW, lambda _p: None)

    def states(self, name: str) -> list[str]:
        """The states told of a server, repeats left out."""
        told = [e.state for e in self.events if isinstance(e, ServerChanged) and e.server == name]
        return [s for n, s in enumerate(told) if n == 0 or told[n - 1] != s]

    def told_tools(self, name: str) -> int | None:
        """How many tools the newest event that says that tools changed told of."""
        told = [e for e in self.events if isinstance(e, ServerChanged) and e.server == name and "tools" in e.lists]
        return told[-1].status.tools if told and told[-1].status else None

    async def until_state(self, name: str, state: ServerState, seconds: float = 20) -> None:
        await until(lambda: self.servers.status(name).state is state, seconds, lambda: str(self.servers.status(name)))


@asynccontextmanager
async def stage(
    folder: Path,
    *configs: ServerConfig,
    reviewer: OpenReviewer | None = None,
    vault: MemoryVault | None = None,
    scale: float = 0.05,
    clock: WallClock | None = None,
    start: bool = True,
    environ: dict[str, str] | None = None,
) -> AsyncIterator[Stage]:
    """Open the supervisor with these servers, started; close it and check that no process is left."""
    events: list[Event] = []
    reviewer, vault = reviewer or OpenReviewer(), vault or MemoryVault()
    servers = Servers(folder, vault, reviewer, events.append, clock or WallClock(scale), extra=configs, environ=environ)
    await servers.open()
    made = Stage(servers, reviewer, vault, events, folder)
    pids: set[int] = set()
    try:
        if start:
            await servers.prepare("s1", None, ())
        yield made
        pids = {s.pid for s in servers.statuses() if s.pid is not None}
    finally:
        await servers.close()
    assert not [p for p in pids if alive(p)], "a server outlived the host"
    assert not list((folder / "processes").glob("*.json")), "a process is still on record"


def raw(name: str = "raw", *flags: str, **changes: Any) -> ServerConfig:
    """The misbehaving server of `raw.py`."""
    return script(name, "raw.py", *flags, **changes)


def script(name: str, file: str, *flags: str, **changes: Any) -> ServerConfig:
    """A server of this folder."""
    env = changes.pop("env", EMPTY)
    limits = changes.pop("timeouts", Timeouts(connect_s=20, call_s=20, call_max_s=60))
    launch = Stdio(sys.executable, (str(HERE / file), *flags), env=freeze(env))
    return replace(ServerConfig(name, launch, timeouts=limits), **changes)


async def until(found: Callable[[], object], seconds: float = 20, told: Callable[[], str] = str) -> None:
    """Wait for a condition; fails with what `told` says."""
    end = time.monotonic() + seconds
    while not found():
        assert time.monotonic() < end, f"did not happen within {seconds} s: {told()}"
        await asyncio.sleep(0.02)


def alive(pid: int) -> bool:
    """Whether a process runs (a zombie does not)."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    stat = Path(f"/proc/{pid}/stat")
    try:
        return not stat.exists() or stat.read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def text(outcome: ToolOutcome) -> str:
    """All text of an outcome."""
    return "\n".join(b.text for b in outcome.content if isinstance(b, Text))
