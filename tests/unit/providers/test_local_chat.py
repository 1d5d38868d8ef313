from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

from desktop_host.core.errors import ModelFault
from desktop_host.core.messages import Message, Outcome, Role, StopReason, Text, ToolCall, ToolResult, assistant, user
from desktop_host.core.models import (
    Completed,
    ModelEvent,
    ModelNotice,
    ModelRequest,
    Purpose,
    TextDelta,
    ToolCallDelta,
    Usage,
)
from desktop_host.core.tools import ToolSpec
from desktop_host.core.values import freeze
from desktop_host.providers.local_chat import LocalChatModel
from desktop_host.providers.weights import ModelCard
from tests.fakes.llama_server import LlamaServer, llama_server

CARD = ModelCard(name="tiny", title="Tiny", file="tiny.gguf", bytes=1, sha256="")
WEATHER = ToolSpec(
    "daily", "get_weather", "Get the weather of a city.",
    freeze({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}),
)  # fmt: skip
TIME = ToolSpec("daily", "get_time", "Get the time.", freeze({"type": "object", "properties": {}}))
TOOLS = (TIME, WEATHER)


@pytest.fixture
async def llama() -> AsyncIterator[LlamaServer]:
    async with llama_server() as server:
        yield server


async def play(llama: LlamaServer, request: ModelRequest) -> list[ModelEvent]:
    return [event async for event in LocalChatModel(CARD, llama).stream(request)]


def asked(*messages: Message, **more: Any) -> ModelRequest:
    return ModelRequest(messages or (user("Weather in Paris?"),), tools=more.pop("tools", TOOLS), **more)


def answered(result: str, outcome: Outcome = Outcome.OK, calls: int = 1) -> tuple[Message, ...]:
    steps: list[Message] = [user("Weather in Paris?")]
    for n in range(calls):
        steps.append(assistant(ToolCall(f"c{n}", WEATHER.wire_name, freeze({"city": f"Paris {n}"}))))
        steps.append(Message(Role.USER, (ToolResult(f"c{n}", (Text(result),), outcome),)))
    return tuple(steps)


def done(events: list[ModelEvent]) -> Completed:
    assert [e for e in events if isinstance(e, Completed)] == events[-1:]
    last = events[-1]
    assert isinstance(last, Completed)
    return last


def shown(events: list[ModelEvent]) -> str:
    return "".join(e.text for e in events if isinstance(e, TextDelta))


def branches(body: dict[str, Any]) -> list[str]:
    schema = body["response_format"]["json_schema"]["schema"]
    return [branch["properties"]["tool"]["const"] for branch in schema["oneOf"]]


async def test_a_chosen_tool_becomes_a_call_with_its_wire_name(llama: LlamaServer) -> None:
    llama.act("get_weather", city="北京")
    events = await play(llama, asked())
    completed = done(events)
    assert [(c.wire_name, c.arguments) for c in completed.message.calls] == [(WEATHER.wire_name, {"city": "北京"})]
    assert completed.stop is StopReason.TOOLS
    assert completed.usage == Usage(input=7, output=18, cache_read=30, cost_usd=0.0)
    deltas = [e for e in events if isinstance(e, ToolCallDelta)]
    assert {d.call_id for d in deltas} == {completed.message.calls[0].id}
    assert shown(events) == ""


async def test_the_request_holds_the_rules_the_tools_and_a_schema_with_the_name_first(llama: LlamaServer) -> None:
    llama.act("reply", text="Hi")
    await play(llama, asked(system="Be brief."))
    body = llama.requests[0]
    system = body["messages"][0]["content"]
    assert system.startswith("Be brief.")
    assert "- get_weather(city: string) - Get the weather of a city." in system
    assert branches(body) == ["get_time", "get_weather", "reply"]
    first = body["response_format"]["json_schema"]["schema"]["oneOf"][1]
    assert list(first["properties"]) == ["tool", "arguments"]
    assert "tools" not in body
    assert llama.keys == ["Bearer sesame"]


