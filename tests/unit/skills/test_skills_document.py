"""What stands in a SKILL.md, ours and wild, and what an enemy may put there."""

from __future__ import annotations

import time

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from desktop_host.skills import yaml_text
from desktop_host.skills.document import parse, slug, tools_of


def doc(front: str, body: str = "Do it.", folder: str = "demo"):
    return parse(f"---\n{front}\n---\n{body}\n".encode(), folder)


def test_our_keys_are_read_from_metadata():
    skill = doc(
        'name: demo\ndescription: d\nmetadata:\n  version: "2.0"\n  desktop-host-keywords: 旅行; city trip ;\n'
        '  desktop-host-examples: "a; b"\n  desktop-host-exclude: weather\n  desktop-host-threshold: "0.4"\n'
        '  desktop-host-priority: "-3"\n  desktop-host-requires: Other Skill\n  desktop-host-conflicts: x;y\n'
        "  desktop-host-route: strong\n  desktop-host-servers: maps;search\n  desktop-host-fallback: plain"
    ).skill
    assert skill.triggers.keywords == ("旅行", "city trip")
    assert skill.triggers.examples == ("a", "b") and skill.triggers.exclude == ("weather",)
    assert (skill.triggers.threshold, skill.priority, skill.version) == (0.4, -3, "2.0")
    assert (skill.requires, skill.conflicts, skill.fallback) == (("other-skill",), ("x", "y"), ("plain",))
    assert (skill.route, skill.servers) == ("strong", ("maps", "search"))


def test_wild_spellings_are_read_too():
    skill = doc(
        "name: demo\ndescription: d\nversion: 1.2\ntriggers: [fix pdf, merge pdf]\nwhen_to_use: when a PDF comes up\n"
        "when_not_to_use: plain text\nmetadata:\n  keywords: a, b、c\nrequires:\n  mcp: [rube]\n"
        "disable-model-invocation: true\nuser-invocable: false\nargument-hint: FILE"
    ).skill
    assert skill.triggers.keywords == ("fix pdf", "merge pdf", "a", "b", "c")
    assert skill.triggers.examples == ("when a PDF comes up",) and skill.triggers.exclude == ("plain text",)
    assert (skill.version, skill.servers, skill.argument_hint) == ("1.2", ("rube",), "FILE")
    assert (skill.model_invocable, skill.user_invocable) == (False, False)


def test_a_number_that_cannot_be_used_is_told_with_its_place():
    document = doc('name: demo\ndescription: d\nmetadata:\n  desktop-host-threshold: "9"')
    assert document.skill.triggers.threshold is None
    assert [(p.code, p.line) for p in document.problems] == [("bad-number", 4)]


def test_metadata_as_the_last_key_is_no_trouble():
    """Hazard P143."""
    document = doc("name: demo\ndescription: d\nmetadata:\n  a: b\n  c: d")
    assert document.ok and document.loaded


def test_crlf_leaves_no_trace_in_name_description_or_body():
    """Hazard P142."""
    document = parse(b"---\r\nname: demo\r\ndescription: one\r\n---\r\n# T\r\ntext\r\n", "demo")
    assert (document.skill.label, document.skill.description, document.skill.body) == ("demo", "one", "# T\ntext")


def test_aliases_that_explode_are_refused_quickly():
    """Hazard P: a bomb of YAML aliases."""
    rows = ["a0: &a0 [x,x,x,x,x,x,x,x,x]"]
    rows += [f"a{i}: &a{i} [{','.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 12)]
    started = time.monotonic()
    document = doc("name: demo\ndescription: d\n" + "\n".join(rows))
    assert time.monotonic() - started < 5
    assert document.skill.description == "d" and document.loaded
    assert "yaml-line-fallback" in {p.code for p in document.problems}


def test_a_frontmatter_of_a_megabyte_costs_its_fields_and_nothing_else():
    document = doc("name: demo\ndescription: d\nx: |\n" + "  line\n" * 200_000)
    assert document.skill.name == "demo" and "frontmatter-too-long" in {p.code for p in document.problems}


def test_deep_nesting_does_not_crash():
    document = doc("name: demo\ndescription: d\nx: " + "[" * 5000)
    assert document.skill.name == "demo" and document.loaded


def test_python_objects_are_text_and_nothing_is_run(tmp_path):
    mark = tmp_path / "mark"
    document = doc(f'name: demo\ndescription: d\nx: !!python/object/apply:os.system ["touch {mark}"]')
    assert document.loaded and not mark.exists()


def test_commands_in_the_body_are_told_and_not_run():
    document = doc("name: demo\ndescription: d", "Now\n\nsee !`rm -rf /` here")
    assert [(p.code, p.line) for p in document.problems] == [("inline-command", 7)]


def test_ids_are_made_of_any_label():
    assert slug("Name  Upper!") == "name-upper"
    assert slug("周报 助手") == "周报-助手"
    assert slug("../../etc") == "etc"
    assert len(slug("x" * 100)) == 64


def test_allowed_tools_keep_their_parentheses_whole():
    assert tools_of("Bash(git add:*) Read,Grep") == ("Bash(git add:*)", "Read", "Grep")
    assert tools_of(["A", "B C"]) == ("A", "B C")
    assert tools_of(None) == ()


def test_binary_rubbish_is_refused_with_a_reason():
    document = parse(bytes(range(256)) * 20, "demo")
    assert not document.loaded and document.problems


_WORD = st.text(st.characters(blacklist_categories=("Cs", "Cc"), blacklist_characters="[{&*!"), max_size=12)
_ROWS = st.lists(
    st.one_of(
        st.builds(lambda k, v: f"{k}: {v}", st.sampled_from(["name", "description", "version", "on"]), _WORD),
        st.builds(lambda v: f"metadata:\n  a: {v}\n  b:", _WORD),
        st.builds(lambda v, w: f"triggers:\n- {v}\n- {w}", _WORD, _WORD),
        st.builds(lambda v: f"text: |\n  {v}\n  more", _WORD),
        st.sampled_from(["x: 1.10", "y: ~", "z:", "q: 'a''b'", 'p: "a\\tb"', "n: null", "? k\n: v", "d: 2024-01-02"]),
    ),
    max_size=5,
)


@given(_ROWS)
@settings(max_examples=300, deadline=None)
def test_a_plain_block_says_without_the_rules_of_yaml_what_it_says_with_them(rows):
    block = "\n".join(rows)
    try:
        expected = yaml_text._plain(yaml.load(block, Loader=yaml_text._loader()), [0])
    except (yaml.YAMLError, ValueError, TypeError):
        with pytest.raises(yaml.YAMLError):
            yaml_text._parse(block)
        return
    assert yaml_text._parse(block) == expected
