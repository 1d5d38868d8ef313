from __future__ import annotations

import asyncio
import json
import stat
import zipfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pytest

from desktop_host.core import settings as core
from desktop_host.core.admin import ModelAdmin, ServerAdmin, SettingsStore
from desktop_host.core.errors import KnownFault
from desktop_host.core.models import ModelEntry
from desktop_host.core.servers import FailureReport, ServerConfig, ServerState, ServerStatus, Stdio
from desktop_host.core.settings import Settings
from desktop_host.core.values import FrozenDict
from desktop_host.diagnostics import Health, Redactor, write_report
from desktop_host.diagnostics.health import qt_row
from desktop_host.i18n import LANGUAGES, Translator
from tests.fakes.memory_vault import MemoryVault


@dataclass
class FixedSettings:
    settings: Settings = field(default_factory=Settings)
    found: tuple[FrozenDict, ...] = ()

    def current(self) -> Settings:
        return self.settings

    def problems(self) -> tuple[FrozenDict, ...]:
        return self.found


@dataclass
class FixedModels:
    known: tuple[ModelEntry, ...] = (ModelEntry("local/qwen", "Qwen", "local", True),)

    async def entries(self, *, refresh: bool = False) -> tuple[ModelEntry, ...]:
        return self.known


@dataclass
class FixedServers:
    rows: tuple[ServerStatus, ...] = ()
    wanted: tuple[ServerConfig, ...] = ()

    def statuses(self) -> tuple[ServerStatus, ...]:
        return self.rows

    def configs(self) -> tuple[ServerConfig, ...]:
        return self.wanted


@dataclass
class FixedStorage:
    wrong: str | None = None
    fault: Exception | None = None
    hangs: bool = False

    async def problem(self) -> str | None:
        if self.hangs:
            await asyncio.Event().wait()
        if self.fault:
            raise self.fault
        return self.wrong


@dataclass
class Ward:
    """A healthy profile that a test makes ill."""

    folder: Path
    settings: FixedSettings = field(default_factory=FixedSettings)
    secrets: MemoryVault = field(default_factory=MemoryVault)
    models: FixedModels = field(default_factory=FixedModels)
    servers: FixedServers = field(default_factory=FixedServers)
    storage: FixedStorage = field(default_factory=FixedStorage)
    environ: dict[str, str] = field(default_factory=dict)

    def set(self, key: str, value: Any) -> None:
        self.settings.settings = core.put(self.settings.settings, key, value)

    async def rows(self, **more: Any) -> dict[str, FrozenDict]:
        health = Health(
            self.folder, cast(SettingsStore, self.settings), self.secrets, cast(ModelAdmin, self.models),
            cast(ServerAdmin, self.servers), self.storage, environ=self.environ, **more,
        )  # fmt: skip
        found = await health.run()
        for language in LANGUAGES:
            words = Translator(language)
            for row in found:
                assert set(row) == {"check", "ok", "detail", "remedy"}
                assert row["check"].startswith("server:") or words.has(f"doctor.{row['check']}")
                assert bool(row["remedy"]) is not row["ok"]
                assert not row["remedy"] or words.has(row["remedy"]), row["remedy"]
        return {row["check"]: row for row in found}


@pytest.fixture
def ward(tmp_path: Path) -> Ward:
    tmp_path.chmod(0o700)
    return Ward(tmp_path)


async def test_a_healthy_profile_has_no_complaint(ward: Ward) -> None:
    rows = await ward.rows()
    assert [name for name, row in rows.items() if not row["ok"]] == []
    assert list(rows) == [
        "runtime", "home", "disk", "clock", "settings", "database", "secrets", "keys", "model", "programs", "proxy",
        "ca_file",
    ]  # fmt: skip


async def test_a_damaged_database_is_told_by_what_sqlite_finds(ward: Ward) -> None:
    ward.storage.wrong = "row 3 missing from index"
    row = (await ward.rows())["database"]
    assert (row["ok"], row["detail"]) == (False, "row 3 missing from index")


