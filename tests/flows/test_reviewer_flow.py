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
from desktop_host.core.errors import HostError, UserFault
from desktop_host.core.events import AskRaised, AskSettled, UsageRecorded
from desktop_host.core.exchange import (
    ElicitReply,
    FormRequest,
    Origin,
    RunningCall,
    SamplingRequest,
    ToolOutcome,
    UrlRequest,
)
from desktop_host.core.messages import Audio, Message, Outcome, Role, StopReason, Text, ToolCall, user
from desktop_host.core.models import ModelNotice, Purpose, Quote
from desktop_host.core.servers import SamplingPolicy
from desktop_host.core.tokens import of_request
from desktop_host.core.tools import ToolSpec
from desktop_host.core.values import freeze
from desktop_host.engine.host import HeadlessPolicy, UserInput
from desktop_host.storage import open_storage
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


async def test_a_request_that_the_server_takes_back_closes_its_card_and_books_what_was_sent(rig):
    hold = asyncio.Event()
    r = rig([["half an answer", hold], ["whole"]])
    r.models.quotes["list"] = Quote(0.25)
    asking = asyncio.create_task(r.reviewer.sample(ORIGIN, ASKED))
    await r.until(lambda: r.inbox.open())
    asking.cancel()
    await asyncio.wait({asking})
    assert r.inbox.open() == () and r.of(AskSettled)[-1].action == "dismissed"
    assert (await r.host._parts.spending.server_today("srv")).tokens == 0, "nothing was sent"
    again = asyncio.create_task(r.reviewer.sample(ORIGIN, ASKED))
    await r.until(lambda: r.inbox.open())
    r.inbox.answer(r.inbox.open()[0].ask_id, Allow())
    await r.model.waiting.wait()
    again.cancel()
    await asyncio.wait({again})
    today = await r.host._parts.spending.server_today("srv")
    assert today.spent_usd == pytest.approx(0.25) and today.tokens > 0, "the vendor may bill it"
    assert r.inbox.open() == ()


async def test_the_tokens_of_a_day_are_bounded_and_come_back_tomorrow(rig):
    r = rig([["a"], ["b"], ["c"]])
    request = SamplingRequest((user("x"),), 5)
    most = of_request(request.messages, "", ()) + 5
    r.policy = SamplingPolicy("allow", daily_tokens=2 * r.model.usage.total + most - 1)
    for _ in range(2):
        await r.reviewer.sample(ORIGIN, request)
    with pytest.raises(UserFault):
        await r.reviewer.sample(ORIGIN, request)
    await r.clock.advance(86_400)
    await r.reviewer.sample(ORIGIN, request)


async def test_the_tokens_of_a_day_are_remembered_by_a_host_that_starts_anew(rig, tmp_path):
    request = SamplingRequest((user("x"),), 5)
    policy = SamplingPolicy("allow", daily_tokens=30 + of_request(request.messages, "", ()) + 4)
    async with open_storage(tmp_path) as storage:
        first = rig([["a"]], storage=storage)
        first.policy = policy
        await first.reviewer.sample(ORIGIN, request)
    async with open_storage(tmp_path) as storage:
        second = rig([["b"], ["c"], ["d"]], storage=storage)
        second.policy = replace(policy, mode="ask")
        asking = asyncio.create_task(second.reviewer.sample(ORIGIN, request))
        await second.until(lambda: second.inbox.open())
        assert second.inbox.open()[0].cost.spent_tokens == first.model.usage.total
        await answered(second, Allow(), Allow())
        await asking
        second.policy = policy
        with pytest.raises(UserFault) as caught:
            await second.reviewer.sample(ORIGIN, request)
    assert caught.value.params["reason"] == "sampling_budget"


async def test_requests_of_two_calls_run_side_by_side_and_do_not_spend_the_same_tokens(rig):
    hold = asyncio.Event()
    r = rig([[hold, "a"], [hold, "b"], ["c"]])
    request = SamplingRequest((user("x"),), 100)
    one = of_request(request.messages, "", ()) + 100
    r.policy = SamplingPolicy("allow", daily_tokens=2 * one + 20)
    origins = [Origin("srv", "s", f"c{n}") for n in range(3)]
    running = [asyncio.create_task(r.reviewer.sample(o, request)) for o in origins[:2]]
    async with asyncio.timeout(5):
        while len(r.model.requests) < 2:
            await r.model.waiting.wait()
            await asyncio.sleep(0)
    with pytest.raises(UserFault) as caught:
        await r.reviewer.sample(origins[2], request)
    assert caught.value.params["reason"] == "sampling_budget"
    hold.set()
    await asyncio.gather(*running)


