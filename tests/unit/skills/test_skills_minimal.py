"""Every minimised file: what the host makes of it, and whether the open format would accept it."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path

import pytest

from desktop_host.i18n import Translator
from desktop_host.skills.document import parse
from desktop_host.skills.lint import lint
from desktop_host.skills.problems import CODES

CASES = Path(__file__).resolve().parents[2] / "data" / "skills" / "minimal"
REAL = Path(os.environ.get("DESKTOP_HOST_REAL_SKILLS", "/nowhere"))
"""A folder of public skills to measure on; they are no part of the project."""

# case: (loaded, valid by the strict rules, name, description or None, {code: line})
EXPECTED: dict[str, tuple[bool, bool, str, str | None, dict[str, int]]] = {
    "allowed-comma": (True, True, "allowed-comma", "d", {}),
    "anchor": (True, False, "anchor", "anchor", {"anchor": 2}),
    "blank-first": (True, False, "blank-first", "d", {"blank-first": 1}),
    "body-hr": (True, True, "body-hr", "d", {}),
    "bom": (True, False, "bom", "d", {"bom": 1}),
    "colon": (True, False, "colon", "Use this skill when: the user asks about PDFs", {"yaml-repaired": 3}),
    "comment-first": (True, False, "comment-first", "d", {"comment-first": 1}),
    "cr-only": (True, True, "cr-only", "d", {}),
    "crlf": (True, True, "crlf", "d", {}),
    "desc-at": (True, False, "desc-at", "@mention helper", {"yaml-repaired": 3}),
    "desc-backtick": (True, False, "desc-backtick", "`foo` runner", {"yaml-repaired": 3}),
    "desc-block": (True, True, "desc-block", "Line one line two", {}),
    "desc-dashes": (True, True, "desc-dashes", "Converts a --- separated file", {}),
    "desc-empty": (False, False, "desc-empty", None, {"description-missing": 3}),
    "desc-hash": (True, True, "desc-hash", "Handles C", {"yaml-comment": 3}),
    "desc-list": (True, False, "desc-list", "a b", {"description-not-text": 3}),
    "desc-long": (True, False, "desc-long", None, {"description-too-long": 3}),
    "desc-missing": (False, False, "desc-missing", None, {"description-missing": 2}),
    "desc-multi-plain": (True, False, "desc-multi-plain", "Line one continues: here", {"yaml-line-fallback": 4}),
    "desc-percent": (True, False, "desc-percent", "%complete tracker", {"yaml-repaired": 3}),
    "desc-quote-tail": (True, False, "desc-quote-tail", '"Run tests" and report', {"yaml-line-fallback": 3}),
    "dots-close": (True, False, "dots-close", "d", {"dots-close": 4}),
    "dup-key": (True, False, "dup-key", "b", {"duplicate-key": 4}),
    "empty-body": (True, True, "empty-body", "d", {"empty-body": 4}),
    "empty-file": (False, False, "empty-file", None, {"empty-file": 1}),
    "extra-field": (True, False, "extra-field", "d", {"unexpected-field": 4}),
    "flow-list": (True, False, "flow-list", "d", {"flow-style": 4}),
    "flow-map": (True, False, "flow-map", "d", {"flow-style": 4}),
    "four-dashes": (False, False, "four-dashes", None, {"no-frontmatter": 1}),
    "latin1": (True, False, "latin1", "r\ufffdsum\ufffd helper", {"not-utf8": 3}),
    "lowercase-file": (True, True, "lowercase-file", "d", {"lowercase-file": 0}),
    "name-bool": (True, False, "on", "d", {"name-mismatch": 2}),
    "name-mismatch": (True, False, "other", "d", {"name-mismatch": 2}),
    "name-missing": (True, False, "name-missing", "d", {"name-missing": 2}),
    "name-number": (True, False, "123", "d", {"name-mismatch": 2}),
    "name-unicode": (True, False, "周报", "d", {"name-mismatch": 2}),
    "name-upper": (True, False, "Name Upper", "d", {"name-charset": 2, "name-mismatch": 2}),
    "no-frontmatter": (False, False, "no-frontmatter", None, {"no-frontmatter": 1}),
    "ok": (True, True, "ok", "Does X. Use when Y.", {}),
    "pytag": (
        True,
        False,
        "pytag",
        '!!python/object/apply:os.system ["true"]',
        {"yaml-repaired": 3, "yaml-tag": 3, "flow-style": 3},
    ),
    "tab-indent": (True, False, "tab-indent", "d", {"tab-indent": 5}),
    "trailing-space": (True, True, "trailing-space", "d", {}),
    "unclosed": (False, False, "unclosed", None, {"unclosed": 1}),
    "utf16": (True, False, "utf16", "d", {"utf16": 1}),
    "version-number": (True, True, "version-number", "d", {}),
}


def _read(folder: Path):
    file = next(folder.iterdir())
    return parse(file.read_bytes(), folder.name, file.name)


def test_all_cases_are_expected():
    assert {p.name for p in CASES.iterdir()} == EXPECTED.keys() and len(EXPECTED) == 45


@pytest.mark.parametrize("case", EXPECTED)
def test_a_file_is_read_mended_or_refused_with_its_line(case):
    """Hazards P140, P142, P143, P145."""
    loaded, ok, name, description, problems = EXPECTED[case]
    document = _read(CASES / case)
    assert (document.loaded, document.ok, document.skill.label) == (loaded, ok, name)
    if description is not None:
        assert document.skill.description == description
    assert {p.code: p.line for p in document.problems} == problems


def test_a_version_stays_as_it_was_written():
    assert _read(CASES / "version-number").skill.version == "1.10"


def test_all_shapes_of_allowed_tools_are_read():
    assert _read(CASES / "allowed-comma").skill.allowed_tools == ("Read", "Grep", "Bash(git:*)")
    assert _read(CASES / "flow-list").skill.allowed_tools == ("Read", "Grep")


def test_a_rule_in_the_body_does_not_cut_it():
    assert _read(CASES / "body-hr").skill.body == "# B\n\n---\n\nmore"


@pytest.mark.parametrize("language", ["en", "zh_CN"])
def test_every_problem_has_words_and_a_fix(language):
    words = Translator(language)
    assert not [c for c in CODES if not (words.has(f"skill.problem.{c}") and words.has(f"skill.fix.{c}"))]


def _reference(folder: Path) -> list[str]:
    from skills_ref.validator import validate

    try:
        return validate(folder)
    except UnicodeDecodeError as error:  # it crashes on what is no UTF-8
        return [str(error)]


def _checker() -> None:
    if find_spec("skills_ref") is None:  # set up with `.[local,dev]`, so in CI it is there
        (pytest.fail if os.environ.get("CI") else pytest.skip)("the reference checker is not installed")


def test_the_strict_badge_agrees_with_the_reference_checker():
    _checker()
    differ = {
        r.path: (r.ok, _reference(Path(r.path))) for r in lint((CASES,)) if r.ok == bool(_reference(Path(r.path)))
    }
    assert not differ


@pytest.mark.skipif(not REAL.is_dir(), reason="DESKTOP_HOST_REAL_SKILLS names no folder of public skills")
def test_public_skills_load_or_say_why_and_agree_with_the_reference_checker():
    _checker()
    reports = lint((REAL,))
    assert reports
    assert not [r.path for r in reports if not r.loaded and not r.problems]
    assert not [r.path for r in reports if r.ok == bool(_reference(Path(r.path)))]
