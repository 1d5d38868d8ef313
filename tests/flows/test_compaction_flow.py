"""Long conversations: when they are summarised, what survives, how it is undone."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from desktop_host.core.errors import ModelFault, UserFault
from desktop_host.core.events import AssistantSaid, Compacted, CompactionUndone, Notice, UsageRecorded
from desktop_host.core.messages import Message, Role, StopReason, Text, ToolResult
from desktop_host.core.models import Completed, Purpose, Quote, Usage
from desktop_host.core.routes import Link, Route
from desktop_host.core.sessions import TurnStatus
from desktop_host.core.skills import SkillPin, SkillPlan
from desktop_host.core.tokens import of_request, of_text
from desktop_host.core.transcript import NoticeEntry
from desktop_host.engine.compaction import first_piece
from desktop_host.engine.host import UserInput
from desktop_host.engine.results import ResultReader
from tests.fakes.list_model import call

BIG = "word " * 600
LAST = "what now? " * 250


class Summarising:
    """Answers summaries with a note, and everything else as the rig's model does."""

    def __init__(self, inner, note="NOTE of all before", fault=None):
        self.inner = inner
        self.note = note
        self.fault = fault
        self.asked = []

    async def stream(self, request):
        if request.purpose is Purpose.SUMMARY:
            self.asked.append(request)
            if self.fault:
                raise self.fault
            message = Message(Role.ASSISTANT, (Text(self.note),))
            yield Completed(message, Usage(7, 3, cost_usd=0.0), StopReason.END, "summariser")
            return
        async for event in self.inner.stream(request):
            yield event


def long(rig, replies, *, window=3_000, usage=Usage(cost_usd=0.0), **more):
    """A rig whose model has a small window and does not count its tokens, so that estimates decide."""
    r = rig(replies, **more)
    r.model.usage = usage
    r.models.models["list"] = r.summariser = Summarising(r.model)
    r.models.windows["list"] = window
    return r


def texts(request):
    return [b.text for m in request.messages for b in m.blocks if isinstance(b, Text)]


async def test_a_conversation_is_summarised_before_the_window_overflows(rig):
    r = long(rig, [["one"], ["two"], ["three"]])
    session = await r.session()
    await r.say(session, BIG)
    await r.say(session, BIG + "second")
    assert not r.of(Compacted)
    await r.say(session, LAST)
    (event,) = r.of(Compacted)
    assert event.reason == "window" and event.keep_request and event.before > 2_400 > event.after
    sent = r.model.requests[-1]
    assert [m.role for m in sent.messages] == [Role.USER]
    assert "NOTE of all before" in texts(sent)[0] and texts(sent)[-1] == LAST
    assert BIG not in "".join(texts(sent))
    assert BIG.strip() in r.summariser.asked[0].messages[0].text and not r.summariser.asked[0].tools
    assert "<note-so-far>" in r.summariser.asked[1].messages[0].text
    assert [e.purpose for e in r.of(UsageRecorded)] == ["chat", "chat", "summary", "summary", "chat"]  # in two pieces
    shown = await r.host.transcript(session)
    assert any(isinstance(e, NoticeEntry) and e.code == "compacted" for e in shown.entries)
    assert sum(BIG in getattr(e, "text", "") for e in shown.entries) == 2


async def test_a_real_count_of_the_vendor_beats_the_estimate(rig):
    r = long(rig, [["one"], ["two"], ["three"]], window=1_000_000, usage=Usage(900_000, 10, cost_usd=0.0))
    session = await r.session()
    await r.say(session, BIG)
    await r.say(session, BIG)
    assert not r.of(Compacted)  # messages fill too little of the window: a summary would gain nothing
    r.sessions.context(session).windows["list"] = 5_000
    await r.say(session)
    assert len(r.of(Compacted)) == 1


