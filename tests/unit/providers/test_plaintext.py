"""What local models write into their text though it is none."""

from __future__ import annotations

import pytest

from desktop_host.core.models import TextDelta
from desktop_host.providers.plaintext import StopCutter, TextGate

NAMES = frozenset({"fs__read"})


def through(text: str, size: int, names: frozenset[str] = NAMES) -> tuple[TextGate, str]:
    gate = TextGate(names)
    shown = [d for i in range(0, len(text), size) for d in gate.take(text[i : i + size])]
    shown += list(gate.finish())
    return gate, "".join(d.text for d in shown if isinstance(d, TextDelta))


@pytest.mark.parametrize("size", [1, 4, 1000])
@pytest.mark.parametrize(
    "text",
    ["Plain words.", "a < b and <think> in the middle", '{"name": "other", "arguments": {}}', '{"name": "fs__read"',
     "```python\nprint()\n```", "  leading", "<tool_call>not json</tool_call>", "<tool_call>never closed",
     '{"answer": 1}', "<", "`", "ends with <tool"],
)  # fmt: skip
def test_ordinary_text_stays_as_it_is(text, size):
    gate, shown = through(text, size)
    assert shown == gate.text == text
    assert gate.calls == []


@pytest.mark.parametrize("size", [1, 4, 1000])
def test_a_passage_at_the_start_is_thinking(size):
    gate, shown = through("<think>Hm, well.</think>\n\nYes.", size)
    assert (gate.thinking, shown) == ("Hm, well.", "Yes.")


def test_a_passage_that_never_ends_is_thinking_to_the_end():
    gate, shown = through("<think>Hm", 1)
    assert (gate.thinking, shown) == ("Hm", "")


@pytest.mark.parametrize("size", [1, 4, 1000])
def test_printed_calls_are_found_with_the_text_around_them(size):
    text = 'I read.\n<tool_call>{"name": "fs__read", "arguments": {"p": 1}}</tool_call>'
    gate, shown = through(text * 2, size)
    assert gate.calls == [("fs__read", {"p": 1})] * 2
    assert shown == "I read.\n" * 2


def test_a_bare_call_after_thinking_is_found():
    gate, shown = through('<think>x</think>\n{"name": "fs__read", "arguments": "{}"}', 3)
    assert gate.calls == [("fs__read", {})]
    assert shown == ""


def test_without_tools_nothing_is_taken_for_a_call():
    _, shown = through('{"name": "fs__read", "arguments": {}}', 2, frozenset())
    assert shown == '{"name": "fs__read", "arguments": {}}'


@pytest.mark.parametrize("size", [1, 3, 100])
def test_text_is_cut_at_the_first_stop_sequence(size):
    cutter = StopCutter(("END", " ", "##"))
    text = "one E two ## three END"
    shown = "".join(cutter.take(text[i : i + size]) for i in range(0, len(text), size)) + cutter.finish()
    assert (shown, cutter.hit) == ("one E two ", True)


def test_text_without_a_stop_sequence_comes_through_whole():
    cutter = StopCutter(("STOP",))
    assert cutter.take("it is ST") + cutter.take("ILL ST") + cutter.finish() == "it is STILL ST"
    assert not cutter.hit