async def test_an_answer_gets_no_more_tokens_than_the_day_has_left(rig):
    r = rig([["a"]])
    request = SamplingRequest((user("x"),), 500)
    r.policy = SamplingPolicy("allow", daily_tokens=of_request(request.messages, "", ()) + 40)
    await r.reviewer.sample(ORIGIN, request)
    assert r.model.requests[0].max_tokens == 40


async def test_a_server_allowed_by_a_file_without_a_sum_has_one_all_the_same(rig):
    r = rig([["a"]])
    r.models.quotes["list"] = Quote(1.5)
    r.policy = SamplingPolicy("allow")
    with pytest.raises(UserFault) as caught:
        await r.reviewer.sample(ORIGIN, ASKED)
    assert caught.value.params["reason"] == "sampling_budget" and "$1" in caught.value.message


@pytest.mark.parametrize(("tokens", "usd"), [(0, 1.0), (100, 0.0), (100, -1.0), (100, float("nan"))])
def test_always_needs_a_limit_in_tokens_and_one_in_money(tokens, usd):
    with pytest.raises(UserFault) as caught:
        DailyCap(tokens, usd)
    assert caught.value.params["reason"] == "daily_cap"


async def test_an_unknown_price_leaves_the_cap_in_tokens_to_hold_alone(rig):
    r = rig([["a"]])
    r.models.quotes["list"] = None
    r.policy = SamplingPolicy("allow", daily_usd=0.5)
    assert (await r.reviewer.sample(ORIGIN, ASKED)).blocks == (Text("a"),)
    r.settings.settings = replace(r.settings.settings, budgets=replace(r.settings.settings.budgets, day_usd=9.0))
    with pytest.raises(HostError) as caught:
        await r.reviewer.sample(ORIGIN, ASKED)
    assert caught.value.code == "price_unknown", "the person's own budget does not go by tokens"


async def test_priorities_are_weighed_over_the_models_that_are_ready(rig):
    r = rig([["own"]])
    r.models.models |= {"v/fast": ListModel([["fast"]]), "v/clever": ListModel([["clever"]])}
    r.models.traits |= {"list": (3, 3), "v/fast": (5, 2), "v/clever": (1, 5)}
    r.models.quotes |= {"list": Quote(0.02), "v/fast": Quote(0.001), "v/clever": Quote(0.1)}
    asking = asyncio.create_task(
        r.reviewer.sample(ORIGIN, SamplingRequest((user("q"),), 50, speed_priority=0.9, cost_priority=0.3))
    )
    await r.until(lambda: r.inbox.open())
    review = r.inbox.open()[0]
    assert (review.model, review.choice.reason, review.cost.estimate_usd) == ("v/fast", "priorities", 0.001)
    assert [c.ref for c in review.choice.candidates] == ["list", "v/fast", "v/clever"]
    await answered(r, Allow(model="v/clever"), Allow())
    assert (await asking).blocks == (Text("clever"),)


async def test_a_model_that_was_not_offered_is_not_asked(rig):
    r = rig([["own"]])
    asking = asyncio.create_task(r.reviewer.sample(ORIGIN, replace(ASKED, hints=())))
    await answered(r, Edited("this", model="secret/model"), Allow())
    assert (await asking).blocks == (Text("own"),)


async def test_what_the_model_does_not_take_is_told_with_its_reply(rig):
    dropped = ModelNotice("temperature_dropped", freeze({"model": "x"}))
    effort = ModelNotice("param_dropped", freeze({"param": "effort"}))
    r = rig([[dropped, effort, "a"]])
    asking = asyncio.create_task(r.reviewer.sample(ORIGIN, replace(ASKED, temperature=0.3)))
    await answered(r, Allow())
    await r.until(lambda: any(isinstance(a, ReviewReply) for a in r.inbox.open()))
    assert r.inbox.open()[0].left_out == ("temperature",)
    await answered_last(r, Allow())
    await asking


async def answered_last(r, answer):
    r.inbox.answer(r.inbox.open()[-1].ask_id, answer)


async def test_audio_is_refused_as_something_no_model_takes(rig):
    r = rig([["a"]])
    with pytest.raises(HostError) as caught:
        await r.reviewer.sample(ORIGIN, SamplingRequest((Message(Role.USER, (Audio("AAAA", "audio/wav"),)),), 5))
    assert (caught.value.code, r.inbox.open(), r.model.requests) == ("unsupported_param", (), [])


