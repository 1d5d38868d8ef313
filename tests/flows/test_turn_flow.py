"""Turns from end to end on the engine: what is journaled, in which order, and what the model is sent."""

from __future__ import annotations

import asyncio
import dataclasses
import json

import pytest

from desktop_host.core.asks import Allow, Refuse
from desktop_host.core.codec import event_to_json
from desktop_host.core.errors import KnownFault, ModelFault, UserFault
from desktop_host.core.events import (
    AskRaised,
    AskSettled,
    AssistantSaid,
    Notice,
    RetryScheduled,
    ToolProgress,
    ToolRequested,
    ToolsChanged,
    ToolSettled,
)
from desktop_host.core.exchange import Progress, ToolOutcome
from desktop_host.core.messages import Image, Outcome, Role, StopReason, Text, Thinking, ToolCall, ToolResult
from desktop_host.core.models import RetryWaiting
from desktop_host.core.permissions import Effect, Life, Rule, Scope
from desktop_host.core.sessions import SessionState, TurnStatus, TurnStop
from desktop_host.core.transcript import AssistantEntry, ToolEntry
from desktop_host.core.values import freeze
from desktop_host.engine.host import HeadlessPolicy, UserInput
from tests.fakes.list_model import call
from tests.fakes.memory_history import World


async def test_a_turn_with_a_tool_is_told_in_order(rig):
    r = rig([[Thinking("hm"), "let me look", call("kb.search", q="x")], ["found it"]])
    r.tools.add("kb.search", "42 results")
    session = await r.session()
    result = await r.say(session, "what is x?")
    assert (result.status, result.stop, result.text) == (TurnStatus.DONE, TurnStop.END, "found it")
    assert r.types("state_changed") == [
        "session_opened", "user_said", "turn_started", "session_renamed", "skills_chosen", "thinking_delta",
        "token_delta", "assistant_said", "usage_recorded", "tool_requested", "tool_started", "tool_settled",
        "token_delta", "assistant_said", "usage_recorded", "turn_ended",
    ]  # fmt: skip
    seqs = [s.seq for s in r.events]
    assert seqs == sorted(set(seqs))
    json.dumps([event_to_json(s) for s in r.events])


async def test_results_stand_in_call_order_whatever_order_they_come_in(rig):
    """Hazards H88, D52."""
    gate = asyncio.Event()
    r = rig([[call("t.slow", "c1"), call("t.fast", "c2")], ["done"]])

    async def slow(_a, _p):
        await gate.wait()
        return ToolOutcome(Outcome.OK, (Text("slow"),))

    async def fast(_a, _p):
        gate.set()
        return ToolOutcome(Outcome.OK, (Text("fast"),))

    r.tools.add("t.slow", slow)
    r.tools.add("t.fast", fast)
    await r.say(await r.session())
    settled = [e.call_id for e in r.of(ToolSettled)]
    assert settled == ["c2", "c1"]
    results = [b for b in r.model.requests[1].messages[-1].blocks if isinstance(b, ToolResult)]
    assert [b.call_id for b in results] == ["c1", "c2"]


async def test_one_failing_call_leaves_its_siblings_alone(rig):
    """Hazard H88, H89."""
    r = rig([[call("t.bad", "c1"), call("t.good", "c2")], ["done"]])

    async def bad(_a, _p):
        raise ValueError("inner secret path")

    r.tools.add("t.bad", bad)
    r.tools.add("t.good", "fine")
    result = await r.say(await r.session())
    assert result.status is TurnStatus.DONE
    outcomes = {e.call_id: e.outcome for e in r.of(ToolSettled)}
    assert outcomes == {"c1": Outcome.ERROR, "c2": Outcome.OK}
    assert "inner secret path" not in str(r.of(ToolSettled))


async def test_why_a_server_could_not_run_a_call_is_told_to_the_model_and_it_may_try_again(rig):
    """Hazard H89."""
    r = rig([[call("t.bad", "c1")], [call("t.bad", "c2")], ["sorry"]])

    async def bad(_a, _p):
        raise KnownFault("server_lost", "t ended with exit code 3")

    r.tools.add("t.bad", bad)
    result = await r.say(await r.session())
    assert (result.status, result.text) == (TurnStatus.DONE, "sorry")
    for request in r.model.requests[1:]:
        [told] = request.messages[-1].blocks
        assert (told.outcome, told.content) == (Outcome.ERROR, (Text("t ended with exit code 3"),))


