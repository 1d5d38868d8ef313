"""Where conversations are kept, on the settings page."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from tests.fakes.shell_host import ShellHost
from tests.ui.shell_kit import Shell


@pytest.fixture
def shell(qtbot: QtBot, tmp_path: Path) -> Iterator[Shell]:
    made = Shell(qtbot, tmp_path, ShellHost())
    yield made
    made.close()


def test_the_page_tells_the_store_in_use_and_takes_an_address_without_a_password(shell: Shell) -> None:
    shell.workspace.show_settings("general")
    page = shell.workspace.settings_page.general
    shell.until(lambda: "/nowhere/host.db" in page.store.text())
    row = page.rows["storage.url"]
    row.control.setFocus()
    QTest.keyClicks(row.control, "postgresql://me:hunter2@db/team")
    QTest.keyClick(row.control, Qt.Key.Key_Return)
    shell.until(lambda: bool(row._error.text()))
    assert "hunter2" not in row._error.text() and shell.host.settings.now.storage.url == ""
    row.control.selectAll()
    QTest.keyClicks(row.control, "postgresql://me:${keyring:pg}@db/team")
    QTest.keyClick(row.control, Qt.Key.Key_Return)
    shell.until(lambda: shell.host.settings.now.storage.url == "postgresql://me:${keyring:pg}@db/team")
    assert "/nowhere/host.db" in page.store.text()  # until the next start
