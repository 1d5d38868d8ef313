"""The frame: conversations, commands, looks, language, first steps."""

from __future__ import annotations

import datetime
import gc
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import QEvent, QModelIndex, QObject, QPoint, Qt
from PySide6.QtGui import QAccessible, QColor, QFontMetrics
from PySide6.QtWidgets import QAbstractButton, QApplication, QLineEdit, QMessageBox, QPushButton, QToolButton, QWidget
from pytestqt.qtbot import QtBot

from desktop_host import i18n
from desktop_host.core import events as ev
from desktop_host.core.asks import OpenUrl
from desktop_host.core.sessions import SessionState
from desktop_host.core.values import FrozenDict
from desktop_host.ui.actions import COMMANDS
from desktop_host.ui.theme import theme
from desktop_host.ui.tokens import COLORS, Colors
from desktop_host.ui.viewmodels.sessions import Role, until_tomorrow
from desktop_host.ui.widgets.add_server import AddServer
from desktop_host.ui.widgets.first_run import FirstRun
from desktop_host.ui.widgets.links_card import LinksCard
from desktop_host.ui.widgets.palette import score
from desktop_host.ui.widgets.session_list import HEADING
from desktop_host.ui.widgets.settings_page import GeneralTab
from desktop_host.ui.widgets.workspace import Workspace
from tests.fakes.shell_host import ShellHost
from tests.ui.shell_kit import Shell

Make = Callable[..., Shell]


@pytest.fixture
def make(qtbot: QtBot, tmp_path: Path) -> Iterator[Make]:
    made: list[Shell] = []

    def build(*, onboarded: bool = True, populate: bool = True, unread: str = "") -> Shell:
        host = ShellHost(onboarded=onboarded)
        host.settings.found = (FrozenDict({"key": unread, "code": "bad_value"}),) if unread else ()
        if populate:
            host.populate()
        shell = Shell(qtbot, tmp_path, host)
        made.append(shell)
        return shell

    yield build
    for shell in made:
        shell.close()
    theme.apply("light", 100)


def test_values_of_the_settings_file_that_are_not_used_are_told_once(make: Make) -> None:
    shell = make(unread="general.theme")
    shell.until(lambda: any("general.theme" in text for text in shell.window.toasts.texts()))
    shell.window.toasts.clear()
    shell.workspace.settings.refresh()
    shell.until(lambda: shell.workspace.settings.loaded)
    assert not any("general.theme" in text for text in shell.window.toasts.texts())


def rows(shell: Shell) -> list[str]:
    model = shell.workspace.sessions
    return [str(model.index(r).data()) for r in range(model.rowCount())]


def pages(w: Workspace) -> tuple[Callable[[], object], ...]:
    return lambda: w.show_chat("c4"), w.show_servers, w.add_server, w.show_settings, w.show_models, w.show_first_run


def index_of(shell: Shell, session: str) -> QModelIndex:
    model = shell.workspace.sessions
    return model.index(model.row_of(session))


def click_row(shell: Shell, session: str, button: Qt.MouseButton = Qt.MouseButton.LeftButton) -> None:
    view = shell.window.sidebar.list
    assert view is not None
    view.scrollTo(index_of(shell, session))
    shell.qtbot.mouseClick(view.viewport(), button, pos=view.visualRect(index_of(shell, session)).center())


def press_in_box(shell: Shell, text: str) -> None:
    box = shell.window.findChild(QMessageBox)
    assert box is not None
    target = next(b for b in box.buttons() if b.text() == text)
    shell.qtbot.mouseClick(target, Qt.MouseButton.LeftButton)


def test_conversations_stand_by_day_with_the_pinned_on_top(make: Make) -> None:
    shell = make()
    assert rows(shell)[:4] == ["Pinned", "Reading list", "Today", "How do goroutines differ from threads?"]
    assert "Yesterday" in rows(shell)
    assert "Previous 7 days" in rows(shell)


