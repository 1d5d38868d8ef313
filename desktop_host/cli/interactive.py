"""A conversation in the terminal: what the window does, where there is no display."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

from desktop_host.cli.approvals import decide
from desktop_host.cli.chat import fault_of
from desktop_host.cli.context import INTERRUPTED, Run
from desktop_host.cli.follow import Follower
from desktop_host.cli.reading import Typist
from desktop_host.cli.render import TextView
from desktop_host.cli.signals import STOPPING, On
from desktop_host.core.asks import Ask
from desktop_host.core.errors import HostError, UserFault
from desktop_host.core.events import AskRaised, AskSettled
from desktop_host.core.sessions import SessionOptions, TurnStatus
from desktop_host.engine.host import Ticket, UserInput
from desktop_host.i18n import tr


async def converse(run: Run) -> int:
    """Talk until the person leaves: `/quit` or the end of input (0), or Ctrl+C outside a turn (130).

    Raises:
        UserFault: `usage`, nobody sits at standard input.
    """
    if not run.stdin.is_terminal:
        raise UserFault("usage", "standard input is no terminal; use the verb chat", reason="no_terminal")
    talk = Conversation(run)
    try:
        with On(STOPPING, talk.stop):
            return await talk.run()
    finally:
        await talk.close()


class Conversation:
    """One person, one terminal, one session at a time."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._host = run.host
        self._typist = Typist()
        self._asks: asyncio.Queue[Ask] = asyncio.Queue()
        self._open_asks: dict[str, asyncio.Event] = {}
        self._follower: Follower | None = None
        self._session: str | None = None
        self._options = SessionOptions()
        self._ticket: Ticket | None = None
        self._left = asyncio.Event()
        self._stopping: set[asyncio.Task[None]] = set()

    def stop(self) -> None:
        """Ctrl+C: stop the running turn, or leave."""
        if self._ticket is None or self._session is None:
            self._left.set()
            return
        task = asyncio.create_task(self._host.interrupt(self._session))
        self._stopping.add(task)
        task.add_done_callback(self._stopping.discard)

    async def run(self) -> int:
        """Read, do, repeat."""
        say = self._run.out.note
        say(tr("cli.talk.welcome", model=self._host.settings.current().model.default))
        while True:
            line = await self._typed()
            if self._left.is_set():
                say("")
                return INTERRUPTED
            if line is None or line.strip() in ("/quit", "/exit"):
                return 0
            if not line.strip():
                continue
            try:
                if line.startswith("/"):
                    await self._command(line.strip())
                else:
                    await self._turn(line)
            except HostError as error:
                self._run.out.error(error)

    async def _typed(self) -> str | None:
        """The person's next line; None also where they left by a signal."""
        reading = asyncio.create_task(self._typist.line("> "))
        leaving = asyncio.create_task(self._left.wait())
        either: set[asyncio.Task[Any]] = {reading, leaving}
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        leaving.cancel()
        if reading.done():
            return reading.result()
        reading.cancel()
        return None

    async def _open(self, session: str | None) -> str:
        """Make a session, or go on with one, and follow it."""
        await self._close_follower()
        follower = Follower(self._host, TextView(self._run.out, interactive=True), self._asked)
        self._follower = follower
        self._session = session or await self._host.new_session(self._options)
        follower.follow(self._session)
        return self._session

    async def _turn(self, text: str) -> None:
        session = self._session if self._session and self._follower else await self._open(self._session)
        await self._watch(await self._host.submit(session, UserInput(text)))

    async def _watch(self, ticket: Ticket) -> None:
        """Tell a turn and ask the person what it needs, until it has ended."""
        assert self._follower is not None
        self._ticket = ticket
        asking = asyncio.create_task(self._answer_asks())
        try:
            result = await self._follower.until(ticket.done)
        finally:
            self._ticket = None
            asking.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await asking
        if result.status is TurnStatus.INTERRUPTED:
            self._run.out.note(tr("cli.talk.interrupted"))
        elif (error := fault_of(result)) is not None:
            self._run.out.error(error)

    def _asked(self, news: AskRaised | AskSettled) -> None:
        if isinstance(news, AskRaised):
            self._open_asks[news.ask.ask_id] = asyncio.Event()
            self._asks.put_nowait(news.ask)
        elif news.ask_id in self._open_asks:
            self._open_asks.pop(news.ask_id).set()

    async def _answer_asks(self) -> None:
        """Ask the person one thing after another; what was settled meanwhile (a stop, a lost server) is let go."""
        while True:
            ask = await self._asks.get()
            settled = self._open_asks.get(ask.ask_id)
            if settled is None:
                continue
            answering = asyncio.create_task(decide(ask, self._run.out.note, self._typist.line))
            gone = asyncio.create_task(settled.wait())
            either: set[asyncio.Task[Any]] = {answering, gone}
            try:
                await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
                if answering.done():
                    await self._host.answer(ask.ask_id, answering.result())
            finally:
                answering.cancel()
                gone.cancel()

    async def _command(self, line: str) -> None:
        word, _, rest = line.partition(" ")
        rest = rest.strip()
        match word:
            case "/help":
                self._run.out.note(tr("cli.talk.help"))
            case "/new":
                await self._close_follower()
                self._session = None
                self._run.out.note(tr("cli.talk.new"))
            case "/model" if rest:
                self._options = SessionOptions(model=rest)
                if self._session is not None:
                    await self._host.configure(self._session, self._options)
                self._run.out.note(tr("cli.talk.model", model=rest))
            case "/sessions":
                for row in await self._host.history.rows(limit=20):
                    self._run.out.note(f"  {row.session}  {row.title}")
            case "/open" if rest:
                row = await self._host.history.row(rest)
                self._options = await self._host.history.options(rest)
                await self._open(rest)
                self._run.out.note(tr("cli.talk.opened", title=row.title))
            case "/resume" if self._session is not None:
                session = self._session if self._follower else await self._open(self._session)
                await self._watch(await self._host.resume(session))
            case "/servers":
                for status in self._host.servers.statuses():
                    self._run.out.note(f"  {status.name}  {tr(f'cli.state.{status.state.value}')}  {status.target}")
            case _:
                self._run.out.note(tr("cli.talk.unknown", command=word))

    async def _close_follower(self) -> None:
        if self._follower is not None:
            await self._follower.close()
            self._follower = None

    async def close(self) -> None:
        """Give the terminal back."""
        await asyncio.gather(*self._stopping, return_exceptions=True)
        await self._close_follower()
        await self._typist.close()
