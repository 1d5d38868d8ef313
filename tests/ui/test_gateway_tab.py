"""The gateway's tab: switched by the mouse, its key shown once, servers offered in three ways, guests and log."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QMessageBox
from pytestqt.qtbot import QtBot

from desktop_host.core.servers import ServerConfig, Stdio
from desktop_host.ui.widgets.gateway_tab import GatewayTab
from tests.fakes.shell_host import ShellHost
from tests.fakes.shell_sharing import BUSY_PORT
from tests.ui.shell_kit import Shell


@pytest.fixture
def shell(qtbot: QtBot, tmp_path: Path) -> Iterator[Shell]:
    made = Shell(qtbot, tmp_path, ShellHost())
    yield made
    made.close()


def tab_of(shell: Shell) -> GatewayTab:
    shell.workspace.show_settings("gateway")
    found = shell.workspace.settings_page.findChild(GatewayTab)
    assert found is not None
    shell.until(lambda: shell.workspace.gateway.model.known)
    return found


def click(shell: Shell, tab: GatewayTab) -> None:
    shell.qtbot.mouseClick(tab.switch, Qt.MouseButton.LeftButton)


def test_switching_on_for_the_first_time_makes_a_key_and_shows_it_once(shell: Shell) -> None:
    tab, sharing = tab_of(shell), shell.host.sharing
    click(shell, tab)
    shell.until(lambda: tab.address.toPlainText() == "http://127.0.0.1:8010/mcp")
    assert sharing.turned == [True] and sharing.keys == 1 and tab.switch.isChecked()
    key = tab.key.made.toPlainText()
    entry = json.loads(tab.key.snippet.toPlainText())["mcpServers"]["desktop-host"]
    assert entry == {"url": "http://127.0.0.1:8010/mcp", "headers": {"Authorization": f"Bearer {key}"}}
    tab.key.copy_key.click()
    assert QGuiApplication.clipboard().text() == key and key.startswith("key-number-1-")
    shell.workspace.show_settings("general")
    tab_of(shell)
    assert key not in shell.texts() and not tab.key.made.isVisible()
    click(shell, tab)
    shell.until(lambda: not tab.switch.isChecked() and not tab.address.isVisible())
    assert sharing.turned == [True, False] and sharing.keys == 1


def test_another_key_is_made_only_after_a_word(shell: Shell) -> None:
    tab, sharing = tab_of(shell), shell.host.sharing
    tab.key.make()
    shell.until(lambda: shell.workspace.gateway.model.state.has_key)
    tab.key.new.click()
    box = tab.findChild(QMessageBox)
    assert box is not None and sharing.keys == 1
    next(b for b in box.buttons() if b.text() == "Make a new key").click()
    shell.until(lambda: tab.key.made.toPlainText().startswith("key-number-2-"))


def test_each_server_is_offered_in_one_of_three_ways(shell: Shell) -> None:
    for name in ("files", "weather"):
        shell.bridge.call(lambda host, n=name: host.servers.add(ServerConfig(n, Stdio("x")))).result(5)
    tab = tab_of(shell)
    shell.until(lambda: set(tab.boxes) == {"files", "weather"} and tab.boxes["files"].isVisible())
    box = tab.boxes["files"]
    assert box.accessibleName() == "How files is offered"
    assert box.currentData() == "ask"
    settings = shell.host.settings
    for way, hidden, allow in (("allow", "", "files.*"), ("off", "files", ""), ("ask", "", "")):
        box.setCurrentIndex(box.findData(way))
        box.activated.emit(box.currentIndex())
        shell.until(lambda h=hidden, a=allow: (settings.now.gateway.hidden, settings.now.gateway.allow) == (h, a))
        shell.until(lambda: not shell.workspace.gateway.model.busy)
        assert box.currentData() == way
    assert shell.host.sharing.turned == []  # It is off, so nothing has to begin anew.


def test_a_taken_port_is_told_and_guests_are_listed(shell: Shell) -> None:
    tab = tab_of(shell)
    shell.host.sharing.visited()
    tab.key.make(lambda: shell.workspace.gateway.model.turn(True))
    shell.until(lambda: shell.workspace.gateway.model.state.on)
    told = shell.texts()
    for words in ("claude-code 2.1.0", "12 requests", "An app without a name", "weather__forecast", "failed"):
        assert words in told
    tab.port.setValue(BUSY_PORT)
    shell.until(lambda: not tab.switch.isChecked())
    shell.until(lambda: f"127.0.0.1:{BUSY_PORT}" in shell.texts())
    assert shell.host.settings.now.gateway.port == BUSY_PORT
