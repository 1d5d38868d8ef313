"""Tasks with routes of their own: sorting messages, naming chats, checking calls."""

from __future__ import annotations

from dataclasses import replace

from desktop_host.core.asks import Allow, Refuse
from desktop_host.core.codec import event_to_json
from desktop_host.core.errors import ModelFault
from desktop_host.core.events import (
    AskRaised,
    Notice,
    RouteChanged,
    SessionRenamed,
    ToolRequested,
    ToolSettled,
    UsageRecorded,
)
from desktop_host.core.messages import Message, Outcome, Role, StopReason, Text
from desktop_host.core.models import Completed, Usage
from desktop_host.core.permissions import Effect, Life, Scope
from desktop_host.core.routes import Link, Route
from desktop_host.engine.host import HeadlessPolicy, UserInput
from tests.fakes.list_model import ListModel, call


class Saying:
    """Always the same answer, or a fault."""

    def __init__(self, answer):
        self.answer = answer
        self.asked = []

    async def stream(self, request):
        self.asked.append(request)
        if isinstance(self.answer, Exception):
            raise self.answer
        yield Completed(
            Message(Role.ASSISTANT, (Text(self.answer),)), Usage(3, 1, cost_usd=0.0), StopReason.END, "small"
        )  # fmt: skip


def routed(r, **answers):
    """Give the rig routes of these names; a text answers always the same."""
    r.settings.settings = replace(
        r.settings.settings, routes=tuple(Route(name, (Link("x"),)) for name in answers)
    )  # fmt: skip
    for name, answer in answers.items():
        r.models.models[name] = answer if isinstance(answer, ListModel) else Saying(answer)
    return r


async def test_a_message_is_answered_by_the_route_of_what_it_is_about(rig):
    r = routed(rig([["chat"], ["chat"], ["chat"]]), classification="Code.", code=ListModel([["def f(): ..."]] * 3))
    session = await r.session()
    assert (await r.say(session, "write a function")).text == "def f(): ..."
    assert r.of(RouteChanged) == [RouteChanged("list", "code", "task")]
    r.models.models["classification"] = Saying("chat")
    assert (await r.say(session, "thanks")).text == "chat"
    assert r.of(RouteChanged)[-1] == RouteChanged("code", "list", "first")
    assert [e.purpose for e in r.of(UsageRecorded)] == ["classification", "chat"] * 2


async def test_a_model_that_a_person_chose_is_kept_whatever_the_message_is(rig):
    r = routed(rig([["own"]]), classification="code", code=ListModel([["no"]]))
    assert (await r.say(await r.session(model="list"), "write a function")).text == "own"
    assert not r.models.models["classification"].asked


async def test_a_route_of_which_no_model_may_answer_is_no_choice_and_nothing_is_sorted_for_it(rig):
    r = routed(rig([["own"]]), classification="code", code=ListModel([["no"]]))
    r.models.unusable.add("code")
    assert (await r.say(await r.session(), "write a function")).text == "own"
    assert not r.models.models["classification"].asked


async def test_sorting_that_fails_leaves_the_chats_model(rig):
    r = routed(rig([["own"]]), classification=ModelFault("overloaded", "busy"), code=ListModel([["no"]]))
    assert (await r.say(await r.session(), "x")).text == "own"


async def test_a_route_for_titles_names_a_chat_after_its_first_turn(rig):
    r = routed(rig([["one"], ["two"]]), title='"A trip to Oslo"\n')
    session = await r.session()
    await r.say(session, "I would like to go to Oslo in June, what should I see?")
    await r.until(lambda: len(r.of(SessionRenamed)) == 2)
    assert r.of(SessionRenamed)[1].title == "A trip to Oslo"
    assert (await r.history.row(session)).title == "A trip to Oslo"
    await r.say(session, "and in July?")
    assert len(r.models.models["title"].asked) == 1


async def test_a_call_that_a_check_finds_odd_is_asked_about_although_the_rules_allow_it(rig):
    for word, effect, outcome in (("SAFE", Effect.ALLOW, Outcome.OK), ("ASK", Effect.ASK, Outcome.DENIED)):
        r = routed(rig([[call("mail.send", to="eve")], ["done"]], headless=HeadlessPolicy()), safety_check=word)
        r.tools.add("mail.send", "sent", description="Sends mail")
        await r.say(await r.session(), "sum up my mail")
        assert [e.verdict for e in r.of(ToolRequested)] == [effect]
        assert [e.outcome for e in r.of(ToolSettled)] == [outcome]
        text = r.models.models["safety_check"].asked[0].messages[0].text
        assert "sum up my mail" in text and "eve" in text and "Sends mail" in text