def test_the_days_of_the_list_are_told_anew_at_midnight() -> None:
    late = datetime.datetime(2026, 3, 1, 23, 59, 59)
    assert until_tomorrow(late) == 1500
    assert until_tomorrow(datetime.datetime(2026, 3, 1)) == 86_400_500


def test_a_click_opens_a_conversation_and_new_chat_leaves_it(make: Make) -> None:
    shell = make()
    click_row(shell, "c4")
    assert shell.workspace.session == "c4"
    shell.qtbot.mouseClick(shell.window.sidebar.new_chat, Qt.MouseButton.LeftButton)
    assert shell.workspace.session == ""
    assert shell.workspace.page == "chats"


def test_a_conversation_is_renamed_in_place_by_key(make: Make) -> None:
    shell = make()
    click_row(shell, "c4")
    view = shell.window.sidebar.list
    assert view is not None
    view.setFocus()
    shell.qtbot.keyClick(view, Qt.Key.Key_F2)
    editor = view.viewport().findChild(QLineEdit)
    assert editor is not None
    editor.selectAll()
    shell.qtbot.keyClicks(editor, "A better title")
    shell.qtbot.keyClick(editor, Qt.Key.Key_Return)
    shell.until(lambda: "A better title" in rows(shell))
    assert shell.host.history.kept["c4"].title == "A better title"


def test_deleting_asks_first_and_escape_keeps_the_conversation(make: Make) -> None:
    shell = make()
    click_row(shell, "c4")
    view = shell.window.sidebar.list
    assert view is not None
    shell.qtbot.keyClick(view, Qt.Key.Key_Delete)
    box = shell.window.findChild(QMessageBox)
    assert box is not None
    shell.until(box.isActiveWindow)
    shell.qtbot.keyClick(box, Qt.Key.Key_Escape)
    assert "c4" in shell.host.history.kept
    shell.until(lambda: shell.window.findChild(QMessageBox) is None)
    shell.qtbot.keyClick(view, Qt.Key.Key_Delete)
    press_in_box(shell, "Delete")
    shell.until(lambda: "Refactor the importer" not in rows(shell))
    assert "c4" not in shell.host.history.kept
    assert shell.workspace.session == ""


def test_the_menu_pins_a_conversation(make: Make) -> None:
    shell = make()
    view = shell.window.sidebar.list
    assert view is not None
    menu = view.menu("c4")
    next(a for a in menu.actions() if a.text() == "Pin").trigger()
    shell.until(lambda: shell.host.history.kept["c4"].pinned)
    shell.until(lambda: rows(shell).index("Refactor the importer") < rows(shell).index("Today"))
    menu.deleteLater()


def test_search_narrows_and_escape_shows_all_again(make: Make) -> None:
    shell = make()
    field = shell.window.sidebar.search
    shell.window.commands.run("chat.search")
    shell.qtbot.keyClicks(field, "lisbon")
    shell.until(lambda: rows(shell) == ["Plan a week in Lisbon with the calendar server"])
    shell.qtbot.keyClick(field, Qt.Key.Key_Down)
    view = shell.window.sidebar.list
    assert view is not None
    assert view.currentIndex().data(Role.SESSION) == "c2"
    shell.qtbot.keyClick(view, Qt.Key.Key_Return)
    assert shell.workspace.session == "c2"
    field.setFocus()
    shell.qtbot.keyClick(field, Qt.Key.Key_Escape)
    shell.until(lambda: "Pinned" in rows(shell))


def test_a_search_without_result_says_so(make: Make) -> None:
    shell = make()
    shell.qtbot.keyClicks(shell.window.sidebar.search, "zzz")
    shell.until(lambda: rows(shell) == [])
    assert "Nothing matches." in shell.texts()


