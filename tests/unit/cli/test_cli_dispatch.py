"""From words to the one who does them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from desktop_host import i18n
from desktop_host.cli.arguments import parse
from desktop_host.cli.knowledge import command
from desktop_host.cli.main import run, verb_of
from desktop_host.cli.verbs import VERBS
from desktop_host.core.errors import KnownFault, UserFault

ELSEWHERE = {"demo", "knowledge", "profiles"}


@pytest.fixture(autouse=True)
def _english():
    yield
    i18n.install("en")


def no_host(_spec):
    raise AssertionError("no host was to be opened")


def test_every_verb_has_a_function():
    for words in VERBS:
        if words[0] in ELSEWHERE:
            continue
        ns = parse([])
        ns.verb, ns.action = words[0], words[1] if len(words) == 2 else None
        assert callable(verb_of(ns)), words


def test_the_demo_and_the_knowledge_server_are_handed_their_words():
    seen = []

    def take(ns):
        seen.append((ns.verb, ns.action))
        return 7

    assert run(["demo", "--model", "local"], no_host, demo=take) == 7
    assert run(["knowledge", "serve", "--folder", "x"], no_host, knowledge=take) == 7
    assert seen == [("demo", None), ("knowledge", "serve")]


def test_the_knowledge_server_gets_its_folders_and_a_place_below_home(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("docs").mkdir()
    words = command(parse(["knowledge", "serve", "--home", "h", "--profile", "p", "--folder", "docs"]))
    assert words[-5:] == [
        "--cache", str(tmp_path / "h" / "profiles" / "p" / "knowledge"), "--stdio", "--folder", str(tmp_path / "docs"),
    ]  # fmt: skip
    assert command(parse(["knowledge", "serve", "--http", "127.0.0.1:0"]))[-2:] == ["--http", "127.0.0.1:0"]
    assert command(parse(["knowledge", "search", "--json", "--", "-x"]))[-3:] == ["--json", "--", "-x"]
    with pytest.raises(UserFault):
        command(parse(["knowledge", "serve", "--stdio", "--http", "h:1"]))
    with pytest.raises(UserFault):
        command(parse(["knowledge", "index", "nowhere"]))


class Profiles:
    def __init__(self) -> None:
        self.kept = ["default"]

    def names(self) -> tuple[str, ...]:
        return tuple(self.kept)

    def create(self, name: str) -> None:
        self.kept.append(name)

    def delete(self, name: str) -> None:
        self.kept.remove(name)


def test_profiles_need_no_host(capsys):
    kept = Profiles()
    for words, code in ((["create", "work"], 0), (["list"], 0), (["delete", "default"], 0), (["delete", "x"], 2)):
        assert run(["profiles", *words, "--json"], no_host, profiles=kept) == code
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert lines[0] == {"name": "work"}
    assert lines[1:3] == [{"name": "default"}, {"name": "work"}]
    assert lines[-1]["code"] == "not_found"
    assert kept.kept == ["work"]


def test_several_failures_at_once_are_told_by_the_one_with_a_name(capsys):
    def broken(_spec):
        raise BaseExceptionGroup("x", [ValueError("odd"), ExceptionGroup("y", [KnownFault("disk_full", "no room")])])

    assert run(["usage", "--json"], broken) == 5
    assert json.loads(capsys.readouterr().out)["code"] == "disk_full"


def test_the_face_brings_no_weight_with_it():
    code = (
        "import sys\n"
        "from desktop_host.cli import chat, interactive, main, tools\n"
        "heavy = {'mcp', 'anthropic', 'openai', 'keyring', 'httpx2', 'watchdog', 'jsonschema', 'PySide6'}\n"
        "print(sorted(heavy & sys.modules.keys()))"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert told.stdout.strip() == "[]"
