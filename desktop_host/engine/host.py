"""The one object a face holds: four verbs down, one stream of events up, and the admin ports."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from desktop_host.core.admin import ModelAdmin, SecretStore, ServerAdmin, SettingsStore
from desktop_host.core.asks import Answer, Ask
from desktop_host.core.events import Stamped
from desktop_host.core.permissions import Rule
from desktop_host.core.ports import History, Ledger
from desktop_host.core.sessions import SessionOptions, TurnStatus, TurnStop
from desktop_host.core.transcript import Transcript
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


@dataclass(frozen=True, slots=True)
class HeadlessPolicy:
    """Who answers asks where no person watches. What it does not cover is refused."""

    answers: tuple[FrozenDict, ...] = ()
    """The list of `--answers`, used in order by kind."""
    allow_sampling: frozenset[str] = frozenset()
    """Aliases whose sampling requests are allowed."""


@dataclass(frozen=True, slots=True)
class HostSpec:
    """What to open."""

    home: Path | None = None
    """Folder below which all is kept; None: the platform's folders."""
    profile: str = "default"
    headless: HeadlessPolicy | None = None
    """None: a person watches and answers through `Host.answer`."""
    mcp_config: tuple[Path, ...] = ()
    """Files with `{"mcpServers": …}` for this run only."""
    with_profile_servers: bool = True
    """With `mcp_config`: whether the profile's own servers stay."""
    skill_folders: tuple[Path, ...] = ()


class Reader:
    """One reader of the stream: `async for batch in reader`, each a non-empty tuple in order.

    A reader that takes nothing for too long is detached: iteration ends and `lagged_seq` is set; read the
    journal (`Host.history.read`) and subscribe again.
    """

    lagged_seq: int | None = None

    def __aiter__(self) -> Reader:
        return self

    async def __anext__(self) -> tuple[Stamped, ...]:
        raise NotImplementedError

    def close(self) -> None:
        """Leave."""
        raise NotImplementedError


class Host:
    """A profile at work. All methods belong to the host's loop; a window calls them through its bridge."""

    profile: str
    folder: Path
    """The profile's folder."""
    servers: ServerAdmin
    models: ModelAdmin
    settings: SettingsStore
    secrets: SecretStore
    history: History
    ledger: Ledger

    # ---- sessions
    async def new_session(self, options: SessionOptions = SessionOptions(), title: str = "") -> str:
        """Make a session and return its id. Without a title it is named by its first message."""
        raise NotImplementedError

    async def configure(self, session: str, options: SessionOptions) -> None:
        """Change what a session runs with, from its next turn on."""
        raise NotImplementedError

    async def transcript(self, session: str) -> Transcript:
        """The conversation as it stands (journal folded; a turn left open by a dead host is closed first)."""
        raise NotImplementedError

    async def rename(self, session: str, title: str) -> None:
        """Give a session another title."""
        raise NotImplementedError

    async def delete(self, session: str) -> None:
        """Interrupt, close and delete a session."""
        raise NotImplementedError

    async def export(self, session: str, form: str) -> str:
        """The session as `json` (a bundle for `import_bundle`), `md` or `html`."""
        raise NotImplementedError

    async def import_bundle(self, text: str) -> str:
        """Make a session of a bundle; returns its new id.

        Raises:
            UserFault: `bad_bundle`.
        """
        raise NotImplementedError

    async def apply_tools(self, session: str) -> None:
        """Give the model the tools as they are now, from the next turn on."""
        raise NotImplementedError

    # ---- the four verbs
    async def submit(self, session: str, said: UserInput) -> Ticket:
        """Queue a message.

        Raises:
            UserFault: `session_busy`, 32 messages wait or another process has the session; `not_found`.
        """
        raise NotImplementedError

    async def interrupt(self, session: str) -> None:
        """Stop the running turn; returns when the session is idle. Queued messages stay queued."""
        raise NotImplementedError

    async def resume(self, session: str) -> Ticket:
        """Go on with an interrupted or failed turn from the last consistent point; no tool is rerun."""
        raise NotImplementedError

    async def answer(self, ask_id: str, answer: Answer) -> bool:
        """Answer an ask. False: it was answered already or is gone."""
        raise NotImplementedError

    # ---- the stream
    def subscribe(self, session: str | None = None, *, capacity: int = 100, lossless: bool = False) -> Reader:
        """Read events from now on: one session's, or (None) all sessions' and those of servers and library.

        `lossless` drops and merges nothing (the command line's own reader).
        """
        raise NotImplementedError

    def asks(self, session: str | None = None) -> tuple[Ask, ...]:
        """The open asks, oldest first."""
        raise NotImplementedError

    async def grants(self) -> tuple[Rule, ...]:
        """What the person allowed or denied for good."""
        raise NotImplementedError

    async def revoke(self, pattern: str) -> None:
        """Take back what was allowed or denied for good for this pattern."""
        raise NotImplementedError

    async def doctor(self) -> tuple[FrozenDict, ...]:
        """Run all health checks: `{check, ok, detail, remedy}`."""
        raise NotImplementedError


Opener: TypeAlias = Callable[[HostSpec], AbstractAsyncContextManager[Host]]
"""How a face gets a host: `async with opener(spec) as host`."""

__all__ = [
    "HeadlessPolicy", "Host", "HostSpec", "InputFile", "Opener", "Reader", "Ticket", "TurnResult", "UserInput",
]  # fmt: skip
