"""Budgets, quotas and token limits as a turn meets them."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from desktop_host.core.errors import HostError, ModelFault, UserFault
from desktop_host.core.events import Notice, RouteChanged, UsageRecorded
from desktop_host.core.exchange import Origin, SamplingRequest
from desktop_host.core.messages import Message, Role, StopReason, Text, user
from desktop_host.core.models import Completed, Quote, Usage
from desktop_host.core.servers import SamplingPolicy
from desktop_host.core.sessions import TurnStatus, TurnStop
from desktop_host.core.settings_costs import Budgets, Price, Quotas
from desktop_host.core.values import canonical
from desktop_host.engine.host import UserInput
from desktop_host.i18n import Translator
from desktop_host.providers.pricing import Priced
from desktop_host.providers.quotes import Quotes
from desktop_host.storage import open_storage
from tests.fakes.list_model import FixedModels, ListModel, call


def budgeted(rig, replies, *, cost=0.1, quote=None, **limits):
    """A rig whose requests cost `cost`, with a budget of the profile."""
    r = rig(replies)
    r.model.usage = Usage(10, 5, cost_usd=cost)
    r.models.quotes["list"] = Quote(cost) if quote is None else quote
    r.settings.settings = replace(r.settings.settings, budgets=Budgets(**limits))
    return r


def codes(r):
    return [n.code for n in r.of(Notice)]


@pytest.mark.parametrize("limits", [{"session_usd": 0.25}, {"day_usd": 0.25}, {"month_usd": 0.25}])
async def test_a_request_that_a_budget_does_not_cover_is_never_sent(rig, limits):
    r = budgeted(rig, [["one"], ["two"], ["three"]], **limits)
    session = await r.session()
    assert (await r.say(session)).text == "one"
    assert (await r.say(session)).text == "two"
    stopped = await r.say(session)
    (scope,) = (name.removesuffix("_usd") for name in limits)
    assert (stopped.status, stopped.stop) == (TurnStatus.FAILED, TurnStop.BUDGET)
    assert (stopped.error["code"], stopped.error["params"]["scope"]) == ("budget_spent", scope)
    assert len(r.model.requests) == 2 and codes(r) == ["budget_near"]
    standing = {s["scope"]: s for s in await r.host.standings(session)}
    assert standing[scope]["spent_usd"] == pytest.approx(0.2) and standing[scope]["limit_usd"] == 0.25
    assert standing["day"]["calls"] == 2 and standing["day"]["reserved_usd"] == 0.0


@pytest.mark.parametrize(
    ("language", "short", "spent"),
    [
        (
            "en",
            "This chat's budget of $0.05 does not cover the next request: $0.05 is left, and it may cost $0.1 or more.",
            "The budget of this chat, $0.1, is spent ($0.1 used).",
        ),
        (
            "zh_CN",
            "此对话的预算（$0.05）不足以支付下一次请求：还剩 $0.05，而它至少可能花费 $0.1。",
            "此对话的预算（$0.1）已用完（已用 $0.1）。",
        ),
    ],
)
async def test_a_budget_that_is_too_small_for_the_next_request_is_not_called_spent(rig, language, short, spent):
    r = budgeted(rig, [["one"], ["two"]])
    say = Translator(language).error
    small = (await r.say(await r.session(budget_usd=0.05))).error
    what, remedy = say(small["code"], small["params"], small["message"])
    assert what == short and "--budget" in remedy
    session = await r.session(budget_usd=0.1)
    await r.say(session)
    gone = (await r.say(session)).error
    assert say(gone["code"], gone["params"], gone["message"])[0] == spent


async def test_the_tools_of_a_turn_count_and_it_goes_on_once_the_budget_is_raised(rig):
    r = budgeted(rig, [[call("t.run", "c1")], [call("t.run", "c2")], ["done"]])
    r.tools.add("t.run", "x")
    session = await r.session(budget_usd=0.15)
    stopped = await r.say(session)
    assert stopped.error["code"] == "budget_spent" and len(r.tools.called) == 1
    await r.host.configure(session, replace(await r.history.options(session), budget_usd=1.0))
    result = await (await r.host.resume(session)).done
    assert result.text == "done" and len(r.tools.called) == 2


async def test_a_budget_outlives_the_process(rig):
    r = budgeted(rig, [["one"], ["two"]])
    session = await r.session(budget_usd=0.15)
    await r.say(session)
    await r.sessions.release(session)
    assert (await r.say(session)).error["code"] == "budget_spent"


async def test_at_the_limit_the_next_cheaper_model_goes_on_and_says_so(rig):
    r = budgeted(rig, [["dear"], ["never"], ["never"]], session_usd=0.15, downgrade="list, cheap, local")
    r.models.models["cheap"] = ListModel([[], ["still dear"]], usage=Usage(1, 1, cost_usd=0.1))
    r.models.models["local"] = local = ListModel([[], ["for free"], ["again free"]])
    r.models.quotes["cheap"] = Quote(0.1)
    session = await r.session()
    await r.say(session)
    result = await r.say(session)
    assert (result.status, result.text) == (TurnStatus.DONE, "for free")
    assert r.of(RouteChanged) == [RouteChanged("list", "local", "budget")]
    await r.say(session)
    assert len(r.of(RouteChanged)) == 1 and len(local.requests) == 2


async def test_stopping_can_be_chosen_over_a_cheaper_model(rig):
    r = budgeted(rig, [["dear"], ["never"]], session_usd=0.15, downgrade="local", at_limit="stop")
    r.models.models["local"] = ListModel([[], ["never"]])
    session = await r.session()
    await r.say(session)
    assert (await r.say(session)).error["code"] == "budget_spent"


async def test_a_request_is_limited_to_the_output_that_the_budget_covers(rig):
    r = budgeted(rig, [["one"], ["two"], ["three"]], quote=Quote(0.01, 0.0001), session_usd=0.25, cost=0.11)
    session = await r.session()
    await r.say(session)
    assert r.model.requests[0].max_tokens == 2400  # (0.25 - 0.01) / 0.0001
    await r.say(session)
    assert r.model.requests[1].max_tokens == 1300
    assert (await r.say(session)).error["code"] == "budget_spent"  # 0.03 is left: no 256 tokens of answer


async def test_a_price_that_is_unknown_is_refused_under_a_budget_of_money(rig):
    r = budgeted(rig, [["one"], ["two"]], day_usd=1.0)
    r.models.quotes["list"] = None
    session = await r.session()
    stopped = await r.say(session)
    assert (stopped.error["code"], stopped.stop) == ("price_unknown", TurnStop.BUDGET) and not r.model.requests
    allowed = await r.session(token_budget=100_000)
    assert (await r.say(allowed)).text == "one"
    r.settings.settings = replace(r.settings.settings, budgets=Budgets())
    assert (await r.say(session)).status is TurnStatus.DONE


async def test_the_tokens_of_a_turn_include_its_tool_rounds(rig):
    r = rig([[call("t.run", f"c{n}")] for n in range(9)])
    r.model.usage = Usage(400, 100, cost_usd=0.0)
    r.tools.add("t.run", "x")
    r.settings.settings = replace(r.settings.settings, budgets=Budgets(turn_tokens=1900))
    session = await r.session()
    stopped = await r.say(session)
    assert (stopped.error["code"], stopped.error["params"]["scope"]) == ("budget_spent", "turn")
    assert len(r.model.requests) == 3 and r.model.requests[-1].max_tokens < 500
    assert "turn_tokens_near" not in codes(r)  # 1,500 of 1,900
    assert (await r.say(await r.session(token_budget=1850), "x")).error["params"]["limit"] == 1850
    assert codes(r) == ["turn_tokens_near"]


async def test_a_quota_counts_requests_of_a_day_and_renews(rig):
    r = rig([[str(n)] for n in range(9)])
    r.settings.settings = replace(r.settings.settings, quotas=Quotas(tier="free", free=3))
    session = await r.session()
    results = [await r.say(session) for _ in range(4)]
    assert [x.status for x in results[:3]] == [TurnStatus.DONE] * 3
    assert results[3].error["code"] == "quota_spent" and codes(r) == ["quota_near"]
    await r.clock.advance(86_400)
    assert (await r.say(session)).status is TurnStatus.DONE


async def test_a_request_that_fails_gives_its_money_back_and_one_that_was_stopped_is_booked(rig):
    r = budgeted(rig, [[ModelFault("overloaded", "busy")], [], ["words come", asyncio.Event()]], session_usd=1.0)
    session = await r.session()
    await r.say(session)
    (own, *_rest) = await r.host.standings(session)
    assert (own["spent_usd"], own["reserved_usd"], own["calls"]) == (0.0, 0.0, 0)
    await r.say(session)
    ticket = await r.host.submit(session, UserInput("x"))
    await r.model.waiting.wait()
    assert (await r.host.standings(session))[0]["reserved_usd"] == pytest.approx(0.1)
    await r.host.interrupt(session)
    assert (await ticket.done).status is TurnStatus.INTERRUPTED
    own = (await r.host.standings(session))[0]
    assert (own["spent_usd"], own["reserved_usd"]) == (pytest.approx(0.2), 0.0)


async def test_a_request_that_costs_more_than_was_foreseen_is_told(rig):
    r = budgeted(rig, [["one"]], cost=0.5, quote=Quote(0.1), session_usd=0.2)
    await r.say(await r.session())
    (notice,) = r.of(Notice)
    assert (notice.code, notice.params["over"]) == ("budget_late", pytest.approx(0.3))


async def test_the_sampling_of_one_server_has_a_budget_of_its_own(rig):
    r = budgeted(rig, [["a"], ["b"], ["c"]], server_day_usd=0.15)
    r.policy = SamplingPolicy(mode="allow")
    session = await r.session()
    await r.sessions.actor(session)
    request = SamplingRequest((user("q"),), 100)
    await r.reviewer.sample(Origin("one", session), request)
    await r.until(lambda: r.of(UsageRecorded))
    assert r.of(UsageRecorded)[0].server == "one"
    with pytest.raises(HostError) as caught:
        await r.reviewer.sample(Origin("one", session), request)
    assert (caught.value.code, caught.value.params["scope"]) == ("budget_spent", "server")
    await r.reviewer.sample(Origin("two", session), request)
    (row, _two) = await r.ledger.usage("server")
    assert (row["server"], row["sampling_requests"], row["sampling_cost_usd"]) == ("one", 1, pytest.approx(0.1))


async def test_a_servers_own_cap_binds_although_the_estimate_was_too_low(rig):
    r = budgeted(rig, [["a"], ["b"]], cost=0.5, quote=Quote(0.1))
    r.policy = SamplingPolicy(mode="allow", daily_usd=0.4)
    session = await r.session()
    await r.sessions.actor(session)
    request = SamplingRequest((user("q"),), 100)
    await r.reviewer.sample(Origin("one", session), request)
    with pytest.raises(HostError):
        await r.reviewer.sample(Origin("one", session), request)
    assert len(r.model.requests) == 1


@pytest.mark.parametrize("store", ["sqlite", "postgresql"])
async def test_sixteen_chats_at_once_never_overspend_a_day(rig, tmp_path, request, store):
    shared = request.getfixturevalue("postgres").params() if store == "postgresql" else None
    async with open_storage(tmp_path, shared=shared) as storage:
        r = budgeted(rig, [[str(n)] for n in range(40)], cost=0.03, day_usd=1.0)
        object.__setattr__(r.host._parts.spending, "_purses", storage.purses)

        async def chat():
            session = await r.session()
            return [await r.say(session) for _ in range(4)]

        turns = [one for chat_turns in await asyncio.gather(*(chat() for _ in range(16))) for one in chat_turns]
        done = sum(t.status is TurnStatus.DONE for t in turns)
        assert done == 33 and {t.error["code"] for t in turns if t.error} == {"budget_spent"}
        day = next(s for s in await r.host.standings() if s["scope"] == "day")
        assert day["spent_usd"] == pytest.approx(0.99) and day["reserved_usd"] == 0.0


async def test_a_skill_may_prefer_a_model_and_one_that_cannot_be_used_is_told(rig):
    from desktop_host.core.skills import SkillPin, SkillPlan

    r = rig([["own"], ["own again"]])
    r.models.models["code"] = ListModel([["routed"], ["routed"]])

    class Skills:
        route = "code"

        async def plan(self, *_a, **_k):
            return SkillPlan((SkillPin("s", "1", "d", "keyword"),), ("body",), route=self.route)

        async def catalogue(self, *_a, **_k):
            return ""

        def rules(self, _session):
            return ()

        async def settle(self, *_a):
            pass

    skills = Skills()
    object.__setattr__(r.host._parts, "skills", skills)
    session = await r.session()
    assert (await r.say(session)).text == "routed"
    skills.route = "nowhere"
    assert (await r.say(session)).text == "own again"
    assert "skill_route_unknown" in codes(r)


async def test_a_kept_answer_is_marked_counts_nothing_and_can_be_asked_anew(rig):
    from desktop_host.core.events import AssistantSaid
    from desktop_host.core.settings_costs import Cache
    from desktop_host.providers.cache import Cached
    from tests.fakes.memory_purses import MemoryAnswers

    r = rig([["first"], ["second"]])
    answers = MemoryAnswers()
    r.models.models["list"] = Cached(r.model, "list", answers, Cache, r.clock)
    assert (await r.say(await r.session(), "same")).text == "first"
    assert (await r.say(await r.session(), "same")).text == "first"
    assert [e.cached for e in r.of(AssistantSaid)] == [False, True] and len(r.of(UsageRecorded)) == 1
    assert next(s for s in await r.host.standings() if s["scope"] == "day")["calls"] == 1
    r.model.replies[0] = ["asked anew"]
    anew = await (await r.host.submit(await r.session(), UserInput("same", fresh=True))).done
    assert anew.text == "asked anew"


async def test_a_chat_that_is_not_there_has_no_standing(rig):
    with pytest.raises(UserFault):
        await rig([]).host.standings("ghost")


class PricedModels(FixedModels):
    """Models at an address, with prices of the person's own."""

    def __init__(self, vendor, prices):
        super().__init__({"list": Priced(vendor, "m", "https://models.example/v1", lambda: prices)})
        self.real = Quotes(self.entries, lambda: prices, lambda _path: vendor)

    async def quote(self, ref, request, input_tokens):
        return await self.real.quote("compat:https://models.example/v1#m", request, input_tokens)


