"""The one object a face holds: four verbs down, one stream of events up, and the admin ports."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

from desktop_host.core.admin import ModelAdmin, SecretStore, SettingsStore
from desktop_host.core.asks import Answer, Ask
from desktop_host.core.diagnosis import Diagnostics
from desktop_host.core.errors import UserFault
from desktop_host.core.events import SessionRenamed, SkillPinned, Stamped, ThinkingStreamed, TokenDelta
from desktop_host.core.permissions import Rule
from desktop_host.core.ports import History, Ledger
from desktop_host.core.server_ports import ServerReach
from desktop_host.core.sessions import SessionOptions, TurnStatus
from desktop_host.core.sharing import Sharer
from desktop_host.core.skill_admin import SkillAdmin
from desktop_host.core.skills import SkillPin
from desktop_host.core.transcript import Transcript, fold
from desktop_host.core.values import FrozenDict
from desktop_host.engine import bundle, moving
from desktop_host.engine.bus import Reader
from desktop_host.engine.compaction import Compactor
from desktop_host.engine.context import SessionContext
from desktop_host.engine.inbox import HeadlessPolicy, Inbox
from desktop_host.engine.parts import Parts
from desktop_host.engine.retelling import Retelling
from desktop_host.engine.sessions import Sessions
from desktop_host.engine.spec import HostSpec
from desktop_host.engine.tickets import InputFile, Ticket, TurnResult, UserInput
from desktop_host.engine.toolside import ToolSide

__all__ = [
    "HeadlessPolicy", "Host", "HostSpec", "InputFile", "Opener", "Reader", "Ticket", "TurnResult", "UserInput",
]  # fmt: skip


class Host(Retelling, ToolSide):
    """A profile at work. All methods belong to the host's loop; a window calls them through its bridge."""

    def __init__(
        self,
        profile: str,
        folder: Path,
        parts: Parts,
        sessions: Sessions,
        inbox: Inbox,
        servers: ServerReach,
        secrets: SecretStore,
        diagnostics: Diagnostics,
        skills: SkillAdmin | None = None,
    ) -> None:
        self.profile = profile
        self.folder = folder
        self.record, self.upload = parts.record, parts.upload
        self.servers = servers
        self.models: ModelAdmin = parts.models
        self.settings: SettingsStore = parts.settings
        self.secrets = secrets
        self._skills = skills
        self.history: History = parts.history
        self.ledger: Ledger = parts.ledger
        self._parts, self._sessions = parts, sessions
        self._inbox = inbox
        self.diagnostics = diagnostics
        self.sharing: Sharer | None = None
        """The window's gateway; none in a headless run."""

    @property
    def skills(self) -> SkillAdmin:
        """The skills library."""
        if self._skills is None:
            raise RuntimeError("this host has no skills")
        return self._skills

    # ---- sessions
    async def new_session(self, options: SessionOptions = SessionOptions(), title: str = "") -> str:
        """Make a session and return its id. Without a title it is named by its first message."""
        return await self._sessions.create(options, title)

    async def configure(self, session: str, options: SessionOptions) -> None:
        """Change what a session runs with, from its next turn on; its servers are told of other folders at once."""
        await self.history.set_options(session, self._sessions.kept(session, options))
        context = self._sessions.context(session)
        if context is not None:
            other, context.options = context.options.roots != options.roots, options
            if other:
                await self.servers.roots_changed(session)

    async def transcript(self, session: str, newest: int | None = None) -> Transcript:
        """The conversation as it stands, the reply that streams included.

        A turn left open by a dead host is closed first, unless another process has the session. With `newest` so
        many events are enough: of a longer one come the turns that begin within them, marked as `partial`.
        """
        row = await self.history.row(session)
        if row.last_turn is TurnStatus.OPEN and self._sessions.find(session) is None:
            try:
                await self._sessions.actor(session)
            except UserFault as fault:
                if fault.code != "session_busy":
                    raise
        events, partial = await bundle.newest_of(self.history, session, newest)
        transcript = replace(bundle.transcript_of(session, row.title, events), partial=partial)
        context = self._sessions.context(session)
        if context is not None and context.live is not None:
            text, thinking = ("".join(part) for part in context.live)
            live = [e for e in (ThinkingStreamed(thinking), TokenDelta(text)) if e.text]
            first = context.log.last_seq - len(live) + 1  # `fold` goes by seq: the newest of them has the newest
            for i, event in enumerate(live):
                stamped = Stamped(first + i, self._parts.clock.now(), session, context.log.turn, event)
                transcript = fold(transcript, stamped)
        if context is not None:
            transcript = replace(transcript, state=context.state, queued=context.queued)
        return transcript

    async def rename(self, session: str, title: str) -> None:
        """Give a session another title.

        Raises:
            UserFault: `usage` for an empty title, `not_found`.
        """
        title = " ".join(title.split())
        if not title:
            raise UserFault("usage", "a title cannot be empty", reason="empty_title")
        actor = await self._sessions.actor(session)
        await self.history.rename(session, title)
        await actor.context.emit(SessionRenamed(title))

    async def delete(self, session: str) -> None:
        """Interrupt, close and delete a session."""
        await self._sessions.release(session)
        await self.history.delete(session)

    async def export(self, session: str, form: str) -> str:
        """The session as `json` (a bundle for `import_bundle`), `md` or `html`.

        Raises:
            UserFault: `usage` for another form, `not_found`.
        """
        row = await self.history.row(session)
        events = await self.history.read(session)
        match form:
            case "json":
                return await moving.pack(self.history, session)
            case "md":
                return bundle.to_markdown(bundle.transcript_of(session, row.title, events))
            case "html":
                return bundle.to_html(bundle.transcript_of(session, row.title, events))
        raise UserFault("usage", f"a session is exported as json, md or html, not as {form}", form=form)

    async def import_bundle(self, text: str) -> str:
        """Make a session of a bundle; returns its new id.

        Raises:
            UserFault: `bad_bundle` with a `reason`; nothing is kept.
        """
        return await moving.take_in(self.history, text)

    async def apply_tools(self, session: str) -> None:
        """Give the model the tools as they are now, from the next turn on."""
        (await self._sessions.actor(session)).context.apply_tools()

    async def pin_skill(self, session: str, name: str, version: str | None) -> SkillPin:
        """Give a session a version of a skill (None: what a new session would get) from its next message on.

        Raises:
            UserFault: `not_found`, no such session, skill or version; `session_busy`, another process has it.
        """
        actor = await self._sessions.actor(session)
        source = self._parts.skills
        if source is None:
            raise RuntimeError("this host has no skills")
        pin = await source.pin(session, name, version)
        await actor.context.emit(SkillPinned(pin))
        return pin

    # ---- long conversations and money
    async def compact(self, session: str) -> bool:
        """Summarise a session for its model now; False where there is too little to summarise.

        Raises:
            UserFault: `session_busy`, a turn runs; `not_found`.
            HostError: the summary could not be made; the session is as it was.
        """
        context = await self._idle(session)
        async with context.exclusive:
            return await Compactor(context).compact(context.model_ref, "person")

    async def undo_compaction(self, session: str) -> bool:
        """Let the model read the messages behind the newest summary again; False where there is none.

        None is made by itself after that, until a model refuses the conversation.

        Raises:
            UserFault: `session_busy`, a turn runs; `not_found`.
        """
        context = await self._idle(session)
        async with context.exclusive:
            return await context.undo_compaction()

    async def standings(self, session: str | None = None) -> tuple[FrozenDict, ...]:
        """What day, month and a session have cost, and their limits: see `Spending.standings`."""
        own = (await self.history.options(session)).budget_usd if session else None
        return await self._parts.spending.standings(session, own)

    async def _idle(self, session: str) -> SessionContext:
        actor = await self._sessions.actor(session)
        if actor.busy:
            raise UserFault("session_busy", "a turn is running", session=session)
        return actor.context

    # ---- the four verbs
    async def submit(self, session: str, said: UserInput) -> Ticket:
        """Queue a message.

        Raises:
            UserFault: `usage` for an empty message or a file too large; `session_busy`, 32 messages wait or
                another process has the session; `not_found`.
        """
        event = await self.said(said)
        return await (await self._sessions.actor(session)).submit(event)

    async def interrupt(self, session: str) -> None:
        """Stop the running turn; returns when it has ended. Queued messages stay queued."""
        actor = self._sessions.find(session)
        if actor is not None:
            await actor.interrupt()

    async def resume(self, session: str) -> Ticket:
        """Go on with an interrupted or failed turn from the last consistent point; no tool is rerun.

        Raises:
            UserFault: `usage`, the last turn is done or there is none; `session_busy`, a turn runs.
        """
        actor = await self._sessions.actor(session)
        if actor.busy:
            raise UserFault("session_busy", "a turn is running", session=session)
        row = await self.history.row(session)
        if row.last_turn not in (TurnStatus.INTERRUPTED, TurnStatus.FAILED):
            raise UserFault("usage", "the last turn of this session is done", reason="nothing_to_resume")
        return await actor.submit(None)

    async def answer(self, ask_id: str, answer: Answer) -> bool:
        """Answer an ask. False: it was answered already or is gone."""
        return self._inbox.answer(ask_id, answer)

    # ---- the stream and what is open
    def subscribe(self, session: str | None = None, *, capacity: int = 100, lossless: bool = False) -> Reader:
        """Read events from now on: one session's, or (None) all sessions' and those of servers and library.

        `lossless` drops and merges nothing (the command line's own reader).
        """
        return self._parts.bus.subscribe(session, capacity=capacity, lossless=lossless)

    def asks(self, session: str | None = None) -> tuple[Ask, ...]:
        """The open asks, oldest first."""
        return self._inbox.open(session)

    async def grants(self) -> tuple[Rule, ...]:
        """What the person allowed or denied for good."""
        return await self.ledger.grants()

    async def revoke(self, pattern: str) -> None:
        """Take back what was allowed or denied for good for this pattern."""
        await self.ledger.revoke(pattern)

    async def close(self) -> None:
        """Interrupt and release all sessions; dismiss what is asked; end all readers."""
        await self._sessions.close()
        self._inbox.dismiss()
        self._parts.bus.close()


Opener: TypeAlias = Callable[[HostSpec], AbstractAsyncContextManager[Host]]
"""How a face gets a host: `async with opener(spec) as host`."""
