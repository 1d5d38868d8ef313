"""What `doctor` looks at: each check gives `{check, ok, detail, remedy}` and never fails itself.

`check` names the locale's `doctor.<check>`, `remedy` is a key too; `detail` holds names, paths and numbers.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import ssl
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Mapping
from importlib import metadata
from pathlib import Path
from typing import Protocol
from urllib.parse import urlsplit

from desktop_host.core.admin import ModelAdmin, SecretStore, ServerAdmin, SettingsStore
from desktop_host.core.errors import HostError
from desktop_host.core.servers import ServerState, Stdio
from desktop_host.core.values import FrozenDict
from desktop_host.diagnostics.redaction import Redactor

LIMIT_S = 15.0
"""How long one check may take."""
FREE_BYTES = 200_000_000
"""Less free space than this is a warning: a journal needs room to stay whole."""
_PROGRAMS = ("node", "npx", "uv", "uvx", "git", "docker")
_VENDORS = {"anthropic": "ANTHROPIC_API_KEY", "openai": "OPENAI_API_KEY"}
_BROKEN = (ServerState.FAILED, ServerState.WAITING, ServerState.NEEDS_AUTH)


class Sound(Protocol):
    """Something that can say what is wrong with it."""

    async def problem(self) -> str | None: ...


def row(check: str, ok: bool, detail: str = "", remedy: str = "") -> FrozenDict:
    """One result; a remedy only where it is needed."""
    return FrozenDict({"check": check, "ok": ok, "detail": detail, "remedy": "" if ok else remedy})


class Health:
    """The checks of an open profile."""

    def __init__(
        self,
        folder: Path,
        settings: SettingsStore,
        secrets: SecretStore,
        models: ModelAdmin,
        servers: ServerAdmin,
        storage: Sound,
        *,
        environ: Mapping[str, str] | None = None,
        now: Callable[[], float] = time.time,
        limit_s: float = LIMIT_S,
    ) -> None:
        self._folder = folder
        self._settings = settings
        self._secrets = secrets
        self._models = models
        self._servers = servers
        self._storage = storage
        self._environ = os.environ if environ is None else environ
        self._now = now
        self._limit_s = limit_s

    async def run(self) -> tuple[FrozenDict, ...]:
        """All checks, side by side; the rows come in a fixed order."""
        checks: tuple[tuple[str, Callable[[], Awaitable[FrozenDict]]], ...] = (
            ("runtime", self.runtime), ("home", self.home), ("disk", self.disk), ("clock", self.clock),
            ("settings", self.settings_file), ("database", self.database), ("secrets", self.secrets),
            ("keys", self.keys), ("model", self.model), ("programs", self.programs), ("proxy", self.proxy),
            ("ca_file", self.ca_file),
        )  # fmt: skip
        rows = await asyncio.gather(*(self._guarded(name, check) for name, check in checks))
        return (*rows, *self.servers())

    async def _guarded(self, name: str, check: Callable[[], Awaitable[FrozenDict]]) -> FrozenDict:
        try:
            async with asyncio.timeout(self._limit_s):
                return await check()
        except TimeoutError:
            return row(name, False, f"no answer within {self._limit_s:g} s", "doctor.remedy.no_answer")
        except HostError as error:
            return row(name, False, error.message, f"remedy.{error.code}")
        except Exception as error:
            # A doctor that falls ill helps nobody: the other checks still tell what they found.
            return row(name, False, f"{type(error).__qualname__}: {error}", "remedy.bug")

    async def runtime(self) -> FrozenDict:
        """Python and Qt in versions that work together."""
        python = ".".join(map(str, sys.version_info[:3]))
        try:
            qt = metadata.version("PySide6-Essentials")
        except metadata.PackageNotFoundError:
            return row("runtime", False, f"Python {python}, no PySide6", "doctor.remedy.no_qt")
        return qt_row(sys.version_info[:2], qt, python)

    async def home(self) -> FrozenDict:
        """The profile's folder can be written and is private."""

        def write() -> FrozenDict:
            try:
                with tempfile.NamedTemporaryFile(dir=self._folder, prefix=".doctor-") as file:
                    file.write(b"x" * 4096)
                    file.flush()
            except OSError as error:
                return row("home", False, f"{self._folder}: {error.strerror}", "doctor.remedy.home")
            if os.name != "nt" and self._folder.stat().st_mode & 0o077:
                return row("home", False, f"{self._folder}: others can read it", "doctor.remedy.home_open")
            return row("home", True, str(self._folder))

        return await asyncio.to_thread(write)

    async def disk(self) -> FrozenDict:
        """There is room."""
        free = (await asyncio.to_thread(shutil.disk_usage, self._folder)).free
        return row("disk", free >= FREE_BYTES, f"{free / 1e9:.1f} GB free", "doctor.remedy.disk")

    async def clock(self) -> FrozenDict:
        """The clock is not before this program was installed: certificates would be refused."""
        installed = (await asyncio.to_thread(Path(__file__).stat)).st_mtime
        shown = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(self._now()))
        return row("clock", self._now() > installed - 86_400, shown, "doctor.remedy.clock")

    async def settings_file(self) -> FrozenDict:
        """Every line of the settings file is used."""
        problems: Callable[[], tuple[FrozenDict, ...]] = getattr(self._settings, "problems", tuple)
        found = [f"{p['key']} ({p['code']})" for p in problems()]
        return row("settings", not found, ", ".join(found), "doctor.remedy.settings")

    async def database(self) -> FrozenDict:
        """SQLite's own check finds nothing."""
        problem = await self._storage.problem()
        return row("database", problem is None, problem or "", "doctor.remedy.database")

    async def secrets(self) -> FrozenDict:
        """The vault keeps what it is given."""
        probe = await self._secrets.probe()
        detail = f"{probe['store']}: {probe['detail']}" if probe["detail"] else str(probe["store"])
        return row("secrets", bool(probe["ok"]), detail, str(probe["remedy"]))

    async def keys(self) -> FrozenDict:
        """Which keys there are; by name."""
        names = list(await self._secrets.names())
        names += [f"{variable} (environment)" for variable in _VENDORS.values() if self._environ.get(variable)]
        return row("keys", True, ", ".join(names) or "none")

    async def model(self) -> FrozenDict:
        """The model of new chats can be used."""
        wanted = self._settings.current().model.default
        entries = await self._models.entries()
        exact = [e for e in entries if e.ref == wanted]
        near = exact or [e for e in entries if e.source == wanted.partition("/")[0]]
        if not near or any(e.ready for e in near):
            return row("model", True, wanted)
        reason = near[0].reason or "unknown"
        return row("model", False, f"{wanted}: {reason}", f"doctor.remedy.model_{reason}")

    async def programs(self) -> FrozenDict:
        """The programs that servers are started by."""
        path = self._environ.get("PATH")

        def look() -> FrozenDict:
            found = [p for p in _PROGRAMS if shutil.which(p, path=path)]
            failed = {s.name for s in self._servers.statuses() if s.state is ServerState.FAILED}
            missing = sorted({
                c.launch.command for c in self._servers.configs()
                if c.name in failed and isinstance(c.launch, Stdio) and not shutil.which(c.launch.command, path=path)
            })  # fmt: skip
            detail = f"found: {', '.join(found) or 'none'}" + (f"; missing: {', '.join(missing)}" if missing else "")
            return row("programs", not missing, detail, "doctor.remedy.programs")

        return await asyncio.to_thread(look)

    async def proxy(self) -> FrozenDict:
        """The proxies in use can be read."""
        names = [n for n in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY") for n in (n, n.lower()) if self._environ.get(n)]
        used = {name: self._environ[name] for name in names}
        if self._settings.current().network.proxy:
            used["network.proxy"] = self._settings.current().network.proxy
        bad = [name for name, url in used.items() if not _is_proxy(url)]
        detail = ", ".join(f"{name}={Redactor()(url)}" for name, url in used.items()) or "none"
        return row("proxy", not bad, detail, "doctor.remedy.proxy")

    async def ca_file(self) -> FrozenDict:
        """The extra certificates can be read."""
        path = self._settings.current().network.ca_file or self._environ.get("SSL_CERT_FILE", "")
        if not path:
            return row("ca_file", True, "the system's")
        try:
            await asyncio.to_thread(ssl.create_default_context, cafile=path)
        except OSError as error:
            return row("ca_file", False, f"{path}: {error.strerror or error}", "doctor.remedy.ca_file")
        return row("ca_file", True, path)

    def servers(self) -> tuple[FrozenDict, ...]:
        """One row for each enabled server, with the reason where it does not work."""
        rows = []
        for status in self._servers.statuses():
            if status.enabled:
                detail = f"{status.state.value}: {status.error.message}" if status.error else status.state.value
                remedy = (status.error.remedy if status.error else "") or "doctor.remedy.server"
                rows.append(row(f"server:{status.name}", status.state not in _BROKEN, detail, remedy))
        return tuple(rows)


def qt_row(python: tuple[int, ...], qt: str, shown: str) -> FrozenDict:
    """PySide6 6.12 drops a reference on None at each call on Python before 3.12, until the process aborts."""
    numbers = tuple(int(part) for part in qt.split(".")[:2] if part.isdigit())
    sound = not (numbers >= (6, 12) and python < (3, 12))
    return row("runtime", sound, f"Python {shown}, PySide6 {qt}", "doctor.remedy.qt_python")


def _is_proxy(url: str) -> bool:
    try:
        parts = urlsplit(url if "://" in url else f"http://{url}")
        return (
            parts.scheme in ("http", "https", "socks4", "socks5", "socks5h")
            and bool(parts.hostname)
            and parts.port != 0
        )
    except ValueError:
        return False