async def test_a_check_that_fails_or_hangs_leaves_the_others(ward: Ward) -> None:
    ward.storage.fault = KnownFault("database_error", "gone", reason="io")
    assert (await ward.rows())["database"]["remedy"] == "remedy.database_error"
    ward.storage.fault = ZeroDivisionError("oops")
    rows = await ward.rows()
    assert rows["database"]["detail"] == "ZeroDivisionError: oops"
    assert rows["disk"]["ok"] is True
    ward.storage = FixedStorage(hangs=True)
    rows = await ward.rows(limit_s=0.3)
    assert rows["database"]["remedy"] == "doctor.remedy.no_answer"
    assert rows["model"]["ok"] is True


async def test_a_vault_that_does_not_work_is_told_with_its_remedy(ward: Ward) -> None:
    """Hazard O134."""
    ward.secrets.fault = "vault_locked"
    row = (await ward.rows())["secrets"]
    assert (row["ok"], row["remedy"]) == (False, "remedy.vault_locked")


async def test_keys_are_told_by_name_alone(ward: Ward) -> None:
    """Hazard O137."""
    await ward.secrets.put("anthropic", "sk-hidden-value")
    ward.environ = {"OPENAI_API_KEY": "sk-hidden-value"}
    row = (await ward.rows())["keys"]
    assert row["detail"] == "anthropic, OPENAI_API_KEY (environment)"


async def test_a_model_that_is_not_ready_is_told_with_the_way_out(ward: Ward) -> None:
    ward.models.known = (ModelEntry("local/qwen", "Qwen", "local", False, "no_weights"),)
    row = (await ward.rows())["model"]
    assert (row["ok"], row["detail"], row["remedy"]) == (
        False, "local: no_weights", "doctor.remedy.model_no_weights",
    )  # fmt: skip
    ward.set("model.default", "anthropic/claude")
    ward.models.known += (ModelEntry("anthropic/claude", "C", "anthropic", False, "no_key"),)
    assert (await ward.rows())["model"]["remedy"] == "doctor.remedy.model_no_key"
    ward.set("model.default", "compat:http://127.0.0.1:1#m")
    assert (await ward.rows())["model"]["ok"] is True


async def test_a_failed_server_has_a_row_with_its_reason_and_its_missing_program(ward: Ward) -> None:
    """Hazards B29, B31."""
    report = FailureReport("server_failed", "no such command: npx-gone")
    ward.servers = FixedServers(
        (
            ServerStatus("files", ServerState.FAILED, error=report),
            ServerStatus("time", ServerState.READY),
            ServerStatus("off", ServerState.DISABLED, enabled=False),
            ServerStatus("idle", ServerState.STOPPED),
        ),
        (ServerConfig("files", Stdio("npx-gone")), ServerConfig("time", Stdio("uvx-gone"))),
    )
    rows = await ward.rows()
    assert (rows["server:files"]["ok"], rows["server:files"]["detail"]) == (False, "failed: no such command: npx-gone")
    assert (rows["server:time"]["ok"], rows["server:idle"]["ok"]) == (True, True)
    assert "server:off" not in rows
    assert rows["programs"]["ok"] is False
    assert rows["programs"]["detail"].endswith("missing: npx-gone")


async def test_proxies_are_shown_without_their_passwords(ward: Ward) -> None:
    """Hazard O137."""
    ward.environ = {"HTTPS_PROXY": "http://me:hidden-value@proxy:8080", "all_proxy": "socks5://127.0.0.1:1080"}
    row = (await ward.rows())["proxy"]
    assert row["ok"] is True
    assert "hidden-value" not in row["detail"]
    assert "proxy:8080" in row["detail"]
    for wrong in ("proxy:8080:1", "http://", "ftp://x", "http://[x"):
        ward.environ = {"HTTP_PROXY": wrong}
        assert (await ward.rows())["proxy"]["ok"] is False, wrong


