"""The chat's fake host with the rest of a profile: servers that start and fail, keys, models, permissions."""

from __future__ import annotations

import asyncio
import datetime
import json
import re
import shlex
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from desktop_host.core import events as ev
from desktop_host.core.auth import SignInState
from desktop_host.core.bundles import BundleField, BundlePreview, InstalledBundle
from desktop_host.core.errors import KnownFault, PeerFault, UserFault
from desktop_host.core.exchange import Progress, ToolOutcome
from desktop_host.core.install_links import LinkState
from desktop_host.core.messages import Message, Outcome, Text, user
from desktop_host.core.models import ModelEntry, ModelProgress
from desktop_host.core.permissions import Effect, Rule
from desktop_host.core.server_ports import Clash, Completion, FoundConfig, InstallLink, SavedResource
from desktop_host.core.servers import (
    FailureReport,
    Http,
    ImportedServer,
    LogLine,
    PromptArgument,
    PromptSpec,
    ResourceSpec,
    ServerConfig,
    ServerState,
    ServerStatus,
    Stdio,
    WireFrame,
)
from desktop_host.core.sessions import SessionRow, SessionState
from desktop_host.core.settings import Settings, put
from desktop_host.core.toolkit import ToolkitConfig, ToolRule
from desktop_host.core.tools import ToolGroup, ToolHints, ToolSpec, alias_for
from desktop_host.core.values import EMPTY, FrozenDict, freeze
from tests.fakes.fake_host import FakeHost
from tests.fakes.memory_vault import MemoryVault
from tests.fakes.shell_sharing import ShellSharing

DAY = 86_400.0
FAILURE = FailureReport(
    "server_lost",
    "the process ended with exit code 1 before it answered",
    "remedy.server.banner",
    ("/usr/bin/node", "/opt/servers/broken/index.js", "--root", "/home/ada/Documents/project with spaces"),
    "/home/ada/.local/bin:/usr/local/bin:/usr/bin:/bin",
    "/home/ada",
    1,
    ("node:internal/modules/cjs/loader:1148", "  throw err;", "Error: Cannot find module 'zod'"),
    "Welcome to Broken Server v1.0!",
)