async def test_a_long_tool_turn_is_summarised_between_its_rounds_and_goes_on(rig):
    """Hazard J103."""
    replies = [[f"looking {n}", call("kb.search", f"c{n}")] for n in range(4)] + [["done"]]
    r = long(rig, replies)
    r.tools.add("kb.search", BIG)
    session = await r.session()
    result = await r.say(session, "find it all")
    assert (result.status, result.text) == (TurnStatus.DONE, "done")
    assert r.of(Compacted) and r.tools.called
    for request in r.model.requests:
        calls = {c.id for m in request.messages for c in m.calls}
        results = {b.call_id for m in request.messages for b in m.blocks if isinstance(b, ToolResult)}
        assert calls == results
    assert len({(q.system, q.tools) for q in r.model.requests}) == 1
    after = next(q for q in r.model.requests if "NOTE" in texts(q)[0])
    assert [m.role for m in after.messages] == [Role.USER]
    assert texts(after)[1] == "find it all" and "Go on with it" in texts(after)[2]


async def test_what_a_model_refuses_is_summarised_once_and_asked_again(rig):
    overflow = ModelFault("context_overflow", "too long")
    r = long(rig, [["one"], [overflow], ["at last"]], window=1_000_000)
    session = await r.session()
    await r.say(session, BIG)
    result = await r.say(session, "go on")
    assert (result.status, result.text) == (TurnStatus.DONE, "at last")
    assert [e.reason for e in r.of(Compacted)] == ["overflow"]
    again = long(rig, [["one"], [overflow], [overflow]], window=1_000_000)
    session = await again.session()
    await again.say(session, BIG)
    result = await again.say(session, "go on")
    assert result.error["code"] == "context_overflow" and len(again.of(Compacted)) == 1


async def test_a_stop_for_length_of_the_context_is_summarised_too(rig):
    r = long(rig, [["one"], [StopReason.CONTEXT], ["at last"]], window=1_000_000)
    session = await r.session()
    await r.say(session, BIG)
    assert (await r.say(session, "go on")).text == "at last"


async def test_a_first_message_that_does_not_fit_is_not_summarised(rig):
    r = long(rig, [[ModelFault("context_overflow", "too long")]])
    result = await r.say(await r.session(), BIG * 10)
    assert result.error["code"] == "context_overflow" and not r.of(Compacted)


async def test_a_summary_that_fails_is_told_and_the_turn_goes_on(rig):
    r = long(rig, [["one"], ["two"], ["three"]])
    r.summariser.fault = ModelFault("overloaded", "busy")
    session = await r.session()
    await r.say(session, BIG)
    await r.say(session, BIG)
    assert (await r.say(session, LAST)).text == "three"
    assert [(n.code, n.params["code"]) for n in r.of(Notice)] == [("compaction_failed", "overloaded")]


async def test_where_the_route_for_summaries_fails_the_chats_own_model_writes_one(rig):
    r = long(rig, [["one"], ["two"], ["three"]])
    r.models.models["summary"] = broken = Summarising(r.model, fault=ModelFault("model_missing", "no key"))
    r.settings.settings = replace(r.settings.settings, routes=(Route("summary", (Link("x"),)),))
    session = await r.session()
    for said in (BIG, BIG + "second", LAST):
        assert (await r.say(session, said)).status is TurnStatus.DONE
    (event,) = r.of(Compacted)
    assert broken.asked and r.summariser.asked and event.reason == "window"


async def test_the_text_of_activated_skills_outlives_every_summary(rig):
    r = long(rig, [["one"], ["two"], ["three"], ["four"], ["five"]])

    class Skills:
        async def plan(self, session, text, wanted, roots=()):
            pins = (SkillPin("trip", "1.0", "d", "keyword"),) if "trip" in text else ()
            return SkillPlan(pins, ("SKILL BODY",) if pins else ())

        async def catalogue(self, *_a, **_k):
            return ""

        def rules(self, _session):
            return ()

        async def settle(self, *_a):
            pass

    object.__setattr__(r.host._parts, "skills", Skills())
    session = await r.session()
    await r.say(session, "plan a trip " + BIG)
    for _ in range(4):
        await r.say(session, BIG)
    assert len(r.of(Compacted)) >= 2
    assert all("SKILL BODY" in event.text for event in r.of(Compacted))
    assert r.of(UsageRecorded)[0].skills == ("trip@1.0",)


