"""Servers that other hosts on this machine have configured: their files are found and read, never written."""

from __future__ import annotations

import json
import os
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from desktop_host.core.errors import UserFault
from desktop_host.core.server_ports import FoundConfig
from desktop_host.core.servers import ImportedServer
from desktop_host.core.text import decoded
from desktop_host.servers import jsonc, leveldb
from desktop_host.servers.importing import parse

TITLES = {
    "claude-desktop": "Claude Desktop",
    "claude-code": "Claude Code",
    "cursor": "Cursor",
    "vscode": "VS Code",
    "windsurf": "Windsurf",
    "zed": "Zed",
    "cherry-studio": "Cherry Studio",
    "lm-studio": "LM Studio",
}
LARGEST = 32 * 2**20
"""Bytes of a file that is read; Claude Code keeps its history in the file that names its servers."""
_MAPS = ("mcpServers", "servers", "context_servers")


def found(home: Path | None = None, platform: str = sys.platform) -> tuple[FoundConfig, ...]:
    """Every file of the known hosts below `home` that names servers, or that should and cannot be read.

    Blocking. Entries that are no servers are left out; a host without servers is not listed. Names are as the
    files have them (made aliases); what happens to names that are taken is the caller's `Clash`.
    """
    home = home or Path.home()
    out: list[FoundConfig] = []
    for app, path in places(home, platform):
        if path.is_dir():
            config = _cherry(app, path)
        elif path.is_file():
            config = _file(app, path)
        else:
            continue
        if config.servers or config.problem:
            out.append(config)
    return tuple(out)


def places(home: Path, platform: str) -> Iterator[tuple[str, Path]]:
    """Where each host keeps its servers on a platform (`linux`, `darwin`, `win32`), below a person's home."""
    if platform == "darwin":
        data = [home / "Library/Application Support"]
    elif platform == "win32":
        data = [home / "AppData/Roaming"]
    else:
        data = [Path(os.environ["XDG_CONFIG_HOME"])] if _own_config(home) else []
        data.append(home / ".config")
    for folder in dict.fromkeys(data):
        yield "claude-desktop", folder / "Claude/claude_desktop_config.json"
        for flavour in ("Code", "Code - Insiders", "VSCodium"):
            yield "vscode", folder / flavour / "User/mcp.json"
            yield "vscode", folder / flavour / "User/settings.json"
        yield "zed", folder / ("Zed" if platform == "win32" else "zed") / "settings.json"
        yield "cherry-studio", folder / "CherryStudio"
    if platform == "win32":  # The packaged app of the Microsoft Store keeps a world of its own.
        packages = home / "AppData/Local/Packages"
        for packed in sorted(packages.glob("*Claude*")) if packages.is_dir() else ():
            yield "claude-desktop", packed / "LocalCache/Roaming/Claude/claude_desktop_config.json"
    elif platform == "darwin":
        yield "zed", home / ".config/zed/settings.json"
    yield "claude-code", home / ".claude.json"
    yield "cursor", home / ".cursor/mcp.json"
    yield "windsurf", home / ".codeium/windsurf/mcp_config.json"
    yield "lm-studio", home / ".lmstudio/mcp.json"
    yield "lm-studio", home / ".cache/lm-studio/mcp.json"


def _own_config(home: Path) -> bool:
    """XDG_CONFIG_HOME counts for the person's real home only, so that a given home stays self-contained."""
    return bool(os.environ.get("XDG_CONFIG_HOME")) and home == Path.home()


def _file(app: str, path: Path) -> FoundConfig:
    try:
        if path.stat().st_size > LARGEST:
            return FoundConfig(app, TITLES[app], path, problem="too_large")
        text = decoded(path.read_bytes())
    except UnicodeDecodeError:
        return FoundConfig(app, TITLES[app], path, problem="not_utf8")
    except OSError:
        return FoundConfig(app, TITLES[app], path, problem="not_readable")
    if not text.strip("\ufeff \t\r\n"):
        return FoundConfig(app, TITLES[app], path)
    try:
        root = jsonc.read(text).value
    except jsonc.JsonProblem as problem:
        return FoundConfig(app, TITLES[app], path, problem=problem.code)
    entries = list(_entries(root)) if isinstance(root, dict) else []
    return FoundConfig(app, TITLES[app], path, _read(entries))


