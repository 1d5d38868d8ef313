"""The report a person can send: what is in it, and what must never be."""

from __future__ import annotations

import json
import stat
import zipfile
from pathlib import Path

import pytest

from desktop_host.core.diagnosis import Finding
from desktop_host.core.errors import KnownFault
from desktop_host.core.servers import FailureReport, LogLine, ServerState, ServerStatus
from desktop_host.core.values import FrozenDict
from desktop_host.diagnostics import Redactor, report
from desktop_host.diagnostics.personal import Person
from tests.fakes.ward import FixedServers, Ward

ADA = Person(("/home/ada-l",), ("ada-l", "analytical-engine"))
LEAKS = (
    "hidden-value", "planted-secret", "ada-l", "analytical-engine", "ada@example.org", "q7Rz81kLmN4pTs9VwXy2",
    "known-secret", "vault-only-secret", "env-only-secret",
)  # fmt: skip


@pytest.fixture
def ward(tmp_path: Path) -> Ward:
    tmp_path.chmod(0o700)
    return Ward(tmp_path)


def plant(ward: Ward) -> None:
    """A secret, or the person, in every place that a report is made of."""
    folder = ward.folder
    (folder / "settings.toml").write_text(
        '[network]\nproxy = "http://u:hidden-value@p:1"\nca_file = "/home/ada-l/ca.pem"\n'
        '[[endpoints]]\nname = "Mine"\nbase_url = "https://x.example/v1?code=hidden-value"\n'
    )
    servers = {"mcpServers": {
        "a": {
            "command": "/home/ada-l/bin/x",
            "args": ["--api-key", "hidden-value", "--token=hidden-value", "--db", "postgres://u:hidden-value@h/d",
                     "--password", "${keyring:a.PASS}", "--verbose", "plain"],
            "env": {"PLAIN": "hidden-value", "REF": "${keyring:a.REF}", "MIX": "x${A}hidden-value"},
        },
        "b": {"url": "https://hooks.example/q7Rz81kLmN4pTs9VwXy2/mcp?k=hidden-value", "headers": {"X": "hidden-value"},
              "desktopHost": {"auth": {"clientSecret": "hidden-value"}}},
    }}  # fmt: skip
    (folder / "servers.json").write_text(json.dumps(servers))
    logs = folder / "logs"
    logs.mkdir()
    (logs / "host.log").write_text(
        "x" * 1_500_000 + "\nGET https://api.example/v1?token=hidden-value Authorization: Bearer hidden-value-long\n"
        "password=hidden-value of ada-l@analytical-engine, ada@example.org wrote known-secret-0123456789\nthe end"
    )
    (logs / "crash-20261130-1.txt").write_text(
        'Traceback\n  File "/home/ada-l/app.py"\nValueError: {"api_key": "hidden-value"} vault-only-secret-123\n'
    )
    (logs / "link").symlink_to("/etc/passwd")
    (folder / "host.db").write_text("planted-secret")
    (folder / "secrets.json").write_text("planted-secret")
    (folder / "vault.enc").write_text("planted-secret")
    error = FailureReport(
        "server_failed", "in /home/ada-l: token=hidden-value", stderr=("SECRET=hidden-value", "env-only-secret-456"),
        path="/home/ada-l/bin", bad_stdout="Cookie: hidden-value",
    )  # fmt: skip
    ward.servers = FixedServers((ServerStatus("a", ServerState.FAILED, error=error),))
    ward.servers.said = {"a": (LogLine(1.0, "stderr", "key sk-hidden-value-12345678 for /home/ada-l"),)}
    ward.environ = {"SOME_API_TOKEN": "env-only-secret-456", "PLAIN": "fine"}