class ShellServers:
    """Servers in memory. One whose command is `broken` fails with a full report."""

    def __init__(self, host: ShellHost) -> None:
        self._host = host
        self.rows: dict[str, tuple[ServerConfig, ServerStatus]] = {}
        self.calls: list[tuple[str, str, FrozenDict]] = []
        self.added_secrets: dict[str, str] = {}
        self.frames: dict[str, list[WireFrame]] = {}
        self.elsewhere: tuple[FoundConfig, ...] = ()
        self.watched: set[str] = set()
        self.levels: list[tuple[str, str]] = []
        self.completions: list[tuple[str, str, str, FrozenDict]] = []
        self.signing = asyncio.Event()
        """Set by a test when the person comes back from the browser."""
        self.resent: list[tuple[str, str, FrozenDict]] = []
        self.mends: list[str] = []
        self.pictures: dict[tuple[str, str, str, bool], bytes] = {}
        """Pictures by server, kind, item and dark ground."""
        self.unrevoked: set[str] = set()
        """Servers whose tokens no authorization server would take back."""

    def configs(self) -> tuple[ServerConfig, ...]:
        return tuple(c for c, _ in self.rows.values())

    def statuses(self) -> tuple[ServerStatus, ...]:
        return tuple(s for _, s in self.rows.values())

    def status(self, name: str) -> ServerStatus:
        if name not in self.rows:
            raise UserFault("not_found", f"no server {name}", thing=name)
        return self.rows[name][1]

    async def add(self, config: ServerConfig, secrets: FrozenDict | None = None) -> ServerConfig:
        if config.name in self.rows:
            raise UserFault("bad_config", f"there is a server {config.name} already", name=config.name)
        for key, value in (secrets or {}).items():
            await self._host.secrets.put(key, value)
        state = ServerState.STOPPED if config.enabled else ServerState.DISABLED
        self.rows[config.name] = (
            config,
            ServerStatus(config.name, state, config.transport, config.enabled, target=config.target),
        )
        self._tell(config.name)
        return config

    async def update(self, config: ServerConfig) -> None:
        _, status = self.rows[config.name]
        self.rows[config.name] = (config, replace(status, target=config.target, transport=config.transport))
        self._tell(config.name)

    async def remove(self, name: str) -> bool:
        self.status(name)
        del self.rows[name]
        return name not in self.unrevoked

    async def enable(self, name: str, on: bool) -> None:
        config, status = self.rows[name]
        state = ServerState.STOPPED if on else ServerState.DISABLED
        self.rows[name] = (replace(config, enabled=on), replace(status, enabled=on, state=state, pid=None))
        self._tell(name)

    async def set_tool_enabled(self, name: str, tool: str, on: bool) -> None:
        config, status = self.rows[name]
        off = set(config.disabled_tools) - {tool} if on else {*config.disabled_tools, tool}
        self.rows[name] = (replace(config, disabled_tools=tuple(sorted(off))), status)
        self._tell(name, ("tools",))

    async def icon(self, name: str, kind: str = "server", item: str = "", dark: bool = False) -> bytes | None:
        return self.pictures.get((name, kind, item, dark))

    async def mend(self, name: str) -> ServerStatus:
        self.mends.append(name)
        return await self.start(name)

    async def start(self, name: str) -> ServerStatus:
        config, status = self.rows[name]
        self._set(name, replace(status, state=ServerState.STARTING, since=time.time(), error=None))
        await asyncio.sleep(0.01)
        if isinstance(config.launch, Stdio) and config.launch.command == "broken":
            self._set(name, replace(status, state=ServerState.FAILED, since=time.time(), error=FAILURE, pid=None))
        else:
            ready = ServerStatus(
                name,
                ServerState.READY,
                config.transport,
                True,
                "2026-07-28",
                FrozenDict({"name": f"{name}-server", "version": "1.4.2"}),
                freeze({"tools": {"listChanged": True}, "resources": {}, "prompts": {}}),
                "Ask for files by absolute path.",
                len(TOOLS),
                2,
                1,
                4242 if config.transport == "stdio" else None,
                time.time() - 95,
                target=config.target,
            )
            self._set(name, ready)
        return self.rows[name][1]

    async def stop(self, name: str) -> None:
        _, status = self.rows[name]
        self._set(name, replace(status, state=ServerState.STOPPED, pid=None, tools=0, since=time.time()))

    async def restart(self, name: str) -> ServerStatus:
        await self.stop(name)
        return await self.start(name)

    def tools(self, name: str) -> tuple[ToolSpec, ...]:
        config, status = self.rows[name]
        if status.state is not ServerState.READY:
            return ()
        return tuple(replace(t, server=name, enabled=t.name not in config.disabled_tools) for t in TOOLS)

    async def call_tool(
        self, name: str, tool: str, arguments: FrozenDict, progress: Callable[[Progress], None] | None = None
    ) -> ToolOutcome:
        self.calls.append((name, tool, arguments))
        return ToolOutcome(Outcome.OK, (Text(f"{tool} got {json.dumps(arguments)}"),), duration_ms=12.5)

    async def resources(self, name: str) -> tuple[ResourceSpec, ...]:
        return (
            ResourceSpec(
                name,
                "file:///home/ada/notes.md",
                "notes.md",
                "Notes",
                "What Ada wrote",
                "text/markdown",
                812,
                annotations=freeze(
                    {"audience": ["user", "assistant"], "priority": 0.8, "lastModified": "2026-03-01T09:30:00Z"}
                ),
            ),
            ResourceSpec(name, "file:///{path}", "Any file", None, None, None, None, True),
        )

    async def read_resource(self, name: str, uri: str) -> ToolOutcome:
        return ToolOutcome(Outcome.OK, (Text(f"contents of {uri}"),))

    async def save_resource(self, name: str, uri: str) -> SavedResource:
        self._host.folder.mkdir(parents=True, exist_ok=True)
        path = self._host.folder / "saved.md"
        path.write_text(f"contents of {uri}", "utf-8")
        return SavedResource(uri, path, "text/markdown", path.stat().st_size)

    async def complete(self, name: str, ref: str, argument: str, value: str, context: FrozenDict = EMPTY) -> Completion:
        self.completions.append((ref, argument, value, context))
        return Completion(tuple(w for w in ("tides", "timber", "moon") if w.startswith(value)))

    async def subscribe(self, name: str, uri: str, on: bool = True) -> None:
        if uri.startswith("fixed:"):
            raise PeerFault("protocol_error", f"{name} does not let {uri} be watched", server=name)
        (self.watched.add if on else self.watched.discard)(uri)
        self._tell(name, ("watched",))

    def subscribed(self, name: str) -> tuple[str, ...]:
        return tuple(sorted(self.watched))

    def touch(self, name: str, uri: str) -> None:
        """A watched resource changed."""
        self._tell(name, (f"resource:{uri}",))

    async def found(self, home: Path | None = None) -> tuple[FoundConfig, ...]:
        return self.elsewhere

    def link(self, url: str) -> InstallLink:
        if "config=" not in url:
            raise UserFault("bad_config", "this link names no server", reason="bad_link")
        text = url.split("config=")[1]
        return InstallLink(self.parse(unquote(text)), url.split("?")[0] + "?…")

    async def twins(self, servers: tuple[ImportedServer, ...]) -> FrozenDict:
        """As far as this fake goes: the same program or address under the same name, numbered or not."""
        plain = {one.config.name: re.sub(r"-\d+$", "", one.config.name) for one in servers}
        return FrozenDict({
            one.config.name: base for one in servers
            if (base := plain[one.config.name]) in self.rows and self.rows[base][0].launch == one.config.launch
        })  # fmt: skip

    async def take_over(
        self, servers: tuple[ImportedServer, ...], clash: Clash = Clash.RENAME
    ) -> tuple[ServerConfig, ...]:
        done = []
        for one in servers:
            config = one.config
            if config.name in self.rows:
                if clash is Clash.SKIP:
                    continue
                if clash is Clash.REPLACE:
                    await self.update(config)
                    done.append(config)
                    continue
                if clash is Clash.RENAME:
                    config = replace(config, name=alias_for(config.name, frozenset(self.rows)))
            done.append(await self.add(config, one.secrets))
        return tuple(done)

    async def set_log_level(self, name: str, level: str) -> None:
        config, status = self.rows[name]
        self.rows[name] = (replace(config, log_level=level), status)
        self.levels.append((name, level))

    async def login(self, name: str) -> ServerStatus:
        self._set(name, replace(self.rows[name][1], state=ServerState.NEEDS_AUTH, sign_in=SignInState.SIGNING_IN))
        self.signing.clear()
        await self.signing.wait()
        if self.rows[name][1].sign_in is SignInState.SIGNING_IN:
            await self.start(name)
            self._set(name, replace(self.rows[name][1], sign_in=SignInState.SIGNED_IN))
        return self.rows[name][1]

    async def cancel_login(self, name: str) -> None:
        self._set(name, replace(self.rows[name][1], sign_in=SignInState.NEEDED))
        self.signing.set()

    async def logout(self, name: str) -> bool:
        await self.stop(name)
        self._set(name, replace(self.rows[name][1], sign_in=SignInState.NEEDED))
        return False

    async def prompts(self, name: str) -> tuple[PromptSpec, ...]:
        return (PromptSpec(name, "summarise", "Summarise", "Say it short", (PromptArgument("topic", required=True),)),)

    async def get_prompt(self, name: str, prompt: str, arguments: FrozenDict) -> tuple[Message, ...]:
        return (user(f"Please {prompt} {arguments.get('topic', '')}"),)

    def logs(self, name: str) -> tuple[LogLine, ...]:
        t = time.time()
        return (
            LogLine(t - 5, "host", "started"),
            LogLine(t - 4, "stderr", "listening on stdio"),
            LogLine(t - 3, "message", "index ready", "info"),
            LogLine(t - 1, "stderr", "warning: slow disk"),
        )

    def trace(self, name: str) -> tuple[WireFrame, ...]:
        if name not in self.frames:
            self.frames[name] = list(self._wire())
        return tuple(self.frames[name])

    def closed(self, name: str) -> frozenset[int]:
        return frozenset()

    async def resend(self, name: str, method: str, params: FrozenDict) -> FrozenDict:
        self.resent.append((name, method, params))
        number, t = 100 + len(self.resent), time.time()
        request = freeze({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
        answer = freeze({"jsonrpc": "2.0", "id": number, "result": {"content": []}})
        self.frames[name] += [WireFrame(t, "out", request), WireFrame(t + 0.02, "in", answer)]
        return answer

    def _wire(self) -> tuple[WireFrame, ...]:
        t = time.time()
        frames = (
            (t - 3, "out", {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}),
            (t - 2.97, "in", {"jsonrpc": "2.0", "id": 1, "result": {"tools": []}}),
            (t - 2, "out", {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "read_file"}}),
            (t - 1.5, "in", {"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progress": 1}}),
            (t - 1, "in", {"jsonrpc": "2.0", "id": 2, "error": {"code": -32602, "message": "no such file"}}),
        )
        return tuple(WireFrame(at, way, freeze(message)) for at, way, message in frames)

    def parse(self, text: str) -> tuple[ImportedServer, ...]:
        text = text.strip()
        taken = frozenset(self.rows)
        if not text:
            raise UserFault("bad_config", "nothing was pasted", reason="empty")
        if text.startswith("{"):
            try:
                data = json.loads(text)
            except json.JSONDecodeError as e:
                raise UserFault("bad_config", f"line {e.lineno}: {e.msg}", line=e.lineno, column=e.colno) from None
            return tuple(self._entry(n, d, taken) for n, d in data.get("mcpServers", data).items())
        if text.startswith(("http://", "https://")):
            return (ImportedServer(ServerConfig(alias_for(text.split("/")[2], taken), Http(text))),)
        command, *args = shlex.split(text)
        return (ImportedServer(ServerConfig(alias_for(command.rsplit("/")[-1], taken), Stdio(command, tuple(args)))),)

    def _entry(self, name: str, data: dict[str, Any], taken: frozenset[str]) -> ImportedServer:
        secrets, env = {}, {}
        for key, value in data.get("env", {}).items():
            if "TOKEN" in key or "KEY" in key:
                secrets[f"{name}-{key.lower()}"] = value
                env[key] = "${keyring:" + f"{name}-{key.lower()}" + "}"
            else:
                env[key] = value
        launch = (
            Http(data["url"]) if "url" in data else Stdio(data["command"], tuple(data.get("args", ())), freeze(env))
        )
        return ImportedServer(ServerConfig(alias_for(name, taken), launch), FrozenDict(secrets), ("unknown_keys",))

    def _set(self, name: str, status: ServerStatus) -> None:
        self.rows[name] = (self.rows[name][0], status)
        self._tell(name)

    def _tell(self, name: str, lists: tuple[str, ...] = ()) -> None:
        status = self.rows[name][1]
        self._host.publish("", ev.ServerChanged(name, status.state.value, status=status, lists=lists))