class ByteVendor:
    """The worst vendor for a budget: a token for each byte, hidden ones for tools, and answers as long as can be."""

    def __init__(self):
        self.asked = []

    async def stream(self, request):
        self.asked.append(request)
        said = [b.text for m in request.messages for b in m.blocks if isinstance(b, Text)]
        tools = sum(len(canonical({"d": t.description, "s": t.input_schema, "n": t.wire_name})) for t in request.tools)
        read = len("".join([request.system, *said]).encode()) + tools + 700 * bool(request.tools)
        usage = Usage(read, request.max_tokens or 0)
        text = Text("x" * (request.max_tokens or 0))
        yield Completed(Message(Role.ASSISTANT, (text,)), usage, StopReason.END, "m")


@pytest.mark.parametrize("text", ["aaaa bbbb " * 80, "深圳市的天气怎么样？" * 60, "{}[]();!?=<>" * 90])
async def test_no_limit_is_passed_even_where_every_byte_is_a_token(rig, text):
    prices = (Price("m", input=3.0, output=15.0),)
    vendor = ByteVendor()
    r = rig([], models=PricedModels(vendor, prices))
    r.tools.add("kb.search", "x", description="Looks things up " * 10)
    r.settings.settings = replace(r.settings.settings, budgets=Budgets(day_usd=0.35))
    session = await r.session()
    while (result := await r.say(session, text)).status is TurnStatus.DONE:
        assert len(vendor.asked) < 400
    assert result.error["code"] == "budget_spent"
    day = next(s for s in await r.host.standings() if s["scope"] == "day")
    assert 0.25 < day["spent_usd"] <= 0.35, "near the limit, never past it"
    assert "budget_late" not in codes(r)
