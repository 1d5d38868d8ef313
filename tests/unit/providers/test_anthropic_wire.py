"""The Anthropic adapter against a server that sends exact bytes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from desktop_host.core.errors import ModelFault
from desktop_host.core.messages import Message, Native, Outcome, Role, StopReason, Text, ToolCall, ToolResult, user
from desktop_host.core.models import ModelEvent, ModelNotice, Purpose, TextDelta
from desktop_host.core.tools import ToolSpec
from desktop_host.core.values import FrozenDict, freeze
from desktop_host.providers.anthropic import BINDING_BETA
from tests.contract.chat_model_contract import ECHO, asked, collect, end_of
from tests.fakes.model_server import ModelServer, Reply, answer, page, sse
from tests.fakes.remote import models, ref_of, sent
from tests.fakes.wires import Say, anthropic_events, reply

WIRE = "anthropic"
OPUS = "claude-opus-5-5"
BOUND = "messages.3.content.0: Invalid `signature` in `thinking` block. The block is bound to a different conversation"


def refusal(message: str, kind: str = "invalid_request_error", status: int = 400, **more: Any) -> Reply:
    return answer({"type": "error", "error": {"type": kind, "message": message, **more}}, status)


async def test_request_carries_cache_marks_thinking_and_the_first_party_version():
    async with ModelServer() as server, models(secrets={server.url: "sk-ant-secret-key"}) as catalog:
        server.script(reply(WIRE, Say("Hi.")))
        model = await catalog.open(ref_of(WIRE, server, OPUS))
        await collect(model, asked("hi", system="Be brief.", tools=(ECHO,), effort="high"))
        body, headers = sent(server), server.posts[0].headers
    assert server.posts[0].path == "/v1/messages"
    assert headers["authorization"] == "Bearer sk-ant-secret-key"
    assert "x-api-key" not in headers
    assert headers["anthropic-version"] == "2026-10-21"
    assert headers["anthropic-beta"] == BINDING_BETA
    assert body["system"] == [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}]
    assert body["cache_control"] == {"type": "ephemeral"}
    assert body["thinking"]["type"] == "adaptive"
    assert body["thinking"]["display"] == "summarized"
    assert body["thinking"]["block_binding"] == {"prefix_mismatch_behavior": "drop_block"}
    assert body["output_config"] == {"effort": "high"}
    assert body["max_tokens"] == 64_000
    assert body["tools"][0]["name"] == ECHO.wire_name
    assert "temperature" not in body


async def test_compatible_addresses_get_the_old_version_and_an_api_key_header():
    async with ModelServer() as server, models(secrets={server.url: "k-123"}) as catalog:
        server.script(reply("anthropic-compat", Say("Hi.")))
        model = await catalog.open(ref_of("anthropic-compat", server, "qwen3-max"))
        await collect(model, asked("hi", temperature=0.5))
        headers, body = server.posts[0].headers, sent(server)
    assert headers["x-api-key"] == "k-123"
    assert "authorization" not in headers
    assert headers["anthropic-version"] == "2023-06-01"
    assert body["temperature"] == 0.5
    assert "thinking" not in body
    assert "cache_control" not in body


async def test_temperature_is_left_out_and_said_once_a_conversation():
    async with ModelServer() as server, models() as catalog:
        server.script(reply(WIRE, Say("a")), reply(WIRE, Say("b")))
        model = await catalog.open(ref_of(WIRE, server, OPUS))
        first = await collect(model, asked("hi", temperature=0.2))
        second = await collect(model, asked("hi", temperature=0.2))
        assert "temperature" not in sent(server)
    assert [e.code for e in first if isinstance(e, ModelNotice)] == ["temperature_dropped"]
    assert not [e for e in second if isinstance(e, ModelNotice)]


async def test_usage_counts_cache_apart_and_thinking_within_output():
    async with ModelServer() as server, models() as catalog:
        server.script(reply(WIRE, Say("Hi.")))
        usage = end_of(await collect(await catalog.open(ref_of(WIRE, server)), asked())).usage
    assert (usage.input, usage.output, usage.cache_read, usage.cache_write, usage.reasoning) == (10, 7, 3, 2, 4)
    assert usage.cost_usd == 0


async def test_a_turn_goes_back_byte_for_byte_with_blocks_we_do_not_know():
    events = anthropic_events(Say(thinking="Hm.", calls=(("toolu_1", ECHO.wire_name, {"text": "ü"}),)))
    strange = {"type": "brand_new_block", "payload": {"b": 1, "a": [1.0, None]}, "note": "später"}
    at = next(i for i, e in enumerate(events) if e["type"] == "message_delta")
    events[at:at] = [
        {"type": "content_block_start", "index": 2, "content_block": strange},
        {"type": "content_block_delta", "index": 2, "delta": {"type": "brand_new_delta", "x": 1}},
        {"type": "content_block_stop", "index": 2},
        {"type": "brand_new_event", "y": 2},
    ]
    async with ModelServer() as server, models() as catalog:
        server.script(sse(events), reply(WIRE, Say("Done.")))
        model = await catalog.open(ref_of(WIRE, server, OPUS))
        said = end_of(await collect(model, asked(tools=(ECHO,)))).message
        await collect(model, asked("hello", said, user(ToolResult("toolu_1", (Text("ü"),))), tools=(ECHO,)))
        raw = server.posts[1].raw.decode()
    assert said.native is not None
    assert said.native.endpoint == server.url
    wanted = [
        {"type": "thinking", "thinking": "Hm.", "signature": "sig=="},
        {"type": "tool_use", "id": "toolu_1", "name": ECHO.wire_name, "input": {"text": "ü"}},
        strange,
    ]
    assert json.dumps(wanted, ensure_ascii=False, separators=(",", ":")) in raw


async def test_a_turn_of_another_address_goes_as_text_and_calls_without_thinking():
    native = Native("anthropic", "https://elsewhere.example", "x", freeze([{"type": "thinking", "thinking": "secret"}]))
    said = Message(Role.ASSISTANT, (Text("I look."), ToolCall("functions.f:0", "echo__say", FrozenDict(a=1))), native)
    async with ModelServer() as server, models() as catalog:
        server.script(reply(WIRE, Say("ok")))
        model = await catalog.open(ref_of(WIRE, server))
        await collect(model, asked("q", said, user(ToolResult("functions.f:0", (Text("r"),))), tools=(ECHO,)))
        messages = sent(server)["messages"]
    assert messages[1]["content"] == [
        {"type": "text", "text": "I look."},
        {"type": "tool_use", "id": "functions_f_0", "name": "echo__say", "input": {"a": 1}},
    ]
    assert messages[2]["content"][0]["tool_use_id"] == "functions_f_0"
    assert "secret" not in json.dumps(messages)


async def test_thinking_without_a_signature_is_never_sent_back():
    """Public bug pydantic-ai#7597: a cancelled thought with an empty signature bricked the chat."""
    data = [{"type": "thinking", "thinking": "half", "signature": ""}, {"type": "text", "text": "Well."}]
    async with ModelServer() as server, models() as catalog:
        native = Native("anthropic", server.url, OPUS, freeze(data))
        server.script(reply(WIRE, Say("ok")))
        model = await catalog.open(ref_of(WIRE, server, OPUS))
        await collect(model, asked("q", Message(Role.ASSISTANT, (Text("Well."),), native), user("go on")))
        assert sent(server)["messages"][1]["content"] == [{"type": "text", "text": "Well."}]