async def test_a_tool_that_does_not_exist_is_answered_with_close_names(rig):
    """Hazard H86."""
    r = rig([[call("t.serach", "c1")], ["ok"]])
    r.tools.add("t.search", "x")
    await r.say(await r.session())
    text = r.of(ToolSettled)[0].content[0].text
    assert "t__search" in text
    assert r.tools.called == []


async def test_arguments_that_cannot_be_read_are_never_run(rig):
    """Hazard H83."""
    r = rig([[ToolCall("c1", "t__write", freeze({}), "truncated by output limit")], ["ok"]])
    r.tools.add("t.write", "written")
    await r.say(await r.session())
    assert r.tools.called == []
    assert r.of(ToolSettled)[0].outcome is Outcome.ERROR


async def test_an_answer_cut_at_its_limit_runs_none_of_its_calls(rig):
    r = rig([["I will", call("t.write", "c1"), StopReason.LENGTH], ["next"]])
    r.tools.add("t.write", "written")
    session = await r.session()
    result = await r.say(session)
    assert (result.status, result.stop) == (TurnStatus.DONE, TurnStop.LENGTH)
    assert r.tools.called == []
    await r.say(session)
    assert not any(m.calls for m in r.model.requests[1].messages)


async def test_a_refusal_fails_the_turn_and_runs_nothing(rig):
    r = rig([["I cannot", call("t.write", "c1"), StopReason.REFUSAL]])
    r.tools.add("t.write", "x")
    result = await r.say(await r.session())
    assert (result.status, result.stop, result.error["code"]) == (
        TurnStatus.FAILED, TurnStop.REFUSAL, "content_filter",
    )  # fmt: skip
    assert r.tools.called == []


async def test_the_person_is_asked_and_allows_for_the_chat(rig):
    r = rig([[call("t.run", "c1")], [call("t.run", "c2")], ["done"]], permission="ask")
    r.tools.add("t.run", "ran")
    session = await r.session()
    ticket = await r.host.submit(session, UserInput("go"))
    await r.until(lambda: r.of(AskRaised))
    ask = r.of(AskRaised)[0].ask
    assert ask.arguments == {} and r.host.asks(session) == (ask,)
    assert r.sessions.context(session).state is SessionState.WAITING_TOOL
    assert await r.host.answer(ask.ask_id, Allow(Life.SESSION, Scope.TOOL, ask.tool_digest))
    result = await ticket.done
    assert result.text == "done" and len(r.of(AskRaised)) == 1 and len(r.tools.called) == 2
    assert not await r.host.answer(ask.ask_id, Refuse())


async def test_what_a_command_line_allowed_holds_for_its_own_run_and_what_it_denied_stays(rig):
    world = World()
    r = rig([[call("t.a", "c1")], ["ok"]], world=world, permission="ask", headless=HeadlessPolicy())
    r.tools.add("t.a", "A")
    rules = (Rule(Effect.ALLOW, "t.*", origin="command-line"), Rule(Effect.DENY, "u.*", origin="command-line"))
    session = await r.session(rules=rules)
    await r.say(session)
    assert r.of(ToolSettled)[0].outcome is Outcome.OK
    await r.host.close()
    again = rig([["x"], ["x"], [call("t.a", "c2")], ["ok"]], world=world, permission="ask", headless=HeadlessPolicy())
    again.tools.add("t.a", "A")
    result = await again.say(session)
    assert result.undecided
    assert again.of(ToolSettled)[0].outcome is Outcome.DENIED
    assert (await again.history.options(session)).rules == rules[1:]


async def test_a_grant_for_the_server_settles_its_other_waiting_calls(rig):
    r = rig([[call("t.a", "c1"), call("t.b", "c2"), call("u.c", "c3")], ["done"]], permission="ask")
    for name in ("t.a", "t.b", "u.c"):
        r.tools.add(name, name)
    session = await r.session()
    ticket = await r.host.submit(session, UserInput("go"))
    await r.until(lambda: len(r.of(AskRaised)) == 3)
    first = next(a for a in r.host.asks(session) if a.tool == "a")
    await r.host.answer(first.ask_id, Allow(Life.SESSION, Scope.SERVER))
    await r.until(lambda: len(r.of(AskSettled)) == 2)
    assert [a.server for a in r.host.asks(session)] == ["u"]
    assert {e.by for e in r.of(AskSettled)} == {"person", "policy"}
    await r.host.answer(r.host.asks(session)[0].ask_id, Refuse())
    await ticket.done
    assert sorted(n for n, _ in r.tools.called) == ["t.a", "t.b"]


