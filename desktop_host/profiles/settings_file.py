"""`settings.toml`: comments and unknown keys stay, a file that cannot be read is never overwritten."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import re
import tomllib
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

from desktop_host.core import settings as core
from desktop_host.core.errors import UserFault
from desktop_host.core.settings import Settings
from desktop_host.core.values import FrozenDict
from desktop_host.profiles import atomic
from desktop_host.profiles.settings_form import TABLES, Reading, put_tables, read

_log = logging.getLogger(__name__)

Step = Callable[[dict[str, Any]], None]
UPGRADES: tuple[Step, ...] = ()
"""Step n (counted from 0) changes a document of schema n + 1, in place, to schema n + 2."""

_PLACE = re.compile(r"\s*\(at (?:line (\d+), column (\d+)|end of document)\)$")


class SettingsFile:
    """`SettingsStore` over a TOML file."""

    def __init__(self, path: Path, state: Reading) -> None:
        self.path = path
        self._state = state
        self._writing = asyncio.Lock()
        self._listeners: list[Callable[[Settings, Settings], Awaitable[None]]] = []

    @classmethod
    async def open(cls, path: Path, *, upgrades: tuple[Step, ...] = UPGRADES) -> SettingsFile:
        """Read the settings; a missing file means the defaults, and is not made before something is set.

        Raises:
            UserFault: `bad_settings` with `file`, `line`, `column` and `reason` (`syntax`, `encoding`,
                `newer_schema`, `not_readable`). The file is left as it is.
        """
        with _io_faults(path):
            state = await asyncio.to_thread(read_settings, path, upgrades)
        for problem in state.problems:
            _log.warning("%s: %s is not used (%s)", path, problem["key"], problem["code"])
        return cls(path, state)

    def current(self) -> Settings:
        return self._state.settings

    def problems(self) -> tuple[FrozenDict, ...]:
        """What the file holds that is not used: `{key, code, value, wanted}`.

        `code` is `bad_value` (the default is used instead; of a rule: it denies) or `unknown_key` (kept as it is).
        """
        return self._state.problems

    async def set(self, key: str, value: Any) -> Settings:
        """Set one key in the file as it is now: what another process wrote meanwhile stays.

        Raises:
            UserFault: `bad_settings`, no such key, a bad value, or the file cannot be read any more.
            KnownFault: `disk_full` or `database_error`, the file cannot be written.
        """
        return await self._update({key: core.check(core.setting(key), value)}, {})

    async def save(self, settings: Settings) -> None:
        """Write what differs from `current()`, no more.

        Raises:
            UserFault: `bad_settings`.
            KnownFault: `disk_full` or `database_error`, the file cannot be written.
        """
        now = self.current()
        values = {
            s.key: core.check(s, core.get(settings, s.key))
            for s in core.schema()
            if core.get(settings, s.key) != core.get(now, s.key)
        }
        tables: dict[str, tuple[Any, ...]] = {
            name: getattr(settings, name) for name in TABLES if getattr(settings, name) != getattr(now, name)
        }
        if values or tables:
            await self._update(values, tables)

    async def _update(self, values: dict[str, Any], tables: dict[str, tuple[Any, ...]]) -> Settings:
        async with self._writing:
            before = self._state.settings
            with _io_faults(self.path):
                self._state = await asyncio.to_thread(rewrite_settings, self.path, values, tables)
            now = self._state.settings
        for told in self._listeners:
            await told(before, now)
        return now

    def listen(self, told: Callable[[Settings, Settings], Awaitable[None]]) -> None:
        """Have `told(before, now)` awaited after each change that this process makes."""
        self._listeners.append(told)


def read_settings(path: Path, upgrades: tuple[Step, ...] = UPGRADES) -> Reading:
    """What a file says, upgraded if it is older; blocking. Raises as `SettingsFile.open`."""
    text = _text(path)
    document = _parse(path, text)
    known = 1 + len(upgrades)
    found = _schema(path, document, known)
    if found == known:
        return read(document)
    import tomlkit

    with atomic.locked(_lock(path)):
        text = _text(path)
        styled = tomlkit.parse(text)
        found = _schema(path, styled.unwrap(), known)
        for step in upgrades[found - 1 :]:
            step(styled)
        styled["schema"] = known
        _keep(path, text, f".schema-{found}.bak")
        atomic.write(path, tomlkit.dumps(styled).encode())
    return read(styled.unwrap())


def rewrite_settings(path: Path, values: dict[str, Any], tables: dict[str, tuple[Any, ...]]) -> Reading:
    """Write some keys and lists of tables into a file as it is now; blocking. Raises as `SettingsFile.set`."""
    import tomlkit

    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with atomic.locked(_lock(path)):
        text = _text(path)
        document = _parse(path, text)
        _schema(path, document, core.SCHEMA)
        styled = tomlkit.parse(text if "schema" in document else f"schema = {core.SCHEMA}\n{text}")
        for key, value in values.items():
            section, name = key.split(".", 1)
            if not isinstance(styled.get(section), dict):
                styled[section] = tomlkit.table()
            styled[section][name] = value
        for name, items in tables.items():
            put_tables(styled, name, items)
        new = tomlkit.dumps(styled)
        state = read(_parse(path, new))
        lost = [key for key, value in values.items() if core.get(state.settings, key) != value]
        if lost:
            raise RuntimeError(f"{path} would not read back {lost} as it was set")
        if new != text:
            _keep(path, text, ".bak")
            atomic.write(path, new.encode())
        return state


def _text(path: Path) -> str:
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return ""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        column = error.start - (data.rfind(b"\n", 0, error.start) + 1) + 1
        raise UserFault(
            "bad_settings", f"{path}, line {line}: the file is not UTF-8", file=str(path), line=line, column=column,
            reason="encoding",
        ) from None  # fmt: skip


def _parse(path: Path, text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        what = str(error)
        place = _PLACE.search(what)
        lines = text.split("\n")
        line = int(place[1]) if place and place[1] else len(lines)
        column = int(place[2]) if place and place[2] else len(lines[-1]) + 1
        raise UserFault(
            "bad_settings", f"{path}, line {line}, column {column}: {_PLACE.sub('', what)}", file=str(path), line=line,
            column=column, reason="syntax", detail=_PLACE.sub("", what),
        ) from None  # fmt: skip


def _schema(path: Path, document: dict[str, Any], known: int) -> int:
    found = document.get("schema", 1)
    if isinstance(found, int) and not isinstance(found, bool) and 1 <= found <= known:
        return found
    raise UserFault(
        "bad_settings", f"{path} has schema {found!r}; this version of the host knows {known}", file=str(path),
        line=None, column=None, reason="newer_schema", schema=str(found), known=known,
    )  # fmt: skip


def _keep(path: Path, text: str, suffix: str) -> None:
    if text:
        atomic.write(path.with_name(path.name + suffix), text.encode())


def _lock(path: Path) -> Path:
    return path.with_name(f".{path.name}.lock")


@contextlib.contextmanager
def _io_faults(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        fault = atomic.fault_of(error, path)
        if fault.code == "disk_full":
            raise fault from error
        raise UserFault(
            "bad_settings", f"{path}: {error.strerror or error}", file=str(path), line=None, column=None,
            reason="not_readable",
        ) from error  # fmt: skip
