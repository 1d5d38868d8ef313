from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from desktop_host.core.tools import ToolSpec, alias_for, split_name, wire_name
from desktop_host.core.values import freeze

WIRE = re.compile(r"[a-zA-Z0-9_-]{1,64}")
names = st.text(min_size=1, max_size=120)


def test_a_plain_name_stays_readable():
    assert wire_name("files", "read_file") == "files__read_file"


@pytest.mark.parametrize("tool", ["admin.tools.list", "user-profile/update", "with space", "x" * 80, "中文", ""])
def test_any_legal_name_becomes_one_that_every_vendor_takes(tool):
    """Hazards F64, F65, F67."""
    assert WIRE.fullmatch(wire_name("server", tool))


def test_names_that_look_alike_on_the_wire_stay_apart():
    """Hazard F68."""
    assert len({wire_name("s", n) for n in ("a.b", "a/b", "a b", "a_b")}) == 4
    assert wire_name("a", "search") != wire_name("b", "search")


@given(names, names, names, names)
def test_different_tools_never_share_a_wire_name(s1, t1, s2, t2):
    alias1, alias2 = alias_for(s1), alias_for(s2)
    assert WIRE.fullmatch(wire_name(alias1, t1))
    if (alias1, t1) != (alias2, t2):
        assert wire_name(alias1, t1) != wire_name(alias2, t2)


@given(st.lists(names, max_size=8))
def test_aliases_are_valid_and_free(titles):
    taken: set[str] = set()
    for title in titles:
        alias = alias_for(title, frozenset(taken))
        assert re.fullmatch(r"[a-z0-9-]{1,32}", alias) and alias not in taken and alias != "host"
        taken.add(alias)


def test_the_first_dot_splits():
    assert split_name("files.a.b") == ("files", "a.b")


def test_the_digest_covers_what_a_person_agreed_to():
    spec = ToolSpec("s", "t", "text", freeze({"type": "object"}))
    assert spec.digest != ToolSpec("s", "t", "other text", freeze({"type": "object"})).digest
    assert spec.digest == ToolSpec("other-server", "t", "text", freeze({"type": "object"})).digest
    assert spec.tokens > 0


def test_what_a_definition_costs_is_estimated_from_what_is_sent():
    """Hazard J109."""
    short = ToolSpec("s", "t", "text", freeze({"type": "object"}))
    long = ToolSpec("s", "t", "text " * 400, freeze({"type": "object"}))
    assert 5 < short.tokens < 60
    assert 600 < long.tokens < 1200
