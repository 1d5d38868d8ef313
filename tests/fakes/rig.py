"""A whole engine on fakes: what an engine test starts from."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from desktop_host.core import settings as settings_rules
from desktop_host.core.events import Event, Stamped
from desktop_host.core.permissions import Effect, Verdict
from desktop_host.core.servers import SamplingPolicy
from desktop_host.core.sessions import SessionOptions
from desktop_host.core.settings import Settings
from desktop_host.core.toolkit import ToolkitConfig
from desktop_host.core.values import FrozenDict
from desktop_host.engine.bus import Bus
from desktop_host.engine.gate import Gate
from desktop_host.engine.host import HeadlessPolicy, Host, TurnResult, UserInput
from desktop_host.engine.inbox import Inbox
from desktop_host.engine.parts import Parts
from desktop_host.engine.reviewer import HostReviewer
from desktop_host.engine.sessions import Sessions
from desktop_host.engine.spending import Spending
from desktop_host.engine.toolkit import Toolkit
from desktop_host.servers.json_schema import misfit
from tests.fakes.fixed_diagnostics import FixedDiagnostics
from tests.fakes.list_model import FixedModels, ListModel
from tests.fakes.manual_clock import ManualClock
from tests.fakes.memory_history import MemoryHistory, MemoryLedger, World
from tests.fakes.memory_purses import MemoryPurses
from tests.fakes.memory_vault import MemoryVault
from tests.fakes.tool_source import FunctionTools


@dataclass
class MemorySettings:
    """A `SettingsStore` without a file."""

    settings: Settings = field(default_factory=Settings)

    def current(self) -> Settings:
        return self.settings

    async def set(self, key: str, value: Any) -> Settings:
        self.settings = settings_rules.put(self.settings, key, value)
        return self.settings

    async def save(self, settings: Settings) -> None:
        self.settings = settings

    def problems(self) -> tuple[FrozenDict, ...]:
        return ()


@dataclass
class MemoryToolkit:
    """A `ToolkitStore` without a file."""

    config: ToolkitConfig = field(default_factory=ToolkitConfig)

    def current(self) -> ToolkitConfig:
        return self.config

    async def save(self, config: ToolkitConfig) -> None:
        self.config = config


class Rig:
    """Host, model and tools; `say` runs one turn, `events` is all that was published."""

    def __init__(
        self,
        replies: list[list[Any]],
        *,
        world: World | None = None,
        headless: HeadlessPolicy | None = None,
        permission: str = "allow",
        storage: Any = None,
        models: Any = None,
        clock: ManualClock | None = None,
        default_model: str = "list",
        servers: Any = None,
    ) -> None:
        self.world = world or World()
        self.clock = clock or ManualClock()
        self.history = storage.history if storage else MemoryHistory(self.world, now=self.clock.now)
        self.model = ListModel(replies)
        self.models = models or FixedModels({"list": self.model})
        self.tools = FunctionTools()
        self.vault = MemoryVault()
        settings = Settings()
        settings = replace(
            settings,
            model=replace(settings.model, default=default_model),
            tools=replace(settings.tools, permission=permission),
        )
        self.settings = MemorySettings(settings)
        self.bus = Bus()
        self.ledger = storage.ledger if storage else MemoryLedger(self.world)
        sessions: list[Sessions] = []

        async def emit(session: str | None, event: Event) -> None:
            await sessions[0].emit(session, event)

        self.inbox = Inbox(emit, headless)
        self.toolkit_store = MemoryToolkit()
        self.learned: list[tuple[str, frozenset[str]]] = []
        self.toolkit = Toolkit(
            self.tools, self.toolkit_store, self.history, self.vault, self._by_hand,
            lambda server, secrets: self.learned.append((server, secrets)),
        )  # fmt: skip
        gate = Gate(self.inbox, self.ledger, self.settings.current, self.toolkit.is_trusted, self.toolkit.default)
        self.purses = storage.purses if storage else MemoryPurses()
        spending = Spending(self.models, self.settings, self.clock, self.purses)
        parts = Parts(
            self.history, self.ledger, self.models, self.toolkit, self.settings, self.inbox, gate, self.bus, self.clock,
            spending, toolkit=self.toolkit,
        )  # fmt: skip
        self.sessions = Sessions(parts)
        sessions.append(self.sessions)
        self.policy = SamplingPolicy()
        self.reviewer = HostReviewer(
            self.inbox,
            self.models,
            self.clock,
            context=self.sessions.context,
            emit=emit,
            policy=lambda _alias: self.policy,
            settings=self.settings.current,
            spending=spending,
            keep=self._keep,
            askers=parts.askers,
            check=misfit,
        )

        self.diagnostics = FixedDiagnostics()
        self.host = Host(
            "test", Path("."), parts, self.sessions, self.inbox, servers, self.vault,
            self.diagnostics,
        )  # fmt: skip
        self.events: list[Stamped] = []
        self._reader = self.bus.subscribe(lossless=True, capacity=1_000_000)
        self._collector = asyncio.create_task(self._collect())
        self._news = asyncio.Event()

    async def _by_hand(self, server: str, tool: str, arguments: Any, progress: Any) -> Any:
        spec = self.tools.specs[f"{server}.{tool}"]
        return await self.tools.call("", "", spec, arguments, Verdict(Effect.ALLOW, "person"), progress)

    async def _collect(self) -> None:
        async for batch in self._reader:
            self.events.extend(batch)
            self._news.set()

    async def session(self, **options: Any) -> str:
        return await self.host.new_session(SessionOptions(**options))

    async def say(self, session: str, text: str = "hello") -> TurnResult:
        return await (await self.host.submit(session, UserInput(text))).done

    async def _keep(self, _alias: str, policy: SamplingPolicy) -> None:
        self.policy = policy

    async def until(self, found: Callable[[], object]) -> None:
        """Wait until `found()` is true, looking again at each event."""
        async with asyncio.timeout(5):
            while not found():
                self._news.clear()
                await self._news.wait()

    def types(self, *leave_out: str) -> list[str]:
        """The types of the events, in order; runs of one type once."""
        out: list[str] = []
        for s in self.events:
            if s.event.type not in leave_out and (not out or out[-1] != s.event.type):
                out.append(s.event.type)
        return out

    def of(self, kind: type) -> list[Any]:
        return [s.event for s in self.events if isinstance(s.event, kind)]

    async def close(self) -> None:
        await self.host.close()
        await asyncio.gather(self._collector)
