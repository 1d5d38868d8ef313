"""What goes in with a message and what comes out of a turn."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from desktop_host.core.sessions import TurnStatus, TurnStop
from desktop_host.core.values import FrozenDict


@dataclass(frozen=True, slots=True)
class InputFile:
    """A file that goes with a message."""

    name: str
    mime_type: str
    data: bytes


@dataclass(frozen=True, slots=True)
class UserInput:
    """What a person sends."""

    text: str
    files: tuple[InputFile, ...] = ()
    resources: tuple[tuple[str, str], ...] = ()
    """Resources of servers, as (alias, URI); read when the message is sent."""
    fresh: bool = False
    """Ask again: no earlier answer may serve."""


@dataclass(frozen=True, slots=True)
class TurnResult:
    """How a turn ended."""

    session: str
    turn: int
    status: TurnStatus
    stop: TurnStop
    text: str = ""
    error: FrozenDict | None = None
    undecided: bool = False
    """An ask was refused for want of a person or a policy (exit code 3)."""


@dataclass(frozen=True, slots=True)
class Ticket:
    """The receipt of a submitted message."""

    session: str
    done: asyncio.Future[TurnResult]
    """Resolves when the turn has ended, however it ended; lives on the host's loop."""