async def test_tool_results_come_first_with_errors_marked():
    """Hazards H88 (order) and H89: an error is given to the model, which may try otherwise."""
    said = Message(Role.ASSISTANT, (ToolCall("a", "echo__say"), ToolCall("b", "echo__say")))
    results = user("and now?", ToolResult("b", (Text("boom"),), Outcome.ERROR), ToolResult("a", (Text("1"),)))
    async with ModelServer() as server, models() as catalog:
        server.script(reply(WIRE, Say("ok")))
        await collect(await catalog.open(ref_of(WIRE, server)), asked("q", said, results, tools=(ECHO,)))
        content = sent(server)["messages"][2]["content"]
    assert [part["type"] for part in content] == ["tool_result", "tool_result", "text"]
    assert [part.get("tool_use_id") for part in content] == ["a", "b", None]
    assert "is_error" not in content[0]
    assert content[1]["is_error"] is True
    assert content[1]["content"] == [{"type": "text", "text": "boom"}]


async def test_a_stream_without_its_end_is_a_cut_and_not_an_answer():
    """Public bug agent-afk#635."""
    events = anthropic_events(Say("Half an answer"))[:-2]
    async with ModelServer() as server, models() as catalog:
        server.script(sse(events))
        seen: list[ModelEvent] = []

        async def read() -> None:
            async for event in (await catalog.open(ref_of(WIRE, server))).stream(asked()):
                seen.append(event)

        with pytest.raises(ModelFault) as caught:
            await read()
    assert caught.value.code == "stream_truncated"
    assert caught.value.visible
    assert not caught.value.retryable
    assert "".join(e.text for e in seen if isinstance(e, TextDelta)) == "Half an answer"


