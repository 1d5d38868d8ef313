"""The Chat Completions adapter against servers that are each compatible in their own way."""

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
from desktop_host.core.models import ModelNotice, TextDelta, ThinkingDelta
from desktop_host.core.values import freeze
from tests.contract.chat_model_contract import ECHO, asked, collect, end_of
from tests.fakes.model_server import ModelServer, Reply, answer, page, sse
from tests.fakes.remote import models, ref_of, sent
from tests.fakes.wires import Say, chat_events, chunk, reply

WIRE = "compat"
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


def refusal(message: str, status: int = 400, **more: object) -> Reply:
    return answer({"error": {"message": message, "type": "invalid_request_error", **more}}, status)


async def test_request_is_plain_and_complete():
    async with ModelServer() as server, models() as catalog:
        server.script(reply(WIRE, Say("Hi.")))
        model = await catalog.open(ref_of(WIRE, server, "qwen3"))
        await collect(
            model,
            asked(
                "hi",
                system="Be brief.",
                tools=(ECHO,),
                max_tokens=100,
                temperature=0.1,
                stop=("a", " ", "b", "c", "d", "e"),
            ),
        )
        body, seen = sent(server), server.posts[0]
    assert seen.path == "/v1/chat/completions"
    assert "authorization" not in seen.headers
    assert body["messages"] == [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "hi"}]
    assert body["stream_options"] == {"include_usage": True}
    assert body["max_tokens"] == 100
    assert body["temperature"] == 0.1
    assert body["stop"] == ["a", "b", "c", "d"]
    assert body["tools"] == [
        {
            "type": "function",
            "function": {
                "name": "echo__say",
                "description": "Says it again.",
                "parameters": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
            },
        }
    ]
    assert "strict" not in json.dumps(body)
    assert "developer" not in json.dumps(body)


async def test_usage_comes_from_the_last_chunk_without_choices():
    async with ModelServer() as server, models() as catalog:
        server.script(reply(WIRE, Say("Hi.")))
        usage = end_of(await collect(await catalog.open(ref_of(WIRE, server)), asked())).usage
    assert (usage.input, usage.output, usage.cache_read, usage.cache_write, usage.reasoning) == (10, 7, 3, 2, 4)


async def test_reasoning_goes_back_with_calls_and_stays_away_without():
    """Public bug pi#3636: DeepSeek refuses a tool turn without its reasoning_content."""
    async with ModelServer() as server, models() as catalog:
        server.script(
            reply(WIRE, Say(thinking="I need it.", calls=(("c1", ECHO.wire_name, {"text": "x"}),))),
            reply(WIRE, Say("It is x.", thinking="Easy.")),
            reply(WIRE, Say("Bye.")),
        )
        model = await catalog.open(ref_of(WIRE, server, "deepseek-v4"))
        first = end_of(await collect(model, asked(tools=(ECHO,)))).message
        results = user(ToolResult("c1", (Text("x"),)))
        second = end_of(await collect(model, asked("hello", first, results, tools=(ECHO,)))).message
        await collect(model, asked("hello", first, results, second, user("bye"), tools=(ECHO,)))
        messages = sent(server)["messages"]
    assert messages[1]["reasoning_content"] == "I need it."
    assert messages[2] == {"role": "tool", "tool_call_id": "c1", "content": "x"}
    assert messages[3] == {"role": "assistant", "content": "It is x."}


async def test_a_signature_on_a_call_comes_back_with_it():
    """Public bug 5ire#405: Gemini refuses calls without the thought_signature that it sent."""
    call = {
        "id": "g1",
        "type": "function",
        "function": {"name": ECHO.wire_name, "arguments": '{"text":"x"}'},
        "extra_content": {"google": {"thought_signature": "sIg=="}},
    }
    async with ModelServer() as server, models() as catalog:
        server.script(sse([chunk({"tool_calls": [call]}), chunk({}, "stop")], done=True), reply(WIRE, Say("ok")))
        model = await catalog.open(ref_of(WIRE, server, "gemini-3-pro"))
        said = end_of(await collect(model, asked(tools=(ECHO,))))
        assert said.stop is StopReason.TOOLS
        await collect(model, asked("hello", said.message, user(ToolResult("g1", (Text("x"),))), tools=(ECHO,)))
        assert sent(server)["messages"][1]["tool_calls"] == [call]


