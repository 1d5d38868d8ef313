"""The servers of a profile: the front of the room, behind the ports `ServerAdmin` and `ToolSource`."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from desktop_host.core.admin import SecretStore
from desktop_host.core.apps import for_model
from desktop_host.core.auth import SignInDefaults
from desktop_host.core.errors import UserFault
from desktop_host.core.exchange import Progress, ToolOutcome
from desktop_host.core.permissions import Effect, Verdict
from desktop_host.core.ports import Clock, EventSink, Reviewer
from desktop_host.core.server_ports import Clash, FoundConfig, InstallLink
from desktop_host.core.server_values import ServerValues
from desktop_host.core.servers import (
    ImportedServer,
    ServerConfig,
    ServerScope,
    ServerStatus,
    ServerTest,
)
from desktop_host.core.tools import ToolSpec
from desktop_host.core.values import FrozenDict
from desktop_host.servers import deeplink, importing, other_hosts
from desktop_host.servers.book import Book, check
from desktop_host.servers.by_hand import ByHand
from desktop_host.servers.clashes import settled
from desktop_host.servers.desk import Desk
from desktop_host.servers.folders import Folders
from desktop_host.servers.keeper import GIVEN_UP
from desktop_host.servers.mending import mended
from desktop_host.servers.patience import Patience
from desktop_host.servers.placeholders import own_secrets
from desktop_host.servers.pool import Pool
from desktop_host.servers.profile_paths import PROFILE, settled_here
from desktop_host.servers.served_skills import ServedSkills
from desktop_host.servers.signing import Signing
from desktop_host.servers.wiring import CALL_S


class Servers(ByHand, Signing):
    """All servers of one profile. Open it before use and close it; both on the host's loop.

    Args:
        folder: the profile's folder; `servers.json`, `logs/` and what is remembered of servers lie in it.
        extra: servers of this run only; never saved.
        with_profile_servers: whether the profile's own servers take part.
        environ: where `${VAR}` is looked up; the process's environment by default.
        sign_in: the settings for signing in, as they are now.
        values: the variables and headers that the profile gives its servers, as they are now.
    """

    def __init__(
        self,
        folder: Path,
        secrets: SecretStore,
        reviewer: Reviewer,
        sink: EventSink,
        clock: Clock,
        *,
        extra: tuple[ServerConfig, ...] = (),
        with_profile_servers: bool = True,
        environ: Mapping[str, str] | None = None,
        sign_in: Callable[[], SignInDefaults] = SignInDefaults,
        values: Callable[[], ServerValues] = ServerValues,
        apps: bool = False,
        call_s: Callable[[], float] = lambda: CALL_S,
    ) -> None:
        super().__init__()
        self._folder, self._secrets = folder, secrets
        self._book = Book(folder / "servers.json", extra, with_profile_servers)
        around = {**(os.environ if environ is None else environ), PROFILE: str(folder)}
        self._pool = Pool(folder, secrets, reviewer, sink, clock, around, sign_in, values, apps, call_s)
        self._desk = Desk(self._pool)
        self.skills = ServedSkills(self._book, self._pool, self._desk)
        """The skills that servers serve."""
        self._reviewer, self._patience = reviewer, Patience()
        self._folders = Folders(self._pool, reviewer)
        self._live = False
        """Whether enabled servers were asked to run: then an added one starts as well."""
        self._starts: set[asyncio.Task[None]] = set()
        self._held: set[str] = set()
        """Stopped by the person: no session starts them, until the person does."""

    async def open(self) -> None:
        """Load the configuration and end what a killed host left behind. Starts nothing.

        Raises:
            UserFault: `bad_config`, the file cannot be read; it is left as it is.
        """
        await self._book.load()
        await self._pool.open()
        self._folders.begin()

    async def close(self) -> None:
        """Stop all servers, in parallel (about 5 s at most)."""
        for task in self._starts:
            task.cancel()
        await self._close_eyes()
        await self._icons.close()
        await self._pool.close()

    # ---- configuration
    def configs(self) -> tuple[ServerConfig, ...]:
        return self._book.all()

    def statuses(self) -> tuple[ServerStatus, ...]:
        return tuple(self._pool.status(c) for c in self._book.all())

    def status(self, name: str) -> ServerStatus:
        return self._pool.status(self._book.get(name))

    async def add(self, config: ServerConfig, secrets: FrozenDict | None = None) -> ServerConfig:
        check(config)
        if any(c.name == config.name for c in self._book.all()):
            await self._book.add(config)  # Refuses, before a secret of the same name is replaced.
        for name, value in (secrets or {}).items():
            await self._secrets.put(name, str(value))
        await self._book.add(config)
        self._pool.wiring(config)
        self._pool.tell(config.name)
        if self._live and config.enabled:
            self._start_soon(config)
        return config

    async def update(self, config: ServerConfig) -> None:
        old = self._book.get(config.name)
        await self._book.put(config)
        await self._changed(old, config)

    async def remove(self, name: str) -> bool:
        config = self._book.get(name)
        signed = self._pool.wiring(config).sign_in
        told = await self.end_sign_in(config)
        await self._book.remove(name)
        for secret in own_secrets(config):
            await self._secrets.delete(secret)
        self._held.discard(name)
        await self._close_eyes(name)
        self._icons.forget(name)
        await self._pool.forget(name)
        for kept in ("bundles", "files"):  # What was unpacked or saved for this server alone.
            await asyncio.to_thread(shutil.rmtree, self._folder / kept / name, True)
        await signed.erase()
        return told

    async def enable(self, name: str, on: bool) -> None:
        self._held.discard(name)
        if not on:
            await self._close_eyes(name)
        await self.update(replace(self._book.get(name), enabled=on))

    async def set_tool_enabled(self, name: str, tool: str, on: bool) -> None:
        config = self._book.get(name)
        others = tuple(t for t in config.disabled_tools if t != tool)
        await self.update(replace(config, disabled_tools=others if on else (*others, tool)))

    def parse(self, text: str) -> tuple[ImportedServer, ...]:
        return importing.parse(text, frozenset(c.name for c in self._book.all()))

    async def read_all(self, text: str) -> tuple[ImportedServer, ...]:
        return await asyncio.to_thread(importing.parse, text)

    def link(self, url: str) -> InstallLink:
        return deeplink.read(url, frozenset(c.name for c in self._book.all()))

    async def found(self, home: Path | None = None) -> tuple[FoundConfig, ...]:
        return await asyncio.to_thread(other_hosts.found, home)

    async def take_over(
        self, servers: tuple[ImportedServer, ...], clash: Clash = Clash.RENAME
    ) -> tuple[ServerConfig, ...]:
        taken = frozenset(c.name for c in self._book.all())
        done: list[ServerConfig] = []
        for one, replaces in settled(servers, taken, clash):
            if replaces:
                for name, value in one.secrets.items():
                    await self._secrets.put(name, str(value))
                await self.update(one.config)
                done.append(one.config)
            else:
                done.append(await self.add(one.config, one.secrets))
        return tuple(done)

    def export(self) -> FrozenDict:
        return importing.export(settled_here(c, self._folder) for c in self._book.all())

    # ---- life
    async def start(self, name: str) -> ServerStatus:
        config = self._book.get(name)
        self._held.discard(name)
        await self._pool.start(self._pool.keeper(config))
        return self._pool.status(config)

    async def stop(self, name: str) -> None:
        self._book.get(name)
        self._held.add(name)
        await self._close_eyes(name)  # An open one would start the server again.
        await self._pool.stop(name)

    async def restart(self, name: str) -> ServerStatus:
        config = self._book.get(name)
        running = tuple(k for k in self._pool.of_server(name) if k.wanted) or (self._pool.keeper(config),)
        await asyncio.gather(*(k.stop() for k in running))
        self._held.discard(name)
        await asyncio.gather(*(self._pool.start(k) for k in running))
        return self._pool.status(config)

    async def mend(self, name: str) -> ServerStatus:
        config, report = self._book.get(name), self.status(name).error
        if report is None:
            raise UserFault("usage", f"nothing is known to be wrong with {name}", reason="no_mend", server=name)
        changed = await asyncio.to_thread(mended, config, report)
        if changed != config:
            await self._book.put(changed)
            await self._changed(config, changed)
        return await self.restart(name)

    async def autostart(self, aliases: tuple[str, ...] | None = None) -> None:
        self._live = True
        wanted = [c for c in self._wanted(aliases) if c.scope is not ServerScope.SESSION and c.name not in self._held]
        await asyncio.gather(*(self._pool.keeper(c).start() for c in wanted))

    async def test(self, config: ServerConfig) -> ServerTest:
        return await self._desk.test(config)

    # ---- for sessions
    async def prepare(self, session: str, aliases: tuple[str, ...] | None, roots: tuple[str, ...]) -> None:
        self._folders.use(session, roots)
        keepers = [self._pool.keeper(c, session) for c in self._wanted(aliases) if c.name not in self._held]
        await self._folders.tell(None)  # Those that run; what starts now asks by itself.
        await self._patience.settle(keepers)

    async def roots_changed(self, session: str | None) -> None:
        await self._folders.tell(session)

    def session_tools(self, session: str, aliases: tuple[str, ...] | None = None) -> tuple[ToolSpec, ...]:
        """The tools that a session's servers now offer, sorted by alias and name."""
        found = [t for c in self._wanted(aliases) for t in self._desk.tools(c, session) if for_model(t)]
        return tuple(sorted(found, key=lambda t: (t.server, t.name)))

    def is_trusted(self, alias: str) -> bool:
        return any(c.name == alias and c.trusted for c in self._book.all())

    async def call(
        self,
        session: str,
        call_id: str,
        spec: ToolSpec,
        arguments: FrozenDict,
        verdict: Verdict,
        progress: Callable[[Progress], None],
    ) -> ToolOutcome:
        if not isinstance(verdict, Verdict) or verdict.effect is not Effect.ALLOW:
            raise UserFault("permission", f"{spec.full_name} is not allowed", tool=spec.full_name)
        config = next((c for c in self._book.all() if c.name == spec.server and c.enabled), None)
        if config is None:
            return self._desk.gone(spec.full_name)
        if config.name in self._held and not any(k.wanted for k in self._pool.of_server(config.name)):
            return self._desk.gone(spec.full_name, " (its server was stopped)")
        return await self._desk.call(config, spec.name, arguments, session=session, call_id=call_id, progress=progress)

    async def release(self, session: str) -> None:
        self._folders.forget(session)
        await self._pool.drop(self._pool.of_session(session))

    # ---- inside
    def _wanted(self, aliases: tuple[str, ...] | None) -> list[ServerConfig]:
        return [c for c in self._book.all() if c.enabled and (aliases is None or c.name in aliases)]

    async def _changed(self, old: ServerConfig, new: ServerConfig) -> None:
        self._pool.wiring(new)
        made_of = (new.launch, new.protocol, new.scope)
        running = any(k.wanted or k.state in GIVEN_UP for k in self._pool.of_server(new.name))
        if not new.enabled or (old.launch, old.protocol, old.scope) != made_of:
            keepers, can_swap = self._pool.of_server(new.name), new.enabled and old.scope is new.scope
            busy = {k for k in keepers if can_swap and k.swap()}  # What runs is never cut off by a setting.
            await self._pool.drop(tuple(k for k in keepers if k not in busy))
            if new.enabled and running and not busy:
                self._start_soon(new)
        if new.enabled and not old.enabled and self._live:
            self._start_soon(new)
        same_tools = (old.disabled_tools, old.enabled_tools, old.trusted) == (
            new.disabled_tools, new.enabled_tools, new.trusted,
        )  # fmt: skip
        self._pool.tell(new.name, () if same_tools else ("tools",))

    def _start_soon(self, config: ServerConfig) -> None:
        if config.scope is ServerScope.SESSION:
            return  # Its sessions start it.
        task = asyncio.create_task(self._pool.start(self._pool.keeper(config)))
        self._starts.add(task)
        task.add_done_callback(self._starts.discard)