async def test_a_connection_that_is_reset_in_the_middle_is_a_cut():
    async with ModelServer() as server, models() as catalog:
        server.script(sse(anthropic_events(Say("Half an answer"))[:5], reset=True))
        with pytest.raises(ModelFault) as caught:
            await collect(await catalog.open(ref_of(WIRE, server)), asked())
    assert caught.value.code == "stream_truncated"


async def test_overload_in_the_middle_of_a_stream_is_known_by_its_type():
    """Hazard J106: it comes with status 200 and no retry logic sees it."""
    events = [*anthropic_events(Say("Some text"))[:6]]
    error = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    async with ModelServer() as server, models() as catalog:
        server.script(sse([*events, error]))
        with pytest.raises(ModelFault) as caught:
            await collect(await catalog.open(ref_of(WIRE, server)), asked())
    assert caught.value.code == "overloaded"
    assert caught.value.visible


async def test_running_out_of_tokens_voids_the_last_call_alone():
    """Public bug agents#280: arguments cut at the limit may still parse, and must never run."""
    calls = (("a", ECHO.wire_name, {"text": "whole"}), ("b", ECHO.wire_name, {"text": "cut"}))
    async with ModelServer() as server, models() as catalog:
        server.script(reply(WIRE, Say(calls=calls, stop="max_tokens")))
        done = end_of(await collect(await catalog.open(ref_of(WIRE, server)), asked(tools=(ECHO,))))
    assert done.stop is StopReason.LENGTH
    first, second = done.message.calls
    assert dict(first.arguments) == {"text": "whole"}
    assert first.problem is None
    assert second.problem
    assert not second.arguments


async def test_a_refusal_runs_no_tool_and_gives_the_vendors_words():
    events = anthropic_events(Say("I was", calls=(("a", ECHO.wire_name, {"text": "x"}),), stop="refusal"))
    details = {"type": "refusal", "category": "cyber", "explanation": "This looks like an attack."}
    events[-2]["delta"]["stop_details"] = details
    async with ModelServer() as server, models() as catalog:
        server.script(sse(events))
        done = end_of(await collect(await catalog.open(ref_of(WIRE, server)), asked(tools=(ECHO,))))
    assert done.stop is StopReason.REFUSAL
    assert done.detail == "This looks like an attack."
    assert not done.message.calls


@pytest.mark.parametrize(
    ("word", "stop"),
    [("pause_turn", StopReason.PAUSE), ("model_context_window_exceeded", StopReason.CONTEXT),
     ("stop_sequence", StopReason.STOP_SEQUENCE), ("a_new_reason", StopReason.END)],
)  # fmt: skip
async def test_every_stop_reason_has_a_meaning(word, stop):
    async with ModelServer() as server, models() as catalog:
        server.script(reply(WIRE, Say("Hm.", stop=word)))
        assert end_of(await collect(await catalog.open(ref_of(WIRE, server)), asked())).stop is stop


async def test_a_web_page_instead_of_a_stream_is_named():
    async with ModelServer() as server, models() as catalog:
        server.script(page())
        with pytest.raises(ModelFault) as caught:
            await collect(await catalog.open(ref_of(WIRE, server)), asked())
    assert caught.value.code == "protocol_error"
    assert caught.value.params["reason"] == "not_an_api"


