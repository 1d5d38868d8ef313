"""The tools of a server: permission, groups, fixed arguments, a form to run one by hand."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLineEdit
from pytestqt.qtbot import QtBot

from desktop_host.core.errors import UserFault
from desktop_host.core.permissions import Effect
from desktop_host.core.servers import ServerConfig, ServerState, Stdio
from desktop_host.core.toolkit import PostRule
from desktop_host.core.tools import ToolGroup
from desktop_host.core.values import freeze
from desktop_host.ui.widgets.pieces import CodeBox
from desktop_host.ui.widgets.server_rules import PermissionBox, ToolRulesForm
from desktop_host.ui.widgets.server_tools import ToolRow, ToolsTab
from desktop_host.ui.widgets.server_try import TryIt, without
from tests.fakes.shell_host import ShellHost
from tests.ui.shell_kit import Shell

LEFT = Qt.MouseButton.LeftButton
FILES = ServerConfig("files", Stdio("npx", ("-y", "server-filesystem", "/tmp")))


@pytest.fixture
def shell(qtbot: QtBot, tmp_path: Path) -> Iterator[Shell]:
    made = Shell(qtbot, tmp_path, ShellHost())

    async def add(_host: object) -> None:
        await made.host.servers.add(FILES)
        await made.host.servers.start("files")

    made.bridge.call(add).result(5)
    made.until(lambda: [s.state for s in made.workspace.servers.statuses()] == [ServerState.READY])
    yield made
    made.close()


def tools(shell: Shell) -> ToolsTab:
    shell.workspace.show_servers("files", "tools")
    page = shell.workspace.servers_page.detail
    assert page is not None
    tab = page.show_tab("tools")
    assert isinstance(tab, ToolsTab)
    shell.until(lambda: len(tab.rows) == 3 and tab.rules.grants)
    return tab


def opened(shell: Shell, row: ToolRow) -> tuple[TryIt, ToolRulesForm]:
    if row.body is None:
        shell.qtbot.mouseClick(row.fold, LEFT)
    attempt, form = row.findChild(TryIt), row.findChild(ToolRulesForm)
    assert attempt is not None
    assert form is not None
    return attempt, form


def pick(box: PermissionBox, value: str) -> None:
    at = box.findData(value)
    box.setCurrentIndex(at)
    box.activated.emit(at)


def test_the_permission_of_a_tool_shows_what_holds_and_can_be_changed(shell: Shell) -> None:
    tab = tools(shell)
    first, second = tab.rows[0].permission, tab.rows[1].permission
    shell.until(lambda: "allow" in first.itemText(0))
    assert second.itemText(0) == "As the rest: ask"
    pick(second, "deny")
    shell.until(lambda: any(r.pattern == "files.write_file" for r in shell.host.rules))
    assert shell.host.rules[-1].effect is Effect.DENY
    assert shell.host.rules[-1].tool_digest is None
    pick(second, "allow")
    shell.until(lambda: shell.host.rules[-1].effect is Effect.ALLOW)
    assert shell.host.rules[-1].tool_digest == tab.rows[1].spec.digest, "a yes holds for this definition only"
    shell.until(lambda: second.currentData() == "allow")
    pick(second, "")
    shell.until(lambda: all(r.pattern != "files.write_file" for r in shell.host.rules))


def test_a_tool_is_run_by_hand_with_a_form_of_its_schema(shell: Shell) -> None:
    attempt, _ = opened(shell, tools(shell).rows[0])
    shell.qtbot.mouseClick(attempt.run, LEFT)
    assert shell.host.servers.calls == [], "a required field is empty"
    field = attempt.form.row("path").widgets[0]
    assert isinstance(field, QLineEdit)
    field.setText("/tmp/a")
    shell.qtbot.mouseClick(attempt.run, LEFT)
    shell.until(lambda: any("/tmp/a" in b.toPlainText() for b in attempt.findChildren(CodeBox)))
    assert shell.host.servers.calls == [("files", "read_file", freeze({"path": "/tmp/a"}))]


def test_what_was_filled_in_stays_when_the_form_becomes_json(shell: Shell) -> None:
    attempt, _ = opened(shell, tools(shell).rows[0])
    field = attempt.form.row("path").widgets[0]
    assert isinstance(field, QLineEdit)
    field.setText("/tmp/b")
    attempt.as_json.click()
    assert '"path": "/tmp/b"' in attempt.arguments.toPlainText()
    assert attempt.form.isHidden()


def test_a_tool_is_put_into_a_group_that_can_be_switched(shell: Shell) -> None:
    tab = tools(shell)
    _, form = opened(shell, tab.rows[1])
    assert tab.groups.isHidden()
    line = form.group.lineEdit()
    assert line is not None
    line.setText("writing")
    shell.qtbot.keyClick(line, Qt.Key.Key_Return)
    shell.until(lambda: not tab.groups.isHidden())
    assert shell.host.kit.config.group("writing").patterns == ("files.write_file",)
    shell.until(lambda: tab.rows[1].grouped.text() == "Group writing")
    shell.qtbot.mouseClick(tab.groups.switches["writing"], LEFT)
    shell.until(lambda: not shell.host.kit.config.group("writing").enabled)
    shell.until(lambda: "writing" in tab.groups.switches and not tab.groups.switches["writing"].isChecked())
    shell.press("Remove group writing", tab)
    shell.until(lambda: shell.host.kit.config.groups == ())


def test_a_whole_server_is_put_into_a_group_with_words_and_a_permission_of_its_own(shell: Shell) -> None:
    tab = tools(shell)
    line = tab.whole.name.lineEdit()
    assert line is not None
    line.setText("office")
    shell.qtbot.mouseClick(tab.whole.put, LEFT)
    shell.until(lambda: shell.host.kit.config.groups == (ToolGroup("office", ("files.*",)),))
    shell.until(lambda: "office" in tab.groups.forms)
    assert tab.groups.forms["office"].isHidden()
    shell.press("Change group office", tab)
    form = tab.groups.forms["office"]
    form.about.setText("Papers.")
    form.notes.setPlainText("Be careful.")
    form.permission.setCurrentIndex(form.permission.findData("deny"))
    shell.qtbot.mouseClick(form.keep, LEFT)
    shell.until(lambda: shell.host.kit.config.group("office").default is Effect.DENY)
    kept = shell.host.kit.config.group("office")
    assert (kept.description, kept.notes, kept.patterns) == ("Papers.", "Be careful.", ("files.*",))
    shell.until(lambda: tab.rows[1].permission.itemText(0) == "As the rest: deny")


def test_a_bad_group_name_is_told_and_nothing_kept(shell: Shell) -> None:
    _, form = opened(shell, tools(shell).rows[1])
    line = form.group.lineEdit()
    assert line is not None
    line.setText("not a name!")
    shell.qtbot.keyClick(line, Qt.Key.Key_Return)
    shell.until(lambda: shell.window.toasts.texts())
    assert shell.host.kit.config.groups == ()


def test_fixed_arguments_are_kept_shown_locked_and_sent(shell: Shell) -> None:
    tab = tools(shell)
    _, form = opened(shell, tab.rows[0])
    form.preset.setPlainText("[1]")
    shell.qtbot.mouseClick(form.fix, LEFT)
    assert form._preset_field.error
    form.preset.setPlainText('{"path": "/home/ada"}')
    shell.qtbot.mouseClick(form.fix, LEFT)
    shell.until(lambda: shell.host.kit.config.rules)
    shell.until(lambda: not tab.rows[0].fixed.isHidden())
    attempt = TryIt(shell.bridge, tab.rows[0].spec, shell.host.kit.config.rules[0].preset)
    shell.qtbot.addWidget(attempt)
    attempt.show()
    assert attempt.form.rows == ()
    shell.qtbot.mouseClick(attempt.run, LEFT)
    shell.until(lambda: shell.host.servers.calls)
    assert shell.host.servers.calls == [("files", "read_file", freeze({"path": "/home/ada"}))]


def test_what_the_model_gets_of_a_result_is_set_for_one_tool(shell: Shell) -> None:
    tab = tools(shell)
    _, form = opened(shell, tab.rows[0])
    post = form.post
    post.select.setText("items[*].name")
    post.most.setValue(500)
    post.images.setChecked(True)
    post.about.setPlainText("Read a note.")
    shell.qtbot.mouseClick(post.apply, LEFT)
    shell.until(lambda: shell.host.kit.config.rules)
    (rule,) = shell.host.kit.config.rules
    assert (rule.tool, rule.post, rule.description) == (
        "files.read_file", PostRule("items[*].name", True, 500), "Read a note.",
    )  # fmt: skip
    shell.host.kit.refuse = UserFault("bad_settings", "items[ does not compile", key="select", wanted="JMESPath")
    post.select.setText("items[")
    shell.qtbot.mouseClick(post.apply, LEFT)
    shell.until(lambda: post.select_field.error)
    assert shell.host.kit.config.rules == (rule,)


def test_a_schema_loses_its_fixed_fields() -> None:
    schema = freeze({"properties": {"a": {}, "b": {}}, "required": ["a", "b"]})
    assert without(schema, freeze({"a": 1})) == freeze({"properties": {"b": {}}, "required": ["b"]})
    assert without(freeze({}), freeze({"a": 1})) == freeze({})