async def test_a_summary_can_be_undone_and_is_then_not_made_by_itself(rig):
    r = long(rig, [["one"], ["two"], ["three"], ["four"]])
    session = await r.session()
    for _ in range(3):
        await r.say(session, BIG)
    assert len(r.of(Compacted)) == 1
    assert await r.host.undo_compaction(session)
    assert not await r.host.undo_compaction(session)
    await r.say(session, "again")
    sent = r.model.requests[-1]
    assert "".join(texts(sent)).count(BIG.strip()) == 3 and len(r.of(Compacted)) == 1
    (undone,) = r.of(CompactionUndone)
    shown = await r.host.transcript(session)
    entry = shown.entry(f"compacted:{undone.compaction}")
    assert isinstance(entry, NoticeEntry) and entry.params["undone"] is True


async def test_a_session_opened_again_is_told_to_the_model_in_the_same_words(rig):
    r = long(rig, [["one"], ["two"], ["three"], ["four"]])
    session = await r.session()
    for _ in range(3):
        await r.say(session, BIG)
    live = r.sessions.find(session).context.conversation.messages()
    await r.sessions.release(session)
    again = (await r.sessions.actor(session)).context.conversation
    assert again.messages() == live
    await r.host.undo_compaction(session)
    undone = (await r.sessions.actor(session)).context.conversation.messages()
    await r.sessions.release(session)
    assert (await r.sessions.actor(session)).context.conversation.messages() == undone


async def test_a_person_can_ask_for_a_summary_between_turns(rig):
    r = long(rig, [["one"], ["two"]], window=1_000_000)
    session = await r.session()
    assert not await r.host.compact(session)
    await r.say(session, "first")
    assert await r.host.compact(session)
    assert not await r.host.compact(session)
    await r.say(session, "next")
    sent = r.model.requests[-1]
    assert "NOTE" in texts(sent)[0] and texts(sent)[-1] == "next" and len(sent.messages) == 1
    (event,) = r.of(Compacted)
    assert (event.reason, event.keep_request, event.model) == ("person", False, "summariser")


async def test_a_running_turn_is_not_summarised_by_hand(rig):
    r = long(rig, [[asyncio.Event()]])
    session = await r.session()
    await r.host.submit(session, UserInput("x"))
    await r.model.waiting.wait()
    for refused in (r.host.compact, r.host.undo_compaction):
        with pytest.raises(UserFault) as caught:
            await refused(session)
        assert caught.value.code == "session_busy"


async def test_a_route_for_summaries_is_used(rig):
    r = long(rig, [["one"], ["two"], ["three"]])
    cheap = Summarising(r.model, note="CHEAP NOTE")
    r.models.models["summary"] = cheap
    r.settings.settings = replace(r.settings.settings, routes=(Route("summary", (Link("x"),)),))
    session = await r.session()
    for _ in range(3):
        await r.say(session, BIG)
    assert cheap.asked and not r.summariser.asked and "CHEAP NOTE" in r.of(Compacted)[0].text


async def test_the_rest_of_a_cut_result_can_be_read(rig):
    r = rig([[call("kb.big", "c1")], ["ok"]])
    text = "".join(f"{n:09d}\n" for n in range(20_000))
    r.tools.add("kb.big", text)
    reader = ResultReader(r.history, r.sessions.context)
    session = await r.session()
    spec = reader.specs(session)[0]
    r.tools.specs[spec.full_name] = spec
    await r.say(session)
    cut = r.model.requests[1].messages[-1].blocks[0].content[0].text
    assert "host__read_result with call_id c1" in cut and len(cut) < 61_000
    from desktop_host.core.values import freeze

    async def read(**arguments):
        return (await reader.call(session, "x", spec, freeze(arguments), lambda _p: None)).content[0].text

    assert (await read(call_id="c1", offset=100_000, length=20)).startswith(
        "000010000\n000010001\n\n[characters 100,000"
    )
    assert (await read(call_id="c1", offset=199_990)).endswith("the end]")
    assert "No cut result" in await read(call_id="zz", offset=0)
    assert "whole number" in await read(call_id="c1", offset=-1)
    await r.sessions.release(session)
    await r.sessions.actor(session)
    assert (await read(call_id="c1", offset=0, length=9)).startswith("000000000")
    assert len([e for e in r.of(AssistantSaid)]) == 2


def pieces(text, tokens):
    while text:
        piece, text = first_piece(text, tokens)
        yield piece


