"""Whatever was cut, cancelled, lost or repeated: what is posted keeps the rules by which each vendor refuses a chat."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest

from desktop_host.core.messages import (
    Image,
    Message,
    Outcome,
    Role,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    assistant,
    user,
)
from desktop_host.core.models import ModelRequest
from desktop_host.engine.repair import repair
from tests.contract.chat_model_contract import ECHO, asked, collect, end_of
from tests.fakes.model_server import ModelServer, answer
from tests.fakes.remote import models, ref_of, sent
from tests.fakes.wires import Say, reply

WIRES = ["anthropic", "anthropic-compat", "responses", "compat"]
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
NAME = ECHO.wire_name


def sound(wire: str, body: dict[str, Any]) -> None:
    {"responses": sound_items, "compat": sound_chat}.get(wire, sound_messages)(body)


def sound_messages(body: dict[str, Any]) -> None:
    """The rules of the Messages API."""
    messages = body["messages"]
    roles = [m["role"] for m in messages]
    assert roles == ["user" if n % 2 == 0 else "assistant" for n in range(len(roles))]
    assert roles[-1] == "user"
    known: set[str] = set()
    waiting: list[str] = []
    for message in messages:
        content = message["content"]
        if isinstance(content, str):
            content = [{"type": "text", "text": content}]
        assert content
        assert all(b["text"].strip() for b in content if b["type"] == "text")
        kinds = [b["type"] for b in content]
        results = [b["tool_use_id"] for b in content if b["type"] == "tool_result"]
        assert results == waiting
        assert kinds[: len(results)] == ["tool_result"] * len(results)
        assert all(b["content"] for b in content if b["type"] == "tool_result")
        assert all(b.get("signature") for b in content if b["type"] == "thinking")
        waiting = [b["id"] for b in content if b["type"] == "tool_use"]
        assert not known & set(waiting) and len(set(waiting)) == len(waiting)
        known.update(waiting)
    assert not waiting


def sound_items(body: dict[str, Any]) -> None:
    """The rules of the Responses API."""
    called: list[str] = []
    answered: list[str] = []
    for item in body["input"]:
        match item.get("type", "message"):
            case "function_call":
                called.append(item["call_id"])
            case "function_call_output":
                assert item["call_id"] in called
                assert item["output"]
                answered.append(item["call_id"])
            case "message":
                assert item["content"]
                parts = item["content"] if isinstance(item["content"], list) else [{"text": item["content"]}]
                assert all(p["text"].strip() for p in parts if "text" in p)
    assert sorted(called) == sorted(answered)
    assert len(set(called)) == len(called)


def sound_chat(body: dict[str, Any]) -> None:
    """The rules of Chat Completions."""
    waiting: list[str] = []
    known: set[str] = set()
    for message in body["messages"]:
        if message["role"] == "tool":
            assert message["tool_call_id"] == waiting.pop(0)
            assert message["content"]
            continue
        assert not waiting
        waiting = [c["id"] for c in message.get("tool_calls") or ()]
        assert not known & set(waiting) and len(set(waiting)) == len(waiting)
        known.update(waiting)
        assert message.get("content") or waiting
    assert not waiting


async def replies_of(wire: str, server: ModelServer, model: Any) -> list[Message]:
    """Turns as the vendor gives them, with what must be sent back word for word."""
    says = [
        Say("A word."), Say("", "let me think", ((f"id_{wire}", NAME, {"m": "1"}), ("id_2", NAME, {}))),
        Say("Both.", "hm", (("id_2", NAME, {"m": "2"}),)), Say("Only thinking follows.", "on and on"),
    ]  # fmt: skip
    out = []
    for say in says:
        server.script(reply(wire, say))
        out.append(end_of(await collect(model, asked("q", tools=(ECHO,)))).message)
    assert any(m.native for m in out)
    return out


def any_history(dice: random.Random, real: list[Message]) -> list[Message]:
    """A conversation in pieces: real turns and neutral ones, results lost, doubled, foreign or out of order."""
    out: list[Message] = []
    for _ in range(dice.randrange(1, 9)):
        calls = [c.id for m in out[-1:] for c in m.calls]
        match dice.randrange(7):
            case 0:
                out.append(dice.choice(real))
            case 1:
                own = [ToolCall(dice.choice("ab:"), NAME), Text(dice.choice(["", " ", "x \n"])), Thinking("t")]
                out.append(assistant(*dice.sample(own, dice.randrange(1, 4))))
            case 2:
                out.append(user(dice.choice(["", "  ", "hi", "hi  \n"])))
            case 3:
                out.append(Message(Role.ASSISTANT, ()))
            case 4:
                out.append(user(*(Image(PNG, "image/png") for _ in range(dice.randrange(4)))))
            case _:
                given = [*calls, *dice.sample(["a", "zz"], dice.randrange(3))]
                dice.shuffle(given)
                content = dice.choice([(), (Text(""),), (Text("r"),), (Image(PNG, "image/png"),)])
                out.append(
                    user(*(ToolResult(i, content, dice.choice(list(Outcome))) for i in given[dice.randrange(2) :]))
                )
    return out


@pytest.mark.parametrize("wire", WIRES)
async def test_any_history_is_posted_as_the_vendor_takes_it(wire: str) -> None:
    """Hazards J101, J103, J104."""
    dice = random.Random(f"{wire}-7")
    async with ModelServer() as server, models(secrets={server.url: "k"}) as catalog:
        model = await catalog.open(ref_of(wire, server, "claude-opus-5-5" if wire == "anthropic" else "m-1"))
        real = await replies_of(wire, server, model)
        for number in range(120):
            # An end of the model's own is sent back as such: only a pause of the vendor leaves one.
            history = repair([*any_history(dice, real), user("go on")])
            server.script(reply(wire, Say("ok")))
            await collect(model, ModelRequest(history, tools=(ECHO,), conversation=f"c{number}"))
            try:
                sound(wire, sent(server))
            except (AssertionError, KeyError, IndexError) as error:
                raise AssertionError(f"{wire}: {history} became {sent(server)}") from error


@pytest.mark.parametrize("wire", WIRES)
async def test_a_request_that_is_too_large_goes_without_its_images(wire: str) -> None:
    body = {"type": "error", "error": {"type": "request_too_large", "message": "Request exceeds the maximum size"}}
    async with ModelServer() as server, models(secrets={server.url: "k"}) as catalog:
        model = await catalog.open(ref_of(wire, server))
        server.script(answer(body, 413), reply(wire, Say("ok")))
        request = replace(asked("look"), messages=(user("look", Image(PNG, "image/png")),))
        assert end_of(await collect(model, request)).message.text == "ok"
        assert PNG in server.posts[0].raw.decode()
        assert PNG not in server.posts[1].raw.decode()
