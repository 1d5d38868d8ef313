from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from desktop_host.core.errors import ModelFault, UserFault
from desktop_host.core.messages import Message, Role, StopReason, Text, Thinking, ToolCall, ToolResult, user
from desktop_host.core.models import (
    Completed,
    ModelEvent,
    ModelRequest,
    Purpose,
    TextDelta,
    ThinkingDelta,
    Usage,
)
from desktop_host.core.tools import ToolSpec, wire_name
from desktop_host.providers.scripted import ScriptedModel


def script(folder: Path, data: Any) -> ScriptedModel:
    path = folder / "script.json"
    path.write_text(data if isinstance(data, str) else json.dumps(data), "utf-8")
    return ScriptedModel(path)


async def play(model: ScriptedModel, request: ModelRequest) -> list[ModelEvent]:
    return [event async for event in model.stream(request)]


def done(events: list[ModelEvent]) -> Completed:
    assert [e for e in events if isinstance(e, Completed)] == events[-1:]
    last = events[-1]
    assert isinstance(last, Completed)
    return last


def chat(step: int = 0, result: str | None = None, **more: Any) -> ModelRequest:
    messages: tuple[Message, ...] = (user("hi"),)
    if result is not None:
        messages = (*messages, Message(Role.USER, (ToolResult("c", (Text(result),)),)))
    return ModelRequest(messages, conversation=more.pop("conversation", "s1"), step_index=step, **more)


async def test_text_streams_one_word_a_delta_and_loses_nothing(tmp_path: Path) -> None:
    events = await play(script(tmp_path, [[{"text": "Hello  brave\nworld 世界 "}]]), chat())
    assert [e.text for e in events if isinstance(e, TextDelta)] == ["Hello  ", "brave\n", "world ", "世界 "]
    completed = done(events)
    assert completed.message.blocks == (Text("Hello  brave\nworld 世界 "),)
    assert (completed.stop, completed.model) == (StopReason.END, "script:script.json")


async def test_the_nth_request_gets_the_nth_reply_also_in_a_fresh_process(tmp_path: Path) -> None:
    data = [[{"text": "one"}], [{"text": "two"}]]
    assert done(await play(script(tmp_path, data), chat(1))).message.text == "two"
    assert done(await play(script(tmp_path, data), chat(0))).message.text == "one"


async def test_past_the_end_the_script_is_exhausted(tmp_path: Path) -> None:
    with pytest.raises(ModelFault) as caught:
        await play(script(tmp_path, [[{"text": "one"}]]), chat(1))
    assert (caught.value.code, caught.value.retryable, caught.value.params["request"]) == ("script_exhausted", False, 2)


async def test_thinking_comes_as_thinking(tmp_path: Path) -> None:
    events = await play(script(tmp_path, [[{"thinking": "a b"}, {"text": "c"}]]), chat())
    assert [e.text for e in events if isinstance(e, ThinkingDelta)] == ["a ", "b"]
    assert done(events).message.blocks == (Thinking("a b"), Text("c"))


async def test_several_calls_in_a_reply_are_one_message_with_unique_stable_ids(tmp_path: Path) -> None:
    data = [
        [{"text": "Look. "}, {"call": {"tool": "fs.read", "arguments": {"path": "a"}}}, {"call": {"tool": "fs.read"}}]
    ]
    first = done(await play(script(tmp_path, data), chat()))
    again = done(await play(script(tmp_path, data), chat()))
    other = done(await play(script(tmp_path, data), chat(conversation="s2")))
    assert first.stop is StopReason.TOOLS
    assert [(c.wire_name, c.arguments) for c in first.message.calls] == [("fs__read", {"path": "a"}), ("fs__read", {})]
    ids = [c.id for m in (first, other) for c in m.message.calls]
    assert len(set(ids)) == 4
    assert [c.id for c in again.message.calls] == ids[:2]


async def test_a_call_finds_the_wire_name_of_its_tool(tmp_path: Path) -> None:
    tool = ToolSpec("fs", "admin.tools/list files")
    data = [[{"call": {"tool": "fs.admin.tools/list files"}}]]
    known = done(await play(script(tmp_path, data), chat(tools=(tool,)))).message.calls[0]
    unknown = done(await play(script(tmp_path, data), chat())).message.calls[0]
    assert known.wire_name == unknown.wire_name == tool.wire_name == wire_name("fs", "admin.tools/list files")


async def test_the_last_result_is_put_into_text_and_arguments(tmp_path: Path) -> None:
    data = [[
        {"expect": {"last_result_contains": "42"}},
        {"text": "It is ${last_result}."},
        {"call": {"tool": "a.b", "arguments": {"x": ["${last_result}"], "n": 1}}},
    ]]  # fmt: skip
    message = done(await play(script(tmp_path, data), chat(result='42 "q"'))).message
    assert message.text == 'It is 42 "q".'
    assert message.calls[0].arguments == {"x": ('42 "q"',), "n": 1}


async def test_an_expectation_that_fails_names_what_came(tmp_path: Path) -> None:
    with pytest.raises(ModelFault) as caught:
        await play(script(tmp_path, [[{"expect": {"last_result_contains": "yes"}}]]), chat(result="no"))
    assert (caught.value.code, caught.value.params["wanted"], caught.value.params["got"]) == (
        "script_expectation", "yes", "no",
    )  # fmt: skip