async def test_certificates_that_cannot_be_read_are_told(ward: Ward) -> None:
    path = ward.folder / "ca.pem"
    ward.set("network.ca_file", str(path))
    assert (await ward.rows())["ca_file"]["ok"] is False
    path.write_text("no certificate")
    assert (await ward.rows())["ca_file"]["ok"] is False


async def test_lines_of_the_settings_that_are_not_used_are_named(ward: Ward) -> None:
    ward.settings.found = (FrozenDict({"key": "general.language", "code": "bad_value", "value": "x", "wanted": ""}),)
    assert (await ward.rows())["settings"]["detail"] == "general.language (bad_value)"


async def test_a_clock_before_the_installation_is_wrong(ward: Ward) -> None:
    assert (await ward.rows(now=lambda: 1_000_000.0))["clock"]["ok"] is False


async def test_a_folder_that_others_can_read_or_nobody_can_write_is_told(ward: Ward) -> None:
    """Hazard O136."""
    ward.folder.chmod(0o755)
    assert (await ward.rows())["home"]["remedy"] == "doctor.remedy.home_open"
    ward.folder = ward.folder / "gone"
    rows = await ward.rows()
    assert rows["home"]["remedy"] == "doctor.remedy.home"
    assert rows["disk"]["ok"] is False


def test_the_qt_that_aborts_on_older_pythons_is_told() -> None:
    assert qt_row((3, 11), "6.12.0", "3.11.7")["ok"] is False
    assert qt_row((3, 11), "6.11.3", "3.11.7")["ok"] is True
    assert qt_row((3, 12), "6.12.0", "3.12.1")["ok"] is True


async def test_the_report_holds_what_helps_and_no_secret(ward: Ward) -> None:
    """Hazards O136, O137."""
    folder, redactor = ward.folder, Redactor()
    redactor.add("known-secret-0123456789")
    (folder / "settings.toml").write_text('[network]\nproxy = "http://u:hidden-value@p:1"\n')
    servers = {"mcpServers": {
        "a": {"command": "x", "env": {"PLAIN": "hidden-value", "REF": "${keyring:a.REF}", "MIX": "x${A}hidden-value"}},
        "b": {"url": "http://x", "headers": {"X-Odd": "hidden-value"}},
    }}  # fmt: skip
    (folder / "servers.json").write_text(json.dumps(servers))
    (folder / "logs").mkdir()
    (folder / "logs" / "host.log").write_text("x" * 1_500_000 + " known-secret-0123456789 the end")
    (folder / "logs" / "link").symlink_to("/etc/passwd")
    (folder / "host.db").write_text("hidden-value")
    (folder / "secrets.json").write_text("hidden-value")
    checks = tuple((await ward.rows()).values())
    target = await write_report(folder / "report.zip", folder, checks, redactor)
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    with zipfile.ZipFile(target) as bundle:
        texts = {name: bundle.read(name).decode() for name in bundle.namelist()}
    assert set(texts) == {"about.json", "checks.json", "settings.toml", "servers.json", "logs/host.log"}
    whole = "".join(texts.values())
    for leak in ("hidden-value", "known-secret"):
        assert leak not in whole
    assert "${keyring:a.REF}" in texts["servers.json"]
    assert texts["logs/host.log"].endswith("[secret] the end")
    assert json.loads(texts["about.json"])["packages"]["mcp"]
    assert len(json.loads(texts["checks.json"])) == len(checks)


async def test_servers_that_are_no_plain_json_are_left_out_of_the_report(ward: Ward) -> None:
    (ward.folder / "servers.json").write_text('{"mcpServers": {"a": {"env": {"K": "hidden-value"}}}} // mine')
    target = await write_report(ward.folder / "report.zip", ward.folder, (), Redactor())
    with zipfile.ZipFile(target) as bundle:
        assert b"hidden-value" not in bundle.read("servers.json")