async def test_a_denied_call_is_told_to_the_model_and_the_turn_goes_on(rig):
    r = rig([[call("t.run", "c1")], ["as you wish"]], permission="ask")
    r.tools.add("t.run", "ran")
    session = await r.session()
    ticket = await r.host.submit(session, UserInput("go"))
    await r.until(lambda: r.of(AskRaised))
    await r.host.answer(r.of(AskRaised)[0].ask.ask_id, Refuse())
    assert (await ticket.done).text == "as you wish"
    assert r.tools.called == [] and r.of(ToolSettled)[0].outcome is Outcome.DENIED


async def test_a_grant_lapses_when_the_tool_changes_its_definition(rig):
    """Hazard K118."""
    r = rig([[call("t.run", "c1")], ["one"], [call("t.run", "c2")], ["two"]], permission="ask")
    r.tools.add("t.run", "ran", description="harmless")
    session = await r.session()
    ticket = await r.host.submit(session, UserInput("go"))
    await r.until(lambda: r.of(AskRaised))
    ask = r.of(AskRaised)[0].ask
    await r.host.answer(ask.ask_id, Allow(Life.PROFILE, Scope.TOOL, ask.tool_digest))
    await ticket.done
    r.tools.add("t.run", "ran", description="sends all your files")
    other = await r.session()
    r.model.replies[0:2] = r.model.replies[2:4]
    ticket = await r.host.submit(other, UserInput("go"))
    await r.until(lambda: len(r.of(AskRaised)) == 2)
    again = r.of(AskRaised)[1].ask
    assert again.changed and again.previous_description == "harmless"
    await r.host.answer(again.ask_id, Refuse())
    await ticket.done


async def test_without_a_person_an_ask_is_refused_and_remembered(rig):
    r = rig([[call("t.run", "c1")], ["ok"]], permission="ask", headless=HeadlessPolicy())
    r.tools.add("t.run", "ran")
    result = await r.say(await r.session())
    assert result.undecided and result.status is TurnStatus.DONE
    assert [(e.action, e.by) for e in r.of(AskSettled)] == [("refuse", "policy")]


async def test_rules_of_the_command_line_decide_without_asking_and_deny_wins(rig):
    r = rig([[call("t.a", "c1"), call("t.b", "c2")], ["ok"]], permission="ask", headless=HeadlessPolicy())
    r.tools.add("t.a", "A")
    r.tools.add("t.b", "B")
    rules = (Rule(Effect.ALLOW, "t.*", origin="command-line"), Rule(Effect.DENY, "t.b", origin="command-line"))
    result = await r.say(await r.session(rules=rules))
    assert [e.verdict for e in r.of(ToolRequested)] == [Effect.ALLOW, Effect.DENY]
    assert [n for n, _ in r.tools.called] == ["t.a"]
    assert not result.undecided


async def test_stop_keeps_the_text_and_the_next_turn_works(rig):
    """Hazards D62, J101."""
    hang = asyncio.Event()
    r = rig([["partial answer", hang], ["fresh"]])
    session = await r.session()
    ticket = await r.host.submit(session, UserInput("go"))
    await r.model.waiting.wait()
    await r.host.interrupt(session)
    result = await ticket.done
    assert (result.status, result.stop, result.text) == (
        TurnStatus.INTERRUPTED, TurnStop.INTERRUPTED, "partial answer",
    )  # fmt: skip
    said = r.of(AssistantSaid)[0]
    assert said.partial and said.text == "partial answer"
    assert (await r.say(session, "again")).text == "fresh"
    roles = [m.role for m in r.model.requests[1].messages]
    assert roles == [Role.USER, Role.ASSISTANT, Role.USER]


async def test_stop_during_a_call_cancels_it_and_pairs_every_call(rig):
    """Hazards E61, J101."""
    begun = asyncio.Event()
    r = rig([[call("t.hang", "c1"), call("t.quick", "c2")], ["after"]])

    async def hang(_a, _p):
        begun.set()
        await asyncio.Event().wait()

    r.tools.add("t.hang", hang)
    r.tools.add("t.quick", "quick")
    session = await r.session()
    ticket = await r.host.submit(session, UserInput("go"))
    await begun.wait()
    await r.until(lambda: r.of(ToolSettled))
    await r.host.interrupt(session)
    assert (await ticket.done).status is TurnStatus.INTERRUPTED
    assert r.tools.cancelled == ["t.hang"]
    outcomes = {e.call_id: e.outcome for e in r.of(ToolSettled)}
    assert outcomes == {"c1": Outcome.CANCELLED, "c2": Outcome.OK}
    await r.say(session, "hi")
    _assert_paired(r.model.requests[-1].messages)


