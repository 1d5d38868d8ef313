"""Open a profile as a host: the only file that names the concrete classes together.

Everything is opened strictly nested and closed the other way round: vault, database, models, servers, engine.
Heavy rooms are imported here, when a host is opened, never at the start of the program.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

from desktop_host.app.clock import SystemClock
from desktop_host.app.install_links import DesktopLinks
from desktop_host.app.passphrase import ask_passphrase
from desktop_host.app.run_secrets import RunSecrets
from desktop_host.app.sharing import WindowSharer, serve_gateway
from desktop_host.core.admin import ServerAdmin
from desktop_host.core.errors import UserFault
from desktop_host.core.events import Event
from desktop_host.core.servers import SamplingPolicy, ServerConfig
from desktop_host.core.settings import Settings
from desktop_host.core.values import FrozenDict
from desktop_host.engine.builtin import BuiltinTools
from desktop_host.engine.bus import Bus
from desktop_host.engine.gate import Gate
from desktop_host.engine.host import Host, HostSpec
from desktop_host.engine.inbox import Inbox
from desktop_host.engine.outside import Askers
from desktop_host.engine.parts import Parts
from desktop_host.engine.results import ResultReader
from desktop_host.engine.reviewer import HostReviewer
from desktop_host.engine.sessions import Sessions
from desktop_host.engine.spending import Spending
from desktop_host.engine.subtasks import Subtasks
from desktop_host.engine.toolkit import Toolkit

AskPassphrase = Callable[[], Awaitable[str | None]]


@asynccontextmanager
async def open_host(spec: HostSpec, *, passphrase: AskPassphrase | None = None) -> AsyncIterator[Host]:
    """A host of one profile, until the context is left.

    Raises:
        UserFault: `bad_settings`, `bad_config`, `usage` (a bad profile name).
        KnownFault: `database_error`, `disk_full`, `storage_unavailable`.
    """
    # Here, not above: these rooms bring the SDKs' weight with them.
    from desktop_host.app.record import shared_record
    from desktop_host.diagnostics import CrashReports, Health, Redactor, Telemetry, start_logging
    from desktop_host.profiles.settings_file import SettingsFile
    from desktop_host.profiles.store import Profiles
    from desktop_host.profiles.toolkit_file import ToolkitFile
    from desktop_host.profiles.vault import open_vault
    from desktop_host.providers.catalog import Models
    from desktop_host.providers.local import LocalModels
    from desktop_host.providers.scripted import ScriptedModel
    from desktop_host.servers.bundles import Bundles
    from desktop_host.servers.environment import login_path
    from desktop_host.servers.json_schema import misfit
    from desktop_host.servers.supervisor import Servers
    from desktop_host.skills.likeness import Likeness
    from desktop_host.skills.opening import open_skills
    from desktop_host.storage import open_storage
    from desktop_host.ui.web_scheme import available

    clock = SystemClock()
    extra, known = await _extra_servers(spec.mcp_config)
    async with AsyncExitStack() as opened:
        profile = await asyncio.to_thread(Profiles(spec.home).open, spec.profile)
        opened.callback(profile.close)
        redactor = Redactor()
        for value in known.values():
            redactor.add(str(value))
        loop = asyncio.get_running_loop()
        logs = await asyncio.to_thread(start_logging, profile.path, spec.log_level, redactor=redactor, loop=loop)
        opened.push_async_callback(asyncio.to_thread, logs.close)
        crashes = CrashReports(profile.path, redactor)
        crashes.install(loop)
        opened.callback(crashes.remove)
        settings = await SettingsFile.open(profile.path / "settings.toml")

        inbox: Inbox | None = None

        async def ask() -> str | None:
            # Before the engine stands nobody can be asked but the window, and it was told.
            return spec.passphrase or (await ask_passphrase(inbox) if inbox else None)

        asked = None if spec.headless is not None else ask  # with nobody watching, only the passphrase file counts
        secrets = await open_vault(profile.uuid, profile.path, passphrase=passphrase or asked, seen=redactor.add)
        opened.push_async_callback(secrets.close)
        shared = None if spec.own_record else await shared_record(settings, secrets, redactor)
        async with open_storage(profile.path, shared=shared) as storage:
            telemetry = Telemetry(settings.current, secrets, redactor)
            await telemetry.open()
            opened.push_async_callback(telemetry.close)
            models = Models(
                settings, secrets, clock, local=LocalModels(), scripted=ScriptedModel, answers=storage.answers,
                tracing=telemetry, likeness=Likeness(),
            )  # fmt: skip
            bus = Bus()
            telling: set[asyncio.Task[None]] = set()

            def tell(event: Event) -> None:
                """Events of no session: servers and library."""
                task = asyncio.ensure_future(bus.announce(event, clock.now()))
                telling.add(task)
                task.add_done_callback(telling.discard)

            async def emit(session: str | None, event: Event) -> None:
                await sessions.emit(session, event)

            inbox = Inbox(emit, spec.headless, lambda session: sessions.face(session))
            askers = Askers()
            spending = Spending(models, settings, clock, storage.purses)
            reviewer = HostReviewer(
                inbox,
                models,
                clock,
                context=lambda session: sessions.context(session),
                emit=emit,
                policy=lambda alias: _sampling(servers.configs(), alias),
                settings=settings.current,
                spending=spending,
                keep=lambda alias, policy: _keep_sampling(servers, alias, policy),
                askers=askers,
                check=misfit,
            )
            servers = Servers(
                profile.path,
                RunSecrets(secrets, known) if known else secrets,
                reviewer,
                tell,
                clock,
                extra=extra,
                with_profile_servers=spec.with_profile_servers or not spec.mcp_config,
                sign_in=lambda: settings.current().oauth.defaults(),
                values=lambda: settings.current().servers,
                call_s=lambda: settings.current().tools.call_timeout_s,
                apps=spec.headless is None and available(),
            )

            async def folders_changed(before: Settings, now: Settings) -> None:
                if before.tools.roots != now.tools.roots:
                    await servers.roots_changed(None)

            settings.listen(folders_changed)
            skills = await opened.enter_async_context(
                open_skills(
                    profile.path, settings, storage.history, clock, tell=tell, emit=emit,
                    servers=lambda: frozenset(c.name for c in servers.configs() if c.enabled),
                    run_folders=spec.skill_folders, remote=servers.skills,
                )
            )  # fmt: skip
            results = ResultReader(storage.history, lambda session: sessions.context(session))
            subtasks = Subtasks(lambda: sessions, skills.source, lambda session: bool(skills.tools.specs(session)))
            tools = Toolkit(
                BuiltinTools(servers, (skills.tools, subtasks, results), misfit),
                await ToolkitFile.open(profile.path / "toolkit.json"), storage.history, secrets, servers.call_tool,
                servers.learn_secrets,
            )  # fmt: skip
            gate = Gate(inbox, storage.ledger, settings.current, tools.is_trusted, tools.default)
            bundles = Bundles(profile.path / "bundles", servers, secrets)
            parts = Parts(
                storage.history, storage.ledger, models, tools, settings, inbox, gate, bus, clock, spending,
                skills.source, tools, bundles, askers, storage.where(),
                partial(storage.upload, profile.uuid) if storage.upload else None, tracing=telemetry,
                links=DesktopLinks(_leading_to(spec)),
            )  # fmt: skip
            sessions = Sessions(parts)
            health = Health(
                profile.path, settings, secrets, models, servers, storage, storage.history, redactor=redactor,
                search_path=login_path, telemetry=telemetry,
            )  # fmt: skip
            host = Host(profile.name, profile.path, parts, sessions, inbox, servers, secrets, health, skills.admin)
            await servers.open()
            sharer = WindowSharer(settings, secrets, servers, lambda to: serve_gateway(host, to))
            if spec.headless is None:
                host.sharing = sharer
                opening = asyncio.create_task(sharer.begin())
                opened.callback(opening.cancel)
            if spec.autostart and settings.current().servers.autostart:
                starting = asyncio.create_task(servers.autostart(), name="autostart")
                opened.callback(starting.cancel)
            try:
                yield host
            finally:
                await sharer.close()
                await host.close()
                await servers.close()
                await models.close()
                if telling:
                    await asyncio.wait(telling, timeout=1)


def _leading_to(spec: HostSpec) -> tuple[str, ...]:
    """The words by which a link reaches this very profile."""
    home = ("--home", str(spec.home.absolute())) if spec.home else ()
    return (*home, *(("--profile", spec.profile) if spec.profile != "default" else ()))


def _sampling(configs: tuple[ServerConfig, ...], alias: str) -> SamplingPolicy:
    """What a server may ask of the model; one that is not configured may ask nothing."""
    found = next((c for c in configs if c.name == alias), None)
    return found.sampling if found else SamplingPolicy(mode="off")


async def _keep_sampling(servers: ServerAdmin, alias: str, policy: SamplingPolicy) -> None:
    """The person said "always, within this"; a server of this run only has no entry to keep it in."""
    found = next((c for c in servers.configs() if c.name == alias), None)
    if found is not None:
        await servers.update(replace(found, sampling=policy))


def _lists_none(text: str) -> bool:
    """Whether a file says that there are to be no servers: then a run goes without any."""
    try:
        said = json.loads(text)
    except ValueError:
        return False
    return isinstance(said, dict) and said.get("mcpServers") == {}


async def _extra_servers(files: tuple[Path, ...]) -> tuple[tuple[ServerConfig, ...], FrozenDict]:
    """The servers of `--mcp-config` files, and their secrets by the names the servers refer to.

    Raises:
        UserFault: `bad_config` with the file, `not_found`.
    """
    from desktop_host.servers.importing import parse

    configs: dict[str, ServerConfig] = {}
    secrets: dict[str, object] = {}
    for file in files:
        try:
            text = await asyncio.to_thread(file.read_text, "utf-8-sig")
        except FileNotFoundError:
            raise UserFault("not_found", f"there is no file {file}", kind="file", name=str(file)) from None
        except (OSError, UnicodeDecodeError) as error:
            why = error.strerror if isinstance(error, OSError) and error.strerror else error
            raise UserFault("bad_config", f"{file}: {why}", file=str(file)) from error
        try:
            found = parse(text, frozenset())
        except UserFault as fault:
            if _lists_none(text):
                continue
            fault.params.setdefault("file", str(file))
            raise
        configs |= {one.config.name: one.config for one in found}
        for one in found:
            secrets |= one.secrets
    return tuple(configs.values()), FrozenDict(secrets)
