"""One task per open session: its mailbox, its turns one after another, its interruption and its idle end."""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from desktop_host.core.errors import UserFault
from desktop_host.core.events import Event, SessionRenamed, StateChanged, TurnStarted, UserSaid
from desktop_host.core.session_events import QueuedMessage
from desktop_host.core.sessions import TurnStatus
from desktop_host.engine import tasks
from desktop_host.engine.context import SessionContext
from desktop_host.engine.tickets import Ticket, TurnResult
from desktop_host.engine.turn import Turn

MAILBOX = 32
INTERRUPT_LIMIT_S = 10.0
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Request:
    said: UserSaid | None
    """None: resume the last turn."""
    done: asyncio.Future[TurnResult]
    id: str


class SessionActor:
    """The only one that changes a session. Requests wait in its mailbox and are served in order."""

    def __init__(self, context: SessionContext, titled: bool, on_idle: Callable[[SessionActor], None]) -> None:
        self.context = context
        self._titled = titled
        self._on_idle = on_idle
        self._mailbox: deque[_Request] = deque()
        self._mail = asyncio.Event()
        self._begun = asyncio.Event()
        """Set while a turn runs."""
        self._turn: asyncio.Task[TurnResult] | None = None
        self._stopping = False
        self._naming: asyncio.Task[None] | None = None
        self._task = asyncio.create_task(self._serve(), name=f"session {context.session}")

    @property
    def busy(self) -> bool:
        """Whether a turn runs or waits."""
        return self._turn is not None or bool(self._mailbox)

    async def submit(self, said: UserSaid | None) -> Ticket:
        """Queue a message, or (None) the resumption of the last turn.

        Raises:
            UserFault: `session_busy`, the mailbox is full.
        """
        if len(self._mailbox) >= MAILBOX:
            raise UserFault("session_busy", f"{MAILBOX} messages wait already", session=self.context.session)
        future: asyncio.Future[TurnResult] = asyncio.get_running_loop().create_future()
        self._mailbox.append(_Request(said, future, uuid.uuid4().hex))
        self.context.queued = len(self._mailbox) - (0 if self._turn else 1)
        self._mail.set()
        if self._turn is not None:
            await self.context.log.emit(StateChanged(self.context.state, self.context.queued))
        return Ticket(self.context.session, future)

    def queue(self) -> tuple[QueuedMessage, ...]:
        """What waits, the next one first."""
        return tuple(
            QueuedMessage(r.id, r.said.text if r.said else "", len(r.said.attachments) if r.said else 0)
            for r in self._mailbox
        )

    async def cancel_queued(self, message: str) -> bool:
        """Take back what waits; whoever holds its ticket sees it cancelled. False: it does not wait any more."""
        request = next((r for r in self._mailbox if r.id == message), None)
        if request is None:
            return False
        self._mailbox.remove(request)
        request.done.cancel()
        await self._tell_queue()
        return True

    async def move_queued(self, message: str, to: int) -> bool:
        """Let it wait at another place. False: it does not wait any more."""
        request = next((r for r in self._mailbox if r.id == message), None)
        if request is None:
            return False
        self._mailbox.remove(request)
        self._mailbox.insert(max(0, to), request)
        await self._tell_queue()
        return True

    async def _tell_queue(self) -> None:
        self.context.queued = len(self._mailbox)
        await self.context.log.emit(StateChanged(self.context.state, self.context.queued))

    async def interrupt(self) -> None:
        """Stop the running turn; returns when it has ended."""
        if self._turn is None and self._mailbox:  # what was sent just now is about to start
            begun = asyncio.ensure_future(self._begun.wait())
            await asyncio.wait({begun, self._task}, return_when=asyncio.FIRST_COMPLETED)
            begun.cancel()
        turn = self._turn
        if turn is None or turn.done():
            return
        if not self._stopping:
            self._stopping = True
            turn.cancel()
        await asyncio.wait({turn}, timeout=INTERRUPT_LIMIT_S)

    async def close(self) -> None:
        """Interrupt, drop what waits and end the task."""
        for request in self._mailbox:
            if not request.done.done():
                request.done.cancel()
        self._mailbox.clear()
        await self.interrupt()
        ending = [task for task in (self._task, self._naming) if task is not None]
        for task in ending:
            task.cancel()
        await asyncio.gather(*ending, return_exceptions=True)

    async def _serve(self) -> None:
        clock = self.context.parts.clock
        while True:
            if not self._mailbox:
                self._mail.clear()
                idle_s = self.context.parts.settings.current().sessions.idle_minutes * 60
                mail = asyncio.ensure_future(self._mail.wait())
                idle = asyncio.ensure_future(clock.sleep(idle_s))
                try:
                    await asyncio.wait({mail, idle}, return_when=asyncio.FIRST_COMPLETED)
                finally:
                    mail.cancel()
                    idle.cancel()
                if not self._mailbox:
                    if self.context.page_calls:
                        continue
                    self._on_idle(self)
                    return
            async with self.context.exclusive:
                if not self._mailbox:
                    continue
                request = self._mailbox.popleft()
                self.context.queued = len(self._mailbox)
                self._stopping = False
                self._turn = asyncio.create_task(self._run(request))
                self._begun.set()
                await asyncio.wait({self._turn})
                turn, self._turn = self._turn, None
                self._begun.clear()
            if not request.done.done():
                if turn.cancelled():
                    request.done.cancel()
                elif error := turn.exception():
                    request.done.set_exception(error)
                else:
                    request.done.set_result(turn.result())
            if _lost(turn):
                self._leave()
                return

    def _leave(self) -> None:
        """Another process has the session: what is known here is old, so the next message opens it anew."""
        for request in self._mailbox:
            if not request.done.done():
                request.done.set_exception(UserFault("session_busy", "another process took the session over",
                                                     session=self.context.session, reason="taken_over"))  # fmt: skip
        self._mailbox.clear()
        self._on_idle(self)

    async def _run(self, request: _Request) -> TurnResult:
        context = self.context
        context.log.turn = context.conversation.turns + 1
        opening: list[Event] = [request.said] if request.said else []
        opening.append(TurnStarted(resumed=request.said is None))
        named = request.said.text if request.said is not None and not self._titled else ""
        if request.said is not None and not self._titled:
            self._titled = True
            title = title_of(request.said.text) or request.said.attachments[0].name
            opening.append(SessionRenamed(title))
            await context.parts.history.rename(context.session, title)
        context.parts.inbox.take_undecided(context.session)
        text = " ".join([request.said.text, *(a.name for a in request.said.attachments)]) if request.said else None
        ending = await Turn(context, tuple(opening), text).run()
        if named.strip() and ending.status is TurnStatus.DONE:
            self._naming = asyncio.create_task(tasks.name(context, named))
        return TurnResult(
            context.session,
            context.log.turn,
            ending.status,
            ending.stop,
            ending.text,
            ending.error,
            context.parts.inbox.take_undecided(context.session),
        )


def _lost(turn: asyncio.Task[TurnResult]) -> bool:
    """Whether a turn ended because the journal is another process's."""
    if turn.cancelled() or turn.exception() is not None:
        return False
    error = turn.result().error
    return error is not None and error["code"] == "session_busy"


def title_of(text: str) -> str:
    """A title made from the first line that says something; at most 60 characters."""
    line = next((part.strip() for part in text.splitlines() if part.strip()), "")
    return line if len(line) <= 60 else line[:59].rstrip() + "…"