async def test_stop_while_a_person_is_asked_dismisses_the_ask(rig):
    r = rig([[call("t.run", "c1")], ["ok"]], permission="ask")
    r.tools.add("t.run", "x")
    session = await r.session()
    ticket = await r.host.submit(session, UserInput("go"))
    await r.until(lambda: r.of(AskRaised))
    await r.host.interrupt(session)
    await ticket.done
    assert r.host.asks() == ()
    assert [e.action for e in r.of(AskSettled)] == ["dismissed"]


async def test_a_dead_host_leaves_a_session_that_opens_and_goes_on(rig):
    """Hazard J101: kill -9 in mid-call."""
    world = World()
    begun = asyncio.Event()
    r = rig([[call("t.hang", "c1"), call("t.ask", "c2")], ["after"]], world=world)

    async def hang(_a, _p):
        begun.set()
        await asyncio.Event().wait()

    r.tools.add("t.hang", hang)
    r.tools.add("t.ask", "never")
    session = await r.session(rules=(Rule(Effect.ASK, "t.ask"),))
    await r.host.submit(session, UserInput("go"))
    await begun.wait()
    await r.until(lambda: r.of(AskRaised))
    fresh = _killed(world)
    again = rig([["x"], ["after"]], world=fresh)
    transcript = await again.host.transcript(session)
    tools = {e.call_id: e.outcome for e in transcript.entries if isinstance(e, ToolEntry)}
    assert tools == {"c1": Outcome.UNKNOWN, "c2": Outcome.CANCELLED}
    assert transcript.last_status is TurnStatus.INTERRUPTED
    result = await (await again.host.resume(session)).done
    assert result.text == "after"
    _assert_paired(again.model.requests[-1].messages)
    assert again.tools.called == []


async def test_a_draft_of_a_dead_host_becomes_a_partial_reply(rig):
    world = World()
    r = rig([["half an answer", asyncio.Event()], ["more"]], world=world)
    session = await r.session()
    await r.host.submit(session, UserInput("go"))
    await r.model.waiting.wait()
    await r.history.save_draft(session, 1, "half an", "")
    again = rig([["x"], ["more"]], world=_killed(world))
    transcript = await again.host.transcript(session)
    said = [e for e in transcript.entries if isinstance(e, AssistantEntry)]
    assert [(e.text, e.partial) for e in said] == [("half an", True)]
    assert (await (await again.host.resume(session)).done).text == "more"


async def test_a_failed_request_is_told_and_can_be_resumed(rig):
    r = rig([[ModelFault("overloaded", "busy", retryable=True)], ["better now"]])
    session = await r.session()
    result = await r.say(session)
    assert (result.status, result.error["code"]) == (TurnStatus.FAILED, "overloaded")
    result = await (await r.host.resume(session)).done
    assert result.text == "better now"


async def test_an_error_in_mid_stream_keeps_what_was_shown(rig):
    """Hazard J106."""
    r = rig([["three words here", ModelFault("overloaded", "busy", visible=True)], ["ok"]])
    session = await r.session()
    result = await r.say(session)
    assert result.status is TurnStatus.FAILED and result.text == "three words here"
    assert r.of(AssistantSaid)[0].partial


async def test_a_retry_is_shown_with_its_time(rig):
    """Hazard J107."""
    r = rig([[RetryWaiting(1, 4.0, "rate_limited", "slow down"), "ok"]])
    await r.say(await r.session())
    (waiting,) = r.of(RetryScheduled)
    assert (waiting.code, waiting.until) == ("rate_limited", r.clock.now() + 4.0)


async def test_the_step_limit_ends_a_loop(rig):
    r = rig([[call("t.run", f"c{i}")] for i in range(10)])
    r.tools.add("t.run", "again")
    result = await r.say(await r.session(max_steps=3))
    assert (result.stop, result.error["code"], len(r.model.requests)) == (TurnStop.MAX_STEPS, "max_steps", 3)


async def test_a_turn_has_a_time_limit(rig):
    r = rig([[asyncio.Event()]])
    result = await r.say(await r.session(turn_timeout_s=0.05))
    assert result.error["code"] == "turn_timeout"