async def test_a_whole_json_message_is_read_as_an_answer():
    whole = {
        "id": "m", "type": "message", "model": "m-1", "stop_reason": "tool_use", "usage": {"input_tokens": 1,
        "output_tokens": 2}, "content": [{"type": "text", "text": "All at once."},
        {"type": "tool_use", "id": "a", "name": ECHO.wire_name, "input": {"text": "x"}}],
    }  # fmt: skip
    async with ModelServer() as server, models() as catalog:
        server.script(answer(whole))
        events = await collect(await catalog.open(ref_of("anthropic-compat", server)), asked(tools=(ECHO,)))
    assert "".join(e.text for e in events if isinstance(e, TextDelta)) == "All at once."
    assert end_of(events).message.calls[0].arguments == {"text": "x"}


async def test_bound_thinking_is_dropped_by_the_vendor_and_once_more_by_us():
    """Public bug opencode#48637."""
    data = [{"type": "thinking", "thinking": "x", "signature": "s"}, {"type": "text", "text": "Well."}]
    async with ModelServer() as server, models() as catalog:
        said = Message(Role.ASSISTANT, (Text("Well."),), Native("anthropic", server.url, OPUS, freeze(data)))
        server.script(refusal(BOUND), reply(WIRE, Say("ok")), reply(WIRE, Say("ok")))
        model = await catalog.open(ref_of(WIRE, server, OPUS))
        events = await collect(model, asked("q", said, user("go on")))
        assert [e.code for e in events if isinstance(e, ModelNotice)] == ["thinking_dropped"]
        assert sent(server, 0)["messages"][1]["content"] == data
        assert sent(server, 1)["messages"][1]["content"] == data[1:]
        await collect(model, asked("q", said, user("go on")))
        assert sent(server, 2)["messages"][1]["content"] == data[1:]


async def test_the_binding_field_is_given_up_where_it_is_not_known():
    async with ModelServer() as server, models() as catalog:
        server.script(
            refusal("thinking.adaptive.block_binding: Extra inputs are not permitted"), reply(WIRE, Say("ok")),
            reply(WIRE, Say("ok")),
        )  # fmt: skip
        model = await catalog.open(ref_of(WIRE, server, OPUS))
        await collect(model, asked())
        await collect(model, asked())
        assert len(server.posts) == 3
        assert "block_binding" not in sent(server)["thinking"]
        assert "anthropic-beta" not in server.posts[-1].headers


async def test_a_report_of_dropped_thinking_is_told_once():
    events = anthropic_events(Say("ok"))
    events[0]["message"]["input_transformations"] = [{"type": "thinking_dropped", "path": "messages.1.content.0"}]
    async with ModelServer() as server, models() as catalog:
        server.script(sse(events), sse(events))
        model = await catalog.open(ref_of(WIRE, server, OPUS))
        first, second = await collect(model, asked()), await collect(model, asked())
    assert [e.code for e in first if isinstance(e, ModelNotice)] == ["thinking_dropped"]
    assert not [e for e in second if isinstance(e, ModelNotice)]


async def test_one_bad_tool_is_left_out_and_the_chat_goes_on():
    """Hazard G73: one schema made every message a 400."""
    bad = ToolSpec("notion", "search", "Finds.", freeze({"type": "object"}))
    async with ModelServer() as server, models() as catalog:
        server.script(
            refusal("tools.1.custom.input_schema: JSON schema is invalid"),
            reply(WIRE, Say("ok")),
            reply(WIRE, Say("ok")),
        )
        model = await catalog.open(ref_of(WIRE, server))
        events = await collect(model, asked(tools=(ECHO, bad)))
        await collect(model, asked(tools=(ECHO, bad)))
        assert [t["name"] for t in sent(server, 0)["tools"]] == [ECHO.wire_name, bad.wire_name]
        assert [t["name"] for t in sent(server, 1)["tools"]] == [ECHO.wire_name]
        assert [t["name"] for t in sent(server, 2)["tools"]] == [ECHO.wire_name]
        assert len(server.posts) == 3
    said = next(e for e in events if isinstance(e, ModelNotice))
    assert said.code == "tool_quarantined"
    assert (said.params["server"], said.params["tool"]) == ("notion", "search")


