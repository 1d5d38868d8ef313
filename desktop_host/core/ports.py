"""What the rooms need of each other: the engine's side and the adapters' side meet here."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from typing import Any, Protocol

from desktop_host.core.events import Event, Stamped
from desktop_host.core.exchange import (
    ElicitReply,
    FormRequest,
    Origin,
    Progress,
    SamplingReply,
    SamplingRequest,
    ToolOutcome,
    UrlRequest,
)
from desktop_host.core.models import ModelEvent, ModelRequest
from desktop_host.core.permissions import Rule, Verdict
from desktop_host.core.sessions import SessionOptions, SessionRow
from desktop_host.core.skills import SkillPin, SkillPlan
from desktop_host.core.tools import ToolSpec
from desktop_host.core.values import FrozenDict, Json


class ChatModel(Protocol):
    """A model. One method, so that routers, retries, meters and caches nest."""

    def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """Answer one request; ends with exactly one `Completed`.

        Raises:
            ModelFault: the request failed or the stream was cut.
        """
        ...


class ToolSource(Protocol):
    """Where tools come from."""

    async def prepare(self, session: str, aliases: tuple[str, ...] | None, roots: tuple[str, ...]) -> None:
        """Start what this session needs and wait until each server is ready or has failed. Never raises for one."""
        ...

    def session_tools(self, session: str, aliases: tuple[str, ...] | None = None) -> tuple[ToolSpec, ...]:
        """The tools now known, sorted by alias and name; disabled ones carry `enabled=False`."""
        ...

    def is_trusted(self, alias: str) -> bool:
        """Whether the person trusts this server's hints."""
        ...

    async def call(
        self,
        session: str,
        call_id: str,
        spec: ToolSpec,
        arguments: FrozenDict,
        verdict: Verdict,
        progress: Callable[[Progress], None],
    ) -> ToolOutcome:
        """Run one call. Cancelling the awaiting task cancels the call on the wire.

        Failures of the tool, a lost server and a deadline come back as outcomes, not as exceptions.

        Raises:
            UserFault: `permission`, the verdict does not allow it.
        """
        ...

    async def release(self, session: str) -> None:
        """Close what was opened for this session alone."""
        ...


class Reviewer(Protocol):
    """Servers ask a human through this."""

    async def sample(self, origin: Origin, request: SamplingRequest) -> SamplingReply:
        """Let the model answer a server, if policy and person allow.

        Raises:
            UserFault: `permission` or `decision_needed`: refused.
        """
        ...

    async def elicit(self, origin: Origin, request: FormRequest | UrlRequest) -> ElicitReply:
        """Ask the person."""
        ...

    def roots(self, session: str | None) -> tuple[str, ...]:
        """The folders a server may be told of, absolute paths."""
        ...

    def logged(self, origin: Origin, level: str, logger: str | None, data: Json) -> None:
        """A line that a server logged while it ran a call; its own log has it already."""
        ...


class SkillSource(Protocol):
    """Which skills a message wakes."""

    async def plan(
        self, session: str, text: str, wanted: tuple[str, ...] | None, roots: tuple[str, ...] = ()
    ) -> SkillPlan:
        """Choose for one message and pin what is chosen. `wanted`: None for all, () for none, else only these.

        Raises:
            UserFault: `not_found`, a skill of `wanted` is not there.
        """
        ...

    async def catalogue(
        self,
        session: str,
        wanted: tuple[str, ...] | None = None,
        roots: tuple[str, ...] = (),
        window: int | None = None,
    ) -> str:
        """The part of the system text that lists the skills; empty where there are none.

        `window` is the model's context in tokens, of which the list takes a small share.
        """
        ...

    def rules(self, session: str) -> tuple[Rule, ...]:
        """What a person granted to the skills that are active in the running turn."""
        ...

    async def hand_over(self, session: str, part: str, skill: str, given: str) -> tuple[str, tuple[str, ...]]:
        """Let a sub-task's session work with the versions of the session above it, by one skill or (empty) by any.

        Returns:
            `name@version` of the skill, and the skills that may stand in where it fails.

        Raises:
            UserFault: `not_found`; `bad_skill`, it is broken, off or the person's alone.
        """
        ...

    async def settle(self, session: str, status: str) -> None:
        """A turn ended: note with the session how the skills' runs in it ended."""
        ...

    async def pin(self, session: str, name: str, version: str | None) -> SkillPin:
        """Give a session a version of a skill (None: what a new session would get) from its next message on.

        Raises:
            UserFault: `not_found`, `bad_skill`.
        """
        ...