async def test_requests_of_one_session_run_one_after_another(rig):
    r = rig([["one"], ["two"], ["three"]])
    session = await r.session()
    tickets = [await r.host.submit(session, UserInput(t)) for t in ("a", "b", "c")]
    assert [(await t.done).text for t in tickets] == ["one", "two", "three"]
    order = [s.event.type for s in r.events if s.event.type in ("turn_started", "turn_ended")]
    assert order == ["turn_started", "turn_ended"] * 3


async def test_the_mailbox_is_bounded(rig):
    hang = asyncio.Event()
    r = rig([["x", hang]])
    session = await r.session()
    await r.host.submit(session, UserInput("first"))
    await r.model.waiting.wait()
    for i in range(32):
        await r.host.submit(session, UserInput(str(i)))
    with pytest.raises(UserFault) as caught:
        await r.host.submit(session, UserInput("one too many"))
    assert caught.value.code == "session_busy"


async def test_an_idle_session_is_let_go_and_opens_again(rig):
    r = rig([["one"], ["two"]])
    session = await r.session()
    await r.say(session)
    await r.clock.advance(31 * 60)
    assert r.sessions.find(session) is None and r.tools.released == [session]
    assert (await r.say(session)).text == "two"


async def test_another_process_cannot_write_the_session(rig):
    world = World()
    first, second = rig([["one"]], world=world), rig([["x"]], world=world)
    session = await first.session()
    await first.say(session)
    with pytest.raises(UserFault) as caught:
        await second.say(session)
    assert caught.value.code == "session_busy"
    assert (await second.host.transcript(session)).entries


async def test_the_model_keeps_the_tools_it_was_told_of_until_the_person_applies(rig):
    r = rig([["one"], ["two"], ["three"], ["four"]])
    r.tools.add("t.old", "x")
    session = await r.session()
    await r.say(session)
    r.tools.add("t.new", "y")
    await r.say(session)
    assert [t.full_name for t in r.model.requests[1].tools] == ["t.old"]
    assert r.of(ToolsChanged)[-1].added == ("t.new",)
    await r.host.apply_tools(session)
    await r.say(session)
    assert [t.full_name for t in r.model.requests[2].tools] == ["t.new", "t.old"]
    assert r.of(ToolsChanged)[-1].applied


async def test_the_start_of_a_conversation_survives_a_restart_byte_for_byte(rig):
    world = World()
    r = rig([["one"], ["two"]], world=world)
    r.tools.add("t.old", "x")
    session = await r.session(system="be brief")
    await r.say(session)
    await r.host.close()
    again = rig([["one"], ["two"]], world=world)
    again.tools.add("t.other", "x")
    await again.settings.set("model.system", "another text")
    await again.say(session)
    first, second = r.model.requests[0], again.model.requests[0]
    assert (first.system, first.tools) == (second.system, second.tools) == ("be brief", first.tools)


async def test_progress_reaches_the_reader(rig):
    r = rig([[call("t.long", "c1")], ["ok"]])
    go = asyncio.Event()

    async def long(_a, progress):
        progress(Progress(1, 4, "first"))
        await go.wait()
        return ToolOutcome(Outcome.OK, (Text("done"),))

    r.tools.add("t.long", long)
    ticket = await r.host.submit(await r.session(), UserInput("go"))
    await r.until(lambda: r.of(ToolProgress))
    go.set()
    await ticket.done
    assert r.of(ToolProgress)[0].message == "first"


async def test_a_two_megabyte_result_is_whole_for_the_person_and_cut_for_the_model(rig):
    """Hazard I92."""
    r = rig([[call("t.big", "c1")], ["ok"], ["still fine"]])
    r.tools.add("t.big", "x" * 2_000_000)
    session = await r.session()
    await r.say(session)
    assert len(r.of(ToolSettled)[0].content[0].text) == 2_000_000
    sent = r.model.requests[1].messages[-1].blocks[0].content[0].text
    assert len(sent) < 61_000 and "characters left out" in sent
    assert (await r.say(session)).text == "still fine"


async def test_only_text_is_cut_never_an_image(rig):
    """Hazards I95, I97."""
    r = rig([[call("t.shot", "c1")], ["ok"]])
    picture = Image("A" * 400_000, "image/png")

    async def shot(_a, _p):
        return ToolOutcome(Outcome.OK, (Text("x" * 100_000), picture))

    r.tools.add("t.shot", shot)
    await r.say(await r.session())
    text, image = r.model.requests[1].messages[-1].blocks[0].content
    assert len(text.text) < 61_000 and image == picture


