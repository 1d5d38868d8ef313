"""Branches, other wordings, other answers and what waits, on the engine."""

from __future__ import annotations

import asyncio

import pytest

from desktop_host.core.codec import event_to_json
from desktop_host.core.errors import UserFault
from desktop_host.core.events import Branched, FeedbackGiven, StateChanged, TurnEnded, UserSaid
from desktop_host.core.exchange import ToolOutcome
from desktop_host.core.messages import Outcome, Role, Text
from desktop_host.core.sessions import TurnStatus
from desktop_host.core.transcript import AssistantEntry, NoticeEntry, UserEntry
from desktop_host.engine.host import InputFile, UserInput
from tests.fakes.list_model import call


def said(request) -> list[str]:
    return [b.text for m in request.messages if m.role is Role.USER for b in m.blocks if isinstance(b, Text)]


def shown(transcript) -> list[str]:
    return [e.text for e in transcript.entries if isinstance(e, UserEntry | AssistantEntry)]


async def until_answered(rig, session: str) -> None:
    """Wait for the end of the turn that was begun in a branch."""
    await rig.until(lambda: any(s.session == session and isinstance(s.event, TurnEnded) for s in rig.events))


def slow_tool(rig) -> tuple[asyncio.Event, asyncio.Event]:
    """A tool that says when it was called, and waits: `(called, go_on)`."""
    called, go_on = asyncio.Event(), asyncio.Event()

    async def slow(_a, _p):
        called.set()
        await go_on.wait()
        return ToolOutcome(Outcome.OK, (Text("x"),))

    rig.tools.add("t.slow", slow)
    return called, go_on


async def test_a_branch_holds_the_turns_before_and_goes_its_own_way(rig):
    r = rig([["one"], ["two"]])
    session = await r.session()
    await r.say(session, "first")
    await r.say(session, "second")
    made = await r.host.branch(session, 2)
    assert shown(await r.host.transcript(made)) == ["first", "one"]
    await r.say(made, "another second")
    assert said(r.model.requests[-1]) == ["first", "another second"]
    assert shown(await r.host.transcript(made)) == ["first", "one", "another second", "two"]
    assert shown(await r.host.transcript(session)) == ["first", "one", "second", "two"]
    notices = [e for e in (await r.host.transcript(made)).entries if isinstance(e, NoticeEntry)]
    assert [(n.code, n.params["source"], n.params["before_turn"]) for n in notices] == [("branched", session, 2)]


async def test_a_branch_tells_the_model_the_same_start(rig):
    """The vendors' caches and bound reasoning hold for the same system text and tools only."""
    r = rig([["one"], ["two"]])
    r.tools.add("kb.search", "x")
    session = await r.session()
    await r.say(session, "first")
    r.tools.add("kb.extra", "y")
    made = await r.host.branch(session)
    await r.say(made, "go on")
    first, last = r.model.requests[0], r.model.requests[-1]
    assert (first.system, first.tools) == (last.system, last.tools)


async def test_a_branch_is_named_and_numbered_and_an_empty_one_is_named_by_its_first_message(rig):
    r = rig([["one"], ["x"]])
    session = await r.session()
    await r.say(session, "Plan a week")
    made = await r.host.branch(session)
    again = await r.host.branch(made)
    assert (await r.history.row(made)).title == "Plan a week (2)"
    assert (await r.history.row(again)).title == "Plan a week (3)"
    empty = await r.host.branch(session, 1)
    assert (await r.history.row(empty)).title == ""
    await r.say(empty, "Other words")
    assert (await r.history.row(empty)).title == "Other words"


async def test_a_branch_leaves_out_a_turn_that_runs(rig):
    r = rig([["one"], [call("t.slow", "c1")], ["done"]])
    called, gate = slow_tool(r)
    session = await r.session()
    await r.say(session, "first")
    ticket = await r.host.submit(session, UserInput("second"))
    await called.wait()
    made = await r.host.branch(session)
    assert shown(await r.host.transcript(made)) == ["first", "one"]
    gate.set()
    assert (await ticket.done).status is TurnStatus.DONE


async def test_what_a_branch_takes_over_is_not_counted_again(rig):
    r = rig([["one"], [call("kb.search")], ["two"]])
    r.tools.add("kb.search", "x")
    session = await r.session()
    await r.say(session, "first")
    await r.say(session, "second")
    before = [await r.ledger.usage(by) for by in ("model", "server")]
    await r.host.branch(session)
    assert [await r.ledger.usage(by) for by in ("model", "server")] == before


