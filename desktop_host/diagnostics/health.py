"""The doctor of an open profile: every check within its own time, none of them failing itself."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

from desktop_host.core.admin import ModelAdmin, SecretStore, ServerAdmin, SettingsStore
from desktop_host.core.diagnosis import Finding, Reach, ReportPart
from desktop_host.core.errors import HostError, UserFault
from desktop_host.core.ports import History
from desktop_host.core.telemetry import TelemetryState
from desktop_host.core.values import FrozenDict
from desktop_host.diagnostics import machine, profile, report, wires, workings
from desktop_host.diagnostics.findings import Check, faulty, ill
from desktop_host.diagnostics.redaction import Redactor

LIMIT_S = 25.0
"""How long one check may take: vendors' libraries are loaded within it."""
AT_ONCE = 6
"""Checks that run at the same time."""


class _Round:
    """What the checks of one run share, so that an address is asked and a journal read only once."""

    def __init__(self, health: Health) -> None:
        self.chats = workings.Chats(health.history, health.now())
        self._health = health
        self._reach: asyncio.Task[tuple[Reach, ...]] | None = None
        self._path: asyncio.Task[str] | None = None

    async def reach(self) -> tuple[Reach, ...]:
        """Ask the addresses of models."""
        if self._reach is None:
            self._reach = asyncio.ensure_future(self._health.models.reach())
        return await asyncio.shield(self._reach)

    async def path(self) -> str:
        """The PATH that servers get."""
        if self._path is None:
            self._path = asyncio.ensure_future(self._health.search_path())
        return await asyncio.shield(self._path)

    async def end(self) -> None:
        """Leave nothing running."""
        left = [task for task in (self._reach, self._path, self.chats.reading) if task is not None]
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)


