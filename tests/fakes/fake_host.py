"""A small host that behaves: it keeps a journal, streams what a test tells it to, and answers its asks."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from desktop_host.core import events as ev
from desktop_host.core.asks import Allow, Answer, Ask, Refuse, action_of
from desktop_host.core.delivery import Kept
from desktop_host.core.errors import UserFault
from desktop_host.core.messages import Outcome, Text, assistant
from desktop_host.core.models import ModelEntry
from desktop_host.core.permissions import Rule
from desktop_host.core.servers import ServerConfig, ServerState, ServerStatus
from desktop_host.core.session_events import QueuedMessage
from desktop_host.core.sessions import SessionOptions, SessionRow, SessionState, TurnStatus, TurnStop
from desktop_host.core.settings import Settings, put
from desktop_host.core.skills import SkillPin
from desktop_host.core.tools import ToolSpec
from desktop_host.core.transcript import Transcript, fold
from desktop_host.core.values import EMPTY, FrozenDict
from desktop_host.engine.host import Host, HostSpec, Reader, Ticket, TurnResult, UserInput
from tests.fakes.skill_library import SkillLibrary

Script = Callable[["FakeHost", str, str], Awaitable[None]]
"""What happens in a turn: `(host, session, text)`. Started events are published; the end follows by itself."""


class FakeReader(Reader):
    """A reader over an unbounded queue; `lose()` detaches it as a bus does with one that is too slow."""

    def __init__(self, session: str | None) -> None:
        self.session = session
        self.queue: asyncio.Queue[tuple[ev.Stamped, ...] | None] = asyncio.Queue()

    async def __anext__(self) -> tuple[ev.Stamped, ...]:
        batch = await self.queue.get()
        if batch is None:
            raise StopAsyncIteration
        return batch

    def lose(self, seq: int) -> None:
        self.lagged_seq = seq
        self.queue.put_nowait(None)

    def close(self) -> None:
        self.queue.put_nowait(None)


class FakeModels:
    """A list of models."""

    def __init__(self, *entries: ModelEntry) -> None:
        self.list = entries or (
            ModelEntry("script:demo", "Scripted demo", "local", True, context_window=8192),
            ModelEntry("anthropic/claude-sonnet-4-5", "Claude Sonnet 4.5", "anthropic", True, context_window=200_000),
            ModelEntry("openai/gpt-5", "GPT-5", "openai", False, "no_key"),
        )

    async def entries(self, *, refresh: bool = False) -> tuple[ModelEntry, ...]:
        return self.list


class FakeServers:
    """Servers that only have names, states and tools."""

    def __init__(self) -> None:
        self.specs: dict[str, tuple[ToolSpec, ...]] = {}

    def put(self, alias: str, *tools: ToolSpec) -> None:
        self.specs[alias] = tools

    def configs(self) -> tuple[ServerConfig, ...]:
        from desktop_host.core.servers import Stdio

        return tuple(ServerConfig(name, Stdio("true")) for name in self.specs)

    def statuses(self) -> tuple[ServerStatus, ...]:
        return tuple(ServerStatus(name, ServerState.READY, tools=len(t)) for name, t in self.specs.items())

    def tools(self, name: str) -> tuple[ToolSpec, ...]:
        return self.specs[name]

    async def icon(self, name: str, kind: str = "server", item: str = "", dark: bool = False) -> bytes | None:
        return None


class FakeSettings:
    """The defaults, changeable in memory."""

    def __init__(self) -> None:
        self.now = Settings()

    def current(self) -> Settings:
        return self.now

    async def set(self, key: str, value: Any) -> Settings:
        self.now = put(self.now, key, value)
        return self.now

    def problems(self) -> tuple[FrozenDict, ...]:
        return ()


class FakeHistory:
    """Rows, options and small values in memory."""

    def __init__(self, host: FakeHost) -> None:
        self._host = host
        self.values: dict[tuple[str, str], Any] = {}

    async def rows(self, *, limit: int = 500, offset: int = 0) -> tuple[SessionRow, ...]:
        return tuple(
            SessionRow(sid, t.title, 0.0, 0.0, len(t.entries), t.state) for sid, t in self._host.transcripts.items()
        )

    async def options(self, session: str) -> SessionOptions:
        return self._host.options.get(session, SessionOptions())

    async def put_state(self, session: str, key: str, value: Any) -> None:
        self.values[session, key] = value

    async def state(self, session: str, key: str) -> Any:
        return self.values.get((session, key))

    async def read(self, session: str, after: int = 0, limit: int | None = None) -> tuple[ev.Stamped, ...]:
        return tuple(s for s in self._host.journal.get(session, []) if s.seq > after)[:limit]


class FakeHost(Host):
    """See the module. All methods belong to the loop it was opened on."""

    def __init__(self, script: Script | None = None) -> None:
        self.profile, self.folder = "default", Path("/nowhere")
        self.record = FrozenDict({"store": "sqlite", "place": "/nowhere/host.db", "detail": "SQLite 3.40.1"})
        self.script = script or echo
        self.models: Any = FakeModels()
        self.servers: Any = FakeServers()
        self.settings: Any = FakeSettings()
        self.history: Any = FakeHistory(self)
        self.library = SkillLibrary(self)
        self.transcripts: dict[str, Transcript] = {}
        self.journal: dict[str, list[ev.Stamped]] = {}
        self.options: dict[str, SessionOptions] = {}
        self.readers: list[FakeReader] = []
        self.open_asks: dict[str, tuple[str, Ask, asyncio.Future[Answer]]] = {}
        self.answers: list[tuple[str, Answer]] = []
        self.said: list[tuple[str, UserInput]] = []
        self.applied: list[str] = []
        self.turns: dict[str, asyncio.Task[None]] = {}
        self.queues: dict[str, list[tuple[UserInput, Ticket]]] = {}
        self.limits: tuple[FrozenDict, ...] = ()
        self.asked_standings: list[str | None] = []
        self.closed = False
        self._seq = itertools.count(1)
        self._turn = itertools.count(1)

    async def call_by_hand(self, server: str, tool: str, arguments: Any, progress: Any = None) -> Any:
        return await self.servers.call_tool(server, tool, arguments, progress)

    async def resend(self, server: str, method: str, params: Any) -> Any:
        return await self.servers.resend(server, method, params)

    def publish(self, session: str, event: ev.Event, turn: int = 1) -> None:
        """Stamp, keep and send one event."""
        stamped = ev.Stamped(next(self._seq), time.time(), session, turn, event)
        if session:
            if isinstance(event, Kept):
                self.journal.setdefault(session, []).append(stamped)
            self.transcripts[session] = fold(self.transcripts.get(session, Transcript(session)), stamped)
        for reader in list(self.readers):
            if reader.session in (None, session):
                reader.queue.put_nowait((stamped,))

    async def new_session(self, options: SessionOptions = SessionOptions(), title: str = "") -> str:
        session = f"s{len(self.transcripts) + 1}"
        self.options[session] = options
        self.publish(session, ev.SessionOpened(options.model or "script:demo", title), 0)
        return session

    async def configure(self, session: str, options: SessionOptions) -> None:
        self.options[session] = options

    async def standings(self, session: str | None = None) -> tuple[FrozenDict, ...]:
        self.asked_standings.append(session)
        return self.limits

    async def transcript(self, session: str, newest: int | None = None) -> Transcript:
        if session not in self.transcripts:
            raise UserFault("not_found", f"no session {session}", thing=session)
        return self.transcripts[session]

    @property
    def skills(self) -> SkillLibrary:
        return self.library

    async def pin_skill(self, session: str, name: str, version: str | None) -> SkillPin:
        pin = self.library.pin(session, name, version)
        self.publish(session, ev.SkillPinned(pin))
        return pin

    async def apply_tools(self, session: str) -> None:
        self.applied.append(session)
        self.publish(session, ev.ToolsChanged(applied=True))

    async def submit(self, session: str, said: UserInput) -> Ticket:
        ticket = Ticket(session, asyncio.get_running_loop().create_future())
        self.said.append((session, said))
        if session in self.turns:
            self.queues.setdefault(session, []).append((said, ticket))
            self._state(session, SessionState.RUNNING)
        else:
            self._begin(session, said, ticket)
        return ticket

    def _state(self, session: str, state: SessionState) -> None:
        self.publish(session, ev.StateChanged(state, len(self.queues.get(session, []))))

    def _begin(self, session: str, said: UserInput, ticket: Ticket | None, resumed: bool = False) -> None:
        turn = max(next(self._turn), 1 + max((s.turn for s in self.journal.get(session, ())), default=0))

        async def run() -> None:
            if not resumed:
                files = tuple(ev.Attachment(f.name, f.mime_type, len(f.data)) for f in said.files)
                self.publish(session, ev.UserSaid(said.text, files), turn)
            self.publish(session, ev.TurnStarted(resumed), turn)
            self._state(session, SessionState.RUNNING)
            status, stop = TurnStatus.DONE, TurnStop.END
            try:
                await self.script(self, session, said.text)
            except asyncio.CancelledError:
                if self.closed:
                    raise
                status, stop = TurnStatus.INTERRUPTED, TurnStop.INTERRUPTED
            except TurnOver as over:
                status, stop = TurnStatus.FAILED, over.stop
            for ask_id, (sid, _ask, future) in list(self.open_asks.items()):
                if sid == session:
                    future.cancel()
                    del self.open_asks[ask_id]
                    self.publish(session, ev.AskSettled(ask_id, "dismissed", "host"), turn)
            del self.turns[session]
            self.publish(session, ev.TurnEnded(status, stop), turn)
            if ticket is not None:
                ticket.done.set_result(TurnResult(session, turn, status, stop))
            waiting = self.queues.get(session)
            if waiting:
                self._begin(session, *waiting.pop(0))
            self._state(session, SessionState.RUNNING if session in self.turns else SessionState.IDLE)

        self.turns[session] = asyncio.create_task(run())

    async def interrupt(self, session: str) -> None:
        task = self.turns.get(session)
        if task:
            task.cancel()
            await asyncio.wait({task})

    async def resume(self, session: str) -> Ticket:
        ticket = Ticket(session, asyncio.get_running_loop().create_future())
        self._begin(session, UserInput("(resumed)"), ticket, resumed=True)
        return ticket

    async def use_prompt(
        self, session: str, server: str, prompt: str, arguments: FrozenDict = EMPTY, text: str = ""
    ) -> Ticket:
        messages = await self.servers.get_prompt(server, prompt, arguments)
        said = "\n\n".join(b.text for m in messages for b in m.blocks if isinstance(b, Text))
        return await self.submit(session, UserInput(said))

    # ---- branches and what waits

    async def branch(self, session: str, before_turn: int | None = None) -> str:
        if session not in self.transcripts:
            raise UserFault("not_found", f"no session {session}", thing=session)
        made = await self.new_session(self.options.get(session, SessionOptions()))
        kept = [s for s in self.journal[session] if before_turn is None or s.turn < before_turn]
        for stamped in kept:
            self.publish(made, stamped.event, stamped.turn)
        self.publish(made, ev.Branched(session, before_turn or 99), max((s.turn for s in kept), default=0))
        return made

    async def edit_and_resend(self, session: str, turn: int, said: UserInput) -> str:
        made = await self.branch(session, turn)
        await self.submit(made, said)
        return made

    async def regenerate(self, session: str, turn: int | None = None) -> str:
        asked = [s for s in self.journal[session] if isinstance(s.event, ev.UserSaid)]
        last = asked[-1] if turn is None else next(s for s in asked if s.turn == turn)
        assert isinstance(last.event, ev.UserSaid)
        return await self.edit_and_resend(session, last.turn, UserInput(last.event.text))

    async def give_feedback(self, session: str, turn: int, good: bool | None, note: str = "") -> None:
        self.publish(session, ev.FeedbackGiven(turn, good, note), turn)

    async def undo_compaction(self, session: str) -> bool:
        seqs = [s.seq for s in self.journal[session] if isinstance(s.event, ev.Compacted)]
        self.publish(session, ev.CompactionUndone(seqs[-1]))
        return True

    async def queued(self, session: str) -> tuple[QueuedMessage, ...]:
        return tuple(QueuedMessage(str(id(t)), s.text, len(s.files)) for s, t in self.queues.get(session, []))

    async def cancel_queued(self, session: str, message: str) -> bool:
        queue = self.queues.get(session, [])
        queue[:] = [one for one in queue if str(id(one[1])) != message]
        self._state(session, SessionState.RUNNING)
        return True

    async def move_queued(self, session: str, message: str, to: int) -> bool:
        queue = self.queues.get(session, [])
        one = next(q for q in queue if str(id(q[1])) == message)
        queue.remove(one)
        queue.insert(to, one)
        self._state(session, SessionState.RUNNING)
        return True

    async def put_ask(self, session: str, ask: Ask) -> Answer:
        """Raise an ask and wait for its answer."""
        future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self.open_asks[ask.ask_id] = (session, ask, future)
        self.publish(session, ev.AskRaised(ask))
        return await future

    async def answer(self, ask_id: str, answer: Answer) -> bool:
        found = self.open_asks.pop(ask_id, None)
        if found is None:
            return False
        self.answers.append((ask_id, answer))
        self.publish(found[0], ev.AskSettled(ask_id, action_of(answer), "person"))
        found[2].set_result(answer)
        return True

    def subscribe(self, session: str | None = None, *, capacity: int = 100, lossless: bool = False) -> Reader:
        reader = FakeReader(session)
        self.readers.append(reader)
        return reader

    def asks(self, session: str | None = None) -> tuple[Ask, ...]:
        return tuple(ask for sid, ask, _f in self.open_asks.values() if session in (None, sid))

    async def grants(self) -> tuple[Rule, ...]:
        return ()

    # ---- pieces of scripts

    async def say(self, session: str, text: str, pieces: int = 12) -> None:
        """Stream `text` in pieces, then settle it."""
        for at in range(0, len(text), pieces):
            self.publish(session, ev.TokenDelta(text[at : at + pieces]))
            await asyncio.sleep(0)
        self.publish(session, ev.AssistantSaid(assistant(text), "script:demo"))

    async def run_tool(self, session: str, ask: Ask, result: ev.ToolSettled) -> Outcome:
        """Ask for a call of `ask`, and settle it with `result` or as denied."""
        from desktop_host.core.asks import ApproveTool
        from desktop_host.core.permissions import Effect

        assert isinstance(ask, ApproveTool)
        self.publish(session, ev.ToolRequested(
            ask.call_id, ask.server, ask.tool, f"{ask.server}__{ask.tool}", ask.arguments, Effect.ASK,
        ))  # fmt: skip
        answer = await self.put_ask(session, ask)
        if isinstance(answer, Allow):
            self.publish(session, ev.ToolStarted(ask.call_id))
            self.publish(session, replace(result, call_id=ask.call_id))
            return result.outcome
        words = (Text("the person refused"),) if isinstance(answer, Refuse) else ()
        self.publish(session, ev.ToolSettled(ask.call_id, Outcome.DENIED, words))
        return Outcome.DENIED


class TurnOver(Exception):
    """A script ends its turn with this stop."""

    def __init__(self, stop: TurnStop, error: FrozenDict | None = None) -> None:
        self.stop, self.error = stop, error
        super().__init__(stop.value)


async def echo(host: FakeHost, session: str, text: str) -> None:
    """Say what was said."""
    await host.say(session, f"You said: {text}")


def opener(host: FakeHost) -> Callable[[HostSpec], AbstractAsyncContextManager[Host]]:
    """An `Opener` for one prepared host."""

    @asynccontextmanager
    async def open_host(_spec: HostSpec) -> AsyncIterator[Host]:
        try:
            yield host
        finally:
            host.closed = True
            tasks = set(host.turns.values())
            for task in tasks:
                task.cancel()
            if tasks:
                await asyncio.wait(tasks)

    return open_host
