"""Tool calls of a Chat stream in the many forms in which servers send them."""

from __future__ import annotations

from typing import Any

import pytest

from desktop_host.providers.accumulate import Calls
from desktop_host.providers.arguments import parse


def fn(name: str | None = None, arguments: Any = None) -> dict[str, Any]:
    return {k: v for k, v in (("name", name), ("arguments", arguments)) if v is not None}


def gather(*deltas: dict[str, Any]) -> list[tuple[str, str, str]]:
    calls = Calls()
    for delta in deltas:
        calls.take(delta)
    return [(call.id, call.name, call.arguments) for call in calls]


TWO = [("a", "f", '{"x":1}'), ("b", "g", '{"y":2}')]
VARIANTS: dict[str, list[dict[str, Any]]] = {
    "as specified": [
        {"index": 0, "id": "a", "function": fn("f", "")},
        {"index": 0, "function": fn(None, '{"x":1}')},
        {"index": 1, "id": "b", "function": fn("g", "")},
        {"index": 1, "function": fn(None, '{"y":2}')},
    ],
    "interleaved": [
        {"index": 0, "id": "a", "function": fn("f", '{"x"')},
        {"index": 1, "id": "b", "function": fn("g", '{"y"')},
        {"index": 0, "function": fn(None, ":1}")},
        {"index": 1, "function": fn(None, ":2}")},
    ],
    "whole calls, both index 0": [
        {"index": 0, "id": "a", "function": fn("f", '{"x":1}')},
        {"index": 0, "id": "b", "function": fn("g", '{"y":2}')},
    ],
    "no index, whole calls": [
        {"id": "a", "function": fn("f", '{"x":1}')},
        {"id": "b", "function": fn("g", '{"y":2}')},
    ],
    "no index, pieces without id": [
        {"id": "a", "function": fn("f", '{"x"')},
        {"function": fn(None, ":1}")},
        {"id": "b", "function": fn("g", '{"y":2}')},
    ],
    "index null": [
        {"index": None, "id": "a", "function": fn("f", '{"x"')},
        {"index": None, "id": "a", "function": fn(None, ":1}")},
        {"index": None, "id": "b", "function": fn("g", '{"y":2}')},
    ],
    "id on every chunk": [
        {"index": 0, "id": "a", "function": fn("f", '{"x"')},
        {"index": 0, "id": "a", "function": fn(None, ":1}")},
        {"index": 1, "id": "b", "function": fn("g", '{"y":2}')},
    ],
    "empty ids later": [
        {"index": 0, "id": "a", "function": fn("f", '{"x"')},
        {"index": 0, "id": "", "function": fn("", ":1}")},
        {"index": 1, "id": "b", "function": fn("g", '{"y":2}')},
    ],
    "name on every chunk": [
        {"index": 0, "id": "a", "function": fn("f", '{"x"')},
        {"index": 0, "id": "a", "function": fn("f", ":1}")},
        {"index": 1, "id": "b", "function": fn("g", '{"y":2}')},
    ],
    "null in place of absence": [
        {"index": 0, "id": "a", "function": {"name": "f", "arguments": None}},
        {"index": 0, "id": None, "function": {"name": None, "arguments": '{"x":1}'}},
        {"index": 1, "id": "b", "function": {"name": "g", "arguments": '{"y":2}'}},
    ],
    "arguments as an object": [
        {"index": 0, "id": "a", "function": fn("f", {"x": 1})},
        {"index": 1, "id": "b", "function": fn("g", {"y": 2})},
    ],
    "name in pieces": [
        {"index": 0, "id": "a", "function": fn("")},
        {"index": 0, "function": fn("f")},
        {"index": 0, "function": fn(None, '{"x":1}')},
        {"index": 1, "id": "b", "function": fn("g", '{"y":2}')},
    ],
    "pieces of the second at index 0": [
        {"index": 0, "id": "a", "function": fn("f", '{"x":1}')},
        {"index": 0, "id": "b", "function": fn("g", "")},
        {"index": 0, "function": fn(None, '{"y":2}')},
    ],
}


@pytest.mark.parametrize("deltas", VARIANTS.values(), ids=VARIANTS.keys())
def test_two_calls_are_told_apart(deltas):
    """Public bugs ollama#15457 and #7881 among them."""
    assert [(i, n, a.replace(" ", "")) for i, n, a in gather(*deltas)] == TWO


def test_a_call_whose_first_delta_has_no_id_is_kept_with_an_id_of_its_own():
    """Public bug continue#13225."""
    calls = gather({"index": 0, "function": fn("f", "{")}, {"index": 0, "function": fn(None, "}")})
    assert [(n, a) for _, n, a in calls] == [("f", "{}")]
    assert calls[0][0].startswith("call_0_")


def test_two_calls_without_ids_at_index_0_are_told_apart_by_the_finished_first():
    calls = gather({"index": 0, "function": fn("f", '{"x":1}')}, {"index": 0, "function": fn("f", '{"x":2}')})
    assert [a for _, _, a in calls] == ['{"x":1}', '{"x":2}']
    assert calls[0][0] != calls[1][0]


def test_invented_ids_differ_between_turns():
    one, two = (gather({"function": fn("f", "{}")})[0][0] for _ in range(2))
    assert one != two


def test_keys_of_the_servers_own_are_kept_with_the_call():
    calls = Calls()
    calls.take({"index": 0, "id": "a", "function": fn("f", "{}"), "extra_content": {"google": {"t": "s"}}})
    assert next(iter(calls)).extra == {"extra_content": {"google": {"t": "s"}}}


@pytest.mark.parametrize("raw", ["", "  \n", "null", "{}", '"{}"', '""'])
def test_no_arguments_in_any_form_are_an_empty_object(raw):
    """Hazard H83; public bug open-webui#23778."""
    assert parse(raw) == ({}, None)


@pytest.mark.parametrize("raw", ["{", "[1]", "3", '{"a":', "not json", '{"a":1} trailing'])
def test_other_arguments_are_a_problem_that_quotes_them(raw):
    arguments, problem = parse(raw)
    assert arguments == {}
    assert problem is not None
    assert raw in problem


def test_an_object_written_as_a_string_is_read():
    assert parse('"{\\"a\\": 1}"') == ({"a": 1}, None)


def test_quote_tokens_are_taken_out_of_values():
    """Hazard H85."""
    assert parse('{"a": ["<|\\"|>x<|\\"|>"]}', lenient=True) == ({"a": ["x"]}, None)
    assert parse('{"a": <|"|>x<|"|>}', lenient=True) == ({"a": "x"}, None)
    assert parse('{"a": <|"|>x<|"|>}')[1]


def test_a_long_file_in_small_pieces_is_gathered_without_copying_it_each_time():
    calls = Calls()
    calls.take({"index": 0, "id": "a", "function": fn("write", '{"text":"')})
    for _ in range(50_000):
        calls.take({"index": 0, "function": fn(None, "lorem")})
    calls.take({"index": 0, "function": fn(None, '"}')})
    assert len(next(iter(calls)).arguments) == 250_011
