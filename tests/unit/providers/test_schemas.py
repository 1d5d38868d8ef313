"""MCP schemas as vendors take them."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest

from desktop_host.core.tools import ToolSpec
from desktop_host.core.values import freeze
from desktop_host.providers.schemas import PROPERTY, described, renamed, restored, wire_schema
from desktop_host.providers.toolset import ToolProfile, Workshop

PROFILE = ToolProfile(lambda name, description, schema: {"name": name, "d": description, "s": schema})


def spec(schema: object, server: str = "s", name: str = "t", description: str = "Does it.") -> ToolSpec:
    return ToolSpec(server, name, description, freeze(schema))


def test_an_empty_schema_is_an_object_without_properties():
    """Hazard G77: `object schema missing properties`; and the schema `{}`."""
    for schema in ({}, {"type": "object"}, {"type": "object", "properties": None}):
        assert wire_schema(freeze(schema)).schema == {"type": "object", "properties": {}}


@pytest.mark.parametrize("schema", [{"type": "string"}, {"type": ["object", "null"]}, {"type": "array", "items": {}}])
def test_a_root_that_is_no_object_is_made_one(schema):
    """Hazard G74: one such schema dropped all tools of its server."""
    made = wire_schema(freeze(schema))
    assert made.schema["type"] == "object"
    assert made.notes


def test_root_choices_are_merged_and_the_rule_is_said():
    """Hazard G73; public bug langchain#39271 (Notion): every message was a 400."""
    original = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "type": "object",
        "properties": {"a": {"type": "string"}, "b": {"type": "string"}, "c": {"type": "integer"}},
        "required": ["c"],
        "anyOf": [{"required": ["a"]}, {"required": ["b"]}],
    }
    made = wire_schema(freeze(original))
    assert not {"anyOf", "oneOf", "allOf", "$schema"} & set(made.schema)
    assert made.schema["required"] == ["c"]
    assert made.notes == ("provide at least one of these sets of arguments: {a} | {b}",)
    assert described(spec(original), made.notes) == (
        "Does it.\nNote: provide at least one of these sets of arguments: {a} | {b}"
    )


def test_properties_of_branches_are_joined_and_local_references_followed():
    original = {
        "oneOf": [{"$ref": "#/$defs/One"}, {"properties": {"b": {"type": "string"}}, "required": ["k", "b"]}],
        "$defs": {"One": {"properties": {"a": {"type": "integer"}}, "required": ["k", "a"]}},
    }
    made = wire_schema(freeze(original))
    assert set(made.schema["properties"]) == {"a", "b"}
    assert made.schema["required"] == ["k"]
    assert made.notes == ("provide exactly one of these sets of arguments: {a, k} | {b, k}",)


def test_all_of_adds_up():
    made = wire_schema(
        freeze({"allOf": [{"properties": {"a": {}}, "required": ["a"]}, {"properties": {"b": {}}, "required": ["b"]}]})
    )
    assert made.schema == {"type": "object", "properties": {"a": {}, "b": {}}, "required": ["a", "b"]}


def test_rules_that_no_vendor_takes_are_said_in_words():
    made = wire_schema(freeze({"type": "object", "not": {"required": ["a"]}, "dependentRequired": {"a": ["b"]}}))
    assert set(made.schema) == {"type", "properties"}
    assert [note.split(":")[0] for note in made.notes] == ["not", "dependentRequired"]


def test_a_root_reference_is_followed_and_an_external_one_never():
    made = wire_schema(freeze({"$ref": "#/$defs/A", "$defs": {"A": {"type": "object", "properties": {"x": {}}}}}))
    assert made.schema["properties"] == {"x": {}}
    assert wire_schema(freeze({"$ref": "https://example.org/s.json"})).schema["properties"] == {}
    assert wire_schema(freeze({"$ref": "#"})).schema["properties"] == {}


def test_nested_structure_is_kept_whole():
    """Hazard G82: only `properties` was used; `anyOf`, `$ref` and nested objects were lost."""
    inner = {
        "anyOf": [{"type": "string", "pattern": "^a"}, {"$ref": "#/$defs/N"}, {"type": "null"}],
        "default": None,
        "examples": ["a"],
    }
    original = {"type": "object", "properties": {"x": inner}, "$defs": {"N": {"type": "object"}}}
    made = wire_schema(freeze(original))
    assert made.schema == original
    assert made.notes == ()


def test_property_names_are_made_fit_and_found_again():
    names = ["$top", "@id", "ok", "_top", "a b", "ä" * 80, "x" * 65]
    original = {"type": "object", "properties": {n: {} for n in names}, "required": ["$top", "ok"]}
    made = wire_schema(freeze(original), rename=True)
    assert len(made.schema["properties"]) == len(names)
    assert all(PROPERTY.fullmatch(name) for name in made.schema["properties"])
    sent = dict.fromkeys(made.schema["properties"], 1)
    assert restored(sent, made.renames) == dict.fromkeys(names, 1)
    assert renamed(dict.fromkeys(names, 1), made.renames) == sent
    assert set(made.schema["required"]) <= set(made.schema["properties"])


