"""A server's sampling request, field by field, from the protocol to each vendor's own body and back (facts of 3.4)."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import mcp_types as T
import pytest

from desktop_host.core.asks import ReviewSampling
from desktop_host.core.errors import UserFault
from desktop_host.core.exchange import Origin
from desktop_host.core.servers import SamplingPolicy
from desktop_host.core.settings import Endpoint, Settings
from desktop_host.core.settings_costs import Price, Trait
from desktop_host.servers.sampling import sampling_request, sampling_result
from tests.fakes.model_server import ModelServer
from tests.fakes.remote import models, ref_of
from tests.fakes.wires import WIRES, Say, reply

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
WEATHER = {"name": "get_weather", "inputSchema": {"type": "object", "properties": {"city": {"type": "string"}}}}
CALLED = [
    {"role": "user", "content": {"type": "text", "text": "Weather?"}},
    {"role": "assistant", "content": [
        {"type": "tool_use", "id": "w1", "name": "get_weather", "input": {"city": "Oslo"}}]},
    {"role": "user", "content": [
        {"type": "tool_result", "toolUseId": "w1", "content": [{"type": "text", "text": "rain"}]}]},
]  # fmt: skip
SEEN = [{"role": "user", "content": [
    {"type": "text", "text": "What is this?"}, {"type": "image", "data": PNG, "mimeType": "image/png"}]}]  # fmt: skip


def request(**fields: Any) -> Any:
    body = {"messages": CALLED, "maxTokens": 77, "metadata": {"vendor": "private-note"}, **fields}
    return sampling_request("srv", T.CreateMessageRequestParams.model_validate(body, by_name=False))


async def sampled(rig: Any, wire: str, say: Say, **fields: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """What the vendor was sent, and what the server gets."""
    async with ModelServer() as server, models(discover=()) as catalog:
        server.script(reply(wire, say))
        r = rig([], models=catalog, default_model=ref_of(wire, server))
        r.policy = SamplingPolicy("allow")
        asked = request(**fields)
        answer = sampling_result(asked, await r.reviewer.sample(Origin("srv"), asked))
        return server.posts[0].body, answer.model_dump(by_alias=True, mode="json", exclude_none=True)


@pytest.mark.parametrize("wire", WIRES)
async def test_calls_results_tools_and_choice_reach_the_vendor_and_its_call_comes_back(rig: Any, wire: str) -> None:
    say = Say("Once more.", calls=(("w2", "srv__get_weather", {"city": "Bergen"}),))
    body, back = await sampled(rig, wire, say, tools=[WEATHER], toolChoice={"mode": "required"})
    assert back["content"][-1] == {
        "type": "tool_use", "id": "w2", "name": "get_weather", "input": {"city": "Bergen"},
    }  # fmt: skip
    assert (back["stopReason"], back["model"]) == ("toolUse", "m-1")
    whole = repr(body)
    for part in ("srv__get_weather", "Oslo", "rain", "w1"):
        assert part in whole, part
    assert "private-note" not in whole, "metadata is for no vendor"
    choice = body.get("tool_choice")
    assert choice in ("required", {"type": "any"}) or "must" in whole.lower()


@pytest.mark.parametrize("wire", WIRES)
async def test_system_text_images_limit_temperature_and_stop_texts_are_mapped(rig: Any, wire: str) -> None:
    body, back = await sampled(
        rig, wire, Say("A dot."), messages=SEEN, systemPrompt="Be brief.", temperature=0.5, stopSequences=["END", " "]
    )
    assert back["content"] == {"type": "text", "text": "A dot."} and back["stopReason"] == "endTurn"
    whole = repr(body)
    assert "Be brief." in whole and PNG in whole
    limits = [body.get(k) for k in ("max_tokens", "max_output_tokens", "max_completion_tokens")]
    assert [n for n in limits if n] == [77]
    stops = body.get("stop") or body.get("stop_sequences")
    assert stops == (["END"] if wire != "responses" else None), "blank ones are for no vendor"


async def test_a_stop_text_that_a_vendor_does_not_take_is_cut_here(rig: Any) -> None:
    _, back = await sampled(rig, "responses", Say("one END two"), messages=SEEN, stopSequences=["END"])
    assert (back["content"]["text"].strip(), back["stopReason"]) == ("one", "stopSequence")


@pytest.mark.parametrize("wire", WIRES)
async def test_thinking_does_not_go_back(rig: Any, wire: str) -> None:
    _, back = await sampled(rig, wire, Say("Answer.", thinking="secret thoughts"), messages=SEEN)
    assert "secret thoughts" not in repr(back)


async def test_the_persons_models_prices_and_words_decide_who_answers(rig: Any) -> None:
    """Hints, then priorities over what is ready: the real list of models, the person's own prices and traits."""
    async with ModelServer() as server:
        endpoint = Endpoint("Mine", "compat", f"{server.url}/v1", ("chat-model", "swift-mini", "deep-thinker"))
        settings = replace(
            Settings(),
            endpoints=(endpoint,),
            prices=(Price("chat-model", 1, 5), Price("swift-mini", 0.1, 0.5), Price("deep-thinker", 10, 50)),
            traits=(Trait("chat-*", 3, 3), Trait("swift-*", 5, 2), Trait("deep-*", 1, 5)),
        )
        async with models(settings=settings, discover=()) as catalog:
            base = f"compat:{server.url}/v1#"
            r = rig([], models=catalog, default_model=f"{base}chat-model")
            r.settings.settings = replace(settings, model=r.settings.settings.model)
            for wishes, name, reason in (
                ({}, "chat-model", "chat"),
                ({"hints": [{"name": "claude-3-haiku"}]}, "swift-mini", "kin"),
                ({"hints": [{"name": "DEEP"}], "costPriority": 1}, "deep-thinker", "hint"),
                ({"costPriority": 0.9, "speedPriority": 0.5}, "swift-mini", "priorities"),
                ({"intelligencePriority": 1}, "deep-thinker", "priorities"),
                ({"hints": [{"name": "gemini"}], "intelligencePriority": 1}, "deep-thinker", "priorities"),
            ):
                review = await refused_review(r, request(messages=SEEN, modelPreferences=wishes))
                assert (review.model.removeprefix(base), review.choice.reason) == (name, reason), wishes
            costs = {c.ref.removeprefix(base): c.cost_usd for c in review.choice.candidates}
            assert costs["swift-mini"] < costs["chat-model"] < costs["deep-thinker"]
            assert server.posts == [], "nothing is asked before the person agreed"


async def refused_review(r: Any, asked: Any) -> ReviewSampling:
    asking = asyncio.create_task(r.reviewer.sample(Origin("srv"), asked))
    await r.until(lambda: r.inbox.open())
    (review,) = r.inbox.open()
    r.inbox.dismiss()
    with pytest.raises(UserFault):
        await asking
    assert isinstance(review, ReviewSampling)
    return review
