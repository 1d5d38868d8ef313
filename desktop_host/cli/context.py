"""What every verb is handed: what was asked, the open host, and where to write."""

from __future__ import annotations

import json
from argparse import Namespace
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from desktop_host.cli.output import Output
from desktop_host.cli.reading import Stdin
from desktop_host.core.errors import HostError, KnownFault, UserFault
from desktop_host.core.host_calls import GatewaySpec
from desktop_host.core.text import decoded
from desktop_host.core.values import FrozenDict, freeze
from desktop_host.engine.host import Host, HostSpec

INTERRUPTED = 130
"""Exit code of a run that was stopped."""


Rescue: TypeAlias = Callable[[HostSpec, HostError, Path], Awaitable[tuple[Path, tuple[str, ...]]]]
"""Writes a report of a profile that cannot be opened; returns its path and the names of its files."""
ServeGateway: TypeAlias = Callable[[Host, GatewaySpec], Awaitable[None]]
"""Serves a host to other hosts until it is cancelled or its input ends."""


@dataclass(frozen=True, slots=True)
class Run:
    """One run of one verb."""

    ns: Namespace
    host: Host
    out: Output
    stdin: Stdin = field(default_factory=Stdin)
    gateway: ServeGateway | None = None
    """Serves the host to other hosts; None where this build cannot."""


Verb: TypeAlias = Callable[[Run], Awaitable[int]]
"""A verb: does its work, writes, returns the exit code."""


def host_error(error: FrozenDict | dict[str, Any]) -> HostError:
    """The fault behind `{code, message, params}` of a turn."""
    params = {
        k: v for k, v in (error.get("params") or {}).items() if k not in ("code", "message", "retryable", "self")
    }  # fmt: skip
    return HostError(str(error.get("code") or "bug"), str(error.get("message") or ""), **params)


def json_object(text: str, option: str) -> FrozenDict:
    """A JSON object given as an argument.

    Raises:
        UserFault: `usage` with line and column.
    """
    value = _json(text, option)
    if not isinstance(value, dict):
        raise UserFault("usage", f"{option}: a JSON object is wanted, like {{\"key\": 1}}", reason="not_an_object",
                        option=option)  # fmt: skip
    frozen: FrozenDict = freeze(value)
    return frozen


def _json(text: str, option: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise UserFault(
            "usage", f"{option}: not JSON: {error.msg} (line {error.lineno}, column {error.colno})",
            reason="not_json", option=option, detail=error.msg, line=error.lineno, column=error.colno,
        ) from None  # fmt: skip
    except RecursionError:
        raise UserFault("usage", f"{option}: nested too deeply", option=option) from None


def read_bytes(name: str) -> bytes:
    """The bytes of a file a person named. Blocking.

    Raises:
        UserFault: `not_found` or `usage` (a folder).
        KnownFault: `permission`.
    """
    path = Path(name).expanduser()
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise UserFault("not_found", f"there is no file {path}", reason="file", file=str(path)) from None
    except IsADirectoryError:
        raise UserFault("usage", f"{path} is a folder, not a file", reason="is_folder", file=str(path)) from None
    except OSError as error:
        raise KnownFault("permission", f"{path} cannot be read: {error.strerror}", reason="file", file=str(path),
                         detail=error.strerror) from None  # fmt: skip


def read_text(name: str, code: str = "bad_config") -> str:
    """The text of a UTF-8 file (or UTF-16 with BOM); a byte order mark stays for whoever parses it. Blocking.

    Raises:
        UserFault: `not_found`, or `code` where it is no such text.
    """
    return text_of(read_bytes(name), name, code)


def text_of(data: bytes, name: str, code: str = "bad_config") -> str:
    """What was read from `name` as text, by the rule that holds for files.

    Raises:
        UserFault: `code`, it is no text.
    """
    try:
        return decoded(data)
    except UnicodeDecodeError as error:
        raise UserFault(code, f"{name} is not UTF-8 text (byte {error.start})", reason="not_utf8", file=name,
                        byte=error.start) from None  # fmt: skip


def folder(name: str, option: str) -> Path:
    """An existing folder, as an absolute path.

    Raises:
        UserFault: `not_found`.
    """
    path = Path(name).expanduser().resolve()
    if not path.is_dir():
        raise UserFault("not_found", f"{option}: there is no folder {path}", reason="folder", file=str(path),
                        option=option)  # fmt: skip
    return path
