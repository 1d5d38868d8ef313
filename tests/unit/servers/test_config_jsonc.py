from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from desktop_host.servers import jsonc
from desktop_host.servers.jsonc_edit import edit

_TEXT = st.text(max_size=4)
_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | _TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_TEXT, inner, max_size=3),
    max_leaves=6,
)
_OBJECTS = st.dictionaries(st.text(max_size=2), _VALUES, max_size=4)


@given(_VALUES, st.sampled_from([None, 2, "\t"]), st.booleans())
def test_all_json_is_read_as_it_is(value: Any, indent: int | str | None, ascii_only: bool) -> None:
    assert jsonc.read(json.dumps(value, indent=indent, ensure_ascii=ascii_only)).value == value


@given(_OBJECTS, _OBJECTS, st.sampled_from([None, 2, "\t"]))
def test_an_edit_gives_what_was_wanted_as_strict_json_and_touches_nothing_else(
    before: dict[str, Any], wanted: dict[str, Any], indent: int | str | None
) -> None:
    text = "// top\n" + json.dumps({"o": before, "p": 1}, indent=indent, ensure_ascii=False) + "\n"
    node = jsonc.read(text).member("o")
    assert node is not None
    edited = edit(text, node, wanted)
    assert json.loads(edited.removeprefix("// top\n")) == {"o": wanted, "p": 1}
    if json.dumps(before, sort_keys=True) == json.dumps(wanted, sort_keys=True):
        assert edited == text


def test_an_edit_keeps_windows_line_ends() -> None:
    text = '{\r\n  "o": {\r\n    "a": 1\r\n  }\r\n}\r\n'
    node = jsonc.read(text).member("o")
    assert node is not None
    edited = edit(text, node, {"a": 1, "b": {"c": 2}})
    assert edited == '{\r\n  "o": {\r\n    "a": 1,\r\n    "b": {\r\n      "c": 2\r\n    }\r\n  }\r\n}\r\n'


@pytest.mark.parametrize(
    ("text", "code", "line", "column"),
    [
        ('{"a": 1 "b": 2}', "json_comma_expected", 1, 9),
        ('{"a":\n"x', "json_string_open", 2, 1),
        ("[1,2", "json_ends_early", 1, 5),
        ("[1] /* x", "json_comment_open", 1, 5),
        ("{'a':1}", "json_key_expected", 1, 2),
        ("[tru]", "json_value_expected", 1, 2),
        ("[1e999]", "json_number_too_large", 1, 2),
        ("[" * 300, "json_too_deep", 1, 202),
    ],
)
def test_what_is_no_json_is_told_with_its_place(text: str, code: str, line: int, column: int) -> None:
    """Hazard A4."""
    with pytest.raises(jsonc.JsonProblem, match=r".") as failed:
        jsonc.read(text)
    place = failed.value.place
    assert (failed.value.code, place.line, place.column) == (code, line, column)


def test_half_a_surrogate_pair_does_not_come_in() -> None:
    assert jsonc.read('"\\ud83d\\ude00 \\ud83d"').value == "😀 \ufffd"