@pytest.mark.parametrize(("code", "retryable"), [("overloaded", True), ("rate_limited", True), ("auth", False)])
async def test_an_error_step_raises_as_that_code_does(tmp_path: Path, code: str, retryable: bool) -> None:
    with pytest.raises(ModelFault) as caught:
        await play(script(tmp_path, [[{"error": {"code": code}}]]), chat())
    assert (caught.value.code, caught.value.retryable, caught.value.visible) == (code, retryable, False)


async def test_an_error_after_text_says_that_text_was_shown(tmp_path: Path) -> None:
    """Hazard J106."""
    seen: list[ModelEvent] = []

    async def read() -> None:
        async for event in script(tmp_path, [[{"text": "a"}, {"error": {"code": "overloaded"}}]]).stream(chat()):
            seen.append(event)

    with pytest.raises(ModelFault) as caught:
        await read()
    assert caught.value.visible
    assert seen == [TextDelta("a")]


async def test_usage_adds_up_and_an_unknown_price_stays_unknown(tmp_path: Path) -> None:
    data = [
        [{"usage": {"input": 5, "output": 2, "cost_usd": 0.5}}, {"usage": {"input": 1}}, {"text": "a"}],
        [{"usage": {"input": 5, "cost_usd": None}}],
    ]
    model = script(tmp_path, data)
    assert done(await play(model, chat(0))).usage == Usage(input=6, output=2, cost_usd=0.5)
    assert done(await play(model, chat(1))).usage == Usage(input=5, cost_usd=None)


async def test_a_delay_can_be_interrupted(tmp_path: Path) -> None:
    model = script(tmp_path, [[{"text": "a"}, {"delay_ms": 3_600_000}, {"text": "b"}]])
    started = asyncio.Event()

    async def read() -> None:
        async for _ in model.stream(chat()):
            started.set()

    task = asyncio.create_task(read())
    await asyncio.wait_for(started.wait(), 5)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(task, 5)


async def test_sampling_has_its_own_list_and_count_for_each_conversation(tmp_path: Path) -> None:
    data = {"sampling": [[{"text": "s1"}], [{"text": "s2"}]], "replies": [[{"text": "chat"}]]}
    model = script(tmp_path, data)

    async def text(**more: Any) -> str:
        return done(await play(model, chat(**more))).message.text

    assert [await text(purpose=Purpose.SAMPLING), await text(purpose=Purpose.SAMPLING)] == ["s1", "s2"]
    assert await text(purpose=Purpose.SAMPLING, conversation="other") == "s1"
    assert await text() == "chat"
    with pytest.raises(ModelFault, match="sampling has 2"):
        await text(purpose=Purpose.SAMPLING)


async def test_other_purposes_get_a_fixed_short_text_and_use_up_nothing(tmp_path: Path) -> None:
    model = script(tmp_path, [[{"text": "chat"}]])
    for purpose in (Purpose.TITLE, Purpose.SUMMARY, Purpose.SAMPLING):
        events = await play(model, chat(purpose=purpose))
        assert [e.text for e in events if isinstance(e, TextDelta)] == [done(events).message.text] == ["Scripted"]
    assert done(await play(model, chat())).message.text == "chat"


async def test_an_empty_reply_is_an_empty_message(tmp_path: Path) -> None:
    assert done(await play(script(tmp_path, [[]]), chat())).message.blocks == ()


async def test_a_missing_script_is_not_found(tmp_path: Path) -> None:
    with pytest.raises(UserFault) as caught:
        await ScriptedModel(tmp_path / "none.json").load()
    assert caught.value.code == "not_found"


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        ('[[{"text": "a"},]]', 1, 17),
        ('[\n  [{"text": "a"}],\n  [{"text": "{[\\""}, {"txet": "b"}]\n]', 3, 22),
        ('{"sampling": [[{"text": "a"}]],\n "replies": [[{"delay_ms": -1}]]}', 2, 15),
        ('[[{"call": {"tool": "nodot"}}]]', 1, 3),
        ('[[{"call": {"tool": "a.b", "arguments": []}}]]', 1, 3),
        ('[[{"error": {"code": "no_such_code"}}]]', 1, 3),
        ('[[{"usage": {"input": "5"}}]]', 1, 3),
        ('[[{"text": "a", "thinking": "b"}]]', 1, 3),
        ('{"reply": []}', 1, 1),
        ("3", 1, 1),
    ],
)  # fmt: skip
async def test_a_wrong_script_is_named_with_line_and_column(tmp_path: Path, text: str, line: int, column: int) -> None:
    model = script(tmp_path, text)
    with pytest.raises(UserFault) as caught:
        await model.load()
    params = caught.value.params
    assert (caught.value.code, params["line"], params["column"]) == ("bad_config", line, column)
    assert params["file"].endswith("script.json")


async def test_a_byte_order_mark_is_read_over(tmp_path: Path) -> None:
    """Hazard A1."""
    (tmp_path / "bom.json").write_bytes(b'\xef\xbb\xbf[[{"text": "a"}]]')
    assert done(await play(ScriptedModel(tmp_path / "bom.json"), chat())).message.text == "a"


async def test_call_blocks_keep_their_place_among_text(tmp_path: Path) -> None:
    data = [[{"text": "a "}, {"text": "b"}, {"call": {"tool": "x.y"}}, {"text": "c"}]]
    blocks = done(await play(script(tmp_path, data), chat())).message.blocks
    assert [type(b) for b in blocks] == [Text, ToolCall, Text]
