"""The doctor: each check on a profile that a test makes ill."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from desktop_host.core.diagnosis import Finding
from desktop_host.core.errors import KnownFault, UserFault
from desktop_host.core.models import ModelEntry
from desktop_host.core.servers import FailureReport, ServerConfig, ServerState, ServerStatus, Stdio
from desktop_host.core.tools import ToolSpec
from desktop_host.core.values import FrozenDict
from desktop_host.diagnostics.machine import qt_row
from desktop_host.i18n import Translator
from tests.fakes.ward import FixedServers, FixedStorage, Ward

CHECKS = [
    "runtime", "home", "disk", "files", "watcher", "crashes", "settings", "database", "secrets", "keys", "model",
    "proxy", "ca_file", "addresses", "clock", "port", "programs", "node", "context", "rate_limit", "schema",
]  # fmt: skip


def english(found: Finding) -> str:
    return Translator("en").finding(found)[1]


@pytest.fixture
def ward(tmp_path: Path) -> Ward:
    tmp_path.chmod(0o700)
    return Ward(tmp_path)


async def test_a_healthy_profile_has_no_complaint(ward: Ward) -> None:
    rows = await ward.rows()
    assert [name for name, row in rows.items() if not row.ok] == []
    assert list(rows) == CHECKS == list(ward.health().checks())


async def test_one_check_runs_alone_and_each_is_told_as_soon_as_it_is_done(ward: Ward) -> None:
    assert list(await ward.rows("disk", "home")) == ["disk", "home"]
    assert await ward.rows("nothing") == {}
    ward.storage = FixedStorage(hangs=True)
    told: list[str] = []
    most = asyncio.Event()

    def tell(found: Finding) -> None:
        told.append(found.check)
        if len(told) == len(CHECKS) - 1:
            most.set()

    task = asyncio.create_task(ward.health().run(told=tell))
    await asyncio.wait_for(most.wait(), 20)
    assert "database" not in told
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert [t for t in asyncio.all_tasks() if t is not asyncio.current_task()] == []


async def test_addresses_are_asked_once_a_round(ward: Ward) -> None:
    await ward.rows()
    assert ward.models.asked == 1


async def test_a_damaged_database_is_told_by_what_sqlite_finds(ward: Ward) -> None:
    ward.storage.wrong = "row 3 missing from index"
    what, remedy, place, _ = await ward.ill("database")
    assert "row 3 missing from index" in what and "copy" in remedy and place == "host.db"


async def test_the_store_in_use_is_told_and_one_that_takes_no_writes_is_ill(ward: Ward) -> None:
    assert "/p/host.db" in english((await ward.rows())["database"])
    ward.storage.store = "postgresql"
    assert "postgresql 15, postgresql://me@db:5432/team" in english((await ward.rows())["database"])
    ward.storage.wrong = "a standby"
    what, remedy, place, _ = await ward.ill("database")
    assert "a standby" in what and "primary" in remedy and place == "postgresql://me@db:5432/team"


async def test_a_check_that_fails_or_hangs_leaves_the_others(ward: Ward) -> None:
    ward.storage.fault = KnownFault("database_error", "gone", reason="io", path="/x/host.db")
    assert (await ward.ill("database"))[2] == "/x/host.db"
    ward.storage.fault = ZeroDivisionError("oops")
    rows = await ward.rows()
    assert "ZeroDivisionError: oops" in english(rows["database"])
    assert rows["disk"].ok is True
    ward.storage = FixedStorage(hangs=True)
    rows = await ward.rows(limit_s=0.3)
    assert rows["database"].remedy == "doctor.remedy.no_answer"
    assert rows["model"].ok is True


async def test_a_vault_that_does_not_work_is_told_with_its_remedy_and_can_be_unlocked(ward: Ward) -> None:
    """Hazard O134."""
    ward.secrets.fault = "vault_locked"
    what, remedy, _, act = await ward.ill("secrets")
    assert "locked" in what and "Unlock" in remedy and act == "unlock"
    with pytest.raises(KnownFault):
        await ward.health().mend("secrets")
    ward.secrets.fault = None
    assert (await ward.health().mend("secrets")).ok
    assert await ward.secrets.names() == ()


async def test_keys_are_told_by_name_alone(ward: Ward) -> None:
    """Hazard O137."""
    await ward.secrets.put("anthropic", "sk-hidden-value")
    ward.environ = {"OPENAI_API_KEY": "sk-hidden-value"}
    assert english((await ward.rows("keys"))["keys"]) == "anthropic, $OPENAI_API_KEY"


async def test_a_model_that_is_not_ready_is_told_with_the_way_out(ward: Ward) -> None:
    ward.models.known = (ModelEntry("local/qwen", "Qwen", "local", False, "no_weights"),)
    what, remedy, place, act = await ward.ill("model")
    assert (what, place, act) == (
        "The file of the model local is not on this computer",
        "local",
        "models",
    ) and "models get" in remedy
    ward.set("model.default", "anthropic/claude")
    ward.models.known += (ModelEntry("anthropic/claude", "C", "anthropic", False, "no_key"),)
    assert (await ward.ill("model"))[0] == "anthropic/claude has no key"
    for reason in ("no_runtime", "unreachable", "unknown"):
        ward.models.known = (ModelEntry("anthropic/claude", "C", "anthropic", False, reason),)
        await ward.ill("model")
    ward.set("model.default", "compat:http://127.0.0.1:1#m")
    assert (await ward.rows())["model"].ok is True


async def test_a_failed_server_has_a_row_with_its_reason_and_its_missing_program(ward: Ward) -> None:
    """Hazards B29, B31."""
    report = FailureReport("server_failed", "no such command: tool-gone")
    ward.servers = FixedServers(
        (
            ServerStatus("files", ServerState.FAILED, error=report),
            ServerStatus("time", ServerState.READY),
            ServerStatus("off", ServerState.DISABLED, enabled=False),
            ServerStatus("idle", ServerState.STOPPED),
        ),
        (ServerConfig("files", Stdio("tool-gone")), ServerConfig("time", Stdio("sh")),
         ServerConfig("off", Stdio("never-there"), enabled=False)),
    )  # fmt: skip
    ward.environ = {"PATH": os.environ["PATH"]}
    rows = await ward.rows()
    assert "no such command: tool-gone" in english(rows["server:files"])
    assert (rows["server:files"].ok, rows["server:files"].act) == (False, "server:files")
    assert (rows["server:time"].ok, rows["server:idle"].ok) == (True, True)
    assert "server:off" not in rows
    what, _, place, act = await ward.ill("programs")
    assert (what, place, act) == ("Not in the PATH: tool-gone", os.environ["PATH"], "server:files")


async def test_node_is_missed_only_where_a_server_needs_it_and_an_old_one_is_told(ward: Ward) -> None:
    """Hazard B26."""
    ward.environ = {"PATH": str(ward.folder)}
    assert english((await ward.rows("node"))["node"]) == "Not there; no server needs it"
    ward.servers = FixedServers((), (ServerConfig("files", Stdio("npx", ("-y", "x"))),))
    what, _, _, act = await ward.ill("node")
    assert "the server files needs it" in what and act == "server:files"
    assert (await ward.rows("programs"))["programs"].ok
    node = ward.folder / "node"
    node.write_text("#!/bin/sh\necho v16.20.0\n")
    node.chmod(0o700)
    assert (await ward.ill("node"))[0] == "v16.20.0 is older than 18"
    node.write_text("#!/bin/sh\necho v22.1.0\n")
    assert english((await ward.rows("node"))["node"]) == "v22.1.0"


async def test_tools_that_no_model_can_have_are_named(ward: Ward) -> None:
    ward.servers = FixedServers((ServerStatus("x", ServerState.READY),))
    ward.servers.offered = {"x": (ToolSpec("x", "fine", problem="schema_missing"), ToolSpec("x", "go", problem=None))}
    assert (await ward.rows("schema"))["schema"].ok
    ward.servers.offered = {"x": (ToolSpec("x", "slow", problem="task_required", enabled=False),)}
    what, _, place, act = await ward.ill("schema")
    assert (what, place, act) == ("1 that no model can have: x.slow", "x.slow", "server:x")


async def test_proxies_are_shown_without_their_passwords(ward: Ward) -> None:
    """Hazard O137."""
    server = await asyncio.start_server(lambda _r, w: w.close(), "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    ward.environ = {"HTTPS_PROXY": f"http://me:hidden-value@127.0.0.1:{port}"}
    found = (await ward.rows("proxy"))["proxy"]
    server.close()
    assert found.ok and "hidden-value" not in english(found) and f"127.0.0.1:{port}" in english(found)
    for wrong in ("proxy:8080:1", "http://", "ftp://x", "http://[x"):
        ward.environ = {"HTTP_PROXY": wrong}
        assert "is no address of a proxy" in (await ward.ill("proxy"))[0], wrong


async def test_certificates_that_cannot_be_read_are_told(ward: Ward) -> None:
    path = ward.folder / "ca.pem"
    ward.set("network.ca_file", str(path))
    assert (await ward.ill("ca_file"))[2:] == (str(path), "settings")
    path.write_text("no certificate")
    assert str(path) in (await ward.ill("ca_file"))[0]


async def test_lines_of_the_settings_that_are_not_used_are_named(ward: Ward) -> None:
    ward.settings.found = (
        FrozenDict({"key": "general.language", "code": "bad_value", "value": "x", "wanted": ""}),
        FrozenDict({"key": "genral.theme", "code": "unknown_key", "value": "sk-hidden-value-123", "wanted": ""}),
    )
    what, _, place, act = await ward.ill("settings")
    assert "general.language: “x” cannot be used" in what and "genral.theme" in what
    assert (place, act) == ("settings.toml", "settings")
    ward.settings.found = ward.settings.found[1:]
    assert (await ward.ill("settings"))[0].startswith("genral.theme is no setting")


async def test_a_clock_before_the_installation_is_wrong(ward: Ward) -> None:
    assert "before this program was installed" in (await ward.ill("clock", now=lambda: 1_000_000.0))[0]


async def test_a_folder_that_others_can_read_is_closed_by_the_app(ward: Ward) -> None:
    """Hazard O136."""
    ward.folder.chmod(0o755)
    assert (await ward.ill("home"))[2:] == (str(ward.folder), "mend")
    assert (await ward.health().mend("home")).ok
    assert ward.folder.stat().st_mode & 0o077 == 0
    with pytest.raises(UserFault, match="disk"):
        await ward.health().mend("disk")


async def test_a_folder_that_is_gone_is_told_by_all_checks_that_need_it(ward: Ward) -> None:
    ward.folder = ward.folder / "gone"
    rows = await ward.rows()
    assert rows["home"].remedy == "doctor.remedy.home"
    assert rows["disk"].ok is False and rows["watcher"].ok is False


async def test_a_crash_of_the_last_day_is_told_and_an_older_one_is_not(ward: Ward) -> None:
    (ward.folder / "logs").mkdir()
    crash = ward.folder / "logs" / "crash-20261130-101010-1-1.txt"
    crash.write_text("Traceback")
    assert (await ward.ill("crashes"))[2:] == (str(crash), f"file:{crash}")
    os.utime(crash, (1, 1))
    assert (await ward.rows("crashes"))["crashes"].ok


def test_the_qt_that_aborts_on_older_pythons_is_told() -> None:
    assert qt_row((3, 11), "6.12.0", "3.11.7").ok is False
    assert qt_row((3, 11), "6.11.3", "3.11.7").ok is True
    assert qt_row((3, 12), "6.12.0", "3.12.1").ok is True