async def test_property_names_come_back_as_the_tool_knows_them():
    """Public bug composio#3500: `$top` is refused on the wire and needed by the tool."""
    spec = ToolSpec(
        "odata", "list", "",
        freeze({"type": "object", "properties": {"$top": {"type": "integer"}}, "required": ["$top"]}),
    )  # fmt: skip
    async with ModelServer() as server, models() as catalog:
        server.script(reply(WIRE, Say(calls=(("a", spec.wire_name, {"_top": 3}),))), reply(WIRE, Say("ok")))
        model = await catalog.open(ref_of(WIRE, server))
        said = end_of(await collect(model, asked(tools=(spec,)))).message
        schema = sent(server)["tools"][0]["input_schema"]
        elsewhere = Message(Role.ASSISTANT, said.blocks)
        await collect(model, asked("q", elsewhere, user(ToolResult("a", (Text("r"),))), tools=(spec,)))
        rebuilt = sent(server)["messages"][1]["content"][0]
    assert list(schema["properties"]) == ["_top"]
    assert schema["required"] == ["_top"]
    assert dict(said.calls[0].arguments) == {"$top": 3}
    assert rebuilt["input"] == {"_top": 3}


async def test_arguments_that_are_not_json_are_a_problem_and_go_back_as_nothing():
    events = anthropic_events(Say(calls=(("a", ECHO.wire_name, {"text": "x"}),)))
    for event in events:
        if event.get("delta", {}).get("type") == "input_json_delta":
            event["delta"]["partial_json"] = "{oops "
    async with ModelServer() as server, models() as catalog:
        server.script(sse(events))
        done = end_of(await collect(await catalog.open(ref_of(WIRE, server)), asked(tools=(ECHO,))))
    call = done.message.calls[0]
    assert call.problem
    assert "oops" in call.problem
    assert done.message.native is not None
    assert done.message.native.data[0]["input"] == {}  # type: ignore[index]


async def test_the_token_limit_is_lowered_once_when_it_alone_overflows():
    text = "input length and `max_tokens` exceed context limit: 190000 + 64000 > 200000, decrease input length"
    async with ModelServer() as server, models() as catalog:
        server.script(refusal(text), reply(WIRE, Say("ok")))
        await collect(await catalog.open(ref_of(WIRE, server, OPUS)), asked())
        assert sent(server)["max_tokens"] == 10_000


async def test_a_models_own_token_limit_is_learned():
    text = "max_tokens: 16000 > 8192, which is the maximum allowed number of output tokens"
    async with ModelServer() as server, models() as catalog:
        server.script(refusal(text), reply(WIRE, Say("ok")), reply(WIRE, Say("ok")))
        model = await catalog.open(ref_of("anthropic-compat", server, "small"))
        await collect(model, asked())
        await collect(model, asked())
        assert [sent(server, n)["max_tokens"] for n in range(3)] == [16_000, 8192, 8192]


async def test_history_with_calls_but_no_tools_still_names_them():
    said = Message(Role.ASSISTANT, (ToolCall("a", "echo__say"),))
    async with ModelServer() as server, models() as catalog:
        server.script(reply(WIRE, Say("A summary.")))
        request = asked("q", said, user(ToolResult("a", (Text("r"),))), purpose=Purpose.SUMMARY)
        await collect(await catalog.open(ref_of(WIRE, server)), request)
        body = sent(server)
    assert [tool["name"] for tool in body["tools"]] == ["echo__say"]
    assert body["tool_choice"] == {"type": "none"}


@pytest.mark.parametrize(
    ("model", "choice"), [("claude-opus-5-5", None), ("claude-haiku-5-5", {"type": "any"}), ("m", {"type": "any"})]
)
async def test_forced_tools_become_an_instruction_where_they_are_refused(model, choice):
    async with ModelServer() as server, models() as catalog:
        server.script(reply(WIRE, Say("ok")))
        await collect(
            await catalog.open(ref_of(WIRE, server, model)),
            asked(tools=(ECHO,), tool_choice="required", stop=("", "x")),
        )
        body = sent(server)
    assert body.get("tool_choice") == choice
    assert body["stop_sequences"] == ["x"]
    assert ("calling one of the tools" in json.dumps(body["messages"])) is (choice is None)