async def test_reasoning_details_come_back_verbatim():
    details = [{"type": "reasoning.encrypted", "data": "zzz", "id": "r1", "format": "x"}]
    events = [
        b": OPENROUTER PROCESSING\n\n",
        chunk({"reasoning": "Hm.", "reasoning_details": details}),
        chunk({"content": "Yes."}),
        chunk({}, "stop"),
    ]
    async with ModelServer() as server, models() as catalog:
        server.script(sse(events, done=True), reply(WIRE, Say("ok")))
        model = await catalog.open(ref_of(WIRE, server))
        seen = await collect(model, asked())
        await collect(model, asked("hello", end_of(seen).message, user("more")))
        assert sent(server)["messages"][1] == {"role": "assistant", "content": "Yes.", "reasoning_details": details}
    assert [e.text for e in seen if isinstance(e, ThinkingDelta)] == ["Hm."]


async def test_images_of_results_follow_in_one_user_message_after_all_results():
    """Hazard J104: a tool message must answer the call right before it. Public bug 9router#2122: base64 as text."""
    said = Message(Role.ASSISTANT, (ToolCall("a", "echo__say"), ToolCall("b", "echo__say")))
    results = user(
        ToolResult("a", (Text("first"), Image(PNG, "image/png"))), ToolResult("b", (Text("no"),), Outcome.ERROR)
    )
    async with ModelServer() as server, models() as catalog:
        server.script(reply(WIRE, Say("ok")))
        await collect(await catalog.open(ref_of(WIRE, server)), asked("q", said, results, tools=(ECHO,)))
        tail = sent(server)["messages"][2:]
    assert [m["role"] for m in tail] == ["tool", "tool", "user"]
    assert tail[0]["content"].startswith("first\n[1 image(s)")
    assert tail[1]["content"] == "Error: no"
    assert tail[2]["content"] == [{"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}}]
    assert PNG not in tail[0]["content"]


async def test_images_are_described_once_the_model_refuses_them():
    async with ModelServer() as server, models() as catalog:
        server.script(
            refusal("this model does not support image input"), reply(WIRE, Say("ok")), reply(WIRE, Say("ok"))
        )
        model = await catalog.open(ref_of(WIRE, server))
        request = replace(asked(), messages=(user("look", Image(PNG, "image/png")),))
        seen = await collect(model, request)
        await collect(model, request)
        assert len(server.posts) == 3
        assert PNG not in server.posts[1].raw.decode()
    assert [e.code for e in seen if isinstance(e, ModelNotice)] == ["images_dropped"]


async def test_a_stream_that_just_ends_is_a_cut():
    async with ModelServer() as server, models() as catalog:
        server.script(sse(chat_events(Say("Half an answer"))[:-2]))
        with pytest.raises(ModelFault) as caught:
            await collect(await catalog.open(ref_of(WIRE, server)), asked())
    assert caught.value.code == "stream_truncated"
    assert caught.value.visible


async def test_done_without_a_finish_reason_is_an_end():
    async with ModelServer() as server, models() as catalog:
        server.script(sse([chunk({"content": "Hi."})], done=True))
        assert end_of(await collect(await catalog.open(ref_of(WIRE, server)), asked())).stop is StopReason.END


@pytest.mark.parametrize("finish", ["length", "tool_calls"])
async def test_cut_arguments_never_run_even_if_the_server_says_they_are_whole(finish):
    """Public bug vllm#58228: finish_reason tool_calls although the limit was reached."""
    async with ModelServer() as server, models() as catalog:
        server.script(reply(WIRE, Say(calls=(("c", ECHO.wire_name, {"text": "x"}),), stop=finish)))
        request = asked(tools=(ECHO,), max_tokens=7)
        done = end_of(await collect(await catalog.open(ref_of(WIRE, server)), request))
    assert done.stop is StopReason.LENGTH
    assert done.message.calls[0].problem
    assert not done.message.calls[0].arguments


async def test_a_filtered_answer_is_a_refusal():
    async with ModelServer() as server, models() as catalog:
        server.script(reply(WIRE, Say("I", calls=(("c", ECHO.wire_name, {}),), stop="content_filter")))
        done = end_of(await collect(await catalog.open(ref_of(WIRE, server)), asked(tools=(ECHO,))))
    assert done.stop is StopReason.REFUSAL
    assert not done.message.calls


@pytest.mark.parametrize(
    ("event", "code"),
    [
        ({"error": {"code": 502, "message": "Provider returned error: overloaded"}}, "overloaded"),
        ({"error": "model requires more system memory"}, "protocol_error"),
        ([{"error": {"code": 429, "message": "Quota", "status": "RESOURCE_EXHAUSTED"}}], "rate_limited"),
        ({"object": "error", "message": "maximum context length is 4096", "code": 400}, "context_overflow"),
    ],
    ids=["openrouter", "ollama", "gemini", "vllm"],
)
async def test_an_error_within_the_stream_is_known_in_every_servers_form(event, code):
    async with ModelServer() as server, models() as catalog:
        server.script(sse([chunk({"role": "assistant"}), event]))
        with pytest.raises(ModelFault) as caught:
            await catalog.check(ref_of(WIRE, server))
    assert caught.value.code == code


async def test_a_line_that_is_no_json_is_named():
    async with ModelServer() as server, models() as catalog:
        server.script(sse(["{oops"]))
        with pytest.raises(ModelFault) as caught:
            await catalog.check(ref_of(WIRE, server))
    assert (caught.value.code, caught.value.params["reason"]) == ("protocol_error", "not_json")


@pytest.mark.parametrize(
    ("given", "code"),
    [
        (page(), "protocol_error"),
        (Reply(content_type=None), "protocol_error"),
        (Reply(), "stream_truncated"),
        (answer({"hello": "world"}), "protocol_error"),
        (answer([1, 2]), "protocol_error"),
    ],
    ids=["html", "nothing", "empty stream", "other json", "list"],
)
async def test_what_is_no_model_is_named(given, code):
    async with ModelServer() as server, models() as catalog:
        server.script(given)
        with pytest.raises(ModelFault) as caught:
            await catalog.check(ref_of(WIRE, server))
    assert caught.value.code == code


async def test_a_server_that_ignores_streaming_still_answers():
    whole = {
        "id": "1",
        "model": "m",
        "choices": [
            {
                "index": 0,
                "finish_reason": "tool_calls",
                "message": {
                    "role": "assistant",
                    "content": "All at once.",
                    "tool_calls": [
                        {"id": "c", "type": "function", "function": {"name": ECHO.wire_name, "arguments": "{}"}}
                    ],
                },
            }
        ],
        "usage": {"prompt_tokens": 3, "completion_tokens": 4},
    }
    async with ModelServer() as server, models() as catalog:
        server.script(answer(whole))
        seen = await collect(await catalog.open(ref_of(WIRE, server)), asked(tools=(ECHO,)))
    assert end_of(seen).message.text == "All at once."
    assert end_of(seen).message.calls[0].id == "c"
    assert "".join(e.text for e in seen if isinstance(e, TextDelta)) == "All at once."
    assert end_of(seen).usage.output == 4


@pytest.mark.parametrize(
    ("message", "gone", "fields"),
    [
        ("Unrecognized request argument supplied: stream_options", "stream_options", {}),
        ("stream_options: Extra inputs are not permitted", "stream_options", {}),
        ("Unsupported value: 'temperature' does not support 0.5 with this model.", "temperature", {"temperature": 0.5}),
        ("reasoning_effort is not supported by this model", "reasoning_effort", {"effort": "low"}),
    ],
)
async def test_what_a_server_does_not_take_is_left_out_and_remembered(message, gone, fields):
    async with ModelServer() as server, models() as catalog:
        server.script(refusal(message), reply(WIRE, Say("a")), reply(WIRE, Say("b")))
        model = await catalog.open(ref_of(WIRE, server))
        await collect(model, asked(**fields))
        await collect(model, asked(**fields))
        assert [gone in sent(server, n) for n in range(3)] == [True, False, False]


async def test_the_token_limit_changes_its_name_where_it_must():
    text = "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
    async with ModelServer() as server, models() as catalog:
        server.script(refusal(text, param="max_tokens"), reply(WIRE, Say("a")))
        await collect(await catalog.open(ref_of(WIRE, server)), asked(max_tokens=50))
        body = sent(server)
    assert body["max_completion_tokens"] == 50
    assert "max_tokens" not in body


async def test_a_schema_that_no_tool_can_be_blamed_for_is_reduced_for_all():
    """Hazard G79 and G80: a server that builds a grammar, or Gemini."""
    spec = replace(
        ECHO,
        input_schema=freeze({"type": "object", "properties": {"a": {"type": ["string", "null"], "pattern": "^x$"}}}),
    )
    async with ModelServer() as server, models() as catalog:
        server.script(refusal("failed to parse grammar"), reply(WIRE, Say("a")))
        await collect(await catalog.open(ref_of(WIRE, server)), asked(tools=(spec,)))
        function = sent(server)["tools"][0]["function"]
    assert function["parameters"]["properties"]["a"] == {"type": "string", "nullable": True}
    assert "pattern" in function["description"]


async def test_think_tags_become_thinking_and_not_text():
    """Hazard H91: tags in the text broke the reading of calls."""
    async with ModelServer() as server, models() as catalog:
        server.script(reply(WIRE, Say("<think>\nLet me see.</think>\n\nYes.", calls=(("c", ECHO.wire_name, {}),))))
        seen = await collect(await catalog.open(ref_of(WIRE, server)), asked(tools=(ECHO,)))
    assert "".join(e.text for e in seen if isinstance(e, ThinkingDelta)).strip() == "Let me see."
    assert "".join(e.text for e in seen if isinstance(e, TextDelta)) == "Yes."
    assert end_of(seen).message.calls


@pytest.mark.parametrize(
    "text",
    [
        '<tool_call>\n{"name": "echo__say", "arguments": {"text": "x"}}\n</tool_call>',
        '{"name": "echo__say", "arguments": {"text": "x"}}',
        '```json\n{"name": "echo__say", "parameters": {"text": "x"}}\n```',
    ],
    ids=["tags", "bare", "fenced"],
)
async def test_a_call_printed_as_text_is_a_call(text):
    """Hazard H91: the model prints a well-formed call and nothing happens."""
    async with ModelServer() as server, models() as catalog:
        server.script(reply(WIRE, Say(text)), reply(WIRE, Say("ok")))
        model = await catalog.open(ref_of(WIRE, server))
        seen = await collect(model, asked(tools=(ECHO,)))
        done = end_of(seen)
        call = done.message.calls[0]
        await collect(model, asked("hello", done.message, user(ToolResult(call.id, (Text("x"),))), tools=(ECHO,)))
        assert sent(server)["messages"][1]["tool_calls"][0]["id"] == call.id
    assert dict(call.arguments) == {"text": "x"}
    assert done.stop is StopReason.TOOLS
    assert not [e for e in seen if isinstance(e, TextDelta)]


async def test_special_tokens_within_arguments_are_read_as_quotes():
    """Hazard H85."""
    piece = {"index": 0, "id": "c", "function": {"name": ECHO.wire_name, "arguments": '{"text": <|"|>x<|"|>}'}}
    async with ModelServer() as server, models() as catalog:
        server.script(sse([chunk({"tool_calls": [piece]}), chunk({}, "tool_calls")], done=True))
        done = end_of(await collect(await catalog.open(ref_of(WIRE, server)), asked(tools=(ECHO,))))
    assert dict(done.message.calls[0].arguments) == {"text": "x"}


async def test_reasoning_that_was_asked_back_is_sent_once_more():
    async with ModelServer() as server, models() as catalog:
        native = freeze({"role": "assistant", "content": "a", "reasoning_content": "r"})
        said = Message(Role.ASSISTANT, (Text("a"),), Native("chat", f"{server.url}/v1", "m-1", native))
        server.script(
            refusal("The `reasoning_content` in the thinking mode must be passed back to the API."),
            reply(WIRE, Say("ok")),
        )
        await collect(await catalog.open(ref_of(WIRE, server)), asked("q", said, user("go on")))
        assert "reasoning_content" not in sent(server, 0)["messages"][1]
        assert sent(server, 1)["messages"][1]["reasoning_content"] == "r"


async def test_long_descriptions_are_cut_before_their_notes():
    spec = replace(
        ECHO,
        description="word " * 500,
        input_schema=freeze({"type": "object", "oneOf": [{"required": ["a"]}, {"required": ["b"]}]}),
    )
    async with ModelServer() as server, models() as catalog:
        server.script(reply(WIRE, Say("ok")))
        await collect(await catalog.open(ref_of(WIRE, server)), asked(tools=(spec,)))
        said = sent(server)["tools"][0]["function"]["description"]
    assert len(said) <= 1024
    assert said.endswith("{a} | {b}")
