"""Links that propose a server (`desktop-host://install?…`): read to a preview, nothing is started or saved."""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Collection
from dataclasses import replace
from typing import Any, NoReturn
from urllib.parse import parse_qsl, unquote, urlsplit

from desktop_host.core.errors import UserFault
from desktop_host.core.server_ports import InstallLink
from desktop_host.core.servers import ImportedServer, SamplingPolicy, Stdio
from desktop_host.core.values import EMPTY, canonical
from desktop_host.servers.importing import parse

LONGEST = 65_536
_PLACES = {
    ("desktop-host", "install"), ("desktop-host", "mcp/install"), ("cursor", "anysphere.cursor-deeplink/mcp/install"),
    ("vscode", "mcp/install"), ("vscode-insiders", "mcp/install"), ("lmstudio", "add_mcp"),
}  # fmt: skip
"""Scheme and path of the links that are understood: our own, and those that READMEs offer for other hosts."""
_KNOWN = frozenset({"name", "title", "config", "command", "arg", "args", "env", "cwd", "url", "header", "transport"})


def read(link: str, taken: Collection[str] = ()) -> InstallLink:
    """Read a link.

    Ours: `desktop-host://install?name=N&command=C&arg=A&arg=B&env=K=V` or `?name=N&url=U&header=K: V`, or
    `?name=N&config=JSON` (plain, or base64 as Cursor and LM Studio write it). What a link cannot give: trust,
    sampling without asking, switched-on tools, or the values of the vault.

    Raises:
        UserFault: `bad_config` with `reason` `bad_link` or `link_wants_secret`; also what the entry itself lacks.
    """
    link = link.strip()
    if len(link) > LONGEST or re.search(r"[\x00-\x1f\x7f]", link):
        _refuse("it is too long, or holds control characters")
    parts = urlsplit(link)
    place = (parts.netloc + parts.path).strip("/").lower()
    if (parts.scheme.lower(), place) not in _PLACES:
        _refuse(f"{parts.scheme}://{place} proposes no server")
    if parts.scheme.lower().startswith("vscode"):
        pairs = [("config", unquote(parts.query))]
    else:
        try:
            pairs = parse_qsl(parts.query, keep_blank_values=True, strict_parsing=True, max_num_fields=200)
        except ValueError:
            _refuse("its parameters cannot be read")
    if unknown := sorted({k for k, _ in pairs} - _KNOWN):
        _refuse(f"it holds parameters that nobody would see: {', '.join(unknown)[:200]}")
    name, entry = _entry(pairs)
    if "${keyring:" in canonical(entry):
        raise UserFault(
            "bad_config", "the link asks for a secret of the vault", reason="link_wants_secret", excerpt=_shown(link)
        )
    servers = parse(json.dumps({"mcpServers": {name: entry}} if name else entry), taken)
    return InstallLink(tuple(_modest(one) for one in servers), _shown(link))


def _entry(pairs: list[tuple[str, str]]) -> tuple[str | None, dict[str, Any]]:
    def one(key: str) -> str | None:
        values = [v for k, v in pairs if k == key]
        if len(values) > 1:
            _refuse(f"{key} stands twice")
        return values[0] if values else None

    name = one("name") or one("title")
    if (config := one("config")) is not None:
        if any(k not in ("name", "title", "config") for k, _ in pairs):
            _refuse("it gives a config and further parameters")
        entry = _json(config)
        inner = entry.get("mcpServers")
        if isinstance(inner, dict):
            return None, entry
        return name or (entry.pop("name", None) if isinstance(entry.get("name"), str) else None), entry
    entry = {}
    if command := one("command"):
        many = one("args")
        entry = {"command": command, "args": many if many is not None else [v for k, v in pairs if k == "arg"]}
    if url := one("url"):
        entry["url"] = url
    for key, field, mark in (("env", "env", "="), ("header", "headers", ":")):
        found = dict(_pair(v, mark) for k, v in pairs if k == key)
        if found:
            entry[field] = found
    for key, field in (("cwd", "cwd"), ("transport", "type")):
        if (value := one(key)) is not None:
            entry[field] = value
    return name, entry


def _pair(text: str, mark: str) -> tuple[str, str]:
    key, found, value = text.partition(mark)
    if not found or not key.strip():
        _refuse(f"{text[:40]!r} is no NAME{mark}VALUE")
    return key.strip(), value.strip() if mark == ":" else value


def _json(text: str) -> dict[str, Any]:
    if not text.lstrip().startswith("{"):
        plain = text.replace("-", "+").replace("_", "/").replace(" ", "+")
        try:
            text = base64.b64decode(plain + "=" * (-len(plain) % 4), validate=True).decode()
        except (binascii.Error, UnicodeDecodeError):
            _refuse("its config is neither JSON nor base64")
    try:
        value = json.loads(text)
    except ValueError:
        _refuse("its config is no JSON")
    if not isinstance(value, dict):
        _refuse("its config is no object")
    return value


def _modest(one: ImportedServer) -> ImportedServer:
    """What a stranger proposes gets no trust, and whatever it reads of the environment is marked."""
    config = replace(
        one.config, trusted=False, sampling=SamplingPolicy(), enabled=True, enabled_tools=None, disabled_tools=(),
        extra=EMPTY,
    )  # fmt: skip
    launch = config.launch
    texts = [*launch.args, *launch.env.values(), launch.command] if isinstance(launch, Stdio) else [
        launch.url, *launch.headers.values(),
    ]  # fmt: skip
    reads = any(re.search(r"\$\{(?!keyring:)", str(t)) for t in texts)
    return ImportedServer(config, one.secrets, (*one.warnings, *(("reads_environment",) if reads else ())))


def _shown(link: str) -> str:
    """The link without its values, which may hold secrets."""
    parts = urlsplit(link)
    keys = [k for k, _ in parse_qsl(parts.query, keep_blank_values=True)] if "=" in parts.query else []
    query = "&".join(f"{k}=…" for k in keys) or ("…" if parts.query else "")
    return f"{parts.scheme}://{parts.netloc}{parts.path}?{query}"[:500]


def _refuse(why: str) -> NoReturn:
    raise UserFault("bad_config", f"this link cannot be used: {why}", reason="bad_link", detail=why)