async def test_secrets_planted_everywhere_and_the_person_are_not_in_the_report(ward: Ward, monkeypatch) -> None:
    """Hazards O136, O137."""
    plant(ward)
    ward.redactor.add("known-secret-0123456789")
    await ward.secrets.put("crm", "vault-only-secret-123")
    monkeypatch.setattr(Person, "of_this_computer", classmethod(lambda _cls: ADA))
    health = ward.health()
    parts = await health.report(await health.run(("home", "proxy", "server:a")))
    target = await health.save(ward.folder / "report.zip", parts)
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    with zipfile.ZipFile(target) as bundle:
        texts = {name: bundle.read(name).decode() for name in bundle.namelist()}
    assert texts == {part.name: part.text for part in parts}, "what was shown before is what is written"
    assert set(texts) == {
        "about.json", "checks.json", "servers-now.json", "settings.toml", "servers.json", "logs/server-a.txt",
        "logs/host.log", "logs/crash-20261130-1.txt",
    }  # fmt: skip
    for name, text in texts.items():
        assert [leak for leak in LEAKS if leak in text] == [], (name, text[-600:])
    assert "${keyring:a.REF}" in texts["servers.json"] and "${keyring:a.PASS}" in texts["servers.json"]
    assert '"plain"' in texts["servers.json"] and "~/bin/x" in texts["servers.json"]
    assert "p:1" in texts["settings.toml"] and "~/ca.pem" in texts["settings.toml"]
    assert texts["logs/host.log"].endswith("the end") and len(texts["logs/host.log"]) < 1_100_000
    assert json.loads(texts["about.json"])["packages"]["mcp"]
    assert [row["check"] for row in json.loads(texts["checks.json"])] == ["home", "proxy", "server:a"]
    assert json.loads(texts["servers-now.json"])[0]["state"] == "failed"


async def test_a_locked_vault_does_not_keep_the_report_back(ward: Ward) -> None:
    ward.secrets.fault = "vault_locked"
    assert {part.name for part in await ward.health().report(())} >= {"about.json", "checks.json"}


async def test_a_report_that_cannot_be_written_is_told(ward: Ward) -> None:
    with pytest.raises(KnownFault) as caught:
        await ward.health().save(ward.folder / "gone" / "report.zip", ())
    assert (caught.value.code, caught.value.params["reason"]) == ("database_error", "not_writable")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
def test_a_report_for_which_there_is_no_room_is_told(tmp_path: Path) -> None:
    with pytest.raises(KnownFault) as caught:
        report.write(Path("/dev/full"), report.make(tmp_path, (), (), {}, Redactor(), ADA))
    assert caught.value.code == "disk_full"


async def test_servers_that_are_no_plain_json_are_left_out_of_the_report(ward: Ward) -> None:
    (ward.folder / "servers.json").write_text('{"mcpServers": {"a": {"env": {"K": "hidden-value"}}}} // mine')
    parts = report.make(ward.folder, (), (), {}, Redactor(), ADA)
    assert "hidden-value" not in next(part.text for part in parts if part.name == "servers.json")


def test_a_person_is_taken_out_of_text_and_words_that_only_look_alike_stay() -> None:
    who = Person(("/home/ada", "/home/ada/real"), ("ada", "pc", "engine-7"))
    assert who.out_of("/home/ada/x /home/ada/real/y /home/adam/z") == "~/x ~/y /home/adam/z"
    assert who.out_of("ada's canada, Engine engine-7.local pc") == "[user]'s canada, Engine [user].local pc"
    assert who.out_of("https://a.b/c/d?e=f#g (http://a.b/x#y)") == "https://a.b/c/d?[query] (http://a.b/x?[query])"
    assert who.out_of("@modelcontextprotocol/server-filesystem@1.2") == "@modelcontextprotocol/server-filesystem@1.2"
    long = "https://a.b/models/claude-sonnet-5-5-20261101-preview"
    assert (
        who.out_of("/usr/lib/python3.11/site-packages-1234567890abc")
        == "/usr/lib/python3.11/site-packages-1234567890abc"
    )
    assert who.out_of(long).startswith("https://a.b/models/")


def test_the_person_of_this_computer_is_known() -> None:
    found = Person.of_this_computer()
    assert str(Path.home()) in found.homes


def test_findings_keep_their_place_in_the_report(tmp_path: Path) -> None:
    found = Finding("disk", False, "doctor.say.free", FrozenDict({"free": "1 MB"}), "doctor.remedy.disk", "/data")
    parts = report.make(tmp_path, (found,), (), {}, Redactor(), ADA)
    row = json.loads(next(part.text for part in parts if part.name == "checks.json"))[0]
    assert (row["place"], row["remedy"], row["params"]) == ("/data", "doctor.remedy.disk", {"free": "1 MB"})
