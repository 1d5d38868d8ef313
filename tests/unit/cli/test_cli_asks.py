"""A person at the terminal decides and fills forms."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from desktop_host import i18n
from desktop_host.cli.approvals import decide
from desktop_host.cli.forms import fill
from desktop_host.core.asks import (
    Allow,
    ApproveTool,
    Ask,
    DailyCap,
    Dismiss,
    Edited,
    Filled,
    FillForm,
    OpenUrl,
    Refuse,
    ReviewReply,
    ReviewSampling,
    SamplingCost,
)
from desktop_host.core.exchange import RunningCall, SamplingRequest
from desktop_host.core.messages import Text, user
from desktop_host.core.model_choice import Candidate, ModelChoice
from desktop_host.core.permissions import Life, Scope
from desktop_host.core.tools import ToolSpec
from desktop_host.core.values import freeze


@pytest.fixture(autouse=True)
def _english():
    i18n.install("en")


class Desk:
    """Types lines; at the end of them the input ends."""

    def __init__(self, lines: Sequence[str]) -> None:
        self._lines = list(lines)
        self.shown = ""

    def say(self, text: str) -> None:
        self.shown += text + "\n"

    async def type(self, prompt: str) -> str | None:
        self.shown += prompt
        return self._lines.pop(0) if self._lines else None


async def _decide(ask: Ask, *lines: str):
    desk = Desk(lines)
    return await decide(ask, desk.say, desk.type), desk.shown


TOOL = ApproveTool(
    "a1", "s", "c1", "fs", "write", freeze({"path": "/x\u202e", "lines": [f"line {n}" for n in range(40)]}),
    title="Write", description="Writes\x1b[2J a file", tool_digest="d" * 8,
)  # fmt: skip


@pytest.mark.parametrize(
    ("letter", "answer"),
    [
        ("y", Allow(Life.ONCE, Scope.CALL, "d" * 8)),
        ("S", Allow(Life.SESSION, Scope.TOOL, "d" * 8)),
        ("t", Allow(Life.PROFILE, Scope.TOOL, "d" * 8)),
        ("v", Allow(Life.PROFILE, Scope.SERVER, "d" * 8)),
        ("n", Refuse()),
    ],
)
async def test_a_letter_decides_a_call(letter, answer):
    assert (await _decide(TOOL, letter))[0] == answer


async def test_the_arguments_are_shown_whole_and_cannot_steer_the_terminal():
    """Hazard K110."""
    _, shown = await _decide(TOOL, "n")
    assert all(f"line {n}" in shown for n in range(40))
    assert "\x1b" not in shown
    assert "\u202e" not in shown


async def test_a_mere_return_decides_nothing():
    answer, shown = await _decide(TOOL, "", "perhaps", "y")
    assert isinstance(answer, Allow)
    assert shown.count("y s t v n") == 2


async def test_the_end_of_input_dismisses():
    assert (await _decide(TOOL))[0] == Dismiss()


async def test_a_url_is_shown_whole_with_its_host():
    ask = OpenUrl("a", None, None, "kb", "log in", "https://user@evil.example/path?x=1")
    answer, shown = await _decide(ask, "y")
    assert answer == Allow()
    assert "https://user@evil.example/path?x=1" in shown
    assert "host evil.example" in shown


async def test_a_sampling_request_is_shown_and_can_be_edited():
    request = SamplingRequest((user("summarise this"),), 100, system="you are terse")
    ask = ReviewSampling("a", None, None, "kb", request, "local")
    answer, shown = await _decide(ask, "e", "new", "text", ".")
    assert answer == Edited("new\ntext")
    assert all(part in shown for part in ("summarise this", "you are terse", "local", "100"))
    reply = ReviewReply("a", None, None, "kb", (Text("the reply"),), "local")
    assert (await _decide(reply, "n"))[0] == Refuse()


async def test_the_terminal_tells_which_call_asks_what_it_costs_and_lets_another_model_answer():
    request = SamplingRequest((user("q"),), 100, hints=("haiku",), tools=(ToolSpec("kb", "more"),))
    calls = (RunningCall("1", "summarise", freeze({"path": "/a"})),)
    choice = ModelChoice("v/luna", "kin", "haiku", (Candidate("v/opus", "", 0.5), Candidate("v/luna", "", None)))
    cost = SamplingCost(30, None, 1500, 50_000, 0.11)
    ask = ReviewSampling("a", None, None, "kb", request, "v/luna", cost, calls, choice)
    answer, shown = await _decide(ask, "7", "1", "y")
    assert answer == Allow(model="v/opus")
    for part in ('kb.summarise {"path": "/a"}', "price unknown", "1500 of 50000", '"haiku"', "kb: more", "1. v/opus"):
        assert part.replace("kb: ", "") in shown, part
    assert (await _decide(ask, "", "e", "new", "."))[0] == Edited("new")


async def test_always_at_the_terminal_names_a_days_tokens_and_money():
    ask = ReviewSampling("a", None, None, "kb", SamplingRequest((user("q"),), 9), "m", SamplingCost(daily_tokens=7000))
    assert (await _decide(ask, "a", "", "0", "x", "2.5"))[0] == Allow(daily=DailyCap(7000, 2.5))
    assert (await _decide(ask, "a", ""))[0] == Allow(), "no sum: only this time"


@pytest.mark.parametrize("ask", [
    OpenUrl("a", None, None, "kb", "pay", "https://e.org", 2, (), True),
    FillForm("a", None, None, "kb", "who?", freeze({"type": "object", "properties": {}}), 2),
])  # fmt: skip
async def test_a_server_that_asks_again_in_one_call_can_be_stopped_at_the_terminal(ask):
    answer, shown = await _decide(ask, "s")
    assert answer == Refuse(stop=True) and "question 2" in shown


SCHEMA = freeze(
    {
        "type": "object",
        "required": ["name", "age"],
        "properties": {
            "name": {"type": "string", "minLength": 2},
            "age": {"type": "integer", "minimum": 0, "maximum": 150},
            "email": {"type": "string", "format": "email"},
            "agree": {"type": "boolean", "default": True},
            "size": {"type": "string", "enum": ["s", "m"], "enumNames": ["Small", "Medium"]},
            "colour": {"type": "string", "oneOf": [{"const": "r", "title": "Red"}, {"const": "b", "title": "Blue"}]},
            "tags": {"type": "array", "items": {"type": "string", "enum": ["x", "y"]}, "maxItems": 1},
            "ratio": {"type": "number"},
        },
    }
)


async def test_a_form_is_filled_field_by_field_and_checked_on_the_way():
    """Hazard M128: an untouched default keeps its value."""
    desk = Desk(["A", "Ada", "", "old", "200", "36", "no mail", "a@b.c", "", "Small", "Blue", "x,y", "x", "0.5"])
    got = await fill(SCHEMA, desk.say, desk.type)
    assert got == {
        "name": "Ada", "age": 36, "email": "a@b.c", "agree": True, "size": "s", "colour": "b", "tags": ("x",),
        "ratio": 0.5,
    }  # fmt: skip
    assert "This field is needed." in desk.shown


async def test_optional_fields_may_stay_empty_and_a_form_may_be_declined():
    answer, _ = await _decide(FillForm("a", None, None, "kb", "who?", SCHEMA), "Ada", "1", *[""] * 6)
    assert answer == Filled(freeze({"name": "Ada", "age": 1, "agree": True}), whole=True)
    assert (await _decide(FillForm("a", None, None, "kb", "who?", SCHEMA), "Ada", "!"))[0] == Refuse()
