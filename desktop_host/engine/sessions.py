"""The sessions of a host: made, opened (and recovered), released when idle."""

from __future__ import annotations

import asyncio
import logging
import uuid
from dataclasses import replace

from desktop_host.core.events import (
    AskRaised,
    AskSettled,
    AssistantSaid,
    Event,
    SessionOpened,
    Stamped,
    SubtaskChanged,
    ToolSettled,
    ToolStarted,
    TurnEnded,
)
from desktop_host.core.messages import ContentBlock, Outcome, Text
from desktop_host.core.models import Purpose
from desktop_host.core.permissions import Effect, Rule
from desktop_host.core.routes import ref_for
from desktop_host.core.sessions import SessionOptions, TurnStatus, TurnStop
from desktop_host.engine.actor import SessionActor
from desktop_host.engine.asking import partial_message
from desktop_host.engine.context import SessionContext
from desktop_host.engine.log import SessionLog
from desktop_host.engine.parts import Parts

_log = logging.getLogger(__name__)


class Sessions:
    """All sessions; those in use have an actor."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._actors: dict[str, SessionActor] = {}
        self._opening: dict[str, asyncio.Task[SessionActor]] = {}
        self._closing: dict[str, asyncio.Task[None]] = {}
        self._passing: dict[str, tuple[Rule, ...]] = {}
        """Rules of this run, which no journal keeps."""

    async def create(self, options: SessionOptions, title: str) -> str:
        """Make a session; returns its id."""
        session = uuid.uuid4().hex
        await self._parts.history.create(session, title, self.kept(session, options))
        log = SessionLog(session, self._parts.history, self._parts.bus, self._parts.clock, 0, 0)
        settings = self._parts.settings.current()
        model = options.model or ref_for(settings.routes, Purpose.CHAT, settings.model.default)
        await log.emit(SessionOpened(model, title))
        return session

    def kept(self, session: str, options: SessionOptions) -> SessionOptions:
        """The options as they are stored: what a command line allowed holds for its own run, what it denied stays."""
        passing = tuple(r for r in options.rules if r.origin == "command-line" and r.effect is Effect.ALLOW)
        self._passing[session] = passing
        return replace(options, rules=tuple(r for r in options.rules if r not in passing))

    def find(self, session: str) -> SessionActor | None:
        """The actor of a session that is in use."""
        return self._actors.get(session)

    def context(self, session: str | None) -> SessionContext | None:
        """What an open session knows."""
        actor = self._actors.get(session or "")
        return actor.context if actor else None

    def face(self, session: str) -> tuple[str, str]:
        """Where the questions of a session are asked: see `SessionContext.face`."""
        context = self.context(session)
        return context.face if context else (session, "")

    async def actor(self, session: str) -> SessionActor:
        """The actor of a session, opened if need be: leased, recovered, ready.

        Raises:
            UserFault: `not_found`, or `session_busy` where another process has it.
        """
        found = self._actors.get(session)
        if found is not None:
            return found
        opening = self._opening.get(session)
        if opening is None:
            opening = asyncio.create_task(self._open(session))
            self._opening[session] = opening
            opening.add_done_callback(lambda _t: self._opening.pop(session, None))
        return await asyncio.shield(opening)

    async def emit(self, session: str | None, event: Event) -> None:
        """Put an event on the line of a session; one of no open session goes to the readers only."""
        context = self.context(session)
        if context is not None:
            await context.emit(event)
        else:
            await self._parts.bus.announce(event, self._parts.clock.now())

    async def release(self, session: str) -> None:
        """Close a session's actor and all that was opened for it; the record stays."""
        actor = self._actors.pop(session, None)
        if actor is None:
            return
        await actor.close()
        await self._let_go(session)

    async def close(self) -> None:
        """Release all sessions at once."""
        await asyncio.gather(*(self.release(s) for s in list(self._actors)))
        await asyncio.gather(*self._closing.values())

    async def _open(self, session: str) -> SessionActor:
        parts = self._parts
        if session in self._closing:
            await asyncio.wait({self._closing[session]})
        row = await parts.history.row(session)
        await parts.history.lease(session)
        try:
            options = await parts.history.options(session)
            options = replace(options, rules=(*options.rules, *self._passing.get(session, ())))
            events = await parts.history.read(session)
            last = events[-1].seq if events else 0
            log = SessionLog(session, parts.history, parts.bus, parts.clock, last, 0)
            context = SessionContext(session, parts, options, log)
            await context.load(events)
            await _recover(context, events)
        except BaseException:
            await parts.history.release(session)
            raise
        actor = SessionActor(context, bool(row.title), self._idle)
        self._actors[session] = actor
        return actor

    def _idle(self, actor: SessionActor) -> None:
        """An actor ran idle: drop it and what was opened for it."""
        session = actor.context.session
        if self._actors.get(session) is actor:
            del self._actors[session]
        task = asyncio.create_task(self._let_go(session))
        self._closing[session] = task
        task.add_done_callback(lambda _t: self._closing.pop(session, None))

    async def _let_go(self, session: str) -> None:
        await self._parts.tools.release(session)
        await self._parts.history.release(session)