class Health:
    """Implements `core.diagnosis.Diagnostics`.

    Args:
        folder: the profile's folder.
        settings: its settings.
        secrets: its vault.
        models: its models.
        servers: its servers.
        storage: its database.
        history: its chats.
        redactor: knows the secrets of this process; for the report.
        search_path: gives the PATH that servers are started with.
        telemetry: tells how the collector does, if there is one.
        environ: where proxies, certificates and vendors' keys are looked for; None: this process's own.
        now: seconds since the epoch.
        limit_s: how long one check may take.
    """

    def __init__(
        self,
        folder: Path,
        settings: SettingsStore,
        secrets: SecretStore,
        models: ModelAdmin,
        servers: ServerAdmin,
        storage: profile.Sound,
        history: History,
        *,
        redactor: Redactor | None = None,
        search_path: Callable[[], Awaitable[str]] | None = None,
        telemetry: TelemetryState | None = None,
        environ: Mapping[str, str] | None = None,
        now: Callable[[], float] = time.time,
        limit_s: float = LIMIT_S,
    ) -> None:
        self.models, self.history, self.now = models, history, now
        self._folder, self._settings, self._secrets = folder, settings, secrets
        self._servers, self._storage = servers, storage
        self._redactor = redactor or Redactor()
        self._environ = os.environ if environ is None else environ
        self._search_path, self._telemetry = search_path, telemetry
        self._limit_s = limit_s

    async def search_path(self) -> str:
        """The PATH that servers get."""
        return await self._search_path() if self._search_path else self._environ.get("PATH", "")

    def checks(self) -> tuple[str, ...]:
        return tuple(self._table(_Round(self)))

    async def run(
        self, names: tuple[str, ...] | None = None, told: Callable[[Finding], None] | None = None
    ) -> tuple[Finding, ...]:
        shared = _Round(self)
        table = self._table(shared)
        wanted = table if names is None else {name: table[name] for name in names if name in table}
        some = asyncio.Semaphore(AT_ONCE)

        async def one(name: str, check: Check) -> Finding:
            async with some:
                found = await self._guarded(name, check)
            if told is not None:
                told(found)
            return found

        try:
            return tuple(await asyncio.gather(*(one(name, check) for name, check in wanted.items())))
        finally:
            await shared.end()

    async def mend(self, check: str) -> Finding:
        match check:
            case "home":
                await asyncio.to_thread(machine.close_home, self._folder)
            case "secrets":
                await profile.unlock(self._secrets)
            case _:
                raise UserFault("usage", f"the app can do nothing about {check!r} by itself", value=check)
        return (await self.run((check,)))[0]

    async def report(self, findings: tuple[Finding, ...]) -> tuple[ReportPart, ...]:
        await self._learn()
        logs = {s.name: self._servers.logs(s.name) for s in self._servers.statuses()}
        return await asyncio.to_thread(
            report.make, self._folder, findings, self._servers.statuses(), logs, self._redactor
        )

    async def save(self, target: Path, parts: tuple[ReportPart, ...]) -> Path:
        return await asyncio.to_thread(report.write, target, parts)

    async def _learn(self) -> None:
        """Let the redactor know every secret of the profile, also those that nobody asked for in this run."""
        for variable, value in self._environ.items():
            if report.is_secret_name(variable):
                self._redactor.add(value)
        try:
            async with asyncio.timeout(self._limit_s):
                for name in await self._secrets.names():
                    self._redactor.add(await self._secrets.get(name) or "")
        except (HostError, TimeoutError):
            return  # a locked vault gave nothing out, so nothing of it stands in a log of this run

    async def _guarded(self, name: str, check: Check) -> Finding:
        started = time.perf_counter()
        try:
            async with asyncio.timeout(self._limit_s):
                found = await check()
        except TimeoutError:
            found = ill(name, "no_answer", "no_answer", seconds=f"{self._limit_s:g}")
        except HostError as error:
            found = faulty(name, error)
        except OSError as error:
            found = ill(name, "failed", "home", detail=error.strerror or str(error), place=str(error.filename or ""))
        except Exception as error:
            # A doctor that falls ill helps nobody: the other checks still tell what they found.
            params = FrozenDict({"detail": f"{type(error).__qualname__}: {error}"})
            found = Finding(name, False, "doctor.say.failed", params, "remedy.bug")
        return replace(found, took_ms=(time.perf_counter() - started) * 1000)

    def _table(self, shared: _Round) -> dict[str, Check]:
        """The checks by name, in the order in which they are shown."""
        table: dict[str, Check] = {
            "runtime": machine.runtime,
            "home": lambda: machine.home(self._folder),
            "disk": lambda: machine.disk(self._folder),
            "files": machine.files,
            "watcher": lambda: machine.watcher(self._folder),
            "crashes": lambda: machine.crashes(self._folder, self.now),
            "settings": lambda: _at_once(profile.settings_file(self._settings)),
            "database": lambda: profile.database(self._storage),
            "secrets": lambda: profile.vault(self._secrets),
            "keys": lambda: profile.keys(self._secrets, self._environ),
            "model": lambda: profile.model(self._settings, self.models),
            "proxy": lambda: wires.proxy(self._settings.current().network, self._environ),
            "ca_file": lambda: wires.certificates(self._settings.current().network, self._environ),
            "addresses": lambda: self._addresses(shared),
            "clock": lambda: self._clock(shared),
            "port": lambda: wires.ports(self._servers.configs(), self._settings.current().oauth.redirect_port),
            "programs": lambda: self._programs(shared),
            "node": lambda: self._node(shared),
            "context": lambda: shared.chats.about("context", ("context_overflow", "too_large")),
            "rate_limit": lambda: shared.chats.about("rate_limit", ("rate_limited", "overloaded")),
            "schema": lambda: self._schema(shared),
        }
        if (collector := self._telemetry) is not None:
            table["telemetry"] = lambda: wires.telemetry(collector)
        for status in self._servers.statuses():
            if status.enabled:
                table[f"server:{status.name}"] = partial(self._server, status.name)
        return table

    async def _server(self, name: str) -> Finding:
        return workings.server(self._servers.status(name))

    async def _addresses(self, shared: _Round) -> Finding:
        return wires.addresses(await shared.reach())

    async def _clock(self, shared: _Round) -> Finding:
        try:
            found = await shared.reach()
        except HostError:
            found = ()  # what is wrong with the addresses is told by their own check
        skews = [(one.name, one.skew_s) for one in found if one.skew_s is not None]
        return await machine.clock(self.now, skews)

    async def _programs(self, shared: _Round) -> Finding:
        return await workings.programs(self._servers, await shared.path())

    async def _node(self, shared: _Round) -> Finding:
        return await workings.node(self._servers, await shared.path())

    async def _schema(self, shared: _Round) -> Finding:
        tools = workings.refused_tools(self._servers)
        return await shared.chats.about("schema", ("bad_tool_schema",), tools)


async def _at_once(found: Finding) -> Finding:
    return found