@pytest.mark.parametrize("filling", ["x", "灯塔", "🌊"])
def test_a_long_text_is_read_in_pieces_that_fit_whatever_its_script_and_lose_nothing(filling):
    text = "\n\n".join(f"paragraph {n} " + filling * (n % 50) for n in range(500))
    parts = list(pieces(text, 300))
    assert "\n\n".join(parts) == text and all(of_text(p) <= 300 for p in parts)
    assert min(of_text(p) for p in parts[:-1]) >= 150
    unbroken = list(pieces(filling * 2500, 300))
    assert "".join(unbroken) == filling * 2500 and all(of_text(p) <= 300 for p in unbroken)


class Small:
    """A model that refuses what is longer than its window, its own answer included, and says nothing of its size."""

    def __init__(self, window):
        self.window = window
        self.refused = 0
        self.asked = []

    async def stream(self, request):
        need = of_request(request.messages, request.system, request.tools) + (request.max_tokens or 100)
        if need > self.window:
            self.refused += 1
            raise ModelFault("context_overflow", f"{need} > {self.window}")
        self.asked.append(request)
        text = "NOTE" if request.purpose is Purpose.SUMMARY else f"answer {len(self.asked)}"
        yield Completed(Message(Role.ASSISTANT, (Text(text),)), Usage(cost_usd=0.0), StopReason.END, "small")


@pytest.mark.parametrize("filling", ["word " * 300, "灯塔在哪里？" * 60])
@pytest.mark.parametrize("says", [True, False])
async def test_a_model_with_a_tiny_window_goes_on_for_ever_whether_it_says_so_or_not(rig, filling, says):
    r = rig([])
    r.models.models["list"] = model = Small(4_000)
    if says:
        r.models.windows["list"] = 4_000
    session = await r.session()
    for n in range(40):
        result = await r.say(session, f"{n} {filling}")
        assert result.status is TurnStatus.DONE, (n, result.error)
    made = len(r.of(Compacted))
    assert 4 <= made < 20
    # It is asked too much only while its size is not known.
    assert model.refused == 0 if says else 0 < model.refused < 12
    assert r.of(Compacted)[-1].reason == "window"


async def test_a_message_larger_than_the_window_is_refused_and_what_was_before_it_stays_usable(rig):
    r = rig([])
    r.models.models["list"] = Small(4_000)
    r.models.windows["list"] = 4_000
    session = await r.session()
    await r.say(session, "first")
    result = await r.say(session, BIG * 20)
    assert (result.status, result.error["code"]) == (TurnStatus.FAILED, "context_overflow")
    assert (await r.say(session, "and now?")).status is TurnStatus.DONE
    assert len(r.of(Compacted)) <= 2


async def test_a_summary_that_fails_is_tried_once_a_turn_not_at_every_round(rig):
    replies = [["one"], ["two"]] + [[f"looking {n}", call("kb.search", f"c{n}")] for n in range(6)] + [["done"]]
    r = long(rig, replies)
    r.tools.add("kb.search", "x" * 1000)
    r.summariser.fault = ModelFault("overloaded", "busy")
    session = await r.session()
    await r.say(session, BIG)
    await r.say(session, BIG)
    assert (await r.say(session, LAST)).text == "done"
    assert [n.code for n in r.of(Notice)] == ["compaction_failed"] and len(r.summariser.asked) == 1


async def test_stop_during_a_summary_leaves_everything_as_it_was(rig):
    r = long(rig, [["one"], ["two"], ["three"]])
    session = await r.session(budget_usd=1.0)
    for _ in range(2):
        await r.say(session, BIG)
    held, asked = asyncio.Event(), asyncio.Event()

    class Slow:
        async def stream(self, request):
            if request.purpose is Purpose.SUMMARY:
                asked.set()
                await held.wait()
            async for event in r.model.stream(request):
                yield event

    r.models.models["list"] = Slow()
    r.models.quotes["list"] = Quote(0.03)
    ticket = await r.host.submit(session, UserInput(LAST))
    await asked.wait()
    await r.host.interrupt(session)
    assert (await ticket.done).status is TurnStatus.INTERRUPTED and not r.of(Compacted)
    own = (await r.host.standings(session))[0]
    assert (own["reserved_usd"], own["spent_usd"]) == (0.0, 0.03)  # it was sent: the vendor may bill its input
    held.set()
    r.models.models["list"] = r.summariser
    resumed = await (await r.host.resume(session)).done
    assert resumed.text == "three" and len(r.of(Compacted)) == 1
