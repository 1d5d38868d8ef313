"""The Responses adapter against a server that sends exact bytes."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from desktop_host.core.errors import ModelFault
from desktop_host.core.messages import (
    Image,
    Message,
    Native,
    Outcome,
    Role,
    StopReason,
    Text,
    ToolCall,
    ToolResult,
    user,
)
from desktop_host.core.models import ModelNotice, TextDelta, ToolCallDelta
from desktop_host.core.tools import ToolSpec
from desktop_host.core.values import freeze
from desktop_host.providers.clients import Connection
from desktop_host.providers.responses import ResponsesModel, paired
from tests.contract.chat_model_contract import ECHO, asked, collect, end_of
from tests.fakes.model_server import ModelServer, answer, page, sse
from tests.fakes.remote import models, ref_of, sent
from tests.fakes.wires import Say, reply, responses_events

WIRE = "responses"
SOL = "gpt-5.6-sol"
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


async def test_request_stores_nothing_and_asks_for_encrypted_reasoning():
    async with ModelServer() as server, models(secrets={f"{server.url}/v1": "sk-test-1234567890"}) as catalog:
        server.script(reply(WIRE, Say("Hi.")))
        model = await catalog.open(ref_of(WIRE, server, SOL))
        await collect(model, asked("hi", system="Be brief.", tools=(ECHO,), effort="high", max_tokens=5))
        body, seen = sent(server), server.posts[0]
    assert seen.path == "/v1/responses"
    assert seen.headers["authorization"] == "Bearer sk-test-1234567890"
    assert body["store"] is False
    assert body["include"] == ["reasoning.encrypted_content"]
    assert body["reasoning"] == {"summary": "auto", "effort": "high"}
    assert body["instructions"] == "Be brief."
    assert body["max_output_tokens"] == 16
    assert body["prompt_cache_key"] == "c-1"
    assert body["tools"][0]["strict"] is False
    assert body["input"] == [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]}]
    assert "previous_response_id" not in body


async def test_usage_excludes_what_came_from_the_cache():
    async with ModelServer() as server, models() as catalog:
        server.script(reply(WIRE, Say("Hi.")))
        usage = end_of(await collect(await catalog.open(ref_of(WIRE, server)), asked())).usage
    assert (usage.input, usage.output, usage.cache_read, usage.cache_write, usage.reasoning) == (10, 7, 3, 2, 4)


async def test_a_turn_goes_back_item_by_item_with_items_we_do_not_know():
    events = responses_events(Say(thinking="Hm.", calls=(("call_1", ECHO.wire_name, {"text": "ü"}),)))
    strange = {"type": "brand_new_item", "id": "x_1", "payload": {"b": [1.5, None], "a": "é"}}
    events[-1]["response"]["output"].append(strange)
    async with ModelServer() as server, models() as catalog:
        server.script(sse(events), reply(WIRE, Say("Done.")))
        model = await catalog.open(ref_of(WIRE, server, SOL))
        said = end_of(await collect(model, asked(tools=(ECHO,)))).message
        await collect(model, asked("hello", said, user(ToolResult("call_1", (Text("ü"),))), tools=(ECHO,)))
        raw, body = server.posts[1].raw.decode(), sent(server)
    items = [e["item"] for e in events if e["type"] == "response.output_item.done"] + [strange]
    assert items[0]["encrypted_content"] == "gAAA"
    assert json.dumps(items, ensure_ascii=False, separators=(",", ":"))[1:-1] in raw
    assert body["input"][-1] == {"type": "function_call_output", "call_id": "call_1", "output": "ü"}


async def test_reasoning_without_its_follower_is_dropped_with_the_ids_that_need_it():
    """Public bug continue#8933, and vercel/ai#7543 for missing encrypted content."""
    thought = {"type": "reasoning", "id": "rs", "summary": [], "encrypted_content": "g"}
    call = {"type": "function_call", "id": "fc", "call_id": "c", "name": "n", "arguments": "{}"}
    assert paired([thought, call]) == [thought, call]
    assert paired([call, thought]) == [{k: v for k, v in call.items() if k != "id"}]
    bare = {**thought, "encrypted_content": None}
    assert paired([bare, call]) == [{k: v for k, v in call.items() if k != "id"}]
    assert paired([thought, call], strip=True) == [{k: v for k, v in call.items() if k != "id"}]


