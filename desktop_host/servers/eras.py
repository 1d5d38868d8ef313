"""Which era each server last spoke, kept on disk so that the next start asks nothing it knows."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
from pathlib import Path
from typing import Any

from desktop_host.core.ports import Clock
from desktop_host.core.servers import Http, ServerConfig, Sse, Stdio
from desktop_host.core.values import canonical
from desktop_host.servers import private

KEPT_S = 14 * 24 * 3600.0
"""How long a remembered era is believed: a server that learned the modern era is found again after that."""


def fingerprint(config: ServerConfig) -> str:
    """Identity of what is started or connected to: references only, no resolved secret."""
    match config.launch:
        case Stdio(command=command, args=args, env=env, cwd=cwd):
            body: list[Any] = ["stdio", command, list(args), env, cwd]
        case Http(url=url, headers=headers):
            body = ["http", url, headers]
        case Sse(url=url, headers=headers):
            body = ["sse", url, headers]
    return hashlib.sha256(canonical(body).encode()).hexdigest()[:16]


class Eras:
    """Remembered eras by fingerprint, in `server-eras.json`. A file that cannot be read is started anew."""

    def __init__(self, path: Path, clock: Clock) -> None:
        self._path, self._clock = path, clock
        self._known: dict[str, dict[str, Any]] = {}
        self._lock = asyncio.Lock()

    async def load(self) -> None:
        """Read the file, in a thread."""
        self._known = await asyncio.to_thread(self._read)

    def get(self, config: ServerConfig) -> str | None:
        """The protocol revision last negotiated, if it is recent."""
        entry = self._known.get(fingerprint(config))
        if entry is None or self._clock.now() - entry["at"] > KEPT_S:
            return None
        return str(entry["era"])

    async def put(self, config: ServerConfig, era: str) -> None:
        """Remember an era."""
        key = fingerprint(config)
        if self._known.get(key, {}).get("era") == era:
            return
        self._known[key] = {"era": era, "at": self._clock.now()}
        await self._save()

    async def forget(self, config: ServerConfig) -> None:
        """The assumption failed: probe anew next time."""
        if self._known.pop(fingerprint(config), None) is not None:
            await self._save()

    async def _save(self) -> None:
        async with self._lock:
            await asyncio.to_thread(self._write, json.dumps(self._known, indent=1, sort_keys=True))

    def _read(self) -> dict[str, dict[str, Any]]:
        try:
            raw = json.loads(self._path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}  # Nothing but a saved round trip is lost.
        if not isinstance(raw, dict):
            return {}
        return {
            k: v
            for k, v in raw.items()
            if isinstance(v, dict) and isinstance(v.get("era"), str) and isinstance(v.get("at"), (int, float))
        }

    def _write(self, text: str) -> None:
        try:
            private.folder(self._path.parent)
            part = self._path.with_suffix(".part")
            private.write(part, text)
            os.replace(part, self._path)
        except OSError:
            # A cache: a full or read-only disk costs the next start one probe.
            return