async def test_a_turn_that_does_not_exist_makes_no_branch(rig):
    r = rig([["one"]])
    session = await r.session()
    await r.say(session, "first")
    for wrong in (0, 5):
        with pytest.raises(UserFault) as told:
            await r.host.branch(session, wrong)
        assert told.value.params["reason"] == "no_such_turn"
    with pytest.raises(UserFault):
        await r.host.regenerate(await r.session())
    with pytest.raises(UserFault):
        await r.host.edit_and_resend(session, 7, UserInput("x"))
    assert len(await r.history.rows()) == 2


async def test_a_regenerated_answer_asks_the_same_afresh(rig):
    r = rig([["one"], ["two"]])
    session = await r.session()
    await r.say(session, "first")
    await r.say(session, "second")
    made = await r.host.regenerate(session)
    await until_answered(r, made)
    assert shown(await r.host.transcript(made)) == ["first", "one", "second", "two"]
    asked = [s.event for s in r.events if s.session == made and isinstance(s.event, UserSaid)]
    assert [(e.text, e.fresh) for e in asked] == [("second", True)]


async def test_an_edited_message_keeps_its_files_unless_others_are_given(rig):
    r = rig([["one"], ["two"], ["three"]])
    session = await r.session()
    await (await r.host.submit(session, UserInput("look", (InputFile("a.txt", "text/plain", b"alpha"),)))).done
    made = await r.host.edit_and_resend(session, 1, UserInput("look again"))
    await until_answered(r, made)
    entry = (await r.host.transcript(made)).entries[-2]
    assert (entry.text, [a.name for a in entry.attachments]) == ("look again", ["a.txt"])
    other = await r.host.edit_and_resend(session, 1, UserInput("this", (InputFile("b.txt", "text/plain", b"b"),)))
    await until_answered(r, other)
    assert [a.name for a in (await r.host.transcript(other)).entries[-2].attachments] == ["b.txt"]


async def test_what_waits_can_be_seen_reordered_and_taken_back(rig):
    r = rig([[call("t.slow", "c1")], ["done"], ["b"], ["a"]])
    called, gate = slow_tool(r)
    session = await r.session()
    first = await r.host.submit(session, UserInput("go"))
    await called.wait()
    tickets = [await r.host.submit(session, UserInput(t)) for t in ("a", "b", "c")]
    waiting = await r.host.queued(session)
    assert [q.text for q in waiting] == ["a", "b", "c"]
    a, b, c = (q.id for q in waiting)
    assert await r.host.move_queued(session, b, 0)
    assert await r.host.cancel_queued(session, c)
    assert not await r.host.cancel_queued(session, c)
    assert not await r.host.move_queued(session, "gone", 0)
    assert [q.id for q in await r.host.queued(session)] == [b, a]
    await r.until(lambda: r.of(StateChanged)[-1].queued == 2)
    assert tickets[2].done.cancelled()
    gate.set()
    await asyncio.gather(first.done, tickets[0].done, tickets[1].done)
    texts = [e.text for e in r.of(UserSaid)]
    assert texts == ["go", "b", "a"]
    assert await r.host.queued(session) == ()
    assert await r.host.queued("not open") == ()


async def test_a_judgement_is_kept_with_its_turn_and_can_be_taken_back(rig):
    r = rig([["one"], ["two"]])
    session = await r.session()
    await r.say(session, "first")
    await r.say(session, "second")
    await r.host.give_feedback(session, 1, True)
    replies = [e for e in (await r.host.transcript(session)).entries if isinstance(e, AssistantEntry)]
    assert [e.good for e in replies] == [True, None]
    await r.host.give_feedback(session, 1, None)
    replies = [e for e in (await r.host.transcript(session)).entries if isinstance(e, AssistantEntry)]
    assert [e.good for e in replies] == [None, None]
    lines = [event_to_json(s) for s in r.events if isinstance(s.event, FeedbackGiven | Branched)]
    assert [(line["type"], line["turn"], line["good"]) for line in lines] == [
        ("feedback_given", 1, True), ("feedback_given", 1, None)]  # fmt: skip
