"""The inspector beside a chat: off at first, by key and command, this chat's servers, cost, wire and logs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from pytestqt.qtbot import QtBot

from desktop_host.core import events as ev
from desktop_host.core.messages import assistant
from desktop_host.core.servers import ServerConfig, ServerState, Stdio
from desktop_host.core.sessions import SessionOptions
from desktop_host.core.toolkit import ToolkitConfig
from desktop_host.core.tools import ToolGroup
from desktop_host.core.values import FrozenDict
from desktop_host.ui.theme import theme
from desktop_host.ui.widgets.inspector_chat import money
from desktop_host.ui.widgets.inspector_panel import InspectorPanel
from tests.fakes.shell_host import ShellHost
from tests.ui.shell_kit import Shell

FILES = ServerConfig("files", Stdio("npx", ("-y", "server-filesystem", "/tmp")))
GIT = ServerConfig("git", Stdio("uvx", ("mcp-server-git",)))


@pytest.fixture
def shell(qtbot: QtBot, tmp_path: Path) -> Iterator[Shell]:
    made = Shell(qtbot, tmp_path, ShellHost())
    made.window.resize(1280, 800)

    async def add(_host: object) -> None:
        for config in (FILES, GIT):
            await made.host.servers.add(config)
            await made.host.servers.start(config.name)

    made.bridge.call(add).result(5)
    made.until(lambda: [s.state for s in made.workspace.servers.statuses()] == [ServerState.READY] * 2)
    made.workspace.show_chat(None)
    yield made
    made.close()


def opened(shell: Shell) -> InspectorPanel:
    shell.qtbot.keyClick(
        shell.window, Qt.Key.Key_I, Qt.KeyboardModifier.ControlModifier | Qt.KeyboardModifier.ShiftModifier
    )
    shell.until(lambda: shell.workspace.inspector.panel is not None and shell.workspace.inspector.panel.isVisible())
    panel = shell.workspace.inspector.panel
    assert panel is not None
    return panel


def test_it_is_off_at_first_and_goes_by_the_key_it_came_with(shell: Shell) -> None:
    assert shell.workspace.inspector.panel is None
    panel = opened(shell)
    assert shell.window.stack.isVisible()
    assert panel.tabs.tabBar().hasFocus()
    shell.window.commands.run("view.inspector")
    assert not panel.isVisible()
    assert shell.workspace.chat.composer.edit.hasFocus()


def test_it_stands_beside_the_chat_only(shell: Shell) -> None:
    panel = opened(shell)
    shell.workspace.show_servers()
    assert not panel.isVisible()
    shell.workspace.back_to_chat()
    assert panel.isVisible()
    shell.workspace.show_servers()
    shell.window.commands.run("view.inspector")
    assert shell.workspace.page == "chats"
    assert panel.isVisible()


def test_escape_closes_it_and_it_is_remembered(shell: Shell) -> None:
    panel = opened(shell)
    assert shell.window.state.flag("inspector")
    panel.close_button.setFocus()
    shell.qtbot.keyClick(panel.close_button, Qt.Key.Key_Escape)
    assert not panel.isVisible()
    assert not shell.window.state.flag("inspector")


def test_in_a_narrow_window_it_has_the_room_to_itself(shell: Shell) -> None:
    panel = opened(shell)
    shell.window.resize(640, 700)
    shell.until(lambda: not shell.window.stack.isVisible())
    assert panel.isVisible()
    panel.closed.emit()
    shell.until(shell.window.stack.isVisible)
    toasts = shell.window.toasts
    toasts.say("A notice that has nothing to do with the panel")
    shell.until(lambda: toasts.width() >= theme.px(240))
    assert shell.window.centralWidget().rect().contains(toasts.geometry())


def test_it_shows_the_servers_of_this_chat_with_tools_and_resources(shell: Shell) -> None:
    panel = opened(shell)
    tree = panel.facts.tree
    shell.until(lambda: tree.topLevelItemCount() == 2)
    first = tree.topLevelItem(0)
    assert first is not None
    assert first.text(0) == "files"
    first.setExpanded(True)
    tools, resources = first.child(0), first.child(1)
    tools.setExpanded(True)
    shell.until(lambda: tools.childCount() == 3)
    assert tools.child(0).text(0) == "Read file"
    resources.setExpanded(True)
    shell.until(lambda: resources.childCount() == 2)
    shell.workspace.chat.chat.choices.pick_servers(("git",))
    shell.until(lambda: tree.topLevelItemCount() == 1)
    assert panel.servers == ("git",)


def test_a_row_leads_to_that_page_of_the_server(shell: Shell) -> None:
    panel = opened(shell)
    tree = panel.facts.tree
    shell.until(lambda: tree.topLevelItemCount() == 2)
    first = tree.topLevelItem(0)
    assert first is not None
    first.setExpanded(True)
    tree.itemActivated.emit(first.child(1), 0)
    page = shell.workspace.servers_page.detail
    assert page is not None
    assert page.name == "files"
    assert page.tabs.tabText(page.tabs.currentIndex()) == "Resources"


def test_tokens_and_cost_of_the_chat_are_counted_as_it_goes_on(shell: Shell) -> None:
    panel = opened(shell)
    session = shell.bridge.call(lambda host: host.new_session(SessionOptions())).result(5)
    shell.workspace.show_chat(session)

    async def talk(_host: object) -> None:
        shell.host.publish(session, ev.AssistantSaid(assistant("hello"), "script:demo"))
        shell.host.publish(session, ev.UsageRecorded("script:demo", "chat", 1200, 300, 0, 0, 0, 0.0125))

    shell.bridge.call(talk).result(5)
    said = panel.facts.meter
    shell.until(lambda: "1,200" in shell.texts())
    assert "$0.0125" in shell.texts()
    assert said.isVisible()


def test_limits_stand_in_the_panel_where_there_are_some_and_move_with_the_chat(shell: Shell) -> None:
    panel = opened(shell)
    budgets = panel.facts.budgets
    shell.until(lambda: shell.host.asked_standings)
    assert not budgets.isVisible()
    common = {"key": "k", "reserved_usd": 0.0, "calls": 3, "limit_calls": None}
    day = FrozenDict({**common, "scope": "day", "spent_usd": 4.0, "limit_usd": 5.0})
    month = FrozenDict({**common, "scope": "month", "spent_usd": 9.0, "limit_usd": None})
    shell.host.limits = (day, month)
    session = shell.bridge.call(lambda host: host.new_session(SessionOptions())).result(5)
    shell.workspace.show_chat(session)
    shell.until(budgets.isVisible)
    assert [(limit.scope, limit.share) for limit in budgets.limits] == [("day", 0.8)]
    assert "$4.00 of $5.00" in shell.texts() and shell.host.asked_standings[-1] == session

    async def spend(_host: object) -> None:
        shell.host.limits = (FrozenDict({**day, "spent_usd": 4.5}),)
        shell.host.publish(session, ev.UsageRecorded("script:demo", "chat", 1, 1, 0, 0, 0, 0.5))

    shell.bridge.call(spend).result(5)
    shell.until(lambda: budgets.limits[0].spent == 4.5)


def test_the_wire_of_all_its_servers_is_one_list(shell: Shell) -> None:
    panel = opened(shell)
    panel.tabs.setCurrentWidget(panel.trace)
    shell.until(lambda: panel.trace.wire.rowCount() == 6)
    assert {one.server for one in panel.trace.wire.rows} == {"files", "git"}
    assert panel.trace.shown.index(0, 2).data().startswith(("files · ", "git · "))
    panel.tabs.setCurrentWidget(panel.logs)
    shell.until(lambda: "files: listening on stdio" in panel.logs.text.toPlainText())


def test_nothing_is_read_while_it_is_hidden(shell: Shell) -> None:
    panel = opened(shell)
    panel.tabs.setCurrentWidget(panel.trace)
    shell.until(lambda: panel.trace.wire.rowCount() == 6)
    panel.closed.emit()
    assert not panel.trace.wire._timer.isActive()
    assert not panel.logs._timer.isActive()


def test_small_amounts_of_money_keep_their_figures() -> None:
    assert money(0.0) == "$0.00"
    assert money(0.0042) == "$0.0042"
    assert money(3.456) == "$3.46"
    assert "price" in money(None)


def test_the_groups_of_a_chat_are_switched_for_this_chat_alone(shell: Shell) -> None:
    shell.host.kit.config = ToolkitConfig((ToolGroup("writing", ("files.write_*",), description="Write files."),))
    panel = opened(shell)
    groups = panel.facts.groups
    assert groups.isHidden(), "a chat that has not begun has nothing to switch"
    session = shell.bridge.call(lambda host: host.new_session(SessionOptions())).result(5)
    shell.workspace.show_chat(session)
    shell.until(lambda: groups.isVisible())
    switch = groups.switches["writing"]
    assert switch.isChecked()
    switch.setFocus()
    shell.qtbot.keyClick(switch, Qt.Key.Key_Space)
    shell.until(lambda: shell.host.kit.switched == {session: {"writing": False}})
    assert shell.host.kit.config.groups[0].enabled, "new chats begin as before"


def test_a_chat_has_folders_of_its_own_that_its_servers_are_told_of(shell: Shell, tmp_path: Path) -> None:
    panel = opened(shell)
    session = shell.bridge.call(lambda host: host.new_session(SessionOptions(effort="low"))).result(5)
    shell.workspace.show_chat(session)
    chat = shell.workspace.chat.chat
    shell.until(lambda: chat.choices.options.effort == "low")
    panel.facts.folders.put(str(tmp_path))

    def kept() -> SessionOptions:
        return shell.bridge.call(lambda host: host.history.options(session)).result(5)

    shell.until(lambda: kept().roots == (str(tmp_path),))
    assert kept().effort == "low"
    shell.press(f"Take {tmp_path} away", panel.facts.folders)
    shell.until(lambda: kept().roots == ())
