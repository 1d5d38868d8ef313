"""The report a person can send: versions, checks, logs and configuration; no conversations, no secrets."""

from __future__ import annotations

import asyncio
import json
import os
import platform
import re
import sys
import zipfile
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

import desktop_host
from desktop_host.core.values import FrozenDict
from desktop_host.diagnostics.redaction import Redactor

_TAIL = 1_000_000
"""Bytes of each log, the newest."""
_PACKAGES = ("PySide6-Essentials", "mcp", "anthropic", "openai", "keyring", "httpx2", "xllamacpp")
_REFERENCE = re.compile(r"\$\{[^}]*\}")


async def write_report(target: Path, folder: Path, checks: Sequence[FrozenDict], redactor: Redactor) -> Path:
    """Write a zip of what helps to find a fault.

    Args:
        target: the zip to write.
        folder: the profile's folder.
        checks: the rows of `Health.run`.
        redactor: knows the secrets that must not be in it.

    Raises:
        OSError: the zip cannot be written.
    """
    await asyncio.to_thread(_write, target, folder, tuple(checks), redactor)
    return target


def _write(target: Path, folder: Path, checks: tuple[FrozenDict, ...], redactor: Redactor) -> None:
    parts: dict[str, str] = {"about.json": json.dumps(_about(), indent=1), "checks.json": json.dumps(checks, indent=1)}
    settings = folder / "settings.toml"
    if settings.is_file():
        parts["settings.toml"] = settings.read_text("utf-8", "replace")
    servers = folder / "servers.json"
    if servers.is_file():
        parts["servers.json"] = _without_values(servers.read_text("utf-8", "replace"))
    logs = folder / "logs"
    for log in sorted(logs.iterdir()) if logs.is_dir() else ():
        if log.is_file() and not log.is_symlink():
            with log.open("rb") as file:
                file.seek(max(0, log.stat().st_size - _TAIL))
                parts[f"logs/{log.name}"] = file.read().decode("utf-8", "replace")
    handle = os.open(target, os.O_CREAT | os.O_TRUNC | os.O_RDWR, 0o600)
    with os.fdopen(handle, "w+b") as out, zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as bundle:
        for name, text in parts.items():
            bundle.writestr(name, redactor(text))


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


def _without_values(text: str) -> str:
    """The servers without what their environment and headers hold; a reference to the vault may stay."""
    try:
        document = json.loads(text)
    except ValueError:
        return "(left out: it is not plain JSON)"

    def clean(item: Any) -> Any:
        if isinstance(item, list):
            return [clean(part) for part in item]
        if not isinstance(item, dict):
            return item
        return {
            key: {k: _shown(v) for k, v in value.items()} if key in ("env", "headers") and isinstance(value, dict)
            else clean(value)
            for key, value in item.items()
        }  # fmt: skip

    return json.dumps(clean(document), indent=1, ensure_ascii=False)


def _shown(value: Any) -> str:
    return str(value) if _REFERENCE.fullmatch(str(value)) else "[value]"