async def test_a_tool_call_of_the_model_goes_back_and_is_run_by_nobody(rig):
    r = rig([["Let me see.", call("srv.weather", "w1", city="Oslo")]])
    r.tools.add("srv.weather", lambda _a, _p: pytest.fail("the host ran a server's sampling tool"))
    r.policy = SamplingPolicy("allow")
    tool = ToolSpec("srv", "weather", "", freeze({"type": "object"}))
    reply = await r.reviewer.sample(ORIGIN, SamplingRequest((user("q"),), 50, tools=(tool,), tool_choice="required"))
    assert reply.stop == "toolUse" and isinstance(reply.blocks[-1], ToolCall)
    assert r.model.requests[0].tools == (tool,) and r.model.requests[0].tool_choice == "required"


async def test_a_call_that_was_cut_off_never_goes_back(rig):
    r = rig([["Let me see.", call("srv.weather", "w1"), StopReason.LENGTH]])
    r.policy = SamplingPolicy("allow")
    reply = await r.reviewer.sample(ORIGIN, SamplingRequest((user("q"),), 50))
    assert (reply.blocks, reply.stop) == ((Text("Let me see."),), "maxTokens")


async def test_a_page_that_was_opened_in_this_call_is_told_as_such(rig):
    r = rig([])
    origin = Origin("srv", "s", "c1")
    wanted = UrlRequest("sign in", "https://example.org/x")
    asking = asyncio.create_task(r.reviewer.elicit(origin, wanted))
    await answered(r, Allow())
    await asking
    again = asyncio.create_task(r.reviewer.elicit(origin, wanted))
    await r.until(lambda: r.inbox.open())
    assert (r.inbox.open()[0].opened, r.inbox.open()[0].round) == (True, 2)
    r.inbox.answer(r.inbox.open()[0].ask_id, Refuse(stop=True))
    assert (await again).action == "stop"
    other = asyncio.create_task(r.reviewer.elicit(Origin("srv", "s", "c2"), wanted))
    await r.until(lambda: r.inbox.open())
    assert (r.inbox.open()[0].opened, r.inbox.open()[0].round) == (False, 1)
    r.inbox.dismiss()
    await other


async def test_one_of_several_calls_can_be_stopped_from_asking_too(rig):
    r = rig([])
    calls = (RunningCall("1", "a"), RunningCall("2", "b"))
    origin = Origin("srv", "s", None, calls)
    asking = asyncio.create_task(r.reviewer.elicit(origin, FORM))
    await r.until(lambda: r.inbox.open())
    assert r.inbox.open()[0].calls == calls
    r.inbox.answer(r.inbox.open()[0].ask_id, Refuse(stop=True))
    await asking
    assert (await r.reviewer.elicit(origin, FORM)).action == "stop"


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


async def test_what_a_person_cleared_stays_out_although_it_had_a_default(rig):
    r = rig([])
    asking = asyncio.create_task(r.reviewer.elicit(ORIGIN, FORM))
    await r.until(lambda: r.inbox.open())
    r.inbox.answer(r.inbox.open()[0].ask_id, Filled(freeze({"name": "Ada"}), whole=True))
    assert await asking == ElicitReply("accept", freeze({"name": "Ada"}))


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


async def test_an_answer_of_a_file_may_name_the_model(rig):
    answers = (freeze({"kind": "sampling", "action": "accept", "model": "v/other"}),)
    r = rig([["own"]], headless=HeadlessPolicy(answers))
    r.models.models["v/other"] = ListModel([["other"]])
    assert (await r.reviewer.sample(ORIGIN, SamplingRequest((user("x"),), 5))).blocks == (Text("other"),)


async def test_sampling_allowed_for_a_server_by_policy_needs_no_person(rig):
    r = rig([["yes"], ["no"]], headless=HeadlessPolicy(allow_sampling=frozenset({"srv"})))
    assert (await r.reviewer.sample(ORIGIN, SamplingRequest((user("x"),), 5))).blocks == (Text("yes"),)
    with pytest.raises(UserFault):
        await r.reviewer.sample(Origin("other"), SamplingRequest((user("x"),), 5))


async def test_other_folders_of_a_chat_are_told_to_its_servers_at_once(rig):
    class Servers:
        def __init__(self):
            self.told = []

        async def roots_changed(self, session):
            self.told.append((session, r.reviewer.roots(session)))

    r = rig([["x"]], servers=Servers())
    session = await r.session(roots=("/tmp/a",))
    await r.say(session)
    options = await r.history.options(session)
    await r.host.configure(session, replace(options, effort="low"))
    assert r.host.servers.told == []
    await r.host.configure(session, replace(options, roots=("/tmp/b",)))
    assert r.host.servers.told == [(session, ("/tmp/b",))]


async def test_roots_are_those_of_the_session(rig):
    r = rig([["x"]])
    session = await r.session(roots=("/tmp/a",))
    await (await r.host.submit(session, UserInput("go"))).done
    assert r.reviewer.roots(session) == ("/tmp/a",)
    assert r.reviewer.roots(None) == ()