_UNDER_WAY = ("waiting", "running")


def _parts(events: tuple[Stamped, ...], call_id: str) -> list[SubtaskChanged]:
    """How the parts of a call stood at the end."""
    last = {
        s.event.number: s.event for s in events if isinstance(s.event, SubtaskChanged) and s.event.call_id == call_id
    }
    return [last[n] for n in sorted(last)]


def _finished(parts: list[SubtaskChanged]) -> tuple[ContentBlock, ...]:
    """What the model is told of parts of which the host died: the results that stand."""
    if not parts:
        return ()
    rows = [f"[Part {p.number}, {p.name}: {'done' if p.state == 'done' else 'not finished'}]\n{p.text}" for p in parts]
    return (Text("\n\n".join(row.rstrip() for row in ["The app ended while the parts ran.", *rows])),)


async def _recover(context: SessionContext, events: tuple[Stamped, ...]) -> None:
    """Close a turn that a dead host left open.

    A call that was started may have run (`unknown`); one that was not, did not (`cancelled`). What was
    streamed becomes a partial reply. Nothing is rerun.
    """
    lost = sorted(context.conversation.pages.open)
    if context.conversation.open_turn is None and not lost:
        return
    started = {s.event.call_id for s in events if isinstance(s.event, ToolStarted)}
    asked = {s.event.ask.ask_id for s in events if isinstance(s.event, AskRaised)}
    answered = {s.event.ask_id for s in events if isinstance(s.event, AskSettled)}
    closing: list[Event] = [AskSettled(i, "dismissed", "policy") for i in sorted(asked - answered)]
    closing += [ToolSettled(i, Outcome.UNKNOWN if i in started else Outcome.CANCELLED) for i in lost]
    if context.conversation.open_turn is None:
        await context.emit(*closing)
        return
    if context.conversation.unsettled:
        for i in sorted(context.conversation.unsettled):
            parts = _parts(events, i)
            closing += [replace(p, state="unknown") for p in parts if p.state in _UNDER_WAY]
            closing.append(ToolSettled(i, Outcome.UNKNOWN if i in started else Outcome.CANCELLED, _finished(parts)))
        text = ""
    else:
        draft = await context.parts.history.draft(context.session)
        turn, text, thinking = draft or (0, "", "")
        if turn != context.conversation.open_turn:
            text = thinking = ""
        message = partial_message([text] if text else [], [thinking] if thinking else [])
        closing.append(AssistantSaid(message, context.model_ref, partial=True))
    closing.append(TurnEnded(TurnStatus.INTERRUPTED, TurnStop.INTERRUPTED, text))
    await context.emit(*closing)
    await context.parts.history.clear_draft(context.session)
    _log.info("closed a turn of session %s that a dead host left open", context.session)
