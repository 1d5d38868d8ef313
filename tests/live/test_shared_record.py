"""Two computers (homes of their own) on one PostgreSQL, with the real program."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from desktop_host.app.run import opener
from desktop_host.core.errors import KnownFault
from desktop_host.core.sessions import SessionOptions
from desktop_host.engine.host import HostSpec
from desktop_host.storage.postgres_schema import STEPS
from tests.fakes.postgres_server import PASSWORD, PostgresServer, running
from tests.live.program import config, events, run, script, start, until
from tests.live.test_program_kill import LATE


class Team:
    """Homes that share a database; the password comes from each home's vault."""

    def __init__(self, folder: Path, server: PostgresServer) -> None:
        self.folder = folder
        self.server = server
        self.database = server.database()
        (folder / "words").write_text("correct horse battery staple\n")
        self.more = {"DESKTOP_HOST_PASSPHRASE_FILE": str(folder / "words")}

    def home(self, name: str, password: str = PASSWORD) -> Path:
        home = self.folder / name
        self.run(home, "secrets", "set", "pg", given=password)
        self.run(home, "settings", "set", "storage.url", self.server.url(self.database, "${keyring:pg}"))
        return home

    def run(self, home: Path, *words: str, **more: Any) -> list[dict[str, Any]]:
        return run(home, *words, **(self.more | more))

    def start(self, home: Path, *words: str) -> subprocess.Popen[str]:
        return start(home, *words, **self.more)


@pytest.fixture
def team(tmp_path: Path, postgres: PostgresServer) -> Team:
    return Team(tmp_path, postgres)


def ended(told: list[dict[str, Any]]) -> dict[str, Any]:
    return [e for e in told if e["type"] == "turn_ended"][-1]


def traces(folder: Path, secret: str) -> list[Path]:
    """Files below a folder that hold a secret."""
    return [p for p in folder.rglob("*") if p.is_file() and secret.encode() in p.read_bytes()]