class History(Protocol):
    """The journal and all that is kept of sessions."""

    async def create(self, session: str, title: str, options: SessionOptions) -> None: ...
    async def row(self, session: str) -> SessionRow:
        """One session.

        Raises:
            UserFault: `not_found`.
        """
        ...

    async def rows(self, *, limit: int = 500, offset: int = 0) -> tuple[SessionRow, ...]:
        """Sessions, pinned first, then the newest."""
        ...

    async def options(self, session: str) -> SessionOptions: ...
    async def set_options(self, session: str, options: SessionOptions) -> None:
        """Change what a session runs with.

        Raises:
            UserFault: `session_busy`, another live process has it.
        """
        ...

    async def append(self, events: Sequence[Stamped], *, copied: bool = False) -> None:
        """Write events in one transaction. `copied`: they happened in another session and were counted there.

        Raises:
            KnownFault: `disk_full` or `database_error`.
        """
        ...

    async def read(self, session: str, after: int = 0, limit: int | None = None) -> tuple[Stamped, ...]: ...
    async def last_seq(self, session: str) -> int: ...
    async def tail_seq(self, session: str, count: int) -> int:
        """The place after which the newest `count` events come; 0 where there are no more than those."""
        ...

    async def save_draft(self, session: str, turn: int, text: str, thinking: str) -> None:
        """Keep the streamed text of an unfinished reply (about once a second)."""
        ...

    async def draft(self, session: str) -> tuple[int, str, str] | None:
        """`(turn, text, thinking)` of a reply that was cut off."""
        ...

    async def clear_draft(self, session: str) -> None: ...
    async def put_state(self, session: str, key: str, value: Any) -> None:
        """Keep one JSON value with a session (the frozen prefix, quirks, …)."""
        ...

    async def state(self, session: str, key: str) -> Any: ...
    async def rename(self, session: str, title: str) -> None: ...
    async def pin(self, session: str, on: bool) -> None: ...
    async def delete(self, session: str) -> None: ...
    async def search(self, text: str, limit: int = 50) -> tuple[SessionRow, ...]: ...
    async def open_turns(self) -> tuple[str, ...]:
        """Sessions whose last turn has no end: left by a host that died."""
        ...

    async def put_blob(self, data: bytes) -> str:
        """Keep bytes by their sha256 (hex), which is returned."""
        ...

    async def blob(self, sha256: str) -> bytes: ...
    async def lease(self, session: str) -> None:
        """Take a session for this process.

        Raises:
            UserFault: `session_busy`, another live process has it.
        """
        ...

    async def release(self, session: str) -> None: ...


class Ledger(Protocol):
    """Grants and usage."""

    async def grants(self) -> tuple[Rule, ...]: ...
    async def grant(self, rule: Rule) -> None: ...
    async def revoke(self, pattern: str) -> None: ...
    async def known_tool(self, full_name: str) -> tuple[str, str] | None:
        """`(digest, description)` of the definition that was last allowed by a person."""
        ...

    async def remember_tool(self, full_name: str, digest: str, description: str) -> None: ...
    async def usage(self, by: str) -> tuple[FrozenDict, ...]:
        """Sums by `day`, `model`, `session` or `server`."""
        ...


class Clock(Protocol):
    """Time, so that tests need no waiting."""

    def now(self) -> float:
        """Seconds since the epoch."""
        ...

    def monotonic(self) -> float: ...
    async def sleep(self, seconds: float) -> None: ...


EventSink = Callable[[Event], None]
"""Where an adapter tells what happened outside sessions (ServerChanged, LibraryChanged). Thread: the host's loop."""
