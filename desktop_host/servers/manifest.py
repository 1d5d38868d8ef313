"""The `manifest.json` of a bundle, versions 0.1 to 0.4: what it is, what it asks, what it starts."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from desktop_host.core.bundles import BundleField
from desktop_host.core.text import decoded
from desktop_host.core.values import EMPTY, FrozenDict, freeze
from desktop_host.servers.bundle_archive import bad

KINDS = ("node", "python", "binary", "uv")
FIELD_TYPES = ("string", "number", "boolean", "directory", "file")
_FIELD = re.compile(r"\$\{user_config\.([^}]+)\}")
_OURS = re.compile(r"\$\{(__dirname|HOME|DESKTOP|DOCUMENTS|DOWNLOADS|pathSeparator|/)\}")


@dataclass(frozen=True, slots=True)
class Manifest:
    """A manifest that was read; its launch still holds `${__dirname}` and `${user_config.x}`."""

    name: str
    title: str
    version: str
    description: str
    author: str
    kind: str
    spec: str
    """Version of the manifest's own form."""
    old_key: bool
    """It says `dxt_version`, as bundles did before they were renamed."""
    command: str
    args: tuple[str, ...]
    env: FrozenDict
    fields: tuple[BundleField, ...] = ()
    tools: tuple[str, ...] = ()
    platforms: tuple[str, ...] = ()
    icon: str | None = None
    links: FrozenDict = EMPTY


def read(path: Path, data: bytes, platform: str = sys.platform) -> Manifest:
    """Read a manifest.

    Raises:
        UserFault: `bad_bundle` with `reason` and `field`.
    """
    try:
        raw = json.loads(decoded(data).removeprefix("\ufeff"))
    except (ValueError, UnicodeDecodeError, RecursionError) as error:
        raise bad(path, "bad_manifest", f"manifest.json cannot be read: {error}") from error
    at = _Reading(path)
    manifest = at.mapping(raw, "manifest.json")
    spec = manifest.get("manifest_version", manifest.get("dxt_version"))
    if not isinstance(spec, (str, int, float)) or not re.fullmatch(r"\d+(\.\d+)*", str(spec)):
        raise bad(path, "no_manifest_version", "it does not say which version its manifest has",
                  field="manifest_version")  # fmt: skip
    if int(str(spec).partition(".")[0]) > 0:
        raise bad(path, "newer_manifest", f"its manifest has version {spec}; 0.1 to 0.4 are known",
                  field="manifest_version")  # fmt: skip
    server = at.mapping(manifest.get("server"), "server")
    kind = at.text(server.get("type"), "server.type")
    if kind not in KINDS:
        raise bad(path, "bad_manifest", f"server.type is {kind!r}; {', '.join(KINDS)} are known", field="server.type")
    name = at.text(manifest.get("name"), "name")
    author = manifest.get("author")
    command, args, env = _launch(at, server, kind, platform)
    compatibility = manifest.get("compatibility")
    return Manifest(
        name=name,
        title=_words(manifest.get("display_name")) or name,
        version=at.text(manifest.get("version"), "version"),
        description=_words(manifest.get("description")),
        author=_words(author.get("name") if isinstance(author, Mapping) else author),
        kind=kind,
        spec=str(spec),
        old_key="manifest_version" not in manifest,
        command=command,
        args=args,
        env=env,
        fields=_fields(at, manifest.get("user_config")),
        tools=tuple(
            t["name"] for t in _list(manifest.get("tools")) if isinstance(t, Mapping) and isinstance(t.get("name"), str)
        ),
        platforms=tuple(
            str(p) for p in _list(compatibility.get("platforms") if isinstance(compatibility, Mapping) else None)
        ),
        icon=_icon(manifest),
        links=freeze({
            key: value for key in ("homepage", "documentation", "support", "repository")
            if (value := _address(manifest.get(key)))
        }),
    )  # fmt: skip