def test_a_conversation_shows_that_it_runs_and_that_it_waits(make: Make) -> None:
    shell = make()

    def tell(event: ev.Event) -> None:
        shell.bridge.call(lambda host: _publish(shell.host, "c4", event)).result(5)

    tell(ev.StateChanged(SessionState.RUNNING))
    shell.until(lambda: index_of(shell, "c4").data(Role.STATE) == "running")
    tell(ev.AskRaised(OpenUrl("a1", "c4", None, "files", "please", "https://example.com")))
    shell.until(lambda: index_of(shell, "c4").data(Role.STATE) == "waiting")
    assert "waiting for you" in index_of(shell, "c4").data(Qt.ItemDataRole.AccessibleTextRole)
    assert any("waits for your answer" in t for t in shell.window.toasts.texts())
    tell(ev.AskSettled("a1", "accept", "person"))
    tell(ev.StateChanged(SessionState.IDLE))
    shell.until(lambda: index_of(shell, "c4").data(Role.STATE) == "idle")


async def _publish(host: ShellHost, session: str, event: ev.Event) -> None:
    host.publish(session, event)


def test_an_export_is_written_and_a_bad_path_is_told(make: Make, tmp_path: Path) -> None:
    shell = make()
    target = tmp_path / "out.md"
    acts = shell.workspace.acts
    shell.workspace.sessions.export("c4", "md", lambda text: acts.save(str(target), text))
    shell.until(target.exists)
    assert target.read_text("utf-8") == "# Refactor the importer\n"
    acts.save(str(tmp_path / "no" / "such" / "out.md"), "x")
    assert any("out.md" in t for t in shell.window.toasts.texts())


def test_the_palette_finds_commands_conversations_and_servers(make: Make) -> None:
    shell = make()
    shell.window.commands.run("view.palette")
    palette = shell.window.palette_
    shell.qtbot.keyClicks(palette.field, "lisb")
    assert [e.text for e in palette.entries.shown][:1] == ["Plan a week in Lisbon with the calendar server"]
    shell.qtbot.keyClick(palette.field, Qt.Key.Key_Return)
    assert shell.workspace.session == "c2"
    assert not palette.isVisible()
    shell.window.commands.run("view.palette")
    shell.qtbot.keyClicks(palette.field, "go to serv")
    shell.qtbot.keyClick(palette.field, Qt.Key.Key_Return)
    assert shell.workspace.page == "servers"
    shell.window.commands.run("view.palette")
    shell.qtbot.keyClick(palette.field, Qt.Key.Key_Escape)
    assert not palette.isVisible()


def test_letters_in_order_match_and_a_whole_word_ranks_first() -> None:
    assert score("dts", "Dark theme system") is not None
    assert score("xyz", "Dark theme") is None
    best = score("the", "The theme")
    worse = score("the", "Dark theme")
    assert best is not None
    assert worse is not None
    assert best < worse


def test_keys_go_to_pages(make: Make) -> None:
    shell = make()
    for key, page in (
        (Qt.Key.Key_2, "servers"),
        (Qt.Key.Key_3, "skills"),
        (Qt.Key.Key_Comma, "settings"),
        (Qt.Key.Key_1, "chats"),
    ):
        shell.qtbot.keyClick(shell.window, key, Qt.KeyboardModifier.ControlModifier)
        assert shell.workspace.page == page
        assert shell.window.sidebar.nav[page].isChecked()


def test_no_two_commands_share_a_key() -> None:
    keys = [key for c in COMMANDS for key in c.shortcut.split()]
    assert len(keys) == len(set(keys))


def test_the_theme_is_switched_live_and_kept(make: Make) -> None:
    shell = make()
    shell.window.commands.run("view.dark")
    app = QApplication.instance()
    assert isinstance(app, QApplication)
    assert app.palette().window().color() == QColor(COLORS[theme.scheme].window)
    assert theme.dark
    shell.until(lambda: shell.host.settings.now.general.theme == "dark")
    assert shell.window.state.text("theme") == "dark"