async def test_a_window_opens_a_shared_record_with_the_passphrase_it_was_told(
    team: Team, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The vault's own question comes too late here: nobody can be asked before the record is open."""
    home = team.home("here")
    monkeypatch.delenv("DESKTOP_HOST_PASSPHRASE_FILE", raising=False)
    for told, reason in (("", "no_passphrase"), ("battery horse", "wrong_passphrase")):
        with pytest.raises(KnownFault) as caught:
            async with opener(HostSpec(home, passphrase=told)):
                pass
        assert (caught.value.code, caught.value.params["reason"]) == ("vault_locked", reason)
    async with opener(HostSpec(home, passphrase="correct horse battery staple")) as host:
        assert host.record["store"] == "postgresql"
        await host.new_session(SessionOptions(model="local"), "here")
    assert [r["title"] for r in team.run(home, "sessions", "list")] == ["here"]


def test_a_chat_goes_on_at_another_computer_with_its_files_budget_and_usage(team: Team) -> None:
    here, there = team.home("here"), team.home("there")
    big = team.folder / "big.txt"
    big.write_text("灯塔 lighthouse " * 4000)
    usage = {"usage": {"input": 10, "output": 5, "cost_usd": 0.4}}
    model = script(
        team.folder / "m.json", [{"text": "one"}, usage], [{"text": "two"}, usage], [{"text": "three"}, usage]
    )
    for home in (here, there):
        team.run(home, "settings", "set", "budgets.day_usd", "1.0")
    told = team.run(here, "chat", "--model", model, "--no-servers", "--attach", str(big), "begin")
    session = ended(told)["session"]
    told = team.run(there, "chat", "--session", session, "--no-servers", "go on")
    assert ended(told)["text"] == "two"
    assert [r["session"] for r in team.run(here, "sessions", "search", "go on")] == [session]
    shown = team.run(here, "sessions", "show", session)
    assert shown == team.run(there, "sessions", "show", session)
    kept = team.server.admin("SELECT data FROM desktop_host.blobs", team.database)
    assert big.read_bytes() in [bytes(data) for (data,) in kept]
    (row,) = team.run(there, "usage", "--by", "session")
    assert (row["requests"], row["cost_usd"]) == (2, pytest.approx(0.8))
    # $0.20 of the day are left for both of them.
    stopped = team.run(here, "chat", "--session", session, "--no-servers", "more", "--budget", "5", code=None)
    assert ended(stopped)["stop"] in ("end", "budget")
    again = team.run(there, "chat", "--session", session, "--no-servers", "more", code=4)
    assert ended(again)["error"]["code"] == "budget_spent"
    for home in (here, there):
        assert not (home / "profiles" / "default" / "blobs").exists()
        assert traces(home, PASSWORD) == []
    (check,) = [c for c in team.run(here, "doctor", code=None) if c["check"] == "database"]
    assert check["ok"] and "PostgreSQL" in str(check) and team.database in str(check) and PASSWORD not in str(check)


def test_a_session_runs_at_one_computer_only_and_is_taken_over_after_a_kill(team: Team) -> None:
    """Hazard J101."""
    here, there = team.home("here"), team.home("there")
    server = team.folder / "late.py"
    server.write_text(LATE)
    late = config(team.folder / "mcp.json", late=[sys.executable, str(server), str(team.folder / "pid")])
    call = {"call": {"tool": "late.write_late", "arguments": {"path": str(team.folder / "written")}}}
    model = script(team.folder / "m.json", [{"text": "let me"}, call], [{"text": "went on"}])
    options = ("--mcp-config", str(late), "--allow", "late.*")
    process = team.start(here, "chat", "--model", model, *options, "write")
    session = ""
    acknowledged: list[int] = []
    for event in events(process):
        session = event["session"] or session
        if event["type"] in ("user_said", "turn_started", "assistant_said", "tool_requested"):
            acknowledged.append(event["seq"])
        if event["type"] == "tool_started":
            break
    (refusal,) = [
        e
        for e in team.run(there, "chat", "--session", session, "--no-servers", "me too", code=1)
        if e["type"] == "error"
    ]
    assert refusal["code"] == "session_busy"
    process.send_signal(signal.SIGKILL)
    process.communicate()
    told = team.run(there, "sessions", "resume", session, *options)
    assert ended(told)["text"] == "went on"
    shown = team.run(there, "sessions", "show", session)
    assert set(acknowledged) <= {e["seq"] for e in shown}
    assert not any(e["type"] == "tools_changed" for e in shown)  # the refused one changed nothing
    (settled,) = [e for e in shown if e["type"] == "tool_settled"]
    assert settled["outcome"] == "unknown"
    assert [e["status"] for e in shown if e["type"] == "turn_ended"] == ["interrupted", "done"]
    assert (team.folder / "pid.starts").read_text() in ("x", "xx")  # nothing was called again
    assert not (team.folder / "written").exists()


def test_what_keeps_the_database_from_being_used_is_told_and_can_be_mended(team: Team) -> None:
    """Hazards O136, O137."""
    home = team.home("home", "wrong-password-7")
    (told,) = team.run(home, "sessions", "list", code=5)
    assert (told["code"], told["params"]["reason"]) == ("storage_unavailable", "password")
    assert "secrets set" in told["remedy"]
    (row,) = team.run(home, "doctor", code=1)
    assert not row["ok"] and row["remedy"]
    assert traces(home, "wrong-password-7") == []
    team.run(home, "secrets", "set", "pg", given=PASSWORD)
    assert team.run(home, "sessions", "list") == []
    for url, code, reason in (
        (f"postgresql://host:{'secret-in-clear'}@127.0.0.1/x", 2, "password_in_clear"),
        ("mysql://host/x", 2, "storage_url"),
    ):
        (told,) = team.run(home, "settings", "set", "storage.url", url, code=code)
        assert told["params"]["reason"] == reason and "secret-in-clear" not in str(told)
    team.run(home, "settings", "set", "storage.url", "postgresql://host:${keyring:nothing}@127.0.0.1/x")
    (told,) = team.run(home, "sessions", "list", code=2)
    assert told["params"]["reason"] == "missing_secret" and told["params"]["where"] == "storage.url"
    file = home / "profiles" / "default" / "settings.toml"
    file.write_text(file.read_text().replace("${keyring:nothing}", "secret-in-clear"))
    (told,) = team.run(home, "sessions", "list", code=2)
    assert told["params"]["reason"] == "storage_refused" and "secret-in-clear" not in str(told)
    assert traces(home / "profiles" / "default" / "logs", "secret-in-clear") == []
    team.run(home, "settings", "set", "storage.url", "")
    assert team.run(home, "sessions", "list") == []
    (check,) = [c for c in team.run(home, "doctor", code=None) if c["check"] == "database"]
    assert check["ok"] and "SQLite" in str(check)


def test_the_whole_address_may_come_from_the_environment(team: Team) -> None:
    home = team.folder / "home"
    team.run(home, "settings", "set", "storage.url", "${DATABASE_URL}")
    address = team.server.url(team.database, "host-in-address").replace("host-in-address", "")
    (told,) = team.run(home, "sessions", "list", code=2)
    assert told["params"]["reason"] == "missing_variable"
    assert team.run(home, "sessions", "list", DATABASE_URL=address, PGPASSWORD=PASSWORD) == []
    assert team.server.admin("SELECT number FROM desktop_host.form", team.database) == [(len(STEPS),)]


def test_the_record_of_a_profile_is_copied_into_the_shared_database_in_one_step(team: Team) -> None:
    home = team.folder / "home"
    model = script(team.folder / "m.json", [{"text": "kept"}], [{"text": "went on"}])
    (told,) = team.run(home, "sessions", "upload", code=2)
    assert told["params"]["reason"] == "nothing_shared"
    session = ended(team.run(home, "chat", "--model", model, "--no-servers", "对话"))["session"]
    before = team.run(home, "sessions", "show", session)
    team.home("home")
    assert team.run(home, "sessions", "list") == []
    (done,) = team.run(home, "sessions", "upload")
    assert (done["copied"], done["present"], done["busy"], done["failed"]) == (1, 0, 0, 0)
    assert team.run(home, "sessions", "show", session) == before
    assert ended(team.run(home, "chat", "--session", session, "--no-servers", "more"))["text"] == "went on"


@pytest.fixture
def own_team(tmp_path: Path) -> Iterator[Team]:
    """With a server that may be stopped."""
    try:
        context = running()
        server = context.__enter__()
    except LookupError as missing:
        (pytest.fail if os.environ.get("CI") else pytest.skip)(str(missing))
    try:
        yield Team(tmp_path, server)
    finally:
        context.__exit__(None, None, None)


def test_a_server_that_restarts_in_mid_turn_costs_nothing(own_team: Team) -> None:
    team = own_team
    home = team.home("home")
    server = team.folder / "late.py"
    server.write_text(LATE)
    late = config(team.folder / "mcp.json", late=[sys.executable, str(server), str(team.folder / "pid")])
    call = {"call": {"tool": "late.write_late", "arguments": {"path": str(team.folder / "written")}}}
    model = script(team.folder / "m.json", [{"text": "let me"}, call], [{"text": "done"}])
    process = team.start(home, "chat", "--model", model, "--mcp-config", str(late), "--allow", "late.*", "write")
    told = []
    for event in events(process):
        told.append(event)
        if event["type"] == "tool_started":
            team.server.stop(signal.SIGINT)
            until(lambda: (team.folder / "written").exists())  # the call ends while there is no database
            team.server.start()
    process.communicate()
    assert process.returncode == 0 and ended(told)["status"] == "done"
    shown = team.run(home, "sessions", "show", ended(told)["session"])
    passing = ("token_delta", "thinking_delta", "state_changed", "server_changed", "tool_progress", "library_changed")
    assert [e["seq"] for e in shown] == [e["seq"] for e in told if e["type"] not in passing]