async def test_a_refused_pair_is_sent_once_more_without_reasoning():
    async with ModelServer() as server, models() as catalog:
        data = [
            {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "g"},
            {"type": "message", "id": "msg_1", "role": "assistant", "content": [{"type": "output_text", "text": "a"}]},
        ]
        said = Message(Role.ASSISTANT, (Text("a"),), Native("responses", f"{server.url}/v1", SOL, freeze(data)))
        text = "Item 'rs_1' of type 'reasoning' was provided without its required following item."
        server.script(
            answer({"error": {"message": text, "type": "invalid_request_error"}}, 400), reply(WIRE, Say("ok"))
        )
        events = await collect(await catalog.open(ref_of(WIRE, server, SOL)), asked("q", said, user("go on")))
        assert [item["type"] for item in sent(server)["input"]] == ["message"] * 3
    assert [e.code for e in events if isinstance(e, ModelNotice)] == ["history_repaired"]


async def test_a_turn_of_another_vendor_is_rebuilt_from_text_and_calls():
    said = Message(Role.ASSISTANT, (Text("I look."), ToolCall("toolu_1", "echo__say", freeze({"text": "x"}))))
    result = ToolResult("toolu_1", (Text("boom"),), Outcome.ERROR)
    async with ModelServer() as server, models() as catalog:
        server.script(reply(WIRE, Say("ok")))
        await collect(await catalog.open(ref_of(WIRE, server)), asked("q", said, user(result), tools=(ECHO,)))
        items = sent(server)["input"]
    assert items[1]["content"] == [{"type": "output_text", "text": "I look."}]
    assert items[2] == {
        "type": "function_call",
        "call_id": "toolu_1",
        "name": "echo__say",
        "arguments": '{"text":"x"}',
    }
    assert items[3]["output"] == "Tool error:\nboom"


async def test_an_image_result_stays_an_image():
    said = Message(Role.ASSISTANT, (ToolCall("c", "echo__say"),))
    result = ToolResult("c", (Text("see"), Image(PNG, "image/jpeg")))
    async with ModelServer() as server, models() as catalog:
        server.script(reply(WIRE, Say("ok")))
        await collect(await catalog.open(ref_of(WIRE, server)), asked("q", said, user(result), tools=(ECHO,)))
        output = sent(server)["input"][2]["output"]
    assert output == [
        {"type": "input_text", "text": "see"},
        {"type": "input_image", "image_url": f"data:image/png;base64,{PNG}", "detail": "auto"},
    ]


@pytest.mark.parametrize(
    "event",
    [
        {"type": "error", "code": "rate_limit_exceeded", "message": "Slow down"},
        {"error": {"code": "rate_limit_exceeded", "message": "Slow down"}},
        {
            "type": "response.failed",
            "response": {
                "status": "failed",
                "output": [],
                "error": {"code": "rate_limit_exceeded", "message": "Slow down"},
            },
        },
    ],
    ids=["flat", "nested", "failed"],
)
async def test_an_error_within_the_stream_is_known_in_all_three_forms(event):
    async with ModelServer() as server, models() as catalog:
        server.script(sse([responses_events(Say("x"))[0], event]))
        with pytest.raises(ModelFault) as caught:
            await catalog.check(ref_of(WIRE, server))
    assert caught.value.code == "rate_limited"
    assert caught.value.retryable


async def test_a_stream_without_its_end_is_a_cut():
    async with ModelServer() as server, models() as catalog:
        server.script(sse(responses_events(Say("Half an answer"))[:-1]))
        with pytest.raises(ModelFault) as caught:
            await collect(await catalog.open(ref_of(WIRE, server)), asked())
    assert caught.value.code == "stream_truncated"


async def test_running_out_of_tokens_voids_every_call_of_the_turn():
    calls = (("a", ECHO.wire_name, {"text": "1"}), ("b", ECHO.wire_name, {"text": "2"}))
    async with ModelServer() as server, models() as catalog:
        server.script(reply(WIRE, Say("Hm", calls=calls, stop="max_output_tokens")))
        done = end_of(await collect(await catalog.open(ref_of(WIRE, server)), asked(tools=(ECHO,))))
    assert done.stop is StopReason.LENGTH
    assert all(call.problem and not call.arguments for call in done.message.calls)


async def test_a_filtered_answer_is_a_refusal_without_calls():
    calls = (("a", ECHO.wire_name, {"text": "1"}),)
    async with ModelServer() as server, models() as catalog:
        server.script(reply(WIRE, Say("I was", calls=calls, stop="content_filter")))
        done = end_of(await collect(await catalog.open(ref_of(WIRE, server)), asked(tools=(ECHO,))))
    assert done.stop is StopReason.REFUSAL
    assert not done.message.calls


async def test_a_refusal_part_is_shown_and_is_a_refusal():
    item = {"type": "message", "id": "m", "role": "assistant", "content": [{"type": "refusal", "refusal": "I can't."}]}
    events = [
        {"type": "response.refusal.delta", "output_index": 0, "delta": "I can't."},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": {"status": "completed", "output": [item]}},
    ]
    async with ModelServer() as server, models() as catalog:
        server.script(sse(events))
        seen = await collect(await catalog.open(ref_of(WIRE, server)), asked())
    assert [e.text for e in seen if isinstance(e, TextDelta)] == ["I can't."]
    assert end_of(seen).stop is StopReason.REFUSAL
    assert end_of(seen).detail == "I can't."


