"""Adding servers: found in other programs, dropped files, links to install, bundles with their questions."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import QMimeData, QPoint, Qt, QUrl
from PySide6.QtGui import QDropEvent
from PySide6.QtWidgets import QLabel, QLineEdit
from pytestqt.qtbot import QtBot

from desktop_host.core.server_ports import FoundConfig
from desktop_host.core.servers import ImportedServer, ServerConfig, Stdio
from desktop_host.ui.widgets.add_server import AddServer
from desktop_host.ui.widgets.pieces import CodeBox
from desktop_host.ui.widgets.server_bundle import BundleCard
from tests.fakes.shell_host import ShellHost
from tests.ui.shell_kit import Shell

LEFT = Qt.MouseButton.LeftButton


@pytest.fixture
def shell(qtbot: QtBot, tmp_path: Path) -> Iterator[Shell]:
    made = Shell(qtbot, tmp_path, ShellHost())
    made.workspace.show_servers()
    yield made
    made.close()


def adding(shell: Shell) -> AddServer:
    found = shell.workspace.servers_page.adding
    assert found is not None
    return found


def drop(shell: Shell, path: Path) -> None:
    data = QMimeData()
    data.setUrls([QUrl.fromLocalFile(str(path))])
    event = QDropEvent(
        QPoint(10, 10), Qt.DropAction.CopyAction, data, Qt.MouseButton.NoButton, Qt.KeyboardModifier.NoModifier
    )
    shell.workspace.servers_page.dropEvent(event)


def bundle(shell: Shell, tmp_path: Path) -> BundleCard:
    path = tmp_path / "notes.mcpb"
    path.write_bytes(b"PK\x03\x04")
    drop(shell, path)
    shell.until(lambda: adding(shell).bundle is not None)
    card = adding(shell).bundle
    assert card is not None
    return card


def test_servers_of_other_programs_are_shown_before_they_are_taken_over(shell: Shell) -> None:
    one = ImportedServer(ServerConfig("git", Stdio("uvx", ("mcp-server-git",))))
    shell.host.servers.elsewhere = (
        FoundConfig("claude-desktop", "Claude Desktop", Path("/home/ada/claude.json"), (one,)),
        FoundConfig("zed", "Zed", Path("/home/ada/zed.json"), problem="not_utf8"),
    )
    shell.press("Add a server")
    page = adding(shell)
    shell.until(lambda: len(page.found.cards) == 2)
    assert "not UTF-8" in page.found.cards[1].accessibleName()
    shell.press("Look at the servers of Claude Desktop", page)
    shown = "\n".join(box.toPlainText() for box in page.panel.cards[0].findChildren(CodeBox))
    assert "mcp-server-git" in shown
    assert shell.host.servers.rows == {}
    shell.qtbot.mouseClick(page.panel.go, LEFT)
    shell.until(lambda: "git" in shell.host.servers.rows)


def test_a_name_that_is_taken_asks_what_to_do(shell: Shell) -> None:
    async def add(_host: object) -> None:
        await shell.host.servers.add(ServerConfig("git", Stdio("old")))

    shell.bridge.call(add).result(5)
    shell.until(lambda: len(shell.workspace.servers.statuses()) == 1)
    shell.workspace.servers_page.show_add()
    page = adding(shell)
    page.panel.show_found((ImportedServer(ServerConfig("git", Stdio("new"))),))
    assert page.panel.clash.isVisible()
    shell.qtbot.mouseClick(page.panel.go, LEFT)
    shell.until(lambda: len(shell.host.servers.rows) == 2)
    assert shell.host.servers.rows["git"][0].launch == Stdio("old")
    assert shell.host.servers.rows["git-2"][0].launch == Stdio("new")


def test_a_server_that_is_there_already_is_named_and_added_only_on_wish(shell: Shell) -> None:
    async def add(_host: object) -> None:
        await shell.host.servers.add(ServerConfig("git", Stdio("same")))

    shell.bridge.call(add).result(5)
    shell.workspace.servers_page.show_add()
    page = adding(shell)
    page.panel.show_found((ImportedServer(ServerConfig("git-2", Stdio("same"))),))
    card = page.panel.cards[0]
    shell.until(lambda: not card.take.isChecked())
    assert card.take.isVisible() and not page.panel.go.isEnabled()
    told = [label.text() for label in card.findChildren(QLabel) if label.isVisible()]
    assert any("as git." in text for text in told), told
    card.take.click()
    shell.qtbot.mouseClick(page.panel.go, LEFT)
    shell.until(lambda: "git-2" in shell.host.servers.rows)


def test_a_dropped_file_that_is_no_text_is_told_and_nothing_is_guessed(shell: Shell, tmp_path: Path) -> None:
    (path := tmp_path / "mcp.json").write_bytes(b"\xff\xfe{")
    drop(shell, path)
    assert "not UTF-8" in adding(shell).panel.problem.text() and not adding(shell).panel.cards


def test_a_dropped_json_file_is_read_and_starts_nothing(shell: Shell, tmp_path: Path) -> None:
    path = tmp_path / "mcp.json"
    path.write_text('\ufeff{"mcpServers": {"dropped": {"command": "thing"}}}', "utf-8")
    drop(shell, path)
    shell.until(lambda: adding(shell).panel.cards)
    assert adding(shell).panel.cards[0].wanted == "dropped"
    assert shell.host.servers.rows == {}


def test_a_dropped_file_that_is_gone_is_told(shell: Shell, tmp_path: Path) -> None:
    drop(shell, tmp_path / "gone.json")
    assert "gone.json" in adding(shell).panel.problem.text()


def test_a_link_shows_the_whole_command_and_starts_nothing(shell: Shell) -> None:
    shell.workspace.receive(["desktop-host://install?config=npx%20-y%20thing%20--root%20/home/ada"])
    page = adding(shell)
    shell.until(lambda: page.panel.cards)
    shown = "\n".join(box.toPlainText() for box in page.panel.cards[0].findChildren(CodeBox))
    assert "-y\nthing\n--root\n/home/ada" in shown
    assert "Nothing has been started" in page.link.text()
    assert shell.host.servers.rows == {}


def test_a_bad_link_is_told_in_place(shell: Shell) -> None:
    shell.workspace.receive(["desktop-host://install?nothing"])
    shell.until(lambda: adding(shell).panel.problem.isVisible())


def test_a_bundle_asks_for_its_settings_and_is_installed(shell: Shell, tmp_path: Path) -> None:
    card = bundle(shell, tmp_path)
    shown = "\n".join(box.toPlainText() for box in card.findChildren(CodeBox))
    assert "${__dirname}/index.js" in shown
    key = card.settings["key"]
    assert key.line.echoMode() is QLineEdit.EchoMode.Password
    shell.qtbot.mouseClick(card.go, LEFT)
    assert shell.host.packs.values == {}, "a required field lacks"
    card.settings["folder"].choose(["/home/ada/notes"])
    key.line.setText("sk-secret")
    card.settings["limit"].line.setText("11")
    shell.qtbot.mouseClick(card.go, LEFT)
    assert shell.host.packs.values == {}, "the number is out of its range"
    card.settings["limit"].line.setText("7")
    shell.qtbot.mouseClick(card.go, LEFT)
    shell.until(lambda: shell.host.packs.values)
    assert shell.host.packs.values == {"folder": "/home/ada/notes", "key": "sk-secret", "limit": 7, "verbose": False}
    shell.until(lambda: shell.workspace.servers_page.detail is not None)
    assert "sk-secret" not in shell.texts()


def test_a_newer_bundle_updates_and_empty_fields_keep_their_values(shell: Shell, tmp_path: Path) -> None:
    async def old(_host: object) -> None:
        shell.host.packs.aliases["notes"] = "1.0.0"
        shell.host.packs.values = {"folder": "/a", "key": "k", "limit": 7, "verbose": True}
        await shell.host.servers.add(ServerConfig("notes", Stdio("node")))

    shell.bridge.call(old).result(5)
    card = bundle(shell, tmp_path)
    assert card.go.text() == "Update"
    assert card.settings["limit"].line.text() == "7"
    assert card.settings["key"].line.text() == ""
    shell.qtbot.mouseClick(card.go, LEFT)
    shell.until(lambda: shell.host.packs.aliases == {"notes": "1.2.0"})
    assert shell.host.packs.values == {"folder": "/a", "key": "k", "limit": 7, "verbose": True}


def test_removing_the_server_of_a_bundle_removes_the_bundle(shell: Shell, tmp_path: Path) -> None:
    async def installed(_host: object) -> None:
        await shell.host.packs.install(tmp_path)

    shell.bridge.call(installed).result(5)
    shell.workspace.servers.remove("notes")
    shell.until(lambda: shell.host.packs.aliases == {} and shell.host.servers.rows == {})


def test_what_is_no_bundle_is_refused_in_place(shell: Shell, tmp_path: Path) -> None:
    path = tmp_path / "bad.dxt"
    path.write_bytes(b"hello")
    drop(shell, path)
    shell.until(lambda: adding(shell).panel.problem.isVisible())
    assert adding(shell).bundle is None