def test_icons_are_redrawn_in_the_colours_of_the_theme(make: Make) -> None:
    shell = make()
    button = shell.window.sidebar.nav["servers"]
    before = button.icon().pixmap(18, 18).toImage()
    shell.window.commands.run("view.dark")
    assert button.icon().pixmap(18, 18).toImage() != before


def test_text_size_changes_live_between_its_limits(make: Make) -> None:
    shell = make()
    title = shell.window.sidebar.new_chat
    small = QFontMetrics(title.font()).height()
    for _ in range(20):
        shell.window.commands.run("view.larger")
    assert theme.scale == 200
    assert QFontMetrics(title.font()).height() > small * 1.7
    for _ in range(20):
        shell.window.commands.run("view.smaller")
    assert theme.scale == 80
    shell.window.commands.run("view.normal")
    assert theme.scale == 100


def test_the_language_is_switched_live_and_the_page_stays(make: Make) -> None:
    shell = make()
    click_row(shell, "c4")
    shell.workspace.show_settings()
    shell.window.commands.run("view.chinese")
    assert i18n.current().language == "zh_CN"
    assert shell.workspace.page == "settings"
    assert shell.window.sidebar.nav["servers"].text() == "服务器"
    assert shell.workspace.session == "c4"
    shell.until(lambda: "已置顶" in rows(shell))
    assert shell.window.commands.action("chat.new").text() == "新建对话"
    shell.window.commands.run("view.english")
    assert shell.window.sidebar.nav["servers"].text() == "Servers"


def test_the_language_of_the_command_line_holds_until_another_is_chosen_in_the_window(make: Make) -> None:
    i18n.tell("zh_CN")
    i18n.install(i18n.spoken("en"))
    try:
        shell = make()
        shell.until(lambda: shell.window.sidebar.nav["servers"].text() == "服务器")
        assert shell.host.settings.now.general.language != "zh_CN", "what is set stays"
        shell.window.commands.run("view.english")
        shell.until(lambda: shell.window.sidebar.nav["servers"].text() == "Servers")
    finally:
        i18n.tell(None)


def test_every_text_has_a_place_in_both_languages_on_every_page(make: Make) -> None:
    shell = make(onboarded=False)
    w = shell.workspace
    for language in ("en", "zh_CN"):
        i18n.install(language)
        shell.window.build()
        for go in (w.show_first_run, w.show_servers, w.add_server, w.show_settings, w.show_models):
            go()
        keys = [line for line in shell.texts().splitlines() if _is_key(line)]
        assert keys == []
    i18n.install("en")


def _is_key(text: str) -> bool:
    head = text.split(".")[0]
    return " " not in text and "." in text and head in {
        "action", "add", "app", "command", "endpoint", "first", "form", "key", "local", "model", "nav", "permissions",
        "providers", "server", "servers", "sessions", "settings", "sidebar", "tool", "vault", "vendor", "window",
    }  # fmt: skip


def test_the_sidebar_folds_to_icons_with_names(make: Make) -> None:
    shell = make()
    wide = shell.window.sidebar.width()
    shell.window.commands.run("view.sidebar")
    assert shell.window.sidebar.width() < wide / 2
    assert shell.window.sidebar.nav["servers"].text() == ""
    assert shell.window.sidebar.nav["servers"].accessibleName() == "Servers"
    shell.window.commands.run("view.sidebar")
    assert shell.window.sidebar.width() == wide


def test_a_narrow_window_folds_the_sidebar_by_itself(make: Make) -> None:
    shell = make()
    shell.window.resize(600, 500)
    assert shell.window.sidebar.folded
    shell.window.resize(1200, 700)
    assert not shell.window.sidebar.folded


def test_the_first_steps_can_be_skipped_and_are_not_shown_again(make: Make) -> None:
    shell = make(onboarded=False, populate=False)
    assert shell.workspace.page == "first_run"
    shell.press("Skip setup")
    shell.until(lambda: shell.host.settings.now.general.onboarded)
    assert shell.workspace.page == "chats"