def _entries(root: dict[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    """`(name, entry, inputs)` wherever a known host puts them."""
    inputs = root.get("inputs")
    for key in _MAPS:
        if isinstance(servers := root.get(key), dict):
            for name, entry in servers.items():
                yield name, entry, inputs
    if isinstance(mcp := root.get("mcp"), dict):  # VS Code's settings.json
        yield from _entries({k: v for k, v in mcp.items() if k in (*_MAPS, "inputs")})
    if isinstance(projects := root.get("projects"), dict):  # Claude Code, by folder
        for project in projects.values():
            if isinstance(project, dict) and isinstance(servers := project.get("mcpServers"), dict):
                for name, entry in servers.items():
                    yield name, entry, None


def _read(entries: list[tuple[str, Any, Any]]) -> tuple[ImportedServer, ...]:
    """Each entry on its own: one that is broken or no server costs none of the others."""
    out: list[ImportedServer] = []
    taken: set[str] = set()
    seen: set[str] = set()
    for name, entry, inputs in entries:
        whole = {"mcpServers": {name: entry}} | ({"inputs": inputs} if inputs else {})
        text = json.dumps(whole, ensure_ascii=False, sort_keys=True)
        if text in seen:  # The same server of several projects.
            continue
        seen.add(text)
        try:
            made = parse(text, taken)
        except UserFault:
            continue
        taken.update(one.config.name for one in made)
        out.extend(made)
    return tuple(out)


def _cherry(app: str, folder: Path) -> FoundConfig:
    """Cherry Studio keeps no file of its own: a browser's store up to version 1, SQLite from 2 on."""
    title = TITLES[app]
    for path in sorted([*folder.glob("*.sqlite"), *folder.glob("*.db"), *folder.glob("Data/*.sqlite")]):
        try:
            with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=1)) as database:
                database.row_factory = sqlite3.Row
                names = [r[0] for r in database.execute("select name from sqlite_master where type = 'table'")]
                if "mcp_server" not in names:
                    continue
                rows = [dict(r) for r in database.execute("select * from mcp_server")]
        except sqlite3.Error:
            return FoundConfig(app, title, path, problem="not_readable")
        return FoundConfig(app, title, path, _read([_cherry_entry(row) for row in rows]))
    store = folder / "Local Storage" / "leveldb"
    if not store.is_dir():
        return FoundConfig(app, title, folder)
    try:
        kept = _cherry_state(leveldb.newest(store, b"\0\1persist:cherry-studio"))
    except OSError:
        kept = None
    if kept is None:
        return FoundConfig(app, title, store, problem="cherry_store")
    return FoundConfig(app, title, store, _read([_cherry_entry(one) for one in kept]))


def _cherry_state(value: bytes | None) -> list[dict[str, Any]] | None:
    """The servers in the state that version 1 keeps: an object whose parts are JSON once more (redux-persist)."""
    try:
        text = (value or b"")[1:].decode("utf-16-le" if (value or b"")[:1] == b"\0" else "latin-1")
        mcp = json.loads(json.loads(text)["mcp"])
        return [one for one in mcp["servers"] if isinstance(one, dict)]
    except (ValueError, KeyError, TypeError):
        return None


def _cherry_entry(row: dict[str, Any]) -> tuple[str, Any, Any]:
    def value(key: str) -> Any:
        raw = row.get(key)
        if isinstance(raw, str) and raw[:1] in "[{":
            try:
                return json.loads(raw)
            except ValueError:
                return raw
        return raw

    entry: dict[str, Any] = {
        "command": value("command"), "args": value("args"), "env": value("env"),
        "url": value("base_url") or value("baseUrl") or value("url"), "headers": value("headers"),
        "type": value("type"),
    }  # fmt: skip
    if entry["type"] == "inMemory":  # Its own built-in servers: nothing that another host could start.
        return str(row.get("name") or "server"), None, None
    if (active := row.get("is_active", row.get("isActive"))) is not None:
        entry["isActive"] = bool(active)
    return str(row.get("name") or "server"), {k: v for k, v in entry.items() if v not in (None, "")}, None