async def test_a_check_that_fails_asks_and_a_person_may_say_yes(rig):
    r = routed(rig([[call("mail.send", to="eve")], ["done"]]), safety_check=ModelFault("network", "gone"))
    r.tools.add("mail.send", "sent")
    session = await r.session()
    ticket = await r.host.submit(session, UserInput("send it"))
    await r.until(lambda: r.host.asks(session))
    await r.host.answer(r.host.asks(session)[0].ask_id, Allow())
    assert (await ticket.done).text == "done" and r.of(ToolSettled)[0].outcome is Outcome.OK


async def test_a_person_who_is_asked_anyway_reads_the_second_opinion_and_it_never_answers(rig):
    for word, verdict in (("SAFE: only reads", "safe"), ("ASK: eve is a stranger", "ask"), ("Hmm, why eve?", "ask")):
        r = routed(rig([[call("mail.send", to="eve")], ["done"]], permission="ask"), safety_check=word)
        r.tools.add("mail.send", "sent")
        session = await r.session()
        ticket = await r.host.submit(session, UserInput("send it"))
        await r.until(lambda r=r, s=session: r.host.asks(s))
        (ask,) = r.host.asks(session)
        assert ask.advice.verdict == verdict and ask.advice.model == "small"
        assert {"safe": "only reads", "ask": "eve"}[verdict] in ask.advice.text
        await r.host.answer(ask.ask_id, Refuse())
        await ticket.done
        assert r.of(ToolSettled)[0].outcome is Outcome.DENIED
        assert (
            event_to_json(next(s for s in r.events if isinstance(s.event, AskRaised)))["advice"]["verdict"] == verdict
        )


async def test_a_call_that_was_warned_of_waits_though_a_rule_is_made_for_its_sibling(rig):
    r = routed(
        rig([[call("mail.send", "c1", to="a"), call("mail.send", "c2", to="b")], ["done"]]), safety_check="ASK: odd"
    )  # fmt: skip
    r.tools.add("mail.send", "sent")
    session = await r.session()
    ticket = await r.host.submit(session, UserInput("send both"))
    await r.until(lambda: len(r.host.asks(session)) == 2)
    first, second = r.host.asks(session)
    await r.host.answer(first.ask_id, Allow(Life.PROFILE, Scope.TOOL, first.tool_digest))
    await r.until(lambda: any(e.call_id == first.call_id for e in r.of(ToolSettled)))
    assert [a.ask_id for a in r.host.asks(session)] == [second.ask_id], "a rule does not speak for what was warned of"
    await r.host.answer(second.ask_id, Refuse())
    await ticket.done
    assert sorted(e.outcome for e in r.of(ToolSettled)) == [Outcome.DENIED, Outcome.OK]


async def test_a_small_model_picks_the_tools_that_a_long_table_begins_with(rig):
    r = routed(rig([["one"], ["two"]]), tool_choice="- mail.tool7\nmail.tool3, nobody.knows\nmail.tool7")
    for n in range(120):
        r.tools.add(f"mail.tool{n}", "x", description=f"Does the thing number {n} with many words. " * 12)
    session = await r.session()
    await r.say(session, "use thing 7 or thing 3")
    names = [t.full_name for t in r.model.requests[0].tools]
    assert names == ["host.call_tool", "host.search_tools", "mail.tool3", "mail.tool7"]
    (notice,) = [e for e in r.of(Notice) if e.code == "tools_picked"]
    assert (notice.params["count"], notice.params["of"], notice.params["model"]) == (2, 120, "small")
    asked = r.models.models["tool_choice"].asked[0].messages[0].text
    assert "use thing 7 or thing 3" in asked and asked.count("mail.tool") == 60, "the likeliest by words, no more"
    await r.say(session, "and now thing 9")
    assert [t.full_name for t in r.model.requests[1].tools] == names, "told once, the same ever after"
    assert len(r.models.models["tool_choice"].asked) == 1


async def test_a_choice_that_fails_or_names_nothing_leaves_the_search(rig):
    for answer in ("none", ModelFault("overloaded", "busy")):
        r = routed(rig([["one"]]), tool_choice=answer)
        for n in range(120):
            r.tools.add(f"mail.tool{n}", "x", description="Does a thing with many words. " * 12)
        await r.say(await r.session(), "hi")
        assert [t.full_name for t in r.model.requests[0].tools] == ["host.call_tool", "host.search_tools"]
        assert not [e for e in r.of(Notice) if e.code == "tools_picked"]


async def test_a_short_table_is_told_whole_and_no_model_is_asked(rig):
    r = routed(rig([["one"]]), tool_choice="mail.send")
    r.tools.add("mail.send", "x")
    await r.say(await r.session(), "hi")
    assert [t.full_name for t in r.model.requests[0].tools] == ["mail.send"]
    assert not r.models.models["tool_choice"].asked