def test_the_first_steps_end_in_a_chat_with_the_question(make: Make) -> None:
    shell = make(onboarded=False, populate=False)
    page = shell.window.findChild(FirstRun)
    assert page is not None
    assert page.next.text() == "Skip this step"
    page.model.keys["anthropic"].field.setText("sk-ant-test")
    shell.qtbot.keyClick(page.model.keys["anthropic"].field, Qt.Key.Key_Return)
    shell.until(lambda: page.next.text() == "Continue")
    shell.until(lambda: shell.host.settings.now.model.default == "anthropic/claude-sonnet-4-5")
    shell.qtbot.mouseClick(page.next, Qt.MouseButton.LeftButton)
    page.tools.use_folder("/home/ada/notes")
    shell.until(lambda: "knowledge" in shell.host.servers.rows)
    config = shell.host.servers.rows["knowledge"][0]
    assert config.launch.args[1:] == ("serve", "--folder", "/home/ada/notes")
    shell.until(lambda: page.next.text() == "Continue")
    shell.qtbot.mouseClick(page.next, Qt.MouseButton.LeftButton)
    question = page.ask.questions[0]
    shell.qtbot.mouseClick(question, Qt.MouseButton.LeftButton)
    assert shell.workspace.page == "chats"
    assert shell.workspace.chat.composer.text == question.accessibleName()
    shell.until(lambda: shell.host.settings.now.general.onboarded)


def test_a_setting_out_of_the_page_is_kept_by_the_host(make: Make) -> None:
    shell = make()
    shell.workspace.show_settings()
    tab = shell.window.findChild(GeneralTab)
    assert tab is not None
    row = tab.rows["tools.max_steps"]
    row.control.setValue(7)  # type: ignore[attr-defined]
    shell.until(lambda: shell.host.settings.now.tools.max_steps == 7)
    assert "general.onboarded" not in tab.rows


def test_everything_that_takes_the_focus_has_a_name(make: Make) -> None:
    shell = make()
    w = shell.workspace
    for go in pages(w):
        go()
        for one in shell.window.findChildren(QWidget):
            if not one.isVisible() or one.focusPolicy() == Qt.FocusPolicy.NoFocus:
                continue
            interface = QAccessible.queryAccessibleInterface(one)
            if interface is None or not isinstance(one, (QAbstractButton, QLineEdit)):
                continue
            assert interface.text(QAccessible.Text.Name), f"{one!r} of {one.parent()!r} has no name"


def test_the_tab_key_reaches_every_button_of_the_servers_page(make: Make) -> None:
    shell = make()
    shell.workspace.show_servers()
    seen: set[QWidget] = set()
    shell.window.sidebar.new_chat.setFocus()
    for _ in range(60):
        shell.qtbot.keyClick(shell.window, Qt.Key.Key_Tab)
        now = shell.window.focusWidget()
        if now is None or now in seen:
            break
        seen.add(now)
    page = shell.workspace.servers_page
    assert page.add_button in seen
    assert all(made in seen for made in shell.window.sidebar.nav.values())


@pytest.mark.parametrize("scheme", list(COLORS))
def test_text_can_be_read_on_every_ground(scheme: str) -> None:
    c: Colors = COLORS[scheme]  # type: ignore[index]
    for ground in (c.window, c.base, c.raised, c.sidebar, c.accent_soft):
        for text in (c.text, c.muted):
            assert contrast(text, ground) >= 4.5, (scheme, text, ground)
    for text, ground in (
        (c.on_accent, c.accent), (c.success, c.success_soft), (c.warning, c.warning_soft), (c.danger, c.danger_soft),
        (c.info, c.info_soft), (c.danger, c.raised), (c.warning, c.raised), (c.link, c.raised),
    ):  # fmt: skip
        assert contrast(text, ground) >= 4.5, (scheme, text, ground)


