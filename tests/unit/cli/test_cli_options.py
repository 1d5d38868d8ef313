"""Options of chat to what the engine takes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from desktop_host.cli.arguments import parse
from desktop_host.cli.main import host_spec
from desktop_host.cli.options import attachments, read_answers, session_options
from desktop_host.core.errors import UserFault
from desktop_host.core.permissions import Effect, Rule
from desktop_host.core.sessions import SessionOptions


def _options(*words: str, kept: SessionOptions | None = None) -> SessionOptions:
    return session_options(parse(["chat", "hi", *words]), kept)


def test_what_is_not_said_stays_as_the_profile_has_it():
    assert _options() == SessionOptions()


def test_what_is_said_reaches_the_session(tmp_path):
    got = _options(
        *("--model", "local", "--system", "be brief", "--no-servers", "--root", str(tmp_path), "--effort", "low"),
        *("--max-steps", "4", "--timeout", "9", "--budget", "1.5", "--token-budget", "99", "--skill", "pdf"),
    )
    assert got == SessionOptions(
        model="local", system="be brief", servers=(), roots=(str(tmp_path.resolve()),), effort="low", max_steps=4,
        turn_timeout_s=9.0, skills=("pdf",), budget_usd=1.5, token_budget=99,
    )  # fmt: skip
    assert _options("--no-skills").skills == ()


def test_allow_and_deny_are_rules_of_the_command_line():
    allow, deny = _options("--deny", "fs.write*", "--allow", "fs.*").rules
    assert (allow.effect, allow.pattern, allow.origin) == (Effect.ALLOW, "fs.*", "command-line")
    assert (deny.effect, deny.pattern) == (Effect.DENY, "fs.write*")


def test_going_on_with_a_session_keeps_what_it_had():
    kept = SessionOptions(model="local", rules=(Rule(Effect.DENY, "fs.rm"),), max_steps=3)
    assert _options(kept=kept) == kept
    got = _options("--allow", "fs.*", "--max-steps", "5", kept=kept)
    assert (got.model, got.max_steps) == ("local", 5)
    assert [rule.pattern for rule in got.rules] == ["fs.rm", "fs.*"]


def test_a_script_is_found_again_from_another_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert _options("--model", "script:a.json").model == f"script:{tmp_path / 'a.json'}"
    assert _options("--model", "compat:http://h#m").model == "compat:http://h#m"


def test_a_root_that_is_no_folder_is_refused(tmp_path):
    with pytest.raises(UserFault) as caught:
        _options("--root", str(tmp_path / "none"))
    assert caught.value.code == "not_found"


def test_answers_are_checked_and_a_mistake_is_placed(tmp_path):
    """Hazard A1: a byte order mark is no mistake."""
    file = tmp_path / "answers.json"
    good = [
        {"kind": "elicitation", "action": "accept", "content": {"name": "Ada"}},
        {"kind": "sampling", "action": "accept", "edit": None},
        {"kind": "tool", "action": "allow"},
        {"kind": "url", "action": "decline"},
    ]
    file.write_bytes(b"\xef\xbb\xbf" + json.dumps(good).encode())
    assert list(read_answers(str(file))) == good
    for bad, said in (
        ('[{"kind":"tool","action":"allow"},]', "line 1, column 3"),
        ('{"kind":"tool"}', "list"),
        ('[{"kind":"nope","action":"allow"}]', "nope"),
        ('[{"kind":"tool","action":"accept"}]', "answer 1"),
        ('[{"kind":"elicitation","action":"accept","content":[]}]', "content"),
        ('[{"kind":"sampling","action":"accept","edit":3}]', "edit"),
    ):
        file.write_text(bad)
        with pytest.raises(UserFault) as caught:
            read_answers(str(file))
        assert caught.value.code == "bad_config"
        assert said in caught.value.message
    with pytest.raises(UserFault) as caught:
        read_answers(str(tmp_path / "none"))
    assert caught.value.code == "not_found"


def test_attachments_carry_their_kind(tmp_path):
    for name, data in (("a.png", b"\x89PNG\0"), ("b.unknown", b"plain"), ("c.blob", b"\0\1"), ("d.py", b"x = 1\n")):
        (tmp_path / name).write_bytes(data)
    files = attachments([str(path) for path in sorted(tmp_path.iterdir())])
    assert [file.name for file in files] == ["a.png", "b.unknown", "c.blob", "d.py"]
    kinds = [file.mime_type for file in files]
    assert kinds[:3] == ["image/png", "text/plain", "application/octet-stream"]
    assert kinds[3].startswith("text/")
    with pytest.raises(UserFault):
        attachments([str(tmp_path)])


def test_a_run_is_headless_with_the_answers_given(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("a.json").write_text('[{"kind":"tool","action":"allow"}]')
    words = "chat hi --home h --answers a.json --allow-sampling kb --mcp-config m.json"
    spec = host_spec(parse(words.split(" ")))
    assert spec.home == tmp_path / "h"
    assert spec.headless is not None
    assert spec.headless.answers == ({"kind": "tool", "action": "allow"},)
    assert spec.headless.allow_sampling == frozenset({"kb"})
    assert spec.mcp_config == (tmp_path / "m.json",)
    assert spec.with_profile_servers is False
    assert host_spec(parse(["chat", "hi", "--mcp-config", "m", "--with-profile-servers"])).with_profile_servers is True
    assert host_spec(parse(["sessions", "list"])).headless is not None
    assert host_spec(parse([])).headless is None
