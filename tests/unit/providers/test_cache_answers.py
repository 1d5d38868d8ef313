"""Kept answers: when they serve, when they must not, and how they are marked."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from desktop_host.core.errors import KnownFault, ModelFault
from desktop_host.core.messages import Image, Message, Native, Role, StopReason, Text, ToolCall, ToolResult, user
from desktop_host.core.models import Completed, ModelRequest, Purpose, TextDelta, Usage
from desktop_host.core.settings_costs import Cache
from desktop_host.core.tools import ToolSpec
from desktop_host.core.values import EMPTY
from desktop_host.providers.cache import Cached, similarity
from tests.fakes.manual_clock import ManualClock
from tests.fakes.memory_purses import MemoryAnswers
from tests.fakes.model_server import ModelServer
from tests.fakes.remote import models, ref_of
from tests.fakes.wires import Say, reply

ASK = ModelRequest((user("What is MCP?"),), "system", cacheable=True)


class Counting:
    """A model that numbers its answers."""

    def __init__(self, message: Message | None = None, stop: StopReason = StopReason.END) -> None:
        self.asked = 0
        self.message = message
        self.stop = stop

    async def stream(self, request: ModelRequest) -> Any:
        self.asked += 1
        text = f"answer {self.asked}"
        yield TextDelta(text)
        native = Native("chat", "http://127.0.0.1", "m", EMPTY)
        message = self.message or Message(Role.ASSISTANT, (Text(text),), native)
        yield Completed(message, Usage(5, 5, cost_usd=0.1), self.stop, "m")


class Desk:
    def __init__(self, model: Any = None, **rules: Any) -> None:
        self.model = model or Counting()
        self.answers = MemoryAnswers()
        self.clock = ManualClock()
        self.rules = Cache(**rules)

    async def ask(self, request: ModelRequest = ASK, ref: str = "a/m", likeness: Any = None) -> Completed:
        cached = Cached(self.model, ref, self.answers, lambda: self.rules, self.clock, likeness)
        events = [e async for e in cached.stream(request)]
        assert isinstance(events[-1], Completed)
        assert "".join(e.text for e in events if isinstance(e, TextDelta)) == f"answer {self.serving(events[-1])}"
        return events[-1]

    def serving(self, done: Completed) -> str:
        return done.message.text.removeprefix("answer ") or str(self.model.asked)


async def test_the_same_question_is_answered_once_and_the_second_answer_is_marked():
    desk = Desk()
    first, second = await desk.ask(), await desk.ask()
    assert (first.cached, second.cached, desk.model.asked) == (False, True, 1)
    assert second.usage == Usage(cost_usd=0.0) and second.message.native is None and second.model == "m"


async def test_asking_again_asks_the_model_and_keeps_the_new_answer():
    desk = Desk()
    await desk.ask()
    again = await desk.ask(replace(ASK, cacheable=False))
    assert again.message.text == "answer 2" and not again.cached
    assert (await desk.ask()).message.text == "answer 2"


@pytest.mark.parametrize(
    "other",
    [
        replace(ASK, system="another"), replace(ASK, effort="high"), replace(ASK, tools=(ToolSpec("a", "b"),)),
        replace(ASK, messages=(user("What is MCP"),)),
        replace(ASK, messages=(user("hi"), Message(Role.ASSISTANT, (Text("x"),)), user("What is MCP?"))),
    ],
)  # fmt: skip
async def test_anything_else_is_another_question(other):
    desk = Desk()
    await desk.ask()
    assert not (await desk.ask(other)).cached


async def test_an_answer_serves_one_model_only_and_not_for_ever():
    desk = Desk(max_age_hours=1)
    await desk.ask()
    assert not (await desk.ask(ref="b/m")).cached
    await desk.clock.advance(3601)
    assert not (await desk.ask()).cached


@pytest.mark.parametrize(
    ("message", "stop"),
    [
        (Message(Role.ASSISTANT, (ToolCall("c", "a__b"),)), StopReason.TOOLS),
        (Message(Role.ASSISTANT, (Text("cut"),)), StopReason.LENGTH),
        (Message(Role.ASSISTANT, (Text("no"),)), StopReason.REFUSAL),
        (Message(Role.ASSISTANT, ()), StopReason.END),
    ],
)
async def test_calls_cut_answers_and_refusals_are_not_kept(message, stop):
    desk = Desk(Counting(message, stop))
    cached = Cached(desk.model, "a/m", desk.answers, lambda: desk.rules, desk.clock)
    for _ in range(2):
        assert [e async for e in cached.stream(ASK)]
    assert desk.model.asked == 2 and not desk.answers.kept


async def test_a_conversation_with_a_tool_call_is_never_answered_from_the_store():
    messages = (
        user("x"), Message(Role.ASSISTANT, (ToolCall("c", "a__b"),)), Message(Role.USER, (ToolResult("c", ()),)),
    )  # fmt: skip
    desk = Desk()
    for _ in range(2):
        await desk.ask(replace(ASK, messages=messages))
    assert desk.model.asked == 2


@pytest.mark.parametrize("rules", [{"answers": "off"}, {}])
async def test_off_is_off_and_other_purposes_are_never_kept(rules):
    desk = Desk(**rules)
    request = ASK if rules else replace(ASK, purpose=Purpose.SUMMARY)
    await desk.ask(request)
    await desk.ask(request)
    assert desk.model.asked == 2


async def test_nearly_the_same_question_is_served_only_where_a_person_chose_that():
    near = replace(ASK, messages=(user("what is mcp"),))
    for rules, served in (({}, False), ({"answers": "similar"}, True)):
        desk = Desk(**rules)
        await desk.ask()
        assert (await desk.ask(near)).cached is served


class Meaning:
    """A likeness that says what it is told."""

    def __init__(self, score: float | None) -> None:
        self.score = score
        self.asked: list[tuple[str, tuple[str, ...]]] = []

    async def scores(self, question: str, others: Any) -> list[float] | None:
        self.asked.append((question, tuple(others)))
        return None if self.score is None else [self.score for _ in others]


@pytest.mark.parametrize(
    ("question", "score", "served"),
    [
        ("What does MCP stand for, please?", 0.96, True),
        ("What does MCP stand for, please?", 0.94, False),
        ("What does MCP stand for, please?", None, False),
        ("What is MCP 2?", 0.99, False),
        ("What is not MCP?", 0.99, False),
        ("MCP 是什么意思？", 0.99, False),
    ],
)
async def test_a_question_of_the_same_meaning_is_served_but_never_past_a_number_a_not_or_a_script(
    question, score, served
):
    desk = Desk(answers="similar")
    meaning = Meaning(score)
    await desk.ask(likeness=meaning)
    done = await desk.ask(replace(ASK, messages=(user(question),)), likeness=meaning)
    assert done.cached is served
    fresh = replace(ASK, messages=(user(question),), cacheable=False)
    assert not (await desk.ask(fresh, likeness=meaning)).cached


async def test_meaning_is_not_compared_unless_similar_answers_are_wanted():
    desk, meaning = Desk(), Meaning(1.0)
    await desk.ask(likeness=meaning)
    await desk.ask(replace(ASK, messages=(user("Tell me of MCP"),)), likeness=meaning)
    assert meaning.asked == []


async def test_an_image_is_not_compared_by_words():
    desk = Desk(answers="similar")
    await desk.ask(replace(ASK, messages=(user("what is this", Image("AAAA", "image/png")),)))
    assert not (await desk.ask(replace(ASK, messages=(user("What is this?", Image("BBBB", "image/png")),)))).cached


@pytest.mark.parametrize(
    ("one", "other", "alike"),
    [
        ("How do I install Python on Linux?", "how do i install python on linux", True),
        ("请问怎么安装 Python？", "怎么安装 Python", False),
        ("怎么在电脑上安装 Python？", "怎么在电脑上安装 python", True),
        ("Is it safe to eat?", "Is it not safe to eat?", False),
        ("Is this allowed", "isn't this allowed", False),
        ("What is 12 * 13?", "What is 12 * 14?", False),
        ("这样安全吗", "这样不安全吗", False),
        ("", "", False),
    ],
)
def test_words_numbers_and_a_not_decide(one, other, alike):
    assert (similarity(one, other) >= 0.92) is alike


async def test_a_broken_store_is_no_reason_not_to_answer():
    desk = Desk()

    async def broken(*_a: Any) -> Any:
        raise KnownFault("database_error", "gone")

    desk.answers.get = broken  # type: ignore[method-assign]
    desk.answers.put = broken  # type: ignore[method-assign]
    assert (await desk.ask()).message.text == "answer 1"


async def test_a_fault_is_not_kept():
    class Failing:
        asked = 0

        async def stream(self, request: ModelRequest) -> Any:
            raise ModelFault("overloaded", "busy")
            yield

    desk = Desk(Failing())
    for _ in range(2):
        with pytest.raises(ModelFault):
            await desk.ask()


@pytest.mark.parametrize("wire", ["anthropic", "responses", "compat"])
async def test_a_model_at_an_address_is_asked_once_for_the_same_question(wire):
    async with ModelServer() as server, models(answers=MemoryAnswers()) as catalog:
        server.script(reply(wire, Say("Hello.")))
        ends = []
        for _ in range(2):
            model = await catalog.open(ref_of(wire, server))
            ends += [e async for e in model.stream(ASK) if isinstance(e, Completed)]
        assert [e.cached for e in ends] == [False, True] and len(server.posts) == 1
        assert ends[1].message.text == "Hello."