def test_reduced_schemas_hold_nothing_that_gemini_refuses():
    """Hazard G79 (`additionalProperties`, `$schema`, `default`) and G80 (`const`, lists of types, null)."""
    original = {
        "$schema": "x",
        "type": "object",
        "additionalProperties": False,
        "properties": {
            "a": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": "d"},
            "b": {"const": "only"},
            "c": {"type": ["integer", "null"]},
            "d": {"type": ["integer", "string"]},
            "e": {"type": "string", "format": "uri", "pattern": "^h"},
            "f": {"$ref": "#/$defs/Tree"},
            "g": {"type": "number", "exclusiveMinimum": 0},
            "h": {"$ref": "https://example.org/x"},
            "i": {"allOf": [{"type": "object", "properties": {"p": {}}}, {"properties": {"q": {}}}]},
        },
        "$defs": {
            "Tree": {"type": "object", "properties": {"kids": {"type": "array", "items": {"$ref": "#/$defs/Tree"}}}}
        },
    }
    made = wire_schema(freeze(original), reduced=True)
    text = json.dumps(made.schema)
    for word in ("$ref", "$defs", "additionalProperties", "const", "default", "exclusiveMinimum", "pattern", '"null"'):
        assert word not in text
    properties = made.schema["properties"]
    assert properties["a"] == {"type": "string", "nullable": True}
    assert properties["b"] == {"enum": ["only"]}
    assert properties["c"] == {"type": "integer", "nullable": True}
    assert properties["d"] == {"anyOf": [{"type": "integer"}, {"type": "string"}]}
    assert properties["f"]["properties"]["kids"]["items"] == {"type": "object"}
    assert properties["h"] == {}
    assert set(properties["i"]["properties"]) == {"p", "q"}
    assert "g: exclusiveMinimum 0" in made.notes
    assert "e: format uri" in made.notes


def test_the_original_is_never_changed():
    original = freeze({"type": "object", "anyOf": [{"required": ["$a"]}], "properties": {"$a": {"type": ["x", "y"]}}})
    before = json.dumps(original)
    wire_schema(original, rename=True, reduced=True)
    assert json.dumps(original) == before


def test_an_output_schema_is_no_part_of_what_is_sent():
    """Hazard G76: an `outputSchema` without `type` lost nineteen tools."""
    odd = replace(spec({}), output_schema=freeze({"anyOf": [{"type": "string"}]}))
    assert "anyOf" not in Workshop(PROFILE).tools((odd,)).text


@pytest.mark.parametrize("description", ["", None])
def test_a_missing_description_harms_nothing(description):
    """Hazard F71: `description: null` was a ValidationError."""
    tools = Workshop(PROFILE).tools((replace(spec({}), description=description),))
    assert json.loads(tools.text)[0]["d"] == ""


def test_names_on_the_wire_fit_every_vendor():
    """Hazards F64 (over 64 characters), F65 (dots and slashes) and F67 (blanks)."""
    specs = tuple(
        spec({}, "chrome-devtools-mcp-plugin", name)
        for name in ("get_console_message_with_a_very_long_name_indeed_it_is", "admin.tools.list", "user/update", "a b")
    )
    sent = json.loads(Workshop(PROFILE).tools(specs).text)
    assert all(re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", tool["name"]) for tool in sent)
    assert len({tool["name"] for tool in sent}) == 4


def test_the_same_tool_on_two_servers_is_sent_twice_and_within_one_server_once():
    """Hazard F68."""
    made = Workshop(PROFILE).tools((spec({}, "a", "search"), spec({}, "b", "search"), spec({}, "b", "search")))
    assert [tool["name"] for tool in json.loads(made.text)] == ["a__search", "b__search"]
    assert [s.server for s in made.specs] == ["a", "b"]


def test_a_set_of_tools_is_made_once():
    workshop = Workshop(PROFILE)
    specs = (spec({}, "a"), spec({}, "b"))
    assert workshop.tools(specs) is workshop.tools(tuple(specs))
    assert workshop.tools(specs) is not workshop.tools(specs, reduced=True)


@pytest.mark.parametrize(
    ("text", "param", "name"),
    [
        ("tools.1.custom.input_schema: bad", "", "b__t"),
        ("Invalid schema", "tools[0].function.parameters", "a__t"),
        ("Invalid schema for function 'b__t': not an object", "", "b__t"),
        ("tools.9.x", "", None),
        ("oops", "", None),
    ],
)
def test_the_tool_that_a_refusal_means_is_found(text, param, name):
    made = Workshop(PROFILE).tools((spec({}, "a"), spec({}, "b")))
    found = made.culprit(text, param)
    assert (found.wire_name if found else None) == name
