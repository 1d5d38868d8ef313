"""Skills of servers: listed, looked into, approved by digest, used by a model, refused once they are others."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

SKILLED = Path(__file__).parents[1] / "fakes" / "servers" / "skilled.py"
BODY = "# Notes\n\nBegin with the date, then read style.md."


@pytest.fixture
def shelf(tmp_path, cli) -> Path:
    """The folder that the server `team` serves skills from."""
    folder = tmp_path / "shelf"
    (folder / "notes").mkdir(parents=True)
    (folder / "notes" / "SKILL.md").write_text(
        f"---\nname: notes\ndescription: Writes notes the way we do.\n---\n{BODY}\n"
    )
    (folder / "notes" / "style.md").write_text("Short lines.\n")
    assert cli("servers", "add", "team", "--", sys.executable, str(SKILLED), str(folder))[0] == 0
    return folder


def chat(cli, tmp_path: Path, *extra: str) -> list[dict[str, Any]]:
    """A model that activates the skill, reads its other file and answers."""
    script = tmp_path / "script.json"
    calls = [
        {"tool": "host.use_skill", "arguments": {"name": "team--notes"}},
        {"tool": "host.read_skill_file", "arguments": {"skill": "team--notes", "path": "style.md"}},
    ]
    script.write_text(json.dumps([*([{"call": c}] for c in calls), [{"text": "Done."}]]))
    code, rows = cli("chat", "--model", f"script:{script}", "--allow", "host.*", *extra, "Write my notes")
    assert code == 0
    return [r for r in rows if r.get("type") == "tool_settled"]


def test_a_skill_of_a_server_is_used_only_after_a_person_approved_just_these_files(cli, shelf, tmp_path):
    code, [listed] = cli("skills", "served")
    assert code == 0
    assert (listed["id"], listed["server"], listed["approved"], listed["files"]) == (
        "team--notes", "team", False, ["SKILL.md", "style.md"],
    )  # fmt: skip
    assert [one["outcome"] for one in chat(cli, tmp_path)] == ["error", "error"]
    code, [shown] = cli("skills", "served", "team--notes")
    assert code == 0 and BODY in shown["body"]
    assert cli("skills", "approve", "team--notes", "--digest", "0" * 64)[1][0]["code"] == "bad_skill"
    assert cli("skills", "approve", "team--notes", "--digest", shown["digest"])[0] == 0
    active, read = chat(cli, tmp_path)
    assert (active["outcome"], read["outcome"]) == ("ok", "ok")
    assert BODY in active["content"][0]["text"] and "server team" in active["content"][0]["text"]
    assert "Short lines." in read["content"][0]["text"]


def test_another_file_than_the_approved_one_needs_a_new_approval_and_a_forged_one_cannot_be_had(cli, shelf, tmp_path):
    assert cli("skills", "approve", "team--notes")[0] == 0
    (shelf / "notes" / "style.md").write_text("Long lines.\n")
    [changed] = cli("skills", "served")[1]
    assert (changed["approved"], changed["changed"]) == (False, True)
    assert [one["outcome"] for one in chat(cli, tmp_path)] == ["error", "error"]
    assert cli("skills", "approve", "team--notes")[0] == 0
    assert [one["outcome"] for one in chat(cli, tmp_path)] == ["ok", "ok"]
    assert cli("skills", "revoke", "team--notes")[0] == 0
    assert cli("skills", "served")[1][0]["approved"] is False
    (shelf / "notes" / ".forged").touch()
    code, [refused] = cli("skills", "served", "team--notes")
    assert (code, refused["code"], refused["params"]["reason"]) == (2, "bad_skill", "digest")


def test_an_unknown_skill_is_named_and_a_server_that_serves_none_is_no_failure(cli, tmp_path):
    code, rows = cli("skills", "served")
    assert (code, rows) == (0, [])
    code, [refused] = cli("skills", "approve", "team--nothing")
    assert (code, refused["code"], refused["params"]["name"]) == (2, "not_found", "team--nothing")


def test_a_call_that_does_not_fit_a_tool_of_the_host_is_told_what_would(cli, shelf, tmp_path):
    assert cli("skills", "approve", "team--notes")[0] == 0
    script = tmp_path / "script.json"
    slip = {"tool": "host.read_skill_file", "arguments": {"name": "team--notes", "path": "style.md"}}
    script.write_text(json.dumps([[{"call": slip}], [{"text": "Sorry."}]]))
    rows = cli("chat", "--model", f"script:{script}", "--allow", "host.*", "Write my notes")[1]
    [settled] = [r for r in rows if r.get("type") == "tool_settled"]
    told = settled["content"][0]["text"]
    assert settled["outcome"] == "error" and "'skill' is a required property" in told and '"required"' in told
