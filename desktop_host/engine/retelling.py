"""A conversation told another way: branches, other wordings, other answers, another order of what waits."""

from __future__ import annotations

import re
import uuid
from collections.abc import Awaitable, Callable
from dataclasses import replace

from desktop_host.core.errors import UserFault
from desktop_host.core.events import (
    Branched,
    FeedbackGiven,
    SessionRenamed,
    Stamped,
    TurnEnded,
    TurnStarted,
    UserSaid,
)
from desktop_host.core.ports import History
from desktop_host.core.session_events import QueuedMessage
from desktop_host.engine import moving
from desktop_host.engine.moving import PREFIX
from desktop_host.engine.sessions import Sessions
from desktop_host.engine.tickets import UserInput
from desktop_host.engine.toolside import ToolSide

_NUMBERED = re.compile(r"(.*) \((\d{1,4})\)", re.S)


class Retelling(ToolSide):
    """The part of a `Host` that makes sessions of sessions and orders what waits."""

    history: History
    _sessions: Sessions

    async def branch(self, session: str, before_turn: int | None = None) -> str:
        """A new session that holds the finished turns of another one; returns its id. The source stays as it is.

        Options, tools and system text are the same; what was allowed "for this chat" is not taken over, and what
        the turns cost is not counted a second time.

        Args:
            session: the source.
            before_turn: number of the first turn to leave out; None: all finished turns.

        Raises:
            UserFault: `not_found`; `usage`, there is no such turn.
        """
        return (await self._branch(session, before_turn))[0]

    async def edit_and_resend(self, session: str, turn: int, said: UserInput) -> str:
        """A branch in which the person said something else in a turn; returns its id, the turn runs already.

        Files of the original message go along unless `said` brings its own.

        Raises:
            UserFault: `not_found`; `usage`, there is no such turn or nothing is said.
        """
        events = await self.history.read(session)
        before = _said(session, events, turn)
        others = said.files or said.resources or not before.blocks
        event = await self.said(said) if others else replace(before, text=said.text, fresh=False)
        made, _ = await self._branch(session, turn)
        await (await self._sessions.actor(made)).submit(event)
        return made

    async def regenerate(self, session: str, turn: int | None = None) -> str:
        """A branch in which a turn (None: the last) is asked anew; returns its id. No kept answer may serve.

        Raises:
            UserFault: `not_found`; `usage`, there is no such turn.
        """
        events = await self.history.read(session)
        if turn is None:
            turn = max((s.turn for s in events if isinstance(s.event, UserSaid)), default=0)
        said = _said(session, events, turn)
        made, _ = await self._branch(session, turn)
        await (await self._sessions.actor(made)).submit(replace(said, fresh=True))
        return made

    async def give_feedback(self, session: str, turn: int, good: bool | None, note: str = "") -> None:
        """Keep what the person thinks of a turn; None takes it back.

        Raises:
            UserFault: `not_found`, no such session; `session_busy`, another process has it.
        """
        await (await self._sessions.actor(session)).context.emit(FeedbackGiven(turn, good, note))

    async def hand_over(self, session: str, put: Callable[[str], Awaitable[str]], *, keep: bool) -> str:
        """Give a session to another profile; returns its id there.

        Args:
            session: what is given.
            put: takes the file of the session and returns the id it got.
            keep: whether it stays here as well.

        Raises:
            UserFault: `not_found`; `session_busy`, a turn runs or another process has it; what `put` raises. Then
                it stays.
        """
        actor = await self._sessions.actor(session)
        if actor.busy:
            raise UserFault("session_busy", "a turn is running", session=session)
        async with actor.context.exclusive:
            made = await put(await moving.pack(self.history, session))
        if not keep:
            if actor.busy:  # something was said meanwhile: nothing of it may get lost
                raise UserFault("session_busy", "a turn is running", session=session, copied=made)
            await self._sessions.release(session)
            await self.history.delete(session)
        return made

    # ---- what waits

    async def queued(self, session: str) -> tuple[QueuedMessage, ...]:
        """The messages that wait behind the running turn, the next one first."""
        actor = self._sessions.find(session)
        return actor.queue() if actor is not None else ()

    async def cancel_queued(self, session: str, message: str) -> bool:
        """Take back a message that waits. False: its turn has begun, or it is gone."""
        actor = self._sessions.find(session)
        return actor is not None and await actor.cancel_queued(message)

    async def move_queued(self, session: str, message: str, to: int) -> bool:
        """Let a message wait at another place (0: next). False: its turn has begun, or it is gone."""
        actor = self._sessions.find(session)
        return actor is not None and await actor.move_queued(message, to)

    # ---- inside

    async def _branch(self, session: str, before_turn: int | None) -> tuple[str, int]:
        row = await self.history.row(session)
        events = await self.history.read(session)
        end = _end(session, events, before_turn)
        kept = [s for s in events if s.turn < end]
        title = _next_title(row.title) if any(isinstance(s.event, UserSaid) for s in kept) else ""
        made = uuid.uuid4().hex
        options = replace(await self.history.options(session), parent=None, depth=0)
        await self.history.create(made, title, options)
        prefix = await self.history.state(session, PREFIX)
        if prefix is not None:
            # The vendors' caches and bound reasoning hold only if the model is told the same start.
            await self.history.put_state(made, PREFIX, prefix)
        if kept:
            await self.history.append([replace(s, session=made) for s in kept], copied=True)
        actor = await self._sessions.actor(made)
        marks = (SessionRenamed(title), Branched(session, end)) if title else (Branched(session, end),)
        await actor.context.emit(*marks)
        return made, end


def _said(session: str, events: tuple[Stamped, ...], turn: int) -> UserSaid:
    for stamped in events:
        if stamped.turn == turn and isinstance(stamped.event, UserSaid):
            return stamped.event
    raise UserFault("usage", f"session {session} has no turn {turn}", reason="no_such_turn", turn=turn)


def _end(session: str, events: tuple[Stamped, ...], before_turn: int | None) -> int:
    """The first turn that is left out: no turn is taken that has not ended."""
    ended = {s.turn for s in events if isinstance(s.event, TurnEnded)}
    open_turns = [s.turn for s in events if isinstance(s.event, TurnStarted) and s.turn not in ended]
    last = max((s.turn for s in events), default=0)
    limit = min([*open_turns, last + 1])
    if before_turn is None:
        return limit
    if not 1 <= before_turn <= last + 1:
        raise UserFault(
            "usage", f"session {session} has no turn {before_turn}", reason="no_such_turn", turn=before_turn
        )  # fmt: skip
    return min(before_turn, limit)


def _next_title(title: str) -> str:
    found = _NUMBERED.fullmatch(title)
    return f"{found[1]} ({int(found[2]) + 1})" if found else f"{title} (2)"
