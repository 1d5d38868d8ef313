"""Tasks with routes of their own: sorting messages, naming chats, checking calls."""

from __future__ import annotations

from dataclasses import replace

from desktop_host.core.asks import Allow
from desktop_host.core.errors import ModelFault
from desktop_host.core.events import RouteChanged, SessionRenamed, ToolRequested, ToolSettled, UsageRecorded
from desktop_host.core.messages import Message, Outcome, Role, StopReason, Text
from desktop_host.core.models import Completed, Usage
from desktop_host.core.permissions import Effect
from desktop_host.core.routes import Link, Route
from desktop_host.engine.host import HeadlessPolicy
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
    from desktop_host.engine.host import UserInput

    ticket = await r.host.submit(session, UserInput("send it"))
    await r.until(lambda: r.host.asks(session))
    await r.host.answer(r.host.asks(session)[0].ask_id, Allow())
    assert (await ticket.done).text == "done" and r.of(ToolSettled)[0].outcome is Outcome.OK
