"""Arguments against the tool's own schema."""

from __future__ import annotations

from typing import Any

import pytest

from desktop_host.core.tools import ToolSpec
from desktop_host.core.values import EMPTY, FrozenDict, freeze
from desktop_host.servers.arguments import ArgumentCheck, without_nulls


def tool(**schema: Any) -> ToolSpec:
    return ToolSpec("s", "t", input_schema=freeze({"type": "object", **schema}))


async def problem(spec: ToolSpec, **arguments: Any) -> str | None:
    found = await ArgumentCheck().problem(spec, freeze(arguments))
    return None if found is None else found.text


async def test_what_is_wrong_is_named_by_its_place_with_the_right_form() -> None:
    spec = tool(
        properties={"a": {"type": "array", "items": {"properties": {"b": {"type": "integer"}}}}}, required=["c"]
    )
    told = await problem(spec, a=[{"b": "x"}])
    assert told is not None
    assert "$.a[0].b: 'x' is not of type 'integer'" in told
    assert "'c' is a required property" in told
    assert '"required": ["c"]' in told


async def test_many_errors_are_counted_not_listed() -> None:
    told = await problem(tool(additionalProperties={"type": "integer"}), **{f"k{n}": "x" for n in range(9)})
    assert told is not None
    assert told.count("\n- $") == 5
    assert "and 4 more" in told


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"x": {"$ref": "https://example.com/schema.json"}}},
        {"properties": {"x": {"type": "no-such-type"}}},
        {"properties": 5},
        {"properties": {"x": {"pattern": "("}}},
    ],
)
async def test_a_schema_that_cannot_judge_lets_the_server_judge(schema: dict[str, Any]) -> None:
    assert await problem(tool(**schema), x="y") is None


async def test_the_dialect_that_the_schema_names_is_used() -> None:
    draft7 = tool(
        **{"$schema": "http://json-schema.org/draft-07/schema#", "properties": {"x": {"prefixItems": [{}, 5]}}}
    )
    assert await problem(draft7, x=[1, 2]) is None
    local = tool(properties={"x": {"$ref": "#/$defs/n"}}, **{"$defs": {"n": {"type": "integer"}}})
    assert await problem(local, x=1) is None
    assert await problem(local, x="1") is not None


async def test_a_tool_that_changed_is_judged_by_its_new_schema() -> None:
    check = ArgumentCheck()
    assert await check.problem(tool(), EMPTY) is None
    assert await check.problem(tool(required=["x"]), EMPTY) is not None
    assert await check.problem(tool(required=["x"]), FrozenDict({"x": 1})) is None


def test_null_for_an_optional_property_that_takes_none_is_left_out() -> None:
    spec = tool(
        properties={"a": {"type": "string"}, "b": {"type": ["string", "null"]}, "c": {}, "d": {"type": "integer"}},
        required=["d"],
    )
    given = freeze({"a": None, "b": None, "c": None, "d": None, "e": None, "f": 0})
    assert without_nulls(spec, given) == {"b": None, "c": None, "d": None, "e": None, "f": 0}
