"""The servers page: live states, adding by paste, the card that says why, tools, lists, logs, settings."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QLineEdit, QMessageBox
from pytestqt.qtbot import QtBot

from desktop_host.core.servers import Http, LogLine, Protocol, ServerConfig, ServerState, Stdio
from desktop_host.core.values import FrozenDict, freeze
from desktop_host.ui.widgets.forms import Pairs
from desktop_host.ui.widgets.pieces import CodeBox
from desktop_host.ui.widgets.server_detail import ServerDetail
from desktop_host.ui.widgets.server_form import ServerSettings
from desktop_host.ui.widgets.server_logs import LogsView, log_text
from desktop_host.ui.widgets.server_overview import FailureCard
from desktop_host.ui.widgets.server_tools import ToolsTab
from desktop_host.ui.widgets.server_try import TryIt, sample_arguments
from desktop_host.ui.widgets.server_words import duration, size
from tests.fakes.shell_host import ShellHost
from tests.ui.shell_kit import Shell

LEFT = Qt.MouseButton.LeftButton
Make = Callable[..., Shell]

SNIPPET = """{"mcpServers": {"github": {"command": "npx", "args": ["-y", "server-github"],
  "env": {"GITHUB_TOKEN": "ghp_very_secret", "LOG_LEVEL": "info"}}}}"""


@pytest.fixture
def make(qtbot: QtBot, tmp_path: Path) -> Iterator[Make]:
    made: list[Shell] = []

    def build(*configs: ServerConfig) -> Shell:
        shell = Shell(qtbot, tmp_path, ShellHost())
        made.append(shell)

        async def add(_host: object) -> None:
            for config in configs:
                await shell.host.servers.add(config)
                if config.enabled:
                    await shell.host.servers.start(config.name)

        shell.bridge.call(add).result(5)
        shell.until(lambda: len(shell.workspace.servers.statuses()) == len(configs))
        shell.workspace.show_servers()
        return shell

    yield build
    for shell in made:
        shell.close()


FILES = ServerConfig("files", Stdio("npx", ("-y", "server-filesystem", "/tmp")))
BROKEN = ServerConfig("broken", Stdio("broken", ("--root", "/home/ada")))
WEB = ServerConfig("web", Http("https://example.com/mcp", FrozenDict({"X-Team": "blue"})))


def state(shell: Shell, name: str) -> ServerState:
    status = shell.workspace.servers.status(name)
    assert status is not None
    return status.state


def detail(shell: Shell, name: str) -> ServerDetail:
    shell.workspace.show_servers(name)
    found = shell.workspace.servers_page.detail
    assert found is not None
    return found


def test_a_pasted_snippet_is_shown_whole_and_starts_nothing_before_add(make: Make) -> None:
    shell = make()
    shell.press("Add a server")
    adding = shell.workspace.servers_page.adding
    assert adding is not None
    panel = adding.panel
    panel.paste.setPlainText(SNIPPET)
    shell.until(lambda: panel.cards)
    shown = "\n".join(box.toPlainText() for box in panel.cards[0].findChildren(CodeBox))
    for part in ("npx", "-y\nserver-github", "LOG_LEVEL=info", "${keyring:github-github_token}"):
        assert part in shown
    assert "ghp_very_secret" not in shown
    assert shell.host.servers.rows == {}
    shell.qtbot.mouseClick(panel.go, LEFT)
    shell.until(lambda: "github" in shell.host.servers.rows)
    shell.until(lambda: state(shell, "github") is ServerState.READY)
    shell.until(lambda: shell.workspace.servers_page.detail is not None)
    assert shell.bridge.call(lambda host: host.secrets.get("github-github_token")).result(5) == "ghp_very_secret"
    assert "ghp_very_secret" not in shell.texts()


@pytest.mark.parametrize(
    ("text", "name"), [("npx -y thing --flag", "npx"), ("https://mcp.example.com/x", "mcp-example-com")]
)
def test_a_command_line_and_a_url_can_be_pasted(make: Make, text: str, name: str) -> None:
    shell = make()
    shell.workspace.add_server(text)
    adding = shell.workspace.servers_page.adding
    assert adding is not None
    shell.until(lambda: adding.panel.cards)
    assert adding.panel.cards[0].found.config.name == name


def test_what_cannot_be_read_is_told_in_place(make: Make) -> None:
    shell = make()
    shell.workspace.add_server('{"mcpServers": {')
    adding = shell.workspace.servers_page.adding
    assert adding is not None
    shell.until(adding.panel.problem.isVisible)
    assert not adding.panel.go.isEnabled()


def test_a_bad_name_is_refused_where_it_stands(make: Make) -> None:
    shell = make()
    shell.workspace.add_server("npx thing")
    adding = shell.workspace.servers_page.adding
    assert adding is not None
    shell.until(lambda: adding.panel.cards)
    field = adding.panel.cards[0].name
    field.control.setText("No Such Name!")  # type: ignore[attr-defined]
    shell.qtbot.mouseClick(adding.panel.go, LEFT)
    assert field.error
    assert shell.host.servers.rows == {}


def test_leaving_the_page_while_it_reads_harms_nothing(make: Make) -> None:
    shell = make()
    shell.workspace.add_server("npx thing")
    shell.workspace.show_settings()
    shell.workspace.show_servers()
    shell.qtbot.wait(50)
    assert shell.workspace.servers_page.adding is None


def test_several_servers_of_a_snippet_can_be_chosen_from(make: Make) -> None:
    shell = make()
    shell.workspace.add_server('{"a": {"command": "x"}, "b": {"url": "https://b.example"}}')
    adding = shell.workspace.servers_page.adding
    assert adding is not None
    shell.until(lambda: len(adding.panel.cards) == 2)
    adding.panel.cards[0].take.setChecked(False)
    assert adding.panel.go.text() == "Add 1 server"
    shell.qtbot.mouseClick(adding.panel.go, LEFT)
    shell.until(lambda: set(shell.host.servers.rows) == {"b"})


def test_a_server_is_stopped_started_and_restarted_from_the_list(make: Make) -> None:
    shell = make(FILES)
    card = shell.workspace.servers_page.cards["files"]
    shell.until(lambda: state(shell, "files") is ServerState.READY)
    shell.qtbot.mouseClick(card.run, LEFT)
    shell.until(lambda: state(shell, "files") is ServerState.STOPPED)
    assert card.state.text() == "Stopped"
    assert card.run.accessibleName() == "Start files"
    shell.until(card.run.isEnabled)
    shell.qtbot.mouseClick(card.run, LEFT)
    shell.until(lambda: state(shell, "files") is ServerState.READY)
    shell.until(card.again.isEnabled)
    shell.qtbot.mouseClick(card.again, LEFT)
    shell.until(lambda: "files" not in shell.workspace.servers.busy)
    shell.until(lambda: state(shell, "files") is ServerState.READY)


def test_the_switch_turns_a_server_off_and_on_by_key(make: Make) -> None:
    shell = make(FILES)
    card = shell.workspace.servers_page.cards["files"]
    card.switch.setFocus()
    shell.qtbot.keyClick(card.switch, Qt.Key.Key_Space)
    shell.until(lambda: state(shell, "files") is ServerState.DISABLED)
    assert not card.switch.isChecked()
    shell.until(card.switch.isEnabled)
    shell.qtbot.keyClick(card.switch, Qt.Key.Key_Space)
    shell.until(lambda: state(shell, "files") is ServerState.READY)


def test_removing_asks_first(make: Make) -> None:
    shell = make(FILES)
    page = detail(shell, "files")
    shell.qtbot.mouseClick(page.gone, LEFT)
    box = shell.window.findChild(QMessageBox)
    assert box is not None
    assert "files" in shell.host.servers.rows
    shell.qtbot.mouseClick(next(b for b in box.buttons() if b.text() == "Remove"), LEFT)
    shell.until(lambda: "files" not in shell.host.servers.rows)
    shell.until(lambda: shell.workspace.servers_page.detail is None)


def test_the_card_says_why_a_server_does_not_work_and_mends_it(make: Make) -> None:
    shell = make(BROKEN)
    page = detail(shell, "broken")
    card = page.findChild(FailureCard)
    assert card is not None
    shown = "\n".join(box.toPlainText() for box in card.findChildren(CodeBox))
    for part in ("/opt/servers/broken/index.js", "/usr/local/bin", "Cannot find module 'zod'", "Welcome to Broken"):
        assert part in shown
    shell.press("Copy", card)
    copied = QGuiApplication.clipboard().text()
    assert "exit code: 1" in copied
    assert "stderr: Error: Cannot find module 'zod'" in copied
    shell.qtbot.mouseClick(card.edit, LEFT)
    form = page.show_tab("settings")
    assert isinstance(form, ServerSettings)
    assert form.form is not None
    form.form.command.control.setText("npx")  # type: ignore[attr-defined]
    shell.qtbot.mouseClick(form.save, LEFT)
    shell.until(lambda: shell.host.servers.rows["broken"][0].launch.command == "npx")
    shell.qtbot.mouseClick(page.again, LEFT)
    shell.until(lambda: state(shell, "broken") is ServerState.READY)
    shell.until(lambda: page.findChild(FailureCard) is None)


def test_a_failure_elsewhere_is_noticed_quietly_with_a_way_there(make: Make) -> None:
    shell = make(BROKEN)
    shell.workspace.show_chat(None)
    shell.workspace.servers.restart("broken")
    shell.until(lambda: any("broken" in t for t in shell.window.toasts.texts()))
    shell.press("Why?")
    assert shell.workspace.page == "servers"
    assert shell.workspace.servers_page.detail is not None


def test_a_tool_is_switched_off_and_tried_by_hand(make: Make) -> None:
    shell = make(FILES)
    tab = detail(shell, "files").show_tab("tools")
    assert isinstance(tab, ToolsTab)
    shell.until(lambda: len(tab.rows) == 3)
    assert "Can destroy" in shell.texts()
    assert "object was assumed" in shell.texts()
    shell.qtbot.mouseClick(tab.rows[1].switch, LEFT)
    shell.until(lambda: shell.host.servers.rows["files"][0].disabled_tools == ("write_file",))
    shell.until(lambda: not tab.rows[1].switch.isChecked())
    shell.qtbot.mouseClick(tab.rows[0].fold, LEFT)
    attempt = tab.rows[0].findChild(TryIt)
    assert attempt is not None
    attempt.as_json.click()
    assert '"path": ""' in attempt.arguments.toPlainText()
    attempt.arguments.setPlainText('{"path": ')
    shell.qtbot.mouseClick(attempt.run, LEFT)
    assert shell.host.servers.calls == []
    attempt.arguments.setPlainText('{"path": "/tmp/a"}')
    shell.qtbot.mouseClick(attempt.run, LEFT)
    shell.until(lambda: any("/tmp/a" in b.toPlainText() for b in attempt.findChildren(CodeBox)))
    assert shell.host.servers.calls == [("files", "read_file", freeze({"path": "/tmp/a"}))]


def test_lists_of_a_server_that_is_not_running_offer_to_start_it(make: Make) -> None:
    shell = make(FILES)
    page = detail(shell, "files")
    tab = page.show_tab("resources")
    shell.workspace.servers.stop("files")
    shell.until(lambda: "The server is not running" in shell.texts())
    shell.press("Start", tab)
    shell.until(lambda: len(tab.rows) == 2)  # type: ignore[attr-defined]


def test_logs_are_filtered_by_source_and_text(make: Make) -> None:
    shell = make(FILES)
    tab = detail(shell, "files").show_tab("logs")
    assert isinstance(tab, LogsView)
    shell.until(lambda: "listening on stdio" in tab.text.toPlainText())
    tab.filter.setText("slow")
    assert tab.text.toPlainText().count("\n") == 0
    tab.filter.setText("")
    tab.source.setCurrentIndex(tab.source.findData("message"))
    assert "index ready" in tab.text.toPlainText()
    assert "listening" not in tab.text.toPlainText()


def test_log_lines_are_found_whatever_their_case() -> None:
    lines = (LogLine(0.0, "stderr", "Disk FULL"), LogLine(0.0, "host", "started"))
    assert "FULL" in log_text(lines, "all", "full")
    assert log_text(lines, "host", "full") == ""


def test_settings_of_a_server_are_kept_and_bad_lines_named(make: Make) -> None:
    shell = make(WEB)
    tab = detail(shell, "web").show_tab("settings")
    assert isinstance(tab, ServerSettings)
    form = tab.form
    assert form is not None
    pairs = form.pairs.control
    assert isinstance(pairs, Pairs)
    assert pairs.toPlainText() == "X-Team: blue"
    pairs.setPlainText("X-Team: blue\nnonsense")
    shell.qtbot.mouseClick(tab.save, LEFT)
    assert "Line 2" in form.pairs.error
    pairs.setPlainText("X-Team: green: really")
    form.protocol.setCurrentIndex(form.protocol.findData("legacy"))
    form.trusted.setChecked(True)
    assert form.call_s.text() == "As in the settings", "it has no limit of its own"
    form.call_s.setValue(5)
    shell.qtbot.mouseClick(tab.save, LEFT)
    shell.until(lambda: shell.host.servers.rows["web"][0].trusted)
    kept = shell.host.servers.rows["web"][0]
    assert kept.launch.headers == {"X-Team": "green: really"}
    assert kept.protocol is Protocol.LEGACY
    assert kept.timeouts.call_s == 5


def test_arguments_with_spaces_stay_one_argument(make: Make) -> None:
    shell = make(ServerConfig("odd", Stdio("thing", ("--name", "two words", ""))))
    tab = detail(shell, "odd").show_tab("settings")
    assert isinstance(tab, ServerSettings)
    assert tab.form is not None
    value = tab.form.value()
    assert value is not None
    assert value.launch == Stdio("thing", ("--name", "two words", ""))


def test_an_address_without_a_scheme_is_refused(make: Make) -> None:
    shell = make(WEB)
    tab = detail(shell, "web").show_tab("settings")
    assert isinstance(tab, ServerSettings)
    assert tab.form is not None
    field = tab.form.url.control
    assert isinstance(field, QLineEdit)
    field.setText("example.com")
    assert tab.form.value() is None
    assert tab.form.url.error


def test_required_fields_of_a_schema_are_offered_for_a_try() -> None:
    schema = {"properties": {"n": {"type": "integer"}, "s": {"type": "string"}, "o": {}}, "required": ["n", "o"]}
    assert sample_arguments(schema) == '{\n  "n": 0,\n  "o": ""\n}'
    assert sample_arguments({}) == "{}"
    assert sample_arguments({"properties": 3, "required": 5}) == "{}"


def test_sizes_and_spans_read_as_people_say_them() -> None:
    assert size(512) == "512 B"
    assert size(491_400_064) == "468.6 MB"
    assert duration(42) == "42 s"
    assert duration(3_700) == "1 h 1 min"
    assert duration(200_000) == "2 d 7 h"


def test_tools_are_filtered_by_what_they_say(make: Make) -> None:
    shell = make(FILES)
    tab = detail(shell, "files").show_tab("tools")
    assert isinstance(tab, ToolsTab)
    shell.until(lambda: len(tab.rows) == 3)
    tab.filter.setText("overwrites")
    assert [one.spec.name for one in tab.rows if not one.isHidden()] == ["write_file"]
