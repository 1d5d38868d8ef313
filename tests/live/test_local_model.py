"""The real embedded model. Weights are fetched once into `DESKTOP_HOST_MODELS` (or the platform's folder)."""

from __future__ import annotations

import asyncio
import importlib.util
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from desktop_host.core.errors import ModelFault
from desktop_host.core.messages import Message, Role, Text, ToolCall, ToolResult, user
from desktop_host.core.models import Completed, ModelRequest, Purpose, TextDelta
from desktop_host.core.tools import ToolSpec
from desktop_host.core.values import freeze
from desktop_host.providers.local import LocalModels

pytestmark = [
    pytest.mark.live,
    pytest.mark.slow,
    pytest.mark.skipif(importlib.util.find_spec("xllamacpp") is None, reason="the extra [local] is not installed"),
]


def tool(name: str, description: str, **arguments: str) -> ToolSpec:
    properties = {k: {"type": v} for k, v in arguments.items()}
    schema = {"type": "object", "properties": properties, "required": list(arguments)}
    return ToolSpec("daily", name, description, freeze(schema))


TOOLS = (
    tool("calculate", "Evaluate an arithmetic expression.", expression="string"),
    tool("get_weather", "Get the current weather for a city.", city="string"),
    tool("set_timer", "Start a countdown timer.", minutes="integer"),
)
ANSWERS: dict[str, Callable[[ToolCall], str]] = {
    "daily__calculate": lambda call: (
        str(17 * 23 + 4) if re.sub(r"\s", "", str(call.arguments["expression"])) == "17*23+4" else "?"
    ),
    "daily__get_weather": lambda call: f"{call.arguments['city']}: 18 °C, light rain",
    "daily__set_timer": lambda call: "started",
}


@pytest.fixture
async def models() -> AsyncIterator[LocalModels]:
    opened = LocalModels()
    await opened.fetch("local", lambda progress: None)
    yield opened
    await opened.close()


async def ask(models: LocalModels, said: str) -> tuple[list[ToolCall], str, list[float]]:
    """One turn: the calls that were made, the answer, and seconds to the first call and to the end."""
    model = await models.open("local")
    messages: tuple[Message, ...] = (user(said),)
    calls: list[ToolCall] = []
    began, times = time.monotonic(), []
    while True:
        async for event in model.stream(ModelRequest(messages, tools=TOOLS)):
            if isinstance(event, Completed):
                completed = event
        times.append(time.monotonic() - began)
        if not completed.message.calls:
            print(f"\n{said!r}: {times[0]:.1f} s to the first call, {times[-1]:.1f} s, {model.tokens_per_s} tokens/s")
            return calls, completed.message.text, times
        (call,) = completed.message.calls
        calls.append(call)
        result = ToolResult(call.id, (Text(ANSWERS[call.wire_name](call)),))
        messages = (*messages, completed.message, Message(Role.USER, (result,)))


async def test_a_question_is_answered_through_a_real_tool_call(models: LocalModels) -> None:
    calls, answer, _ = await ask(models, "What is 17*23+4?")
    assert calls[0].wire_name == "daily__calculate"
    assert "395" in answer


async def test_a_question_in_chinese_is_answered_through_a_real_tool_call(models: LocalModels) -> None:
    calls, answer, _ = await ask(models, "北京今天天气怎么样？")
    assert calls[0].wire_name == "daily__get_weather"
    assert "北京" in str(calls[0].arguments["city"])
    assert answer


async def test_the_same_beginning_is_read_from_the_cache(models: LocalModels) -> None:
    model = await models.open("local")
    usages = []
    for said in ("What is 1+2?", "What is 30*40?"):
        async for event in model.stream(ModelRequest((user(said),), tools=TOOLS)):
            if isinstance(event, Completed):
                usages.append(event.usage)
    assert usages[1].cache_read > usages[1].input
    assert usages[1].cost_usd == 0


async def test_a_title_is_plain_text(models: LocalModels) -> None:
    model = await models.open("local")
    said = ModelRequest((user("Name the colour of the sky."),), purpose=Purpose.TITLE, max_tokens=8)
    events = [event async for event in model.stream(said)]
    assert events[-1].message.text  # type: ignore[union-attr]
    assert "{" not in events[-1].message.text  # type: ignore[union-attr]


async def test_stop_frees_the_model_for_the_next_question(models: LocalModels) -> None:
    model = await models.open("local")
    started = asyncio.Event()

    async def count() -> None:
        said = ModelRequest((user("Count from 1 to 500, one number a line."),), max_tokens=2000)
        async for event in model.stream(said):
            if isinstance(event, TextDelta):
                started.set()

    task = asyncio.create_task(count())
    await asyncio.wait_for(started.wait(), 120)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    began = time.monotonic()
    async for _ in model.stream(ModelRequest((user("Say hi."),), max_tokens=4)):
        pass
    assert time.monotonic() - began < 60


async def test_a_killed_model_is_named_and_comes_back(models: LocalModels) -> None:
    model = await models.open("local")
    runtime = models._runtimes["qwen2.5-coder-0.5b"]
    said = ModelRequest((user("Count from 1 to 500, one number a line."),), max_tokens=2000)

    async def die() -> None:
        async for _ in model.stream(said):
            assert runtime.pid is not None
            os.kill(runtime.pid, signal.SIGKILL)

    with pytest.raises(ModelFault) as caught:
        await die()
    assert (caught.value.code, caught.value.params["reason"]) == ("model_missing", "crashed")
    calls, _, _ = await ask(models, "What is 17*23+4?")
    assert calls


async def test_the_model_dies_with_a_killed_host(models: LocalModels) -> None:
    """Hazard D38."""
    script = (
        "import asyncio\n"
        "from desktop_host.providers.local import LocalModels\n"
        "async def main():\n"
        "    models = LocalModels()\n"
        "    await models.open('local')\n"
        "    runtime = models._runtimes['qwen2.5-coder-0.5b']\n"
        "    async with runtime.use():\n"
        "        print(runtime.pid, flush=True)\n"
        "        await asyncio.sleep(3600)\n"
        "asyncio.run(main())\n"
    )
    host = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)  # noqa: ASYNC220
    assert host.stdout is not None
    pid = int(await asyncio.to_thread(host.stdout.readline))
    host.kill()
    host.wait()
    host.stdout.close()
    async with asyncio.timeout(10):
        while _runs(pid):  # noqa: ASYNC110 - another process ends
            await asyncio.sleep(0.05)


def _runs(pid: int) -> bool:
    try:
        return "State:\tZ" not in Path(f"/proc/{pid}/status").read_text("utf-8")
    except (FileNotFoundError, ProcessLookupError):
        return False
