"""Servers ask a human: sampling, forms and URLs through the engine."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from desktop_host.core.asks import (
    Allow,
    DailyCap,
    Dismiss,
    Edited,
    Filled,
    FillForm,
    OpenUrl,
    Refuse,
    ReviewReply,
    ReviewSampling,
)
from desktop_host.core.errors import UserFault
from desktop_host.core.events import AskRaised, UsageRecorded
from desktop_host.core.exchange import ElicitReply, FormRequest, Origin, SamplingRequest, ToolOutcome, UrlRequest
from desktop_host.core.messages import Outcome, Text, user
from desktop_host.core.models import Purpose, Quote
from desktop_host.core.servers import SamplingPolicy
from desktop_host.core.values import freeze
from desktop_host.engine.host import HeadlessPolicy, UserInput
from tests.fakes.list_model import ListModel, call

ASKED = SamplingRequest((user("summarise this"),), max_tokens=9000, system="be brief", hints=("nothing", "other"))
FORM = FormRequest(
    "Who are you?",
    freeze(
        {
            "type": "object",
            "properties": {
                "name": {"type": "string"},
                "age": {"type": "integer", "minimum": 0},
                "news": {"type": "boolean", "default": True},
            },
            "required": ["name"],
        }
    ),
)
ORIGIN = Origin("srv")


async def answered(r, *answers):
    """Give the answers, one an ask, as a person would."""
    for i, answer in enumerate(answers):
        await r.until(lambda i=i: len(r.of(AskRaised)) > i and r.inbox.open())
        assert r.inbox.answer(r.inbox.open()[0].ask_id, answer)
        await r.until(lambda i=i: len(r.of(AskRaised)) > i)


async def test_sampling_shows_the_request_and_the_reply_before_anything_leaves(rig):
    r = rig([["a reply"]])
    asking = asyncio.create_task(r.reviewer.sample(ORIGIN, ASKED))
    await r.until(lambda: r.inbox.open())
    review = r.inbox.open()[0]
    assert isinstance(review, ReviewSampling) and review.request.max_tokens == 4096 and review.model == "list"
    assert r.model.requests == []
    r.inbox.answer(review.ask_id, Allow())
    await r.until(lambda: any(isinstance(a, ReviewReply) for a in r.inbox.open()))
    reply_review = r.inbox.open()[0]
    assert reply_review.blocks == (Text("a reply"),) and not asking.done()
    r.inbox.answer(reply_review.ask_id, Edited("a better reply"))
    reply = await asking
    assert (reply.blocks, reply.stop) == ((Text("a better reply"),), "endTurn")
    sent = r.model.requests[0]
    assert (sent.purpose, sent.system, sent.max_tokens) == (Purpose.SAMPLING, "be brief", 4096)


async def test_an_edited_prompt_is_what_the_model_gets(rig):
    r = rig([["ok"]])
    asking = asyncio.create_task(r.reviewer.sample(ORIGIN, ASKED))
    await answered(r, Edited("only this"), Allow())
    await asking
    assert r.model.requests[0].messages[-1].text == "only this"


async def test_a_review_tells_what_it_costs_and_what_the_server_used(rig):
    r = rig([["one"], ["two"]])
    r.models.quotes["list"] = Quote(0.001, 0.0001)
    r.settings.settings = replace(r.settings.settings, budgets=replace(r.settings.settings.budgets, server_day_usd=9.0))
    asking = asyncio.create_task(r.reviewer.sample(ORIGIN, ASKED))
    await r.until(lambda: r.inbox.open())
    cost = r.inbox.open()[0].cost
    assert cost.estimate_usd == pytest.approx(0.001 + 0.0001 * 4096)
    assert (cost.asked_tokens, cost.spent_tokens, cost.daily_usd) == (9000, 0, 9.0)
    assert cost.input_tokens > 0
    await answered(r, Allow(), Allow())
    await asking
    asking = asyncio.create_task(r.reviewer.sample(ORIGIN, ASKED))
    await r.until(lambda: r.inbox.open())
    assert r.inbox.open()[0].cost.spent_tokens > 0
    r.inbox.answer(r.inbox.open()[0].ask_id, Refuse())
    with pytest.raises(UserFault):
        await asking


async def test_always_within_a_cap_asks_no_more_and_stops_at_the_cap(rig):
    r = rig([["one"], ["two"]])
    r.models.quotes["list"] = Quote(0.4, 0.0)
    asking = asyncio.create_task(r.reviewer.sample(ORIGIN, ASKED))
    await r.until(lambda: r.inbox.open())
    r.inbox.answer(r.inbox.open()[0].ask_id, Allow(daily=DailyCap(60_000, 0.5)))
    assert (await asking).blocks == (Text("one"),), "the reply goes back unseen from now on"
    assert (r.policy.mode, r.policy.daily_tokens, r.policy.daily_usd) == ("allow", 60_000, 0.5)
    r.models.quotes["list"] = Quote(0.6, 0.0)
    with pytest.raises(UserFault) as caught:
        await r.reviewer.sample(ORIGIN, ASKED)
    assert caught.value.params["reason"] == "sampling_budget"
    assert len(r.model.requests) == 1


@pytest.mark.parametrize("answers", [(Refuse(),), (Dismiss(),), (Allow(), Refuse())])
async def test_a_refusal_is_a_refusal_at_either_step(rig, answers):
    r = rig([["ok"]])
    asking = asyncio.create_task(r.reviewer.sample(ORIGIN, ASKED))
    await answered(r, *answers)
    with pytest.raises(UserFault) as caught:
        await asking
    assert caught.value.code == "permission"


async def test_a_hint_picks_another_usable_model(rig):
    r = rig([["own"]])
    r.models.models["vendor/other-model"] = ListModel([["other"]])
    r.policy = SamplingPolicy(mode="allow")
    reply = await r.reviewer.sample(ORIGIN, ASKED)
    assert reply.blocks == (Text("other"),) and r.inbox.open() == ()


@pytest.mark.parametrize(
    ("policy", "reason"),
    [(SamplingPolicy(mode="off"), "sampling_off"), (SamplingPolicy("allow", per_minute=1), "sampling_rate")],
)
async def test_limits_refuse_before_anybody_is_asked(rig, policy, reason):
    r = rig([["a"], ["b"]])
    r.policy = policy

    async def twice():
        for _ in range(2):
            await r.reviewer.sample(ORIGIN, SamplingRequest((user("x"),), 5))

    with pytest.raises(UserFault) as caught:
        await twice()
    assert caught.value.params["reason"] == reason


async def test_the_tokens_of_a_day_are_bounded_and_come_back_tomorrow(rig):
    r = rig([["a"], ["b"], ["c"]])
    r.policy = SamplingPolicy("allow", daily_tokens=20)
    request = SamplingRequest((user("x"),), 5)
    for _ in range(2):
        await r.reviewer.sample(ORIGIN, request)
    with pytest.raises(UserFault):
        await r.reviewer.sample(ORIGIN, request)
    await r.clock.advance(86_400)
    await r.reviewer.sample(ORIGIN, request)


async def test_a_server_cannot_nest_its_requests(rig):
    r = rig([["a"], ["b"]])
    first = asyncio.create_task(r.reviewer.sample(ORIGIN, ASKED))
    await r.until(lambda: r.inbox.open())
    with pytest.raises(UserFault) as caught:
        await r.reviewer.sample(ORIGIN, ASKED)
    assert caught.value.params["reason"] == "sampling_depth"
    await answered(r, Allow(), Allow())
    await first


async def test_sampling_during_a_call_is_on_the_sessions_line_and_the_call_goes_on(rig):
    r = rig([[call("srv.ask", "c1")], ["done"]])
    r.policy = SamplingPolicy("allow")
    model = ListModel([["from sampling"]])
    r.models.models["helper-model"] = model

    async def ask(_a, _p):
        request = SamplingRequest((user("q"),), 5, hints=("helper",))
        reply = await r.reviewer.sample(Origin("srv", session, "c1"), request)
        return ToolOutcome(Outcome.OK, reply.blocks)

    r.tools.add("srv.ask", ask)
    session = await r.session()
    result = await r.say(session)
    assert result.text == "done"
    purposes = [(e.purpose, e.model) for e in r.of(UsageRecorded)]
    assert ("sampling", "list-model") in purposes
    assert len(r.model.requests[-1].messages) == 3


async def test_a_form_comes_back_with_its_defaults(rig):
    """Hazard M128."""
    r = rig([])
    asking = asyncio.create_task(r.reviewer.elicit(ORIGIN, FORM))
    await r.until(lambda: r.inbox.open())
    assert isinstance(r.inbox.open()[0], FillForm)
    r.inbox.answer(r.inbox.open()[0].ask_id, Filled(freeze({"name": "Ada"})))
    assert await asking == ElicitReply("accept", freeze({"name": "Ada", "news": True}))


async def test_values_that_the_form_does_not_allow_never_leave(rig):
    r = rig([])
    asking = asyncio.create_task(r.reviewer.elicit(ORIGIN, FORM))
    await answered(r, Filled(freeze({"name": "Ada", "age": -1})))
    with pytest.raises(UserFault) as caught:
        await asking
    assert caught.value.params["field"] == "age"


@pytest.mark.parametrize(("answer", "action"), [(Refuse(), "decline"), (Dismiss(), "cancel")])
async def test_no_is_told_from_closed_and_nothing_is_checked_then(rig, answer, action):
    """Hazard M127."""
    r = rig([])
    asking = asyncio.create_task(r.reviewer.elicit(ORIGIN, FORM))
    await answered(r, answer)
    assert await asking == ElicitReply(action)


async def test_a_url_is_opened_only_with_consent(rig):
    r = rig([])
    asking = asyncio.create_task(r.reviewer.elicit(ORIGIN, UrlRequest("sign in", "https://example.org/x")))
    await r.until(lambda: r.inbox.open())
    assert isinstance(r.inbox.open()[0], OpenUrl) and r.inbox.open()[0].url == "https://example.org/x"
    r.inbox.answer(r.inbox.open()[0].ask_id, Allow())
    assert (await asking).action == "accept"


async def test_answers_of_a_file_are_used_in_order_by_kind(rig):
    answers = (
        freeze({"kind": "elicitation", "action": "accept", "content": {"name": "one"}}),
        freeze({"kind": "url", "action": "decline"}),
        freeze({"kind": "elicitation", "action": "cancel"}),
    )
    r = rig([], headless=HeadlessPolicy(answers))
    first = await r.reviewer.elicit(ORIGIN, FORM)
    assert first.content is not None and first.content["name"] == "one"
    assert (await r.reviewer.elicit(ORIGIN, UrlRequest("x", "https://e.org"))).action == "decline"
    assert (await r.reviewer.elicit(ORIGIN, FORM)).action == "cancel"
    assert (await r.reviewer.elicit(ORIGIN, FORM)).action == "decline"


async def test_sampling_allowed_for_a_server_by_policy_needs_no_person(rig):
    r = rig([["yes"], ["no"]], headless=HeadlessPolicy(allow_sampling=frozenset({"srv"})))
    assert (await r.reviewer.sample(ORIGIN, SamplingRequest((user("x"),), 5))).blocks == (Text("yes"),)
    with pytest.raises(UserFault):
        await r.reviewer.sample(Origin("other"), SamplingRequest((user("x"),), 5))


async def test_roots_are_those_of_the_session(rig):
    r = rig([["x"]])
    session = await r.session(roots=("/tmp/a",))
    await (await r.host.submit(session, UserInput("go"))).done
    assert r.reviewer.roots(session) == ("/tmp/a",)
    assert r.reviewer.roots(None) == ()