async def test_a_reply_streams_word_by_word_while_its_json_is_written(llama: LlamaServer) -> None:
    llama.reply('{"tool": "re', 'ply", "arguments"', ":", ' {"text": "', "Hello ", "wor", "ld\\", "n\\u00e", '9"}}')
    events = await play(llama, asked())
    assert [e.text for e in events if isinstance(e, TextDelta)] == ["Hello ", "wor", "ld", "\n", "é"]
    assert done(events).message.text == "Hello world\né"


async def test_after_three_calls_in_a_turn_only_a_reply_is_allowed(llama: LlamaServer) -> None:
    llama.act("reply", text="It is wet.")
    await play(llama, asked(*answered("rain", calls=3)))
    assert branches(llama.requests[0]) == ["reply"]


async def test_a_call_that_only_repeats_itself_is_asked_again_as_a_reply(llama: LlamaServer) -> None:
    llama.act("get_weather", city="Paris 0")
    llama.act("reply", text="It rains.")
    events = await play(llama, asked(*answered("rain")))
    assert done(events).message.text == shown(events) == "It rains."
    assert done(events).usage.cache_read == 60
    assert branches(llama.requests[1]) == ["reply"]
    assert llama.requests[0]["messages"] == llama.requests[1]["messages"]


@pytest.mark.parametrize(
    "echo", ["", "Weather in Paris?", '{"tool": "get_weather"}', '```json\n{"a": 1}\n```', "[1, 2]"]
)
async def test_an_answer_that_is_data_or_nothing_is_replaced_by_the_result(llama: LlamaServer, echo: str) -> None:
    llama.act("reply", text=echo)
    events = await play(llama, asked(*answered("18 °C, rain")))
    assert done(events).message.text == shown(events) == "get_weather: 18 °C, rain"


async def test_an_answer_that_begins_with_a_bracket_but_is_prose_is_kept(llama: LlamaServer) -> None:
    llama.act("reply", text="[sic] it rains")
    events = await play(llama, asked(*answered("rain")))
    assert done(events).message.text == shown(events) == "[sic] it rains"


@pytest.mark.parametrize("purpose", [Purpose.TITLE, Purpose.SUMMARY, Purpose.SAMPLING])
async def test_titles_summaries_and_sampling_are_plain_chat(llama: LlamaServer, purpose: Purpose) -> None:
    llama.reply("A fine", " title")
    events = await play(llama, asked(purpose=purpose, stop=("\n",), max_tokens=12, temperature=0.5))
    body = llama.requests[0]
    assert "response_format" not in body
    assert (body["stop"], body["max_tokens"], body["temperature"]) == (["\n"], 12, 0.5)
    assert done(events).message.text == shown(events) == "A fine title"


async def test_a_chat_without_tools_is_plain_chat(llama: LlamaServer) -> None:
    llama.reply("Hi")
    assert done(await play(llama, asked(tools=()))).message.text == "Hi"
    assert "response_format" not in llama.requests[0]


async def test_a_required_call_leaves_no_way_to_reply(llama: LlamaServer) -> None:
    llama.act("get_time")
    await play(llama, asked(tool_choice="required"))
    assert branches(llama.requests[0]) == ["get_time", "get_weather"]


async def test_no_calls_wanted_means_reply_only(llama: LlamaServer) -> None:
    llama.act("reply", text="ok")
    await play(llama, asked(tool_choice="none"))
    assert branches(llama.requests[0]) == ["reply"]


async def test_a_reply_cut_by_the_limit_keeps_its_text_and_says_so(llama: LlamaServer) -> None:
    llama.reply('{"tool": "reply", "arguments": {"text": "half a sen', finish="length")
    completed = done(await play(llama, asked()))
    assert (completed.message.text, completed.stop) == ("half a sen", StopReason.LENGTH)


async def test_a_call_cut_by_the_limit_is_marked_and_never_runs(llama: LlamaServer) -> None:
    llama.reply('{"tool": "get_weather", "arguments": {"city": "Par', finish="length")
    completed = done(await play(llama, asked()))
    assert completed.message.calls[0].problem
    assert completed.stop is StopReason.LENGTH


