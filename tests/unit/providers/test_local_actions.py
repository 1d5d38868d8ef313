from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from desktop_host.core.tools import ToolSpec
from desktop_host.core.values import freeze
from desktop_host.providers.actions import (
    ActionReader,
    action_schema,
    arguments_schema,
    clean_schema,
    short_names,
    signature,
)


def spec(server: str, name: str, schema: dict[str, Any] | None = None, description: str = "") -> ToolSpec:
    return ToolSpec(server, name, description, freeze(schema or {}))


def test_a_tool_keeps_its_own_name_unless_another_has_it() -> None:
    """Hazard F68."""
    tools = (spec("a", "search"), spec("b", "Search"), spec("a", "read file"), spec("a", "reply"))
    names = short_names(tools)
    assert [names[t.wire_name] for t in tools] == ["a__search", "b__Search", "read_file", "a__reply"]


def test_names_do_not_depend_on_the_order_of_tools() -> None:
    tools = (spec("a", "x"), spec("b", "x"), spec("b", "y"))
    assert short_names(tools) == short_names(tools[::-1])


def test_references_are_inlined_and_what_grammars_do_not_know_is_dropped() -> None:
    """Hazard G79."""
    schema = {
        "$schema": "x", "type": "object", "title": "T", "examples": [1],
        "$defs": {"P": {"type": "object", "properties": {"n": {"type": "integer", "minimum": 1, "default": 3}}}},
        "properties": {
            "when": {"type": "string", "format": "date-time", "pattern": "^x$", "description": "d"},
            "point": {"$ref": "#/$defs/P"},
            "kind": {"enum": ["a", "b"], "title": "Kind"},
            "maybe": {"anyOf": [{"type": "string"}, {"type": "null"}]},
            "many": {"type": "array", "items": {"$ref": "#/$defs/P"}},
        },
        "required": ["when", "absent"],
    }  # fmt: skip
    point = {
        "type": "object", "properties": {"n": {"type": "integer"}}, "required": [], "additionalProperties": False,
    }  # fmt: skip
    assert clean_schema(schema) == {
        "type": "object",
        "properties": {
            "when": {"type": "string"},
            "point": point,
            "kind": {"enum": ["a", "b"]},
            "maybe": {"anyOf": [{"type": "string"}, {"type": "null"}]},
            "many": {"type": "array", "items": point},
        },
        "required": ["when"],
        "additionalProperties": False,
    }


def test_a_schema_that_refers_to_itself_ends() -> None:
    schema = {"$defs": {"N": {"type": "object", "properties": {"next": {"$ref": "#/$defs/N"}}}}, "$ref": "#/$defs/N"}
    assert json.dumps(clean_schema(schema)).count("next") <= 10


@pytest.mark.parametrize("schema", [
    {}, {"type": "string"}, {"type": "object"}, {"anyOf": [{"required": ["a"]}]}, {"$ref": "#/nowhere"},
    {"type": "object", "properties": None}, {"type": ["object", "null"]}, {"type": "foo", "properties": {}},
])  # fmt: skip
def test_a_tool_without_usable_arguments_takes_an_empty_object(schema: dict[str, Any]) -> None:
    """Hazards G73, G74 and G77."""
    assert arguments_schema(schema) == {"type": "object", "properties": {}, "additionalProperties": False}


def test_all_of_is_joined() -> None:
    schema = {"allOf": [
        {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]},
        {"properties": {"b": {"type": "integer"}}, "required": ["b"]},
    ]}  # fmt: skip
    clean = arguments_schema(schema)
    assert (clean["properties"], clean["required"]) == ({"a": {"type": "string"}, "b": {"type": "integer"}}, ["a", "b"])


def test_the_simple_form_keeps_names_and_plain_types_only() -> None:
    schema = {"type": "object", "properties": {
        "a": {"type": "string", "enum": ["x"]}, "b": {"type": "array", "items": {"type": "string"}},
    }, "required": ["a"]}  # fmt: skip
    assert arguments_schema(schema, loose=True) == {
        "type": "object", "properties": {"a": {"type": "string"}, "b": {}}, "required": ["a"],
        "additionalProperties": False,
    }  # fmt: skip


def test_an_action_is_one_branch_for_each_tool_and_one_to_talk() -> None:
    tool = spec("a", "x")
    names = short_names([tool])
    assert len(action_schema([tool], names)["oneOf"]) == 2
    assert len(action_schema([tool], names, reply=False)["oneOf"]) == 1
    assert len(action_schema([], names, reply=False)["oneOf"]) == 1


def test_a_tool_is_one_line_with_types_and_what_may_be_left_out() -> None:
    schema = {"type": "object", "properties": {
        "path": {"type": "string"}, "mode": {"enum": ["r", "w"]},
        "tags": {"type": "array", "items": {"type": "string"}},
        "n": {"anyOf": [{"type": "integer"}, {"type": "null"}]}, "x": {},
    }, "required": ["path"]}  # fmt: skip
    tool = spec("a", "read", schema, "Read a file.\n  Second line.")
    assert signature(tool, "read") == (
        "- read(path: string, mode?: r|w, tags?: string[], n?: integer|null, x?: any) - Read a file. Second line."
    )
    assert signature(spec("a", "x"), "x") == "- x()"


def test_a_long_description_ends_after_its_first_sentence() -> None:
    assert signature(spec("a", "x", None, "Do it. " + "More. " * 50), "x") == "- x() - Do it."


@given(st.text(), st.integers(1, 7), st.booleans())
def test_a_reply_read_in_pieces_is_the_reply(text: str, size: int, ascii_only: bool) -> None:
    whole = json.dumps({"tool": "reply", "arguments": {"text": text}}, ensure_ascii=ascii_only)
    reader = ActionReader()
    heard = "".join(reader.feed(whole[i : i + size])[0] for i in range(0, len(whole), size))
    assert heard == text
    action = reader.finish()
    assert (action.tool, action.text, action.problem) == ("reply", text, None)


@given(
    st.dictionaries(
        st.text(max_size=9), st.none() | st.booleans() | st.integers() | st.lists(st.text(max_size=9)), max_size=4
    ),
    st.integers(1, 7),
)
def test_a_call_read_in_pieces_is_the_call(arguments: dict[str, Any], size: int) -> None:
    whole = json.dumps({"tool": "do_it", "arguments": arguments})
    reader = ActionReader()
    for i in range(0, len(whole), size):
        assert reader.feed(whole[i : i + size])[0] == ""
    action = reader.finish()
    assert (action.tool, action.arguments) == ("do_it", freeze(arguments))


def test_white_space_between_tokens_does_not_matter() -> None:
    reader = ActionReader()
    pieces = ("{\n", ' "tool"\n:\n"reply"', " ,\n", '"arguments" :', "\n{ ", '"text"', ' : "', "hi", '"\n}\n}')
    assert "".join(reader.feed(p)[0] for p in pieces) == "hi"


def test_a_call_that_was_cut_off_says_so() -> None:
    """Hazard H83 and its kin: arguments that are not JSON never run."""
    reader = ActionReader()
    reader.feed('{"tool": "read", "arguments": {"path": "/a')
    action = reader.finish()
    assert action.tool == "read"
    assert action.problem
