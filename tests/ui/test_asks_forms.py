"""Elicitation forms: fields, defaults, limits and what is wrong with a value."""

from __future__ import annotations

import time
from typing import Any

import pytest

from desktop_host.core.values import freeze
from desktop_host.ui.viewmodels.forms import MISSING, Field, form_fields, read


def field(**spec: Any) -> Field:
    required = spec.pop("required", False)
    return form_fields(freeze({"properties": {"x": spec}, "required": ["x"] if required else []}))[0]


def test_each_kind_of_schema_gives_its_field() -> None:
    schema = freeze({
        "type": "object",
        "properties": {
            "text": {"type": "string"},
            "whole": {"type": "integer"},
            "real": {"type": "number"},
            "flag": {"type": "boolean", "default": True},
            "one": {"type": "string", "enum": ["a", "b"], "enumNames": ["A", "B"]},
            "titled": {"type": "string", "oneOf": [{"const": "a", "title": "Alpha"}]},
            "many": {"type": "array", "items": {"type": "string", "enum": ["a", "b"]}},
            "many_titled": {"type": "array", "items": {"anyOf": [{"const": "a", "title": "Alpha"}]}},
            "maybe": {"type": ["string", "null"]},
            "odd": {"type": "object"},
        },
    })  # fmt: skip
    kinds = {f.name: f.kind for f in form_fields(schema)}
    assert kinds == {
        "text": "text", "whole": "integer", "real": "number", "flag": "flag", "one": "choice", "titled": "choice",
        "many": "choices", "many_titled": "choices", "maybe": "text", "odd": "json",
    }  # fmt: skip
    by_name = {f.name: f for f in form_fields(schema)}
    assert by_name["one"].options == (("a", "A"), ("b", "B"))
    assert by_name["titled"].options == (("a", "Alpha"),)
    assert by_name["flag"].default is True


@pytest.mark.parametrize(
    ("spec", "raw", "value"),
    [
        ({"type": "integer"}, " 7 ", 7),
        ({"type": "integer", "minimum": 1, "maximum": 9}, "9", 9),
        ({"type": "number"}, "2.5", 2.5),
        ({"type": "number"}, "3", 3),
        ({"type": "string", "format": "email"}, "a@b.cd", "a@b.cd"),
        ({"type": "string", "format": "uri"}, "https://a.b/c", "https://a.b/c"),
        ({"type": "string", "format": "date"}, "2026-02-28", "2026-02-28"),
        ({"type": "string", "format": "date-time"}, "2026-02-28T10:00:00Z", "2026-02-28T10:00:00Z"),
        ({"type": "string", "pattern": "^x"}, "xy", "xy"),
        ({"type": "string"}, "", MISSING),
        ({"type": "object"}, '{"a": 1}', freeze({"a": 1})),
        ({"type": "boolean"}, False, False),
    ],
)
def test_a_good_value_is_read_as_its_type(spec: dict[str, Any], raw: Any, value: Any) -> None:
    assert read(field(**spec), raw) == (value, "")


@pytest.mark.parametrize(
    ("spec", "raw"),
    [
        ({"type": "integer"}, "7.5"),
        ({"type": "integer"}, "seven"),
        ({"type": "integer", "minimum": 1, "maximum": 9}, "10"),
        ({"type": "number", "exclusiveMinimum": 0}, "0"),
        ({"type": "number"}, "inf"),
        ({"type": "string", "minLength": 3}, "ab"),
        ({"type": "string", "maxLength": 3}, "abcd"),
        ({"type": "string", "format": "email"}, "a@b"),
        ({"type": "string", "format": "uri"}, "not a uri"),
        ({"type": "string", "format": "date"}, "2026-02-30"),
        ({"type": "string", "format": "date-time"}, "2026-02-28T10:00:00"),
        ({"type": "string", "pattern": "^x"}, "y"),
        ({"type": "integer", "required": True}, ""),
        ({"type": "string", "required": True}, " "),
        ({"type": "array", "items": {"enum": ["a", "b", "c"]}, "minItems": 2}, ("a",)),
        ({"type": "object"}, "{broken"),
    ],
)
def test_a_bad_value_says_what_is_wrong(spec: dict[str, Any], raw: Any) -> None:
    value, wrong = read(field(**spec), raw)
    assert wrong
    assert "chat.form" not in wrong
    assert value is MISSING or spec["type"] in ("string", "array")


def test_a_pattern_that_would_take_for_ever_does_not_hold_up_the_window() -> None:
    schema = freeze({"properties": {"a": {"type": "string", "pattern": "^(a|aa)+$"}}})
    began = time.process_time()
    assert read(form_fields(schema)[0], "a" * 64 + "!") == ("a" * 64 + "!", "")
    assert time.process_time() - began < 1
    assert read(form_fields(schema)[0], "b")[1]