async def test_schemas_the_server_refuses_are_sent_again_in_a_simpler_form(llama: LlamaServer) -> None:
    """Hazard G73: one tool's schema must not make the whole chat unusable."""
    llama.reply(status=400, body='{"error": {"message": "JSON schema error at #: unrecognized type foo"}}')
    llama.act("reply", text="ok")
    nested = ToolSpec("daily", "plan", "Plan.", freeze({
        "type": "object", "properties": {"day": {"type": "object", "properties": {"x": {"type": "string"}}}},
    }))  # fmt: skip
    assert done(await play(llama, asked(tools=(*TOOLS, nested)))).message.text == "ok"
    plan = llama.requests[1]["response_format"]["json_schema"]["schema"]["oneOf"][2]
    assert plan["properties"]["arguments"]["properties"] == {"day": {}}


async def test_a_schema_refused_twice_is_a_named_fault(llama: LlamaServer) -> None:
    llama.reply(status=400, body="no")
    llama.reply(status=400, body="no")
    with pytest.raises(ModelFault) as caught:
        await play(llama, asked())
    assert caught.value.code == "bad_tool_schema"


async def test_a_message_beyond_the_context_is_a_context_overflow(llama: LlamaServer) -> None:
    llama.reply(status=400, body='{"error": {"type": "exceed_context_size_error"}}')
    with pytest.raises(ModelFault) as caught:
        await play(llama, asked())
    assert caught.value.code == "context_overflow"


async def test_an_answer_that_breaks_off_before_text_may_be_tried_again(llama: LlamaServer) -> None:
    llama.reply('{"tool": "re', cut=True)
    with pytest.raises(ModelFault) as caught:
        await play(llama, asked())
    assert (caught.value.code, caught.value.retryable, caught.value.visible) == ("stream_truncated", True, False)


async def test_an_answer_that_breaks_off_after_text_is_not_tried_again(llama: LlamaServer) -> None:
    llama.reply('{"tool": "reply", "arguments": {"text": "Hel', cut=True)
    with pytest.raises(ModelFault) as caught:
        await play(llama, asked())
    assert (caught.value.retryable, caught.value.visible) == (False, True)


async def test_an_answer_without_an_end_counts_as_cut(llama: LlamaServer) -> None:
    llama.reply('{"tool": "reply", "arguments": {"text": "Hello"}}', finish=None)
    with pytest.raises(ModelFault) as caught:
        await play(llama, asked())
    assert caught.value.code == "stream_truncated"


async def test_a_process_that_died_in_mid_answer_is_named_as_such(llama: LlamaServer) -> None:
    llama.dead = True
    llama.reply('{"tool": "re', cut=True)
    with pytest.raises(ModelFault) as caught:
        await play(llama, asked())
    assert (caught.value.code, caught.value.params["reason"]) == ("model_missing", "crashed")


async def test_cancelling_closes_the_connection(llama: LlamaServer) -> None:
    llama.reply('{"tool": "reply", "arguments": {"text": "Hello ', hang=True)
    first = asyncio.Event()

    async def read() -> None:
        async for _ in LocalChatModel(CARD, llama).stream(asked()):
            first.set()

    task = asyncio.create_task(read())
    await asyncio.wait_for(first.wait(), 5)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await asyncio.wait_for(llama.left.wait(), 5)


async def test_a_slow_machine_is_told_once(llama: LlamaServer) -> None:
    model = LocalChatModel(CARD, llama)
    notices = []
    for _ in range(2):
        llama.plan.clear()
        llama.reply(json.dumps({"tool": "reply", "arguments": {"text": "hi"}}), speed=2.5)
        notices += [e async for e in model.stream(asked()) if isinstance(e, ModelNotice)]
    assert [(n.code, n.params) for n in notices] == [("local_slow", {"tokens_per_s": 2.5})]
    assert model.tokens_per_s == 2.5


async def test_what_was_sent_before_stays_the_beginning_of_what_is_sent_next(llama: LlamaServer) -> None:
    talk: tuple[Message, ...] = (user("Weather in Paris?"),)
    for tool, arguments in (("get_weather", {"city": "Paris"}), ("reply", {"text": "It rains."})):
        llama.act(tool, **arguments)
        completed = done(await play(llama, asked(*talk, system="Be kind.")))
        talk = (*talk, completed.message)
        if completed.message.calls:
            talk = (*talk, Message(Role.USER, (ToolResult(completed.message.calls[0].id, (Text("rain"),)),)))
        else:
            talk = (*talk, user("And tomorrow?"))
    llama.act("reply", text="Sun.")
    await play(llama, asked(*talk, system="Be kind."))
    sent = [request["messages"] for request in llama.requests]
    assert sent[1][: len(sent[0])] == sent[0]
    assert sent[2][: len(sent[1])] == sent[1]
    assert sent[2][-2] == {"role": "assistant", "content": '{"tool": "reply", "arguments": {"text": "It rains."}}'}