async def test_a_stop_sequence_is_cut_here_because_the_wire_has_none():
    async with ModelServer() as server, models() as catalog:
        server.script(reply(WIRE, Say("one two STOP three")))
        seen = await collect(await catalog.open(ref_of(WIRE, server)), asked(stop=("STOP",)))
        assert "stop" not in sent(server)
    assert "".join(e.text for e in seen if isinstance(e, TextDelta)) == "one two "
    assert end_of(seen).stop is StopReason.STOP_SEQUENCE
    assert end_of(seen).usage.output == 7


async def test_reasoning_models_get_no_temperature_and_others_no_reasoning():
    async with ModelServer() as server, models() as catalog:
        server.script(reply(WIRE, Say("a")), reply(WIRE, Say("b")))
        first = await collect(await catalog.open(ref_of(WIRE, server, SOL)), asked(temperature=0.3))
        await collect(await catalog.open(ref_of(WIRE, server, "gpt-4o")), asked(temperature=0.3))
        bodies = [sent(server, 0), sent(server, 1)]
    assert [e.code for e in first if isinstance(e, ModelNotice)] == ["temperature_dropped"]
    assert "temperature" not in bodies[0]
    assert bodies[1]["temperature"] == 0.3
    assert "reasoning" not in bodies[1]
    assert "include" not in bodies[1]


async def test_a_refused_parameter_is_left_out_and_remembered():
    refusal = {
        "error": {
            "message": "Unsupported parameter: 'reasoning.summary' is not supported with this model.",
            "type": "invalid_request_error",
            "param": "reasoning.summary",
            "code": "unsupported_parameter",
        }
    }
    async with ModelServer() as server, models() as catalog:
        server.script(answer(refusal, 400), reply(WIRE, Say("a")), reply(WIRE, Say("b")))
        model = await catalog.open(ref_of(WIRE, server, SOL))
        await collect(model, asked(effort="low"))
        await collect(model, asked(effort="low"))
        assert [sent(server, n)["reasoning"] for n in (0, 1, 2)] == [
            {"summary": "auto", "effort": "low"},
            {"effort": "low"},
            {"effort": "low"},
        ]


async def test_more_tools_than_the_vendor_takes_are_cut_with_a_word():
    """Hazard F70."""
    tools = tuple(replace(ECHO, name=f"t{n}") for n in range(130))
    refusal = {
        "error": {
            "message": "Invalid 'tools': array too long. Expected an array with maximum length 128",
            "code": "array_above_max_length",
            "param": "tools",
            "type": "invalid_request_error",
        }
    }
    async with ModelServer() as server, models() as catalog:
        server.script(answer(refusal, 400), reply(WIRE, Say("ok")))
        seen = await collect(await catalog.open(ref_of(WIRE, server)), asked(tools=tools))
        assert len(sent(server, 0)["tools"]) == 130
        assert len(sent(server, 1)["tools"]) == 128
    said = next(e for e in seen if isinstance(e, ModelNotice))
    assert (said.code, said.params["limit"], said.params["dropped"]) == ("tools_over_limit", 128, 2)


async def test_openais_own_host_never_gets_more_than_its_limit():
    from desktop_host.core.settings import Network

    model = ResponsesModel(Connection("responses", "https://api.openai.com/v1", "k", "OpenAI", Network()), SOL)
    tools = model.tools(asked(tools=tuple(ToolSpec("s", f"t{n}") for n in range(200))))
    assert (len(tools.specs), tools.dropped) == (128, 72)


async def test_arguments_stream_with_the_calls_id_and_not_the_items():
    async with ModelServer() as server, models() as catalog:
        server.script(reply(WIRE, Say(calls=(("call_9", ECHO.wire_name, {"text": "x"}),))))
        seen = await collect(await catalog.open(ref_of(WIRE, server)), asked(tools=(ECHO,)))
    deltas = [e for e in seen if isinstance(e, ToolCallDelta)]
    assert {(d.call_id, d.wire_name) for d in deltas} == {("call_9", ECHO.wire_name)}
    assert json.loads("".join(d.json for d in deltas)) == {"text": "x"}


async def test_a_whole_json_response_is_read_as_an_answer():
    whole = responses_events(Say("All at once."))[-1]["response"]
    async with ModelServer() as server, models() as catalog:
        server.script(answer(whole), page())
        model = await catalog.open(ref_of(WIRE, server))
        assert end_of(await collect(model, asked())).message.text == "All at once."
        with pytest.raises(ModelFault, match="text/html"):
            await collect(model, asked())
