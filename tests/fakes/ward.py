"""A healthy profile that a test makes ill, with the doctor that looks at it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from desktop_host.core import settings as core
from desktop_host.core.admin import ModelAdmin, ServerAdmin, SettingsStore
from desktop_host.core.diagnosis import Finding, Reach
from desktop_host.core.models import ModelEntry
from desktop_host.core.servers import LogLine, ServerConfig, ServerStatus
from desktop_host.core.settings import Settings
from desktop_host.core.tools import ToolSpec
from desktop_host.core.values import FrozenDict
from desktop_host.diagnostics import Health, Redactor
from desktop_host.i18n import LANGUAGES, Translator
from tests.fakes.memory_history import MemoryHistory, World
from tests.fakes.memory_vault import MemoryVault


@dataclass
class FixedSettings:
    settings: Settings = field(default_factory=Settings)
    found: tuple[FrozenDict, ...] = ()

    def current(self) -> Settings:
        return self.settings

    def problems(self) -> tuple[FrozenDict, ...]:
        return self.found


@dataclass
class FixedModels:
    known: tuple[ModelEntry, ...] = (ModelEntry("local/qwen", "Qwen", "local", True),)
    reached: tuple[Reach, ...] = ()
    asked: int = 0

    async def entries(self, *, refresh: bool = False) -> tuple[ModelEntry, ...]:
        return self.known

    async def reach(self) -> tuple[Reach, ...]:
        self.asked += 1
        return self.reached


@dataclass
class FixedServers:
    rows: tuple[ServerStatus, ...] = ()
    wanted: tuple[ServerConfig, ...] = ()
    offered: dict[str, tuple[ToolSpec, ...]] = field(default_factory=dict)
    said: dict[str, tuple[LogLine, ...]] = field(default_factory=dict)

    def statuses(self) -> tuple[ServerStatus, ...]:
        return self.rows

    def status(self, name: str) -> ServerStatus:
        return next(row for row in self.rows if row.name == name)

    def configs(self) -> tuple[ServerConfig, ...]:
        return self.wanted

    def tools(self, name: str) -> tuple[ToolSpec, ...]:
        return self.offered.get(name, ())

    def logs(self, name: str) -> tuple[LogLine, ...]:
        return self.said.get(name, ())


@dataclass
class FixedStorage:
    wrong: str | None = None
    fault: Exception | None = None
    hangs: bool = False
    store: str = "sqlite"

    def where(self) -> FrozenDict:
        place = "/p/host.db" if self.store == "sqlite" else "postgresql://me@db:5432/team"
        return FrozenDict({"store": self.store, "place": place, "detail": f"{self.store} 15"})

    async def problem(self) -> str | None:
        if self.hangs:
            await asyncio.Event().wait()
        if self.fault:
            raise self.fault
        return self.wrong


@dataclass
class Ward:
    """A healthy profile that a test makes ill."""

    folder: Path
    settings: FixedSettings = field(default_factory=FixedSettings)
    secrets: MemoryVault = field(default_factory=MemoryVault)
    models: FixedModels = field(default_factory=FixedModels)
    servers: FixedServers = field(default_factory=FixedServers)
    storage: FixedStorage = field(default_factory=FixedStorage)
    environ: dict[str, str] = field(default_factory=dict)
    history: MemoryHistory = field(default_factory=lambda: MemoryHistory(World()))
    redactor: Redactor = field(default_factory=Redactor)

    def set(self, key: str, value: Any) -> None:
        self.settings.settings = core.put(self.settings.settings, key, value)

    def health(self, **more: Any) -> Health:
        return Health(
            self.folder, cast(SettingsStore, self.settings), self.secrets, cast(ModelAdmin, self.models),
            cast(ServerAdmin, self.servers), self.storage, self.history, redactor=self.redactor,
            environ=self.environ, **more,
        )  # fmt: skip

    async def rows(self, *names: str, **more: Any) -> dict[str, Finding]:
        """What the checks find; each in words of both languages."""
        found = await self.health(**more).run(names or None)
        for one in found:
            worded(one)
        return {one.check: one for one in found}

    async def ill(self, check: str, **more: Any) -> tuple[str, str, str, str]:
        """`(finding, remedy, place, act)` of a check that is not well, in English."""
        found = (await self.rows(check, **more))[check]
        assert not found.ok, found
        _, what, remedy = Translator("en").finding(found)
        return what, remedy, found.place, found.act


def worded(found: Finding) -> None:
    """Every finding can be told in every language, without a hole, and one that is not well has a remedy."""
    for language in LANGUAGES:
        words = Translator(language)
        title, what, remedy = words.finding(found)
        assert not title.startswith("doctor.") and "{" not in title + what + remedy, (title, what, remedy)
        assert bool(remedy) is not found.ok and not remedy.startswith(("doctor.", "remedy.")), (found, remedy)
        assert found.say == "" or what, found