SEARCH = ToolSpec(
    "docs", "search_docs", "Search the documents.",
    freeze({
        "type": "object", "required": ["query"],
        "properties": {"query": {"type": "string"}, "top_k": {"type": "integer"}, "category": {"type": "string"}},
    }),
)  # fmt: skip


async def look_up(llama: LlamaServer, said: str, invents: bool = True, tools: tuple[ToolSpec, ...] = (SEARCH,)) -> Any:
    model = LocalChatModel(replace(CARD, invents=invents), llama)
    return done([e async for e in model.stream(ModelRequest((user(said),), tools=tools))])


async def test_a_model_that_invents_must_look_a_question_up_first(llama: LlamaServer) -> None:
    for said, invents, tools in (
        ("What does the handbook say about trips?", True, (SEARCH,)),
        ("出差可以坐飞机吗？", True, (SEARCH,)),
        ("hello, who are you?", True, (SEARCH,)),
        ("Thanks!", True, (SEARCH,)),
        ("What does the handbook say?", False, (SEARCH,)),
        ("What is the weather in Paris?", True, TOOLS),
    ):
        llama.act("reply", text="ok")
        await look_up(llama, said, invents, tools)
    assert ["reply" in branches(body) for body in llama.requests] == [False, False, True, True, True, True]


async def test_a_question_that_was_looked_up_may_be_answered(llama: LlamaServer) -> None:
    llama.act("reply", text="28")
    call = ToolCall("c", SEARCH.wire_name, freeze({"query": "holiday"}))
    talk = (user("How many days?"), assistant(call), Message(Role.USER, (ToolResult("c", (Text("28 days"),)),)))
    model = LocalChatModel(replace(CARD, invents=True), llama)
    assert done([e async for e in model.stream(ModelRequest(talk, tools=(SEARCH,)))]).message.text == "28"
    assert "reply" in branches(llama.requests[0])


async def test_a_model_that_invents_fills_only_what_the_person_spoke_of(llama: LlamaServer) -> None:
    for said in ("Find rules on trips", "Find 3 rules on trips", "Find rules of the category travel"):
        llama.act("search_docs", query="trips")
        await look_up(llama, said)
    offered = [
        list(body["response_format"]["json_schema"]["schema"]["oneOf"][0]["properties"]["arguments"]["properties"])
        for body in llama.requests
    ]
    assert offered == [["query"], ["query", "top_k"], ["query", "category"]]


async def test_a_search_for_something_else_is_made_in_the_persons_own_words(llama: LlamaServer) -> None:
    cases = (
        ("客服电话是多少？", "搜索知识"),
        ("客服电话是多少？", "电话"),
        ("Who may approve trips?", "trip approval"),
        ("Who may approve?", "docs"),
    )
    queries = []
    for said, query in cases:
        llama.act("search_docs", query=query)
        queries.append((await look_up(llama, said)).message.calls[0].arguments["query"])
    assert queries == ["客服电话是多少？", "电话", "trip approval", "Who may approve?"]


async def test_an_answer_that_begins_like_the_question_is_shown_once_it_differs(llama: LlamaServer) -> None:
    llama.act("reply", text="Weather in Paris: rain")
    assert shown(await play(llama, asked(*answered("rain")))) == "Weather in Paris: rain"


async def test_a_search_cannot_go_on_for_ever(llama: LlamaServer) -> None:
    for invents in (True, False):
        llama.act("search_docs", query="trips")
        await look_up(llama, "Find trips", invents)
    limits = [
        body["response_format"]["json_schema"]["schema"]["oneOf"][0]["properties"]["arguments"]["properties"]["query"]
        for body in llama.requests
    ]
    assert limits == [{"type": "string", "maxLength": 80}, {"type": "string"}]