def test_what_is_typed_for_a_new_chat_outlives_the_window(make: Make) -> None:
    first = make()
    first.workspace.show_chat(None)
    first.workspace.chat.composer.put("Half a thought, with a comma\nand a second line")
    first.window.close()
    again = make()
    again.workspace.show_chat(None)
    again.until(lambda: again.workspace.chat.composer.text == "Half a thought, with a comma\nand a second line")
    again.workspace.chat.composer.put("")
    again.window.close()
    assert make().window.state.text("new_draft") == ""


def test_a_pasted_server_brings_what_adds_it_into_sight(make: Make) -> None:
    shell = make()
    shell.window.resize(900, 420)
    shell.workspace.add_server()
    page = shell.window.findChild(AddServer)
    assert page is not None
    shell.qtbot.wait(20)
    page.panel.paste.insertPlainText('{"mcpServers": {"x": {"command": "npx", "args": ["-y", "some-server"]}}}')
    shell.until(lambda: bool(page.panel.cards))
    shell.until(lambda: page.verticalScrollBar().value() > 0)
    assert page.panel.cards[0].mapTo(page.viewport(), QPoint()).y() >= 0


@pytest.mark.parametrize("scheme", list(COLORS))
def test_what_shows_the_focus_stands_out_from_every_ground(scheme: str) -> None:
    """WCAG 2.2, 1.4.11: three to one for what tells one state of a control from another."""
    c: Colors = COLORS[scheme]  # type: ignore[index]
    for ground in (c.window, c.base, c.raised, c.sidebar, c.sunken):
        assert contrast(c.focus, ground) >= 3, (scheme, ground)
    # A primary button's ring is of the text's colour.
    assert all(contrast(c.text, ground) >= 3 for ground in (c.window, c.raised))


def test_enter_presses_the_button_that_has_the_focus(make: Make) -> None:
    shell = make()
    shell.workspace.show_servers()
    add = shell.workspace.servers_page.add_button
    add.setFocus()
    shell.qtbot.keyClick(add, Qt.Key.Key_Return)
    shell.until(lambda: shell.window.findChild(AddServer) is not None)


def test_behind_the_palette_the_window_is_dim_and_a_click_there_closes_it(make: Make) -> None:
    shell = make()
    shell.window.commands.run("view.palette")
    palette = shell.window.palette_
    assert palette.scrim.isVisible() and palette.scrim.size() == palette.parentWidget().size()  # type: ignore[union-attr]
    shell.qtbot.mouseClick(palette.scrim, Qt.MouseButton.LeftButton)
    assert not palette.isVisible() and not palette.scrim.isVisible()


def test_the_day_of_what_is_listed_stays_in_sight_and_covers_no_chat_that_is_chosen(make: Make) -> None:
    shell = make()
    listed = shell.window.sidebar.list
    assert listed is not None
    shell.until(lambda: listed.sessions.rowCount() > 3)
    listed.setFixedHeight(theme.px(100))
    shell.qtbot.wait(20)
    rows = [r for r in range(listed.sessions.rowCount()) if listed.sessions.index(r).data(Role.SESSION)]
    for row in (*rows, *reversed(rows)):
        listed.choose(str(listed.sessions.index(row).data(Role.SESSION)))
        top = listed.visualRect(listed.sessions.index(row)).top()
        assert top >= (theme.px(HEADING) if listed.verticalScrollBar().value() else 0)


def contrast(one: str, other: str) -> float:
    def light(name: str) -> float:
        color = QColor(name)
        parts = [v / 12.92 if v <= 0.03928 else ((v + 0.055) / 1.055) ** 2.4 for v in color.getRgbF()[:3]]  # type: ignore[index]
        return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]

    low, high = sorted((light(one), light(other)))
    return (high + 0.05) / (low + 0.05)


