"""Whatever is submitted, interrupted, answered, killed, reopened and summarised, in any order: the history is valid.

Hazards J101, J103.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections import Counter
from dataclasses import replace
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from desktop_host.core.asks import Allow, Refuse
from desktop_host.core.errors import HostError, KnownFault, UserFault
from desktop_host.core.events import (
    AssistantSaid,
    Compacted,
    Stamped,
    ToolRequested,
    ToolSettled,
    ToolStarted,
    TurnEnded,
    TurnStarted,
    UserSaid,
)
from desktop_host.core.exchange import ToolOutcome
from desktop_host.core.messages import Message, Outcome, Role, StopReason, Text, ToolCall, ToolResult
from desktop_host.core.models import Completed, ModelRequest, Purpose, TextDelta, Usage
from desktop_host.core.sessions import SessionState, TurnStatus
from desktop_host.core.tools import wire_name
from desktop_host.core.transcript import Transcript, fold
from desktop_host.core.values import FrozenDict
from desktop_host.engine.bundle import transcript_of
from desktop_host.engine.host import UserInput
from desktop_host.engine.repair import repair
from tests.fakes.memory_history import World
from tests.fakes.rig import Rig

STEPS = (
    "say", "say_tool", "say_ask", "interrupt", "allow", "refuse", "open_gate", "shut_gate", "end_tool", "crash",
    "reopen", "resume", "summarise", "undo", "a_little_time",
)  # fmt: skip
EXAMPLES = 400 if os.environ.get("DESKTOP_HOST_FULL") else 60


class Answering:
    """Calls a tool where the last message asks for one, else says a word; a gate holds it up in mid-answer."""

    def __init__(self, requests: list[ModelRequest]) -> None:
        self.gate = asyncio.Event()
        self.requests = requests

    async def stream(self, request: ModelRequest) -> Any:
        self.requests.append(request)
        last = request.messages[-1]
        text = " ".join(b.text for b in last.blocks if isinstance(b, Text))
        if request.purpose is not Purpose.CHAT:
            yield Completed(Message(Role.ASSISTANT, (Text("note"),)), Usage(cost_usd=0.0), StopReason.END, "m")
            return
        yield TextDelta("well ")
        await self.gate.wait()
        blocks: list[Any] = [Text("well ")]
        for tool in ("slow", "ask"):
            if f"use {tool}" in text and not any(isinstance(b, ToolResult) for b in last.blocks):
                blocks.append(ToolCall(f"c{request.step_index}-{tool}", wire_name("t", tool)))
        stop = StopReason.TOOLS if len(blocks) > 1 else StopReason.END
        yield Completed(Message(Role.ASSISTANT, tuple(blocks)), Usage(9, 1, cost_usd=0.0), stop, "m")


class Life:
    """One session through several processes."""

    def __init__(self) -> None:
        self.world = World()
        self.requests: list[ModelRequest] = []
        self.ran: list[str] = []
        self.said = 0
        self.session = ""
        self.acknowledged: list[str] = []
        self.seen: list[Stamped] = []
        self.base = Transcript()

    async def open(self) -> Rig:
        """Another process."""
        return Rig([], world=self.world, permission="allow")

    def die(self) -> None:
        """From now on this process writes nothing, and its leases fall."""
        self.rig.history.fault = KnownFault("database_error", "killed")
        self.rig.history.die()

    async def start(self) -> None:
        self.rig = await self.open()
        self.rig.bus.seq = 0
        self.model = Answering(self.requests)
        self.rig.models.models["list"] = self.model
        self.model.gate.set()
        self.tool_gate = asyncio.Event()

        async def slow(_a: FrozenDict, _p: Any) -> ToolOutcome:
            self.ran.append("slow")
            await self.tool_gate.wait()
            return ToolOutcome(Outcome.OK, (Text("slow result"),))

        self.rig.tools.add("t.slow", slow)
        self.rig.tools.add("t.ask", "asked result")
        from desktop_host.core.permissions import Effect, Rule

        if not self.session:
            self.session = await self.rig.session(rules=(Rule(Effect.ASK, "t.ask"),))
        self.base = transcript_of(self.session, "", await self.rig.history.read(self.session))

    async def do(self, step: str) -> None:
        host, session = self.rig.host, self.session
        try:
            match step:
                case "say" | "say_tool" | "say_ask":
                    self.said += 1
                    what = {"say": "", "say_tool": " use slow", "say_ask": " use ask use slow"}[step]
                    await host.submit(session, UserInput(f"message {self.said}{what}"))
                case "interrupt":
                    self.rig.tools.cancelled.clear()
                    await host.interrupt(session)
                case "allow" | "refuse":
                    for ask in host.asks(session):
                        await host.answer(ask.ask_id, Allow() if step == "allow" else Refuse())
                case "open_gate":
                    self.model.gate.set()
                case "shut_gate":
                    self.model.gate.clear()
                case "end_tool":
                    self.tool_gate.set()
                    self.tool_gate = asyncio.Event()
                case "crash":
                    await self.crash()
                case "reopen":
                    await self.rig.sessions.release(session)
                case "resume":
                    await host.resume(session)
                case "summarise":
                    await host.compact(session)
                case "undo":
                    await host.undo_compaction(session)
        except UserFault as refused:
            if refused.code not in ("session_busy", "usage"):
                raise
        for _ in range(60 if step == "a_little_time" else 12):
            await asyncio.sleep(0)

    async def crash(self) -> None:
        """Kill -9: nothing is written any more, and the next process takes over."""
        self.acknowledged += [
            s.event.text for s in await self.rig.history.read(self.session) if isinstance(s.event, UserSaid)
        ]
        self.die()
        with contextlib.suppress(HostError):
            await self.rig.close()
        await self.start()

    async def end(self) -> tuple[Stamped, ...]:
        """Let everything come to its end."""
        self.model.gate.set()
        async with asyncio.timeout(20):
            while (actor := self.rig.sessions.find(self.session)) is not None and actor.busy:
                self.tool_gate.set()
                for ask in self.rig.host.asks(self.session):
                    await self.rig.host.answer(ask.ask_id, Allow())
                await asyncio.sleep(0)
        await self.rig.host.transcript(self.session)  # closes what a dead process left open
        return await self.rig.history.read(self.session)


def plain(transcript: Transcript) -> Transcript:
    """A transcript without what only a live view has: the keys of replies, the queue."""
    entries = tuple(replace(e, key="reply") if e.key.startswith("reply:") else e for e in transcript.entries)
    return replace(
        transcript, entries=entries, index={}, last_seq=0, queued=0, state=SessionState.IDLE, open_reply=None
    )


def check(life: Life, events: tuple[Stamped, ...]) -> None:
    assert [s.seq for s in events] == sorted({s.seq for s in events})
    said = [s.event.text for s in events if isinstance(s.event, UserSaid)]
    assert len(said) == len(set(said)) and set(life.acknowledged) <= set(said)
    requested = [s.event.call_id for s in events if isinstance(s.event, ToolRequested)]
    settled = Counter(s.event.call_id for s in events if isinstance(s.event, ToolSettled))
    started = Counter(s.event.call_id for s in events if isinstance(s.event, ToolStarted))
    assert len(requested) == len(set(requested))
    calls = {c.id for s in events if isinstance(s.event, AssistantSaid) and not s.event.partial
             for c in s.event.message.calls}  # fmt: skip
    assert set(settled) == calls >= set(requested) and set(settled.values()) <= {1}
    assert set(started.values()) <= {1}  # nothing ran twice
    turn = 0
    for s in events:
        if isinstance(s.event, TurnStarted):
            assert turn == 0 and s.turn > 0
            turn = s.turn
        elif isinstance(s.event, TurnEnded):
            assert turn == s.turn and s.event.status is not TurnStatus.OPEN
            turn = 0
        elif isinstance(s.event, Compacted):
            assert set(requested_before(events, s.seq)) <= set(settled_before(events, s.seq))
    assert turn == 0
    for request in life.requests:
        assert repair(request.messages) == request.messages


def requested_before(events: tuple[Stamped, ...], seq: int) -> list[str]:
    return [s.event.call_id for s in events if s.seq < seq and isinstance(s.event, ToolRequested)]


def settled_before(events: tuple[Stamped, ...], seq: int) -> list[str]:
    return [s.event.call_id for s in events if s.seq < seq and isinstance(s.event, ToolSettled)]


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.sampled_from(STEPS), min_size=1, max_size=25))
def test_any_interleaving_leaves_a_valid_history_and_one_view_of_it(steps: list[str]) -> None:
    asyncio.run(live(Life(), steps))


async def live(life: Life, steps: list[str]) -> None:
    """Take the steps, and look at what is left."""
    await life.start()
    try:
        for step in steps:
            await life.do(step)
        events = await life.end()
        check(life, events)
        shown = life.base
        for _ in range(50):
            await asyncio.sleep(0)
        for stamped in life.rig.events:
            if stamped.session == life.session:
                shown = fold(shown, stamped)
        assert plain(shown) == plain(transcript_of(life.session, "", events))
        before = life.rig.sessions.find(life.session)
        told = before.context.conversation.messages() if before else None
        await life.rig.sessions.release(life.session)
        again = (await life.rig.sessions.actor(life.session)).context.conversation
        assert told is None or again.messages() == told
        assert repair(again.messages()) == again.messages() and not again.unsettled
    finally:
        await life.rig.close()