def _launch(
    at: _Reading, server: Mapping[str, Any], kind: str, platform: str
) -> tuple[str, tuple[str, ...], FrozenDict]:
    given = server.get("mcp_config")
    entry = server.get("entry_point")
    if given is None and kind == "uv":
        entry = at.text(entry, "server.entry_point")
        return "uv", ("run", "--directory", "${__dirname}", entry), EMPTY
    config = dict(at.mapping(given, "server.mcp_config"))
    overrides = config.get("platform_overrides")
    own = overrides.get(platform) if isinstance(overrides, Mapping) else None
    if isinstance(own, Mapping):
        env = {**(config.get("env") or {}), **(own.get("env") or {})}
        config = {**config, **{k: v for k, v in own.items() if k in ("command", "args")}, "env": env}
    command = at.text(config.get("command"), "server.mcp_config.command")
    listed = config.get("args") or []
    if not isinstance(listed, list) or not all(isinstance(a, (str, int, float)) for a in listed):
        raise bad(at.path, "bad_manifest", "args is no list of texts", field="server.mcp_config.args")
    pairs = at.mapping(config.get("env") or {}, "server.mcp_config.env")
    if not all(isinstance(v, (str, int, float, bool)) for v in pairs.values()):
        raise bad(at.path, "bad_manifest", "env holds what is no text", field="server.mcp_config.env")
    return command, tuple(str(a) for a in listed), FrozenDict({k: plain(v) for k, v in pairs.items()})


def _fields(at: _Reading, raw: Any) -> tuple[BundleField, ...]:
    out: list[BundleField] = []
    for key, one in at.mapping(raw or {}, "user_config").items():
        what = at.mapping(one, f"user_config.{key}")
        kind = what.get("type", "string")
        if kind not in FIELD_TYPES:
            raise bad(at.path, "bad_manifest", f"user_config.{key} has the unknown type {kind!r}", field=key)
        low, high = (n if isinstance(n := what.get(k), (int, float)) else None for k in ("min", "max"))
        out.append(BundleField(
            key=key, type=kind, title=_words(what.get("title")) or key, description=_words(what.get("description")),
            required=what.get("required") is True, multiple=what.get("multiple") is True,
            secret=what.get("sensitive") is True, default=freeze(what.get("default")), low=low, high=high,
        ))  # fmt: skip
    return tuple(out)


def filled(text: str, folder: Path, home: Path, values: Mapping[str, Any]) -> list[str]:
    """A text of the launch with its variables filled; several where it is one field with several values.

    Whatever else looks like a placeholder of the host is kept from being one: a bundle reads no variable of
    the host and no secret but its own.
    """
    whole = _FIELD.fullmatch(text)
    if whole and isinstance(values.get(whole[1]), (list, tuple)):
        return [escaped(str(v)) for v in values[whole[1]]]

    def place(match: re.Match[str]) -> str:
        known = {
            "__dirname": str(folder), "HOME": str(home), "DESKTOP": str(home / "Desktop"),
            "DOCUMENTS": str(home / "Documents"), "DOWNLOADS": str(home / "Downloads"),
            "pathSeparator": os.sep, "/": os.sep,
        }  # fmt: skip
        return escaped(known[match[1]])

    out: list[str] = []
    at = 0
    for match in re.finditer(r"\$\{[^}]*\}", text):
        out.append(escaped(text[at : match.start()]))
        at = match.end()
        if field := _FIELD.fullmatch(match[0]):
            value = values.get(field[1])
            if isinstance(value, Secret):
                out.append(value.reference)
            elif isinstance(value, (list, tuple)):
                out.append(os.pathsep.join(escaped(str(v)) for v in value))
            else:
                out.append("" if value is None else escaped(plain(value)))
        elif known := _OURS.fullmatch(match[0]):
            out.append(place(known))
        else:
            out.append(escaped(match[0]))
    return ["".join([*out, escaped(text[at:])])]


@dataclass(frozen=True, slots=True)
class Secret:
    """A value that lies in the vault."""

    reference: str
    """`${keyring:NAME}`."""


def escaped(text: str) -> str:
    """A text in which the host finds no placeholder."""
    return text.replace("${", "$${")


def plain(value: Any) -> str:
    """A value as a text, as JSON has it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


class _Reading:
    """Checks with the bundle's path in every fault."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def mapping(self, value: Any, field: str) -> Mapping[str, Any]:
        if not isinstance(value, Mapping):
            raise bad(self.path, "bad_manifest", f"{field} is no object", field=field)
        return value

    def text(self, value: Any, field: str) -> str:
        if not isinstance(value, str) or not value.strip():
            raise bad(self.path, "bad_manifest", f"{field} is missing", field=field)
        return value.strip()


def _words(value: Any) -> str:
    return value.strip()[:2_000] if isinstance(value, str) else ""


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _icon(manifest: Mapping[str, Any]) -> str | None:
    listed = [i.get("src") for i in _list(manifest.get("icons")) if isinstance(i, Mapping)]
    first = next((i for i in [manifest.get("icon"), *listed] if isinstance(i, str) and "://" not in i), None)
    return first.removeprefix("./") if first else None


def _address(value: Any) -> str | None:
    address = value.get("url") if isinstance(value, Mapping) else value
    return address if isinstance(address, str) and re.match(r"https?://", address) else None
