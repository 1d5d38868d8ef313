"""The card that says why a server does not work: each cause has one button that mends it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from PySide6.QtCore import Qt, QUrl
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import QLabel, QPushButton
from pytestqt.qtbot import QtBot

from desktop_host import i18n
from desktop_host.core.servers import FIXES, FailureReport, ServerConfig, ServerState, ServerStatus, Stdio
from desktop_host.core.values import freeze
from desktop_host.ui.widgets.server_overview import DOWNLOADS, FailureCard
from tests.fakes.shell_host import ShellHost
from tests.ui.shell_kit import Shell

REPORT = FailureReport(
    "server_failed", "x could not be started", "remedy.server.timeout", what="failure.timeout",
    params=freeze({"seconds": "60"}), fix="more_time",
)  # fmt: skip
STATUS = ServerStatus("files", ServerState.FAILED, error=REPORT)


@pytest.fixture
def shell(qtbot: QtBot, tmp_path: Path) -> Iterator[Shell]:
    made = Shell(qtbot, tmp_path, ShellHost())
    made.bridge.call(lambda host: host.servers.add(ServerConfig("files", Stdio("npx")))).result(5)
    made.workspace.servers.refresh()
    made.until(lambda: made.workspace.servers.status("files"))
    yield made
    i18n.install("en")
    made.close()


def card(shell: Shell, fix: str, edits: list[int] | None = None) -> FailureCard:
    report = replace(REPORT, fix=fix)
    made = FailureCard(shell.workspace.servers, STATUS, report, lambda: (edits or []).append(1))
    shell.qtbot.addWidget(made)
    made.show()
    return made


@pytest.mark.parametrize("fix", FIXES)
def test_every_fix_is_the_one_button_that_stands_out_in_both_languages(shell: Shell, fix: str) -> None:
    for language in ("en", "zh_CN"):
        i18n.install(language)
        made = card(shell, fix)
        primary = [b for b in made.findChildren(QPushButton) if b.property("role") == "primary"]
        assert primary == [made.fix]
        assert "server." not in made.fix.text() and "{" not in made.fix.text()
        texts = [x.text() for x in made.findChildren(QLabel)]
        assert ("60" in " ".join(texts)) and "x could not be started" not in texts, "said once, in the own language"


@pytest.mark.parametrize("fix", ["more_time", "make_executable", "use_sse", "use_http"])
def test_what_the_host_can_mend_it_mends_at_one_press(shell: Shell, fix: str) -> None:
    shell.qtbot.mouseClick(card(shell, fix).fix, Qt.MouseButton.LeftButton)
    shell.until(lambda: shell.host.servers.mends == ["files"])


def test_what_the_person_must_mend_leads_there(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    monkeypatch.setattr(QDesktopServices, "openUrl", lambda url: opened.append(QUrl(url).toString()))
    for fix in DOWNLOADS:
        shell.qtbot.mouseClick(card(shell, fix).fix, Qt.MouseButton.LeftButton)
    assert opened == list(DOWNLOADS.values()) and all(url.startswith("https://") for url in opened)
    edits = [0]
    shell.qtbot.mouseClick(card(shell, "edit", edits).fix, Qt.MouseButton.LeftButton)
    assert edits == [0, 1]
