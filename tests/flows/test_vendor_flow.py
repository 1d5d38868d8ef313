"""Whole turns over loopback fakes of the vendors' wires: the events of each fault, and the words a person reads."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from desktop_host import i18n
from desktop_host.core.events import AssistantSaid, RetryScheduled, ThinkingStreamed, ToolRequested, ToolSettled
from desktop_host.core.messages import Outcome
from desktop_host.core.sessions import TurnStatus, TurnStop
from desktop_host.engine.host import UserInput
from tests.fakes.manual_clock import ManualClock
from tests.fakes.model_server import ModelServer, Reply, answer, sse
from tests.fakes.remote import models, ref_of
from tests.fakes.rig import Rig
from tests.fakes.wires import Say, anthropic_events, chat_events, reply, responses_events

WIRES = ["anthropic", "responses", "compat", "anthropic-compat"]
Making = Callable[..., Any]


@asynccontextmanager
async def stage(wire: str, *replies: Reply) -> AsyncIterator[tuple[Rig, ModelServer]]:
    """An engine whose model is behind a wire."""
    clock = ManualClock()
    async with ModelServer() as server, models(clock=clock) as catalogue:
        server.script(*replies)
        rig = Rig([], models=catalogue, default_model=ref_of(wire, server), clock=clock)
        try:
            yield rig, server
        finally:
            await rig.close()


async def finish(rig: Rig, asked: Awaitable[Any]) -> Any:
    """Let a turn end, moving the clock on whenever it waits for a retry."""
    task = asyncio.ensure_future(asked)
    async with asyncio.timeout(20):
        while not task.done():
            if rig.clock.sleepers:
                await rig.clock.advance(30)
            await asyncio.sleep(0)
    return task.result()


def said(wire: str, text: str) -> Reply:
    return reply(wire, Say(text))


def limited(wire: str, status: int) -> Reply:
    kind = {429: "rate_limit_error", 529: "overloaded_error"}[status]
    body = {"type": "error", "error": {"type": kind, "message": "slow down", "code": kind.removesuffix("_error")}}
    return answer(body, status, ("retry-after", "2"))


def cut(wire: str) -> Reply:
    """An answer whose connection ends before its end."""
    events = {"responses": responses_events, "compat": chat_events}.get(wire, anthropic_events)(Say("half of it"))
    return sse(events[:-2])


def broken(wire: str) -> Reply:
    """An error in the middle of a stream that began with 200."""
    events = {"responses": responses_events, "compat": chat_events}.get(wire, anthropic_events)(Say("some words"))
    middle = next(i for i, e in enumerate(events) if "words" in str(e) or "ords" in str(e))
    error = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded", "code": "server_error"}}
    if wire == "compat":
        error = {"error": {"message": "Overloaded", "type": "overloaded_error"}}
    return sse([*events[:middle], error])


def overflow(wire: str) -> Reply:
    message = "prompt is too long: 250000 tokens > 200000 maximum"
    body = {"type": "error", "error": {"type": "invalid_request_error", "message": message}}
    if not wire.startswith("anthropic"):
        body = {"error": {"code": "context_length_exceeded", "message": "maximum context length is 8192 tokens"}}
    return answer(body, 400)


def refused(wire: str) -> Reply:
    stop = {"responses": "content_filter", "compat": "content_filter"}.get(wire, "refusal")
    return reply(wire, Say("I cannot", stop=stop))


@pytest.mark.parametrize("wire", WIRES)
async def test_thinking_and_parallel_tools_stream_and_come_back_in_order(wire):
    """Hazard B28: the tools' schemas describe nothing."""
    calls = (("c1", "t__one", {"n": 1}), ("c2", "t__two", {}))
    replies = (reply(wire, Say("let me see", thinking="hm", calls=calls)), said(wire, "both done"))
    async with stage(wire, *replies) as (rig, server):
        rig.tools.add("t.one", "first")
        rig.tools.add("t.two", "second")
        result = await finish(rig, rig.say(await rig.session()))
        assert (result.status, result.text) == (TurnStatus.DONE, "both done")
        assert "".join(e.text for e in rig.of(ThinkingStreamed)) == "hm"
        assert [e.call_id for e in rig.of(ToolRequested)] == ["c1", "c2"]
        assert {e.outcome for e in rig.of(ToolSettled)} == {Outcome.OK}
        sent = server.posts[1].raw.decode()
        assert sent.index("first") < sent.index("second")


@pytest.mark.parametrize("status", [429, 529])
@pytest.mark.parametrize("wire", WIRES)
async def test_a_limit_is_waited_for_with_a_countdown_and_then_answered(wire, status):
    """Hazard J107."""
    async with stage(wire, limited(wire, status), said(wire, "now")) as (rig, server):
        result = await finish(rig, rig.say(await rig.session()))
        assert result.text == "now"
        assert len(server.posts) == 2
        (waiting,) = rig.of(RetryScheduled)
        assert waiting.code in ("rate_limited", "overloaded")
        assert waiting.delay_s >= 2


@pytest.mark.parametrize("wire", WIRES)
async def test_an_error_in_mid_stream_keeps_the_text_and_is_not_retried_by_itself(wire):
    """Hazard J106."""
    async with stage(wire, broken(wire), said(wire, "again")) as (rig, server):
        session = await rig.session()
        result = await finish(rig, rig.say(session))
        assert result.status is TurnStatus.FAILED
        assert result.text.startswith("some")
        assert result.error["code"] in ("overloaded", "network")
        assert rig.of(AssistantSaid)[0].partial
        assert len(server.posts) == 1
        ticket = await rig.host.resume(session)
        assert (await finish(rig, ticket.done)).text == "again"


@pytest.mark.parametrize("wire", WIRES)
async def test_a_cut_answer_is_told_as_cut(wire):
    async with stage(wire, cut(wire), *([said(wire, "again")] * 3)) as (rig, _server):
        session = await rig.session()
        result = await finish(rig, rig.say(session))
        assert (result.status, result.error["code"]) == (TurnStatus.FAILED, "stream_truncated")
        assert "half" in result.text


@pytest.mark.parametrize("wire", WIRES)
async def test_a_refusal_fails_the_turn_with_its_own_code(wire):
    async with stage(wire, refused(wire)) as (rig, _server):
        result = await finish(rig, rig.say(await rig.session()))
        assert (result.stop, result.error["code"]) == (TurnStop.REFUSAL, "content_filter")


@pytest.mark.parametrize("language", i18n.LANGUAGES)
@pytest.mark.parametrize("wire", WIRES)
async def test_a_conversation_that_no_longer_fits_is_said_in_words(wire, language):
    async with stage(wire, *([overflow(wire)] * 3)) as (rig, _server):
        ticket = await rig.host.submit(await rig.session(), UserInput("go"))
        result = await finish(rig, ticket.done)
        assert result.error["code"] == "context_overflow"
        what, remedy = i18n.Translator(language).error(result.error["code"], dict(result.error["params"]))
        assert what
        assert remedy
        assert "{" not in what + remedy