TOOLS = (
    ToolSpec(
        "x",
        "read_file",
        "Read a text file and return its contents.",
        freeze({"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}),
        title="Read file",
        hints=ToolHints(read_only=True),
    ),
    ToolSpec(
        "x",
        "write_file",
        "Write a text file. Overwrites what was there.",
        freeze({"type": "object", "properties": {"path": {"type": "string"}, "text": {"type": "string"}}}),
        hints=ToolHints(destructive=True),
    ),
    ToolSpec("x", "odd", "A tool whose schema was repaired.", problem="the schema had no type; object was assumed"),
)


class ShellBundles:
    """One bundle that asks for a folder, a key and a number."""

    def __init__(self, host: ShellHost) -> None:
        self._host = host
        self.values: dict[str, Any] = {}
        self.aliases: dict[str, str] = {}

    async def preview(self, path: Path) -> BundlePreview:
        if (await asyncio.to_thread(path.read_bytes))[:2] != b"PK":
            raise UserFault("bad_bundle", f"{path.name} is no bundle", reason="no_zip", file=path.name)
        launch = Stdio("node", ("${__dirname}/index.js",), FrozenDict({"KEY": "${user_config.key}"}))
        fields = (
            BundleField("folder", "directory", "Folder", "What it may read", required=True),
            BundleField("key", "string", "API key", required=True, secret=True),
            BundleField("limit", "number", "Limit", default=5, low=1, high=10),
            BundleField("verbose", "boolean", "Verbose"),
        )
        old = self.aliases.get("notes")
        return BundlePreview(
            path, "notes", "Notes", "1.2.0", "Reads your notes.", "Ada", "node", "0.3",
            ServerConfig("notes", launch), fields, ("search", "read"), 12, 34_000, installed="notes" if old else None,
            installed_version=old, warnings=("bundle_unsigned",),
        )  # fmt: skip

    async def install(self, path: Path, values: FrozenDict = EMPTY, *, enabled: bool = True) -> ServerConfig:
        self.values = {**self.values, **values}
        config = ServerConfig("notes", Stdio("node", ("index.js",)), enabled=enabled)
        if "notes" not in self._host.servers.rows:
            await self._host.servers.add(config)
        self.aliases["notes"] = "1.2.0"
        return config

    async def installed(self) -> tuple[InstalledBundle, ...]:
        values = FrozenDict({k: "${keyring:notes-key}" if k == "key" else v for k, v in self.values.items()})
        return tuple(InstalledBundle(a, a, a.title(), v, Path("/x"), values) for a, v in self.aliases.items())

    async def remove(self, alias: str) -> bool:
        del self.aliases[alias]
        await self._host.servers.remove(alias)
        return True


class ShellToolkit:
    """Groups and fixed arguments in memory."""

    def __init__(self) -> None:
        self.config = ToolkitConfig()
        self.switched: dict[str, dict[str, bool]] = {}
        self.refuse: UserFault | None = None

    async def groups(self, session: str) -> tuple[tuple[ToolGroup, bool], ...]:
        own = self.switched.get(session, {})
        return tuple((g, own.get(g.name, g.enabled)) for g in self.config.groups)

    async def put_group(self, group: ToolGroup) -> None:
        if not group.name.isidentifier():
            raise UserFault("usage", f"{group.name!r} cannot be a group's name", reason="bad_group_name")
        others = tuple(g for g in self.config.groups if g.name != group.name)
        self.config = replace(self.config, groups=(*others, group))

    async def remove_group(self, name: str) -> None:
        self.config = replace(self.config, groups=tuple(g for g in self.config.groups if g.name != name))

    async def put_rule(self, rule: ToolRule) -> None:
        if self.refuse is not None:
            raise self.refuse
        others = tuple(r for r in self.config.rules if r.tool != rule.tool)
        self.config = replace(self.config, rules=others if rule == ToolRule(rule.tool) else (*others, rule))

    async def let_model_switch(self, on: bool) -> None:
        self.config = replace(self.config, model_switches=on)


class ShellModels:
    """Two local models, and vendors that are ready once a key is set."""

    def __init__(self, host: ShellHost) -> None:
        self._host = host
        self.weights: set[str] = set()
        self.checked: list[str] = []
        self.gate = asyncio.Event()
        """Set by a test to let a fetch end."""
        self.fail_check: KnownFault | None = None

    async def entries(self, *, refresh: bool = False) -> tuple[ModelEntry, ...]:
        keys = await self._host.secrets.names()
        rows = [
            self._local("qwen2.5-coder-0.5b", "Qwen2.5-Coder 0.5B", 491_400_064),
            self._local("qwen2.5-coder-1.5b", "Qwen2.5-Coder 1.5B", 1_117_320_768),
        ]
        for vendor, model, title in (
            ("anthropic", "claude-sonnet-4-5", "Claude Sonnet 4.5"),
            ("openai", "gpt-5", "GPT-5"),
        ):
            ready = vendor in keys
            rows.append(
                ModelEntry(
                    f"{vendor}/{model}", title, vendor, ready, None if ready else "no_key", context_window=200_000
                )
            )
        for endpoint in self._host.settings.current().endpoints:
            rows += [
                ModelEntry(f"{endpoint.wire}:{endpoint.base_url}#{m}", m, endpoint.name, True) for m in endpoint.models
            ]
        return tuple(rows)

    def _local(self, name: str, title: str, size: int) -> ModelEntry:
        ready = name in self.weights
        return ModelEntry(
            f"local/{name}",
            title,
            "local",
            ready,
            None if ready else "no_weights",
            8192,
            size,
            "model.note.tiny" if "0.5b" in name else "model.note.small",
        )

    async def fetch(self, name: str, progress: Callable[[ModelProgress], None]) -> None:
        for part in range(1, 4):
            progress(ModelProgress(name, "download", part * 100, 400))
            await asyncio.sleep(0.01)
        await self.gate.wait()
        progress(ModelProgress(name, "done", 400, 400))
        self.weights.add(name)

    async def remove(self, name: str) -> None:
        self.weights.discard(name)

    async def check(self, ref: str) -> None:
        self.checked.append(ref)
        if self.fail_check is not None:
            raise self.fail_check


class ShellHistory:
    """Rows that can be renamed, pinned, searched and deleted."""

    def __init__(self, host: ShellHost) -> None:
        self._host = host
        self.kept: dict[str, SessionRow] = {}
        self.values: dict[tuple[str, str], Any] = {}

    async def rows(self, *, limit: int = 500, offset: int = 0) -> tuple[SessionRow, ...]:
        made = {sid: t for sid, t in self._host.transcripts.items() if sid and sid not in self.kept}
        for sid, t in made.items():
            self.kept[sid] = SessionRow(sid, t.title, time.time(), time.time(), len(t.entries))
        return tuple(sorted(self.kept.values(), key=lambda r: (not r.pinned, -r.updated))[offset:][:limit])

    async def search(self, text: str, limit: int = 50) -> tuple[SessionRow, ...]:
        hits = [r for r in await self.rows() if text.lower() in r.title.lower()]
        return tuple(replace(r, snippet=f"… {r.title} …") for r in hits[:limit])

    async def pin(self, session: str, on: bool) -> None:
        self.kept[session] = replace(self.kept[session], pinned=on)

    async def options(self, session: str) -> Any:
        from desktop_host.core.sessions import SessionOptions

        return self._host.options.get(session, SessionOptions())

    async def put_state(self, session: str, key: str, value: Any) -> None:
        self.values[session, key] = value

    async def state(self, session: str, key: str) -> Any:
        return self.values.get((session, key))

    async def read(self, session: str, after: int = 0, limit: int | None = None) -> tuple[ev.Stamped, ...]:
        return tuple(s for s in self._host.journal.get(session, []) if s.seq > after)[:limit]


class ShellSettings:
    """Settings in memory."""

    def __init__(self, now: Settings) -> None:
        self.now = now
        self.found: tuple[FrozenDict, ...] = ()

    def current(self) -> Settings:
        return self.now

    async def set(self, key: str, value: Any) -> Settings:
        self.now = put(self.now, key, value)
        return self.now

    async def save(self, settings: Settings) -> None:
        self.now = settings

    def problems(self) -> tuple[FrozenDict, ...]:
        return self.found


class ShellLinks:
    """A desktop that hands out links as it is told."""

    def __init__(self) -> None:
        self.now = LinkState(
            True, False, "/home/ada/.local/share/applications/desktop-host.desktop", "/opt/desktop-host"
        )

    async def state(self) -> LinkState:
        return self.now

    async def put(self, on: bool) -> LinkState:
        self.now = replace(self.now, on=on)
        return self.now


class ShellHost(FakeHost):
    """A whole profile in memory. `onboarded=False` opens it as on the first day."""

    def __init__(self, *, onboarded: bool = True) -> None:
        super().__init__()
        start = put(Settings(), "general.language", "en")
        self.settings = ShellSettings(put(start, "general.onboarded", onboarded))
        self.secrets = MemoryVault()
        self.servers = ShellServers(self)
        self.kit = ShellToolkit()
        self.packs = ShellBundles(self)
        self.links = ShellLinks()
        self.ledger = self
        self.models = ShellModels(self)
        self.history = ShellHistory(self)
        self.sharing = ShellSharing(self.settings, self.secrets)
        self.rules = [Rule(Effect.ALLOW, "files.read_*", origin="person")]

    @property
    def install_links(self) -> ShellLinks:  # type: ignore[override]
        return self.links

    async def rename(self, session: str, title: str) -> None:
        rows = {r.session: r for r in await self.history.rows()}
        self.history.kept[session] = replace(rows[session], title=title)
        self.publish(session, ev.SessionRenamed(title))

    async def delete(self, session: str) -> None:
        self.history.kept.pop(session, None)
        self.transcripts.pop(session, None)

    async def export(self, session: str, form: str) -> str:
        return f"# {self.history.kept[session].title}\n" if form == "md" else "{}"

    async def grants(self) -> tuple[Rule, ...]:
        return tuple(self.rules)

    @property
    def bundles(self) -> Any:
        return self.packs

    @property
    def toolkit(self) -> Any:
        return self.kit

    async def switch_group(self, session: str, group: str, on: bool) -> None:
        self.kit.switched.setdefault(session, {})[group] = on

    async def grant(self, rule: Rule) -> None:
        self.rules.append(rule)

    async def revoke(self, pattern: str) -> None:
        self.rules = [r for r in self.rules if r.pattern != pattern]

    def keep(self, session: str, title: str, days_ago: float = 0.0, **more: Any) -> None:
        """Put a conversation on record."""
        now = time.time()
        midnight = datetime.datetime.combine(datetime.date.today(), datetime.time()).timestamp()
        at = now - days_ago * DAY
        if days_ago < 1:  # Less than a day ago is today, also just after midnight.
            at = max(at, midnight + (now - midnight) * (1 - days_ago))
        self.publish(session, ev.SessionOpened("script:demo", title), 0)
        self.history.kept[session] = SessionRow(session, title, at, at, 4, **more)

    def populate(self) -> None:
        """Conversations of several days; call before the host is opened."""
        self.keep("c1", "How do goroutines differ from threads?", 0.01)
        self.keep("c2", "Plan a week in Lisbon with the calendar server", 0.02, state=SessionState.RUNNING)
        self.keep("c3", "会议纪要：第三季度路线图", 1)
        self.keep("c4", "Refactor the importer", 3)
        self.keep("c5", "Reading list", 4, pinned=True)
        self.keep("c6", "Why is the nightly build slow on arm64 runners and nowhere else?", 45)
