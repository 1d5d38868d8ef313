"""Diagnostics in the window: progress, findings with ways to mend them, stopping, one check alone, the report."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtWidgets import QAbstractButton
from pytestqt.qtbot import QtBot

from desktop_host.core.diagnosis import Finding, ReportPart
from desktop_host.core.errors import KnownFault
from desktop_host.core.values import FrozenDict
from desktop_host.diagnostics.findings import ill, well
from desktop_host.ui.widgets.diagnostics_tab import DiagnosticsTab
from desktop_host.ui.widgets.page import ErrorCard
from tests.fakes.fixed_diagnostics import FixedDiagnostics
from tests.fakes.shell_host import ShellHost
from tests.ui.shell_kit import Shell

SOUND = (
    well("disk", "free", free="80.1 GB"), well("clock", "clock", time="2026-11-30 23:00:00", name="x", seconds=1),
)  # fmt: skip
OPEN_HOME = ill("home", "home_open", "home_open", place="/x", act="mend", path="/x")
LOCKED = Finding(
    "secrets", False, "error:vault_locked", FrozenDict({"message": "locked", "reason": "locked"}),
    "remedy.vault_locked.locked", act="unlock",
)  # fmt: skip
NO_KEY = ill("model", "model_no_key", "model_no_key", place="anthropic/c", act="models", model="anthropic/c")
LOST = Finding(
    "server:files", False, "doctor.say.server_crashes",
    FrozenDict({"state": "failed", "restarts": 5, "exit_code": 1, "line": "boom"}), "doctor.remedy.server", "files",
    "server:files",
)  # fmt: skip


@pytest.fixture
def doctor() -> FixedDiagnostics:
    found = (*SOUND, OPEN_HOME, LOCKED, NO_KEY, LOST)
    return FixedDiagnostics({f.check: f for f in found}, cures={"home": well("home", "path", path="/x")})


@pytest.fixture
def shell(qtbot: QtBot, tmp_path: Path, doctor: FixedDiagnostics) -> Iterator[Shell]:
    host: Any = ShellHost()
    host.populate()
    host.diagnostics = doctor
    made = Shell(qtbot, tmp_path, host)
    yield made
    made.close()


def opened(shell: Shell) -> DiagnosticsTab:
    shell.window.commands.run("go.diagnostics")
    model = shell.workspace.diagnostics.model
    shell.until(lambda: model.found and not model.all_running)
    tab = shell.workspace.settings_page.tabs.currentWidget()
    assert isinstance(tab, DiagnosticsTab)
    return tab


def words(tab: DiagnosticsTab, name: str) -> str:
    return tab.rows[name].accessibleName()


def test_the_palette_and_a_key_lead_to_all_findings_with_the_ill_ones_first(shell: Shell) -> None:
    tab = opened(shell)
    assert tab.summary.text() == "4 of 6 checks need attention"
    assert words(tab, "disk") == "Disk space: Well. 80.1 GB free "
    assert "lost 5 times in a row, with exit code 1; its last line: boom" in words(tab, "server:files")
    assert "desktop-host servers logs" in words(tab, "server:files")

    def at(name: str) -> int:
        row = tab.rows[name]
        return row.mapTo(tab.widget(), row.rect().topLeft()).y()

    shell.until(lambda: max(map(at, ("home", "secrets", "model", "server:files"))) < min(at("disk"), at("clock")))


def test_what_the_app_can_mend_it_mends_and_the_row_tells(shell: Shell, doctor: FixedDiagnostics) -> None:
    tab = opened(shell)
    shell.press("Make it private", tab)
    shell.until(lambda: words(tab, "home").startswith("Profile folder: Well"))
    assert doctor.mended == ["home"]
    assert tab.summary.text() == "3 of 6 checks need attention"
    shell.press("Unlock", tab)
    shell.until(lambda: tab.findChildren(ErrorCard))
    assert "secrets" in tab.findChildren(ErrorCard)[0].accessibleName()
    assert not words(tab, "secrets").endswith("Checking…")


def test_a_finding_leads_to_the_page_where_it_is_mended(shell: Shell) -> None:
    tab = opened(shell)
    shell.press("Models and keys", tab)
    assert shell.workspace.settings_page.tabs.currentWidget() is shell.workspace.settings_page.models
    opened(shell)
    shell.press("Open the server", tab)
    assert shell.workspace.page == "servers"


def test_one_check_runs_again_alone(shell: Shell, doctor: FixedDiagnostics) -> None:
    tab = opened(shell)
    doctor.findings["model"] = well("model", "model", model="anthropic/c")
    before = len(doctor.runs)
    shell.press("Run this check again", tab.rows["model"])
    shell.until(lambda: words(tab, "model") == "Model of new chats: Well. anthropic/c ")
    assert doctor.runs[before:] == [("model",)]


def test_a_run_shows_its_progress_and_stops_when_told(shell: Shell, doctor: FixedDiagnostics) -> None:
    tab = opened(shell)
    doctor.waits = {"secrets"}
    shell.press("Run all checks", tab)
    shell.until(lambda: tab.summary.text() == "Checking: 3 of 6")
    assert tab.bar.isVisible() and (tab.bar.value(), tab.bar.maximum()) == (3, 6)
    assert not tab.report_button.isEnabled()
    shell.press("Stop", tab)
    shell.until(lambda: doctor.cancelled == 1)
    assert not tab.bar.isVisible() and tab.run_button.text() == "Run all checks"
    assert "Store for secrets: Needs attention" in words(tab, "secrets"), "the older finding stays"
    doctor.waits = set()
    shell.press("Run all checks", tab)
    shell.until(lambda: not shell.workspace.diagnostics.model.all_running)


def test_a_report_is_read_first_and_saved_as_it_was_read(
    shell: Shell, doctor: FixedDiagnostics, tmp_path: Path
) -> None:
    tab = opened(shell)
    doctor.parts = (ReportPart("about.json", '{"version": "1"}'), ReportPart("logs/host.log", "x" * 70_000 + "END"))
    shell.press("Report to send…", tab)
    shell.until(lambda: tab.report is not None)
    card = tab.report
    assert card is not None
    assert [card.picker.itemText(i).partition(" · ")[0] for i in range(card.picker.count())] == [
        "about.json", "logs/host.log", "checks.json",
    ]  # fmt: skip
    assert card.text.toPlainText() == '{"version": "1"}'
    card.show_part(1)
    assert card.text.toPlainText().startswith("[the end of the file]")
    assert card.text.toPlainText().endswith("END")
    doctor.fault = KnownFault("disk_full", "no room", path="/x", free_bytes=None)
    tab.save_report(tmp_path / "r.zip")
    shell.until(lambda: tab.findChildren(ErrorCard))
    doctor.fault = None
    tab.save_report(tmp_path / "r.zip")
    shell.until(lambda: tmp_path / "r.zip" in doctor.saved)
    assert doctor.saved[tmp_path / "r.zip"] == card.parts
    shell.until(lambda: tab.report is None)
    assert shell.find(QAbstractButton, "Run all checks", tab).isVisible()


def test_the_whole_tab_speaks_chinese(shell: Shell) -> None:
    shell.window.commands.run("view.chinese")
    shell.until(lambda: shell.window.commands.action("go.diagnostics").text() == "诊断")
    tab = opened(shell)
    assert tab.summary.text() == "6 项检查中有 4 项需要处理"
    assert "连续中断 5 次，退出码 1；最后一行：boom" in words(tab, "server:files")
    shell.window.commands.run("view.english")
    shell.until(lambda: shell.window.commands.action("go.diagnostics").text() == "Diagnostics")
