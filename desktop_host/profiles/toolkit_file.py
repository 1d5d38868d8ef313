"""`toolkit.json` of a profile: groups, fixed arguments, rules for results."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

from desktop_host.core.errors import UserFault
from desktop_host.core.toolkit import ToolkitConfig, from_json, to_json
from desktop_host.profiles import atomic


class ToolkitFile:
    """The `ToolkitStore` over a JSON file. One that cannot be read is never overwritten."""

    def __init__(self, path: Path, config: ToolkitConfig) -> None:
        self.path = path
        self._config = config
        self._turn = asyncio.Lock()

    @classmethod
    async def open(cls, path: Path) -> ToolkitFile:
        """Read the file; no file means an empty toolkit.

        Raises:
            UserFault: `bad_settings` with `file` (and `line`, `column` where it is no JSON).
        """
        return cls(path, await asyncio.to_thread(_read, path))

    def current(self) -> ToolkitConfig:
        return self._config

    async def save(self, config: ToolkitConfig) -> None:
        async with self._turn:
            await asyncio.to_thread(_write, self.path, config)
            self._config = config


def _read(path: Path) -> ToolkitConfig:
    try:
        text = path.read_bytes().decode("utf-8-sig")
        return from_json(json.loads(text)) if text.strip() else ToolkitConfig()
    except FileNotFoundError:
        return ToolkitConfig()
    except json.JSONDecodeError as error:
        raise UserFault(
            "bad_settings", f"{path}, line {error.lineno}, column {error.colno}: {error.msg}", file=str(path),
            line=error.lineno, column=error.colno, reason="syntax", detail=error.msg,
        ) from None  # fmt: skip
    except UnicodeDecodeError as error:
        raise UserFault("bad_settings", f"{path} is not UTF-8", file=str(path), reason="encoding") from error
    except UserFault as fault:
        fault.params.setdefault("file", str(path))
        raise
    except OSError as error:
        raise UserFault(
            "bad_settings", f"{path} cannot be read: {error.strerror}", file=str(path), reason="not_readable"
        ) from error


def _write(path: Path, config: ToolkitConfig) -> None:
    body = json.dumps(to_json(config), ensure_ascii=False, indent=2) + "\n"
    try:
        atomic.write(path, body.encode())
    except OSError as error:
        raise atomic.fault_of(error, path) from error
