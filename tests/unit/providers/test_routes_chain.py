"""Routes: who is asked, who is not and why, and what is remembered of failures."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from desktop_host.core.errors import KnownFault, ModelFault, UserFault
from desktop_host.core.messages import Image, Message, Role, StopReason, Text, ToolResult, user
from desktop_host.core.models import Completed, ModelRequest, ModelSwitched, RetryWaiting, TextDelta, Usage
from desktop_host.core.routes import EXAMPLE, TASKS, Facts, Health, Link, Needs, Route, consider, ref_for
from desktop_host.core.settings import Settings
from desktop_host.core.settings_costs import Price
from desktop_host.core.tools import ToolSpec
from desktop_host.providers.pricing import cost_of
from desktop_host.providers.refs import parse
from desktop_host.providers.router import Past, Routed, needs_of
from tests.fakes.manual_clock import ManualClock
from tests.fakes.remote import models

DONE = Completed(Message(Role.ASSISTANT, (Text("ok"),)), Usage(1, 1), StopReason.END, "m")
BUSY = ModelFault("overloaded", "busy", retryable=True)


@dataclass
class Chain:
    """A route over models that play a list of events or faults."""

    plays: dict[str, list[Any]]
    links: tuple[Link, ...] = ()
    facts: dict[str, Facts] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    clock: ManualClock = field(default_factory=ManualClock)
    past: Past = field(default_factory=Past)

    async def run(self, conversation: str = "c", **more: Any) -> tuple[list[Any], Exception | None]:
        chain = self

        class Playing:
            def __init__(self, name: str) -> None:
                self.name = name

            async def stream(self, _request: ModelRequest):
                chain.asked.append(self.name)
                for event in chain.plays[self.name]:
                    if isinstance(event, Exception):
                        raise event
                    yield event

        async def open_model(ref: str) -> Any:
            if isinstance(self.plays[ref], Exception):
                raise self.plays[ref]  # type: ignore[misc]
            return Playing(ref)

        async def look(route: Route, _request: Any, _needs: Needs) -> dict[str, Facts]:
            now = self.clock.monotonic()
            return {
                link.model: self.facts.get(link.model)
                or Facts(cost_usd=0.0, failed=self.past.health.recent(link.model, now, 300))
                for link in route.chain
            }

        route = Route("chat", self.links or tuple(Link(name) for name in self.plays))
        model = Routed(route, open_model, look, self.past, self.clock)
        seen: list[Any] = []
        try:
            async for event in model.stream(ModelRequest((user("hi"),), conversation=conversation, **more)):
                seen.append(event)
        except Exception as error:
            return seen, error
        return seen, None


async def test_the_next_model_answers_before_anything_was_shown():
    chain = Chain({"a/1": [BUSY], "b/2": [DONE]})
    seen, _ = await chain.run()
    assert seen == [ModelSwitched("a/1", "b/2", "overloaded"), DONE]


@pytest.mark.parametrize("play", [[TextDelta("x"), BUSY], [ModelFault("content_filter", "no")]])
async def test_a_route_stays_once_something_was_shown_or_was_declined(play):
    chain = Chain({"a/1": play, "b/2": [DONE]})
    _, fault = await chain.run()
    assert fault is not None and chain.asked == ["a/1"]


async def test_a_model_that_another_can_stand_in_for_is_waited_for_once_and_shortly_the_last_as_ever():
    once, again, long = (RetryWaiting(n, s, "rate_limited", "slow") for n, s in ((1, 1.0), (2, 2.0), (1, 30.0)))
    chain = Chain({"a/1": [once, again, DONE], "b/2": [long, again, DONE]})
    seen, _ = await chain.run()
    assert seen == [once, ModelSwitched("a/1", "b/2", "rate_limited"), long, again, DONE]
    assert chain.past.health.recent("a/1", chain.clock.monotonic(), 300) == "rate_limited"
    patient = Chain({"a/1": [once, DONE], "b/2": [DONE]})
    assert (await patient.run())[0] == [once, DONE]
    asked_for = Chain({"a/1": [long, DONE], "b/2": [DONE]})
    assert (await asked_for.run())[0] == [ModelSwitched("a/1", "b/2", "rate_limited"), DONE]


async def test_the_last_fault_is_told():
    chain = Chain({"a/1": [BUSY], "b/2": [ModelFault("auth", "no key")]})
    assert (await chain.run())[1].code == "auth"  # type: ignore[union-attr]


async def test_a_model_that_cannot_be_opened_is_passed_over():
    chain = Chain({"a/1": KnownFault("auth", "no key"), "b/2": [DONE]})  # type: ignore[dict-item]
    seen, fault = await chain.run()
    assert fault is None and seen[-1] == DONE


async def test_a_model_that_failed_is_tried_last_for_a_while_and_first_again_later():
    chain = Chain({"a/1": [BUSY], "b/2": [DONE]})
    await chain.run()
    chain.plays["a/1"] = [DONE]
    seen, _ = await chain.run()
    assert chain.asked == ["a/1", "b/2", "b/2"] and seen == [DONE]
    await chain.clock.advance(301)
    seen, _ = await chain.run()
    assert chain.asked[-1] == "a/1" and seen[0] == ModelSwitched("b/2", "a/1", "first")


async def test_where_no_model_may_answer_each_reason_is_told():
    chain = Chain({"a/1": [DONE], "b/2": [DONE]}, facts={"a/1": Facts(False, "no_key"), "b/2": Facts(window=1)})
    _, fault = await chain.run()
    assert isinstance(fault, ModelFault) and fault.code == "model_missing"
    assert "a/1: no_key" in fault.message and "b/2: too_long" in fault.message
    tight = Chain({"a/1": [DONE]}, facts={"a/1": Facts(window=1)})
    assert (await tight.run())[1].code == "context_overflow"  # type: ignore[union-attr]


async def test_money_that_is_limited_goes_to_no_model_of_unknown_price():
    chain = Chain({"a/1": [DONE], "b/2": [DONE]}, facts={"a/1": Facts(), "b/2": Facts(cost_usd=0.1)})
    await chain.run(price_limit=True)
    assert chain.asked == ["b/2"]


def test_each_condition_of_a_link_can_refuse_it():
    links = (
        Link("short", max_context=10), Link("blind", images=False), Link("bare", tools=False),
        Link("dear", max_cost_usd=0.01), Link("odd", max_cost_usd=1.0), Link("good"),
    )  # fmt: skip
    facts = {"dear": Facts(cost_usd=0.5), "odd": Facts(), "good": Facts(window=1000)}
    order = consider(Route("r", links), Needs(tokens=50, images=True, tools=True), facts)
    assert [(one.model, one.reasons) for one in order] == [
        ("good", ("first",)), ("short", ("too_long",)), ("blind", ("no_images",)), ("bare", ("no_tools",)),
        ("dear", ("too_dear",)), ("odd", ("price_unknown",)),
    ]  # fmt: skip
    assert order[0].chosen and not any(one.chosen for one in order[1:])


def test_what_a_request_needs_is_seen_in_results_too():
    result = ToolResult("c", (Image("AAAA", "image/png"),))
    needs = needs_of(ModelRequest((Message(Role.USER, (result,)),), tools=(ToolSpec("a", "b"),)))
    assert needs.images and needs.tools and needs.tokens > 1600


def test_failures_are_forgotten():
    health = Health()
    health.failed("m", "overloaded", 10.0)
    assert health.recent("m", 20.0, 60.0) == "overloaded" and health.recent("m", 80.0, 60.0) is None
    health.answered("m")
    assert health.recent("m", 20.0, 60.0) is None


def test_the_example_serves_every_task_with_models_that_can_be_named():
    assert {route.name for route in EXAMPLE} == set(TASKS)
    for route in EXAMPLE:
        for link in route.chain:
            parse(link.model)
    assert ref_for(EXAMPLE, "summary", "x") == "summary" and ref_for((), "summary", "x") == "x"


async def test_a_route_of_the_settings_is_opened_explained_and_measured():
    route = Route("code", (Link("anthropic/claude-haiku-5-5"), Link("compat:http://127.0.0.1:9/v1#m"), Link("bad")))
    async with models(settings=Settings(routes=(route,)), environ={}) as catalog:
        order = await catalog.explain("code", Needs(tokens=5))
        assert [(one.model, one.reasons[0]) for one in order] == [
            ("compat:http://127.0.0.1:9/v1#m", "first"), ("anthropic/claude-haiku-5-5", "no_key"), ("bad", "bad_ref"),
        ]  # fmt: skip
        assert isinstance(await catalog.open("code"), Routed)
        with pytest.raises(UserFault):
            await catalog.explain("nope", Needs())
        haiku = await catalog.quote("anthropic/claude-haiku-5-5", ModelRequest(()), 1000)
        assert haiku is not None and haiku.fixed_usd > 0 and haiku.per_token_usd > 0
        assert (await catalog.quote("compat:http://127.0.0.1:9/v1#m", ModelRequest(()), 1000)).fixed_usd == 0  # type: ignore[union-attr]
        assert await catalog.quote("compat:https://models.example.com/v1#m", ModelRequest(()), 1) is None
        worst = await catalog.quote("code", ModelRequest(()), 1000)
        assert worst == haiku
        assert await catalog.window("anthropic/claude-haiku-5-5") == 1_000_000
        assert await catalog.window("compat:http://127.0.0.1:9/v1#m") is None


def test_a_price_of_the_persons_own_wins():
    own = (Price("m*", 1.0, 2.0, cache_read=0.5),)
    cost = cost_of("mine", Usage(1_000_000, 1_000_000, cache_read=1_000_000), "http://127.0.0.1:1/v1", own)
    assert cost == 3.5
    assert cost_of("other", Usage(1, 1), "http://127.0.0.1:1/v1", own) == 0.0