def test_visiting_pages_and_switching_the_language_leaks_no_widgets(make: Make) -> None:
    shell = make()
    w = shell.workspace

    def round_trip() -> None:
        w.show_servers()
        w.add_server("npx thing")
        w.show_servers()
        w.show_settings()
        w.show_chat(None)
        shell.window.commands.run("view.chinese")
        shell.window.commands.run("view.english")
        shell.qtbot.wait(20)
        gc.collect()

    round_trip()
    round_trip()
    before = len(QApplication.allWidgets())
    for _ in range(3):
        round_trip()
    assert len(QApplication.allWidgets()) <= before + 2


def test_a_closed_window_is_gone(qtbot: QtBot, tmp_path: Path) -> None:
    shell = Shell(qtbot, tmp_path, ShellHost())
    gone = weakref.ref(shell.window.sidebar.nav["servers"])
    shell.workspace.show_servers()
    shell.close()
    shell.window = shell.workspace = None  # type: ignore[assignment]
    gc.collect()
    assert gone() is None or not QApplication.allWidgets().count(gone())


def test_a_host_that_cannot_open_is_told_and_can_be_tried_again(qtbot: QtBot, tmp_path: Path) -> None:
    from contextlib import asynccontextmanager

    from desktop_host.core.errors import KnownFault
    from desktop_host.engine.host import HostSpec
    from desktop_host.ui.bridge import Bridge
    from desktop_host.ui.widgets.window import MainWindow
    from desktop_host.ui.window_state import WindowState

    tries: list[int] = []
    host = ShellHost()

    @asynccontextmanager
    async def open_host(_spec):  # type: ignore[no-untyped-def]
        tries.append(1)
        if len(tries) == 1:
            raise KnownFault("disk_full", "no space", path=str(tmp_path))
        yield host

    bridge = Bridge(open_host, HostSpec(tmp_path))
    window = MainWindow(WindowState(tmp_path, "test"))
    workspace = Workspace(window, bridge, bridge.start)
    window.show()
    bridge.start()
    qtbot.waitUntil(lambda: any(b.text() == "Try again" and b.isVisible() for b in window.findChildren(QPushButton)))
    qtbot.waitUntil(lambda: not bridge.running)
    assert not window.sidebar.nav["servers"].isEnabled()
    retry = next(b for b in window.findChildren(QPushButton) if b.text() == "Try again")
    qtbot.mouseClick(retry, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: workspace.settings.loaded, timeout=30_000)
    assert workspace.page == "chats"
    assert window.sidebar.nav["servers"].isEnabled()
    with qtbot.waitSignal(bridge.closed, timeout=30_000):
        bridge.close()
    window.hide()
    window.deleteLater()


def test_tool_buttons_have_tool_tips(make: Make) -> None:
    shell = make()
    shell.workspace.show_servers()
    for one in shell.window.sidebar.findChildren(QToolButton):
        if one.isVisible():
            assert one.toolTip()


class _Windows(QObject):
    """Notes every widget that is shown as a window of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() is QEvent.Type.Show and isinstance(watched, QWidget) and watched.isWindow():
            self.seen.append(type(watched).__name__)
        return False


def test_no_part_of_a_page_flashes_up_as_a_window_of_its_own(make: Make, qapp: QApplication) -> None:
    watcher = _Windows()
    qapp.installEventFilter(watcher)
    shell = make()
    w = shell.workspace
    for go in pages(w):
        go()
        shell.qtbot.wait(10)
    qapp.removeEventFilter(watcher)
    assert watcher.seen == ["MainWindow"]


def test_links_are_handed_to_the_window_by_a_switch_of_the_settings(make: Make) -> None:
    shell = make()
    shell.workspace.show_settings()
    card = shell.window.findChildren(LinksCard)[0]
    shell.until(card.switch.isEnabled)
    assert not card.place.isVisible()
    shell.qtbot.mouseClick(card.switch, Qt.MouseButton.LeftButton)
    shell.until(lambda: shell.host.links.now.on)
    shell.until(lambda: card.place.isVisibleTo(card))
    shell.qtbot.mouseClick(card.switch, Qt.MouseButton.LeftButton)
    shell.until(lambda: not shell.host.links.now.on)