async def test_a_budget_of_tokens_stops_the_turn(rig):
    r = rig([[call("t.run", "c1")], ["never"]])
    r.tools.add("t.run", "x")
    result = await r.say(await r.session(token_budget=5))
    assert (result.stop, result.error["code"]) == (TurnStop.BUDGET, "budget_spent")


async def test_a_full_disk_fails_the_turn_with_its_name(rig):
    r = rig([["one"]])
    session = await r.session()
    r.history.fault = KnownFault("disk_full", "no space left", path="host.db")
    result = await r.say(session)
    assert (result.status, result.error["code"]) == (TurnStatus.FAILED, "disk_full")
    r.history.fault = None
    assert (await r.say(session)).text == "one"


async def test_a_disk_that_fills_up_while_a_model_streams_stops_it_at_once(rig):
    full, later, never = asyncio.Event(), asyncio.Event(), asyncio.Event()
    r = rig([["half an", full, " answer", later, " that", never, " ends"]])
    session = await r.session()
    ticket = await r.host.submit(session, UserInput("go"))
    await r.model.waiting.wait()
    r.history.fault = KnownFault("disk_full", "no space left", path="host.db")
    await r.clock.advance(2)
    full.set()
    await r.clock.advance(2)  # the draft is tried, and fails
    later.set()
    result = await asyncio.wait_for(ticket.done, 10)
    assert (result.status, result.error["code"]) == (TurnStatus.FAILED, "disk_full")
    r.history.fault = None
    never.set()
    assert (await r.say(session)).text == "half an answer that ends"


async def test_a_disk_that_fills_up_while_tools_run_fails_the_turn_with_its_name(rig):
    r = rig([[call("t.fill", "c1"), call("t.other", "c2")], ["went on"]])

    async def fill(_a, _p):
        r.history.fault = KnownFault("disk_full", "no space left", path="host.db")
        return ToolOutcome(Outcome.OK, (Text("written"),))

    async def other(_a, _p):
        try:
            await asyncio.Event().wait()
        finally:
            r.history.fault = None  # There is room again before the turn is closed.

    r.tools.add("t.fill", fill)
    r.tools.add("t.other", other)
    session = await r.session()
    result = await r.say(session)
    assert (result.status, result.error["code"]) == (TurnStatus.FAILED, "disk_full")
    assert {s.event.outcome for s in r.events if isinstance(s.event, ToolSettled)} == {Outcome.CANCELLED}
    assert (await r.say(session)).text == "went on"


async def test_an_empty_reply_is_said_to_be_empty(rig):
    r = rig([[]])
    result = await r.say(await r.session())
    assert result.status is TurnStatus.DONE and r.of(Notice)[0].code == "empty_reply"


async def test_a_chat_is_named_by_its_first_message(rig):
    r = rig([["one"], ["two"]])
    session = await r.session()
    await r.say(session, "\n  Plan a trip to Oslo\nwith many lines")
    await r.say(session, "and more")
    assert (await r.history.row(session)).title == "Plan a trip to Oslo"


async def test_a_bundle_makes_the_same_conversation_elsewhere(rig):
    r = rig([[call("t.run", "c1")], ["done"], ["went on"]])
    r.tools.add("t.run", "ran")
    session = await r.session(rules=(Rule(Effect.ALLOW, "*"),))
    await r.say(session, "go")
    text = await r.host.export(session, "json")
    other = rig([["x"], ["x"], ["went on"]])
    copy = await other.host.import_bundle(text)
    assert (await other.say(copy, "more")).text == "went on"
    assert len(other.model.requests[0].messages) == 5
    assert (await other.history.options(copy)).rules == ()
    assert "ran" in await other.host.export(copy, "md")
    assert "<script" not in await other.host.export(copy, "html")


def _killed(world):
    """What a kill -9 leaves: the journal as it stands, no lease, nothing written afterwards."""
    left = {
        session: dataclasses.replace(kept, events=list(kept.events), state=dict(kept.state), holder=None)
        for session, kept in world.sessions.items()
    }
    return World(sessions=left, blobs=dict(world.blobs))


def _assert_paired(messages):
    waiting: list[str] = []
    for message in messages:
        results = [b.call_id for b in message.blocks if isinstance(b, ToolResult)]
        assert results == waiting
        waiting = [c.id for c in message.calls]
    assert not waiting
