"""Schemas of servers judge values as JSON Schema says, and cannot stall the host."""

from __future__ import annotations

import time
from typing import Any

import pytest

from desktop_host.core.tools import ToolSpec
from desktop_host.core.values import freeze
from desktop_host.servers.arguments import ArgumentCheck
from desktop_host.servers.json_schema import matches, misfit, validator_of

ENDLESS = r"^(a|aa)+$"
LONG = "a" * 64 + "!"


def judged(schema: dict[str, Any], **values: Any) -> tuple[str, str] | None:
    return misfit(freeze(schema), freeze(values))


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"a": {"type": "string", "pattern": ENDLESS}}},
        {"properties": {"a": {"allOf": [{"pattern": ENDLESS}]}}},
        {"patternProperties": {ENDLESS: {"type": "integer"}}},
        {"patternProperties": {ENDLESS: {}}, "additionalProperties": False},
        {"properties": {"a": {"not": {"pattern": ENDLESS}}}},
    ],
)
async def test_a_pattern_that_would_take_for_ever_is_left_to_the_server(schema: dict[str, Any]) -> None:
    began = time.process_time()
    values = {"a": LONG, LONG: 1}
    misfit(freeze(schema), freeze(values))
    await ArgumentCheck().problem(ToolSpec("s", "t", "", freeze({"type": "object", **schema})), freeze(values))
    assert time.process_time() - began < 3


@pytest.mark.parametrize(
    ("schema", "values", "place"),
    [
        ({"properties": {"a": {"pattern": "^[A-Z]{2}$"}}}, {"a": "NO"}, None),
        ({"properties": {"a": {"pattern": "^[A-Z]{2}$"}}}, {"a": "no"}, "a"),
        ({"properties": {"a": {"pattern": "("}}}, {"a": "broken patterns judge nobody"}, None),
        ({"properties": {"a": {"pattern": "x"}}}, {"a": 5}, None),
        ({"properties": {"a": {}}, "additionalProperties": False}, {"a": 1, "b": 2}, "form"),
        ({"patternProperties": {"^x-": {}}, "additionalProperties": False}, {"x-b": 2}, None),
        ({"patternProperties": {"^x-": {"type": "string"}}}, {"x-b": 2}, "x-b"),
        ({"additionalProperties": {"type": "integer"}}, {"b": "2"}, "b"),
        ({"type": "no such type"}, {"a": 1}, None),
        ({"$ref": "https://example.org/never-fetched.json"}, {"a": 1}, None),
        ({"$ref": "#"}, {"a": 1}, None),
    ],
)
def test_values_are_judged_as_the_schema_says(
    schema: dict[str, Any], values: dict[str, Any], place: str | None
) -> None:
    found = judged(schema, **values)
    assert (found and found[0]) == place


def test_the_words_are_those_of_the_library() -> None:
    assert judged({"additionalProperties": False}, b=1) == (
        "form", "Additional properties are not allowed ('b' was unexpected)",
    )  # fmt: skip
    assert "does not match" in (judged({"properties": {"a": {"pattern": "^x"}}}, a="y") or ("", ""))[1]


def test_a_match_that_ends_in_time_counts() -> None:
    assert matches("b+", "abc") and not matches("^b", "abc") and matches(ENDLESS, LONG)
    assert validator_of({"type": 5}) is None
