"""The profile switcher and its page, over the real store of profiles."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QMessageBox, QPushButton
from pytestqt.qtbot import QtBot

from desktop_host.app.tenants import Tenants
from desktop_host.core.errors import UserFault
from desktop_host.profiles.store import Profiles
from desktop_host.ui.widgets.page import ErrorCard
from desktop_host.ui.widgets.profile_room import ProfileRoom
from tests.fakes.shell_host import ShellHost
from tests.ui.shell_kit import Shell


class Seat(Tenants):
    """The real profiles; windows are only noted."""

    def __init__(self, home: Path) -> None:
        super().__init__(home)
        self.opened: list[str] = []

    def open_window(self, name: str, session: str = "") -> None:
        if name not in self.names():
            raise UserFault("not_found", f"there is no profile {name!r}", reason="profile", name=name)
        self.opened.append(name)


@pytest.fixture
def rooms(qtbot: QtBot, tmp_path: Path) -> Iterator[tuple[Shell, ProfileRoom, Seat]]:
    home = tmp_path / "home"
    seat = Seat(home)
    for name in ("default", "work"):
        seat.create(name)
    shell = Shell(qtbot, tmp_path / "window", ShellHost())
    room = ProfileRoom(shell.workspace, seat, "default")
    room._ready(None)
    shell.until(lambda: room.model.names == ("default", "work"))
    yield shell, room, seat
    shell.close()


def test_the_head_of_the_sidebar_switches_to_another_profile(rooms: tuple[Shell, ProfileRoom, Seat]) -> None:
    shell, room, seat = rooms
    shell.qtbot.mouseClick(shell.window.sidebar.title, Qt.MouseButton.LeftButton)
    menu = room.menu
    assert menu is not None
    names = [a.text() for a in menu.actions() if a.text()]
    assert names == ["default", "work", "New profile", "Manage profiles…"]
    here, work = menu.actions()[:2]
    assert (here.isChecked(), work.isChecked()) == (True, False)
    work.trigger()
    menu.close()
    shell.until(lambda: seat.opened == ["work"])
    shell.until(lambda: "work opens in a window of its own." in shell.window.toasts.texts())


def test_the_folded_sidebar_switches_profiles_too(rooms: tuple[Shell, ProfileRoom, Seat]) -> None:
    shell, room, seat = rooms
    shell.window.commands.run("view.sidebar")
    title = shell.window.sidebar.title
    assert shell.window.sidebar.folded and title.isVisible()
    assert title.text() == "" and not title.icon().isNull()
    assert "Desktop Host" in title.accessibleName()
    shell.until(lambda: title.geometry().right() < shell.window.sidebar.width() and title.width() > 24)
    shell.qtbot.mouseClick(title, Qt.MouseButton.LeftButton)
    assert room.menu is not None
    room.menu.actions()[1].trigger()
    room.menu.close()
    shell.until(lambda: seat.opened == ["work"])
    shell.window.commands.run("view.sidebar")
    assert title.text().startswith("Desktop Host")


def test_a_profile_is_made_under_a_name_that_is_checked(rooms: tuple[Shell, ProfileRoom, Seat]) -> None:
    shell, room, seat = rooms
    shell.window.commands.run("go.profiles")
    assert room.page.isVisible()
    shell.press("New profile", room.page)
    form = room.page.form
    assert form is not None
    assert form.name.hasFocus()
    shell.qtbot.keyClick(form.name, Qt.Key.Key_Return)
    assert form.error == "A profile needs a name."
    form.name.setText("work")
    shell.qtbot.keyClick(form.name, Qt.Key.Key_Return)
    shell.until(lambda: "work" in form.error and form.ok.isEnabled())
    form.name.setText("tests")
    shell.qtbot.keyClick(form.name, Qt.Key.Key_Return)
    shell.until(lambda: set(room.page.cards) == {"default", "tests", "work"})
    assert room.page.form is None
    assert seat.names() == ("default", "tests", "work")


def test_the_profile_of_this_window_can_neither_be_opened_nor_deleted_from_itself(
    rooms: tuple[Shell, ProfileRoom, Seat],
) -> None:
    _, room, _ = rooms
    room.show()
    assert set(room.page.cards["default"].buttons) == {"clone", "export"}
    assert set(room.page.cards["work"].buttons) == {"open", "clone", "export", "delete"}


def test_a_copy_holds_all_but_secrets_and_keeps_its_servers_on(rooms: tuple[Shell, ProfileRoom, Seat]) -> None:
    shell, room, seat = rooms
    folder = Profiles(seat._home).path("work")
    (folder / "servers.json").write_text('{"mcpServers": {"a": {"command": "true"}}}', "utf-8")
    room.show()
    room.page.cards["work"].buttons["clone"].click()
    form = room.page.form
    assert form is not None
    assert form.name.text() == "work 2"
    form.ok.click()
    shell.until(lambda: "work 2" in room.page.cards)
    copy = Profiles(seat._home).path("work 2")
    assert "disabled" not in (copy / "servers.json").read_text("utf-8")
    assert (copy / "profile.id").read_text() != (folder / "profile.id").read_text()
    assert not [p for p in copy.parent.iterdir() if p.name.startswith(".clone-")]


def test_a_profile_goes_out_to_a_file_and_comes_back_with_its_servers_off(
    rooms: tuple[Shell, ProfileRoom, Seat], tmp_path: Path
) -> None:
    shell, room, seat = rooms
    folder = Profiles(seat._home).path("work")
    (folder / "servers.json").write_text('{"mcpServers": {"a": {"command": "true"}}}', "utf-8")
    target = tmp_path / "moved.zip"
    room.show()
    room.model.export("work", target, room.page.fail)
    shell.until(lambda: "moved.zip is written." in shell.window.toasts.texts())
    assert zipfile.is_zipfile(target)
    room.page.ask_import(target)
    form = room.page.form
    assert form is not None
    assert form.name.text() == "moved"
    form.ok.click()
    shell.until(lambda: "moved" in room.page.cards)
    text = (Profiles(seat._home).path("moved") / "servers.json").read_text("utf-8")
    assert '"disabled": true' in text


def test_a_file_that_is_no_profile_says_so_where_it_was_asked(
    rooms: tuple[Shell, ProfileRoom, Seat], tmp_path: Path
) -> None:
    shell, room, _ = rooms
    bad = tmp_path / "bad.zip"
    bad.write_text("not a zip")
    room.show()
    room.page.ask_import(bad)
    form = room.page.form
    assert form is not None
    form.ok.click()
    shell.until(lambda: bool(form.error))
    assert form.ok.isEnabled()


def test_a_profile_is_deleted_after_a_question_but_never_while_it_is_open(
    rooms: tuple[Shell, ProfileRoom, Seat],
) -> None:
    shell, room, seat = rooms
    room.show()

    def delete() -> None:
        room.page.cards["work"].buttons["delete"].click()
        box = shell.window.findChild(QMessageBox)
        assert box is not None
        next(b for b in box.findChildren(QPushButton) if b.text() == "Delete").click()

    held = Profiles(seat._home).open("work")
    delete()
    shell.until(lambda: room.page.findChild(ErrorCard) is not None)
    assert "work" in seat.names()
    held.close()
    shell.until(lambda: shell.window.findChild(QMessageBox) is None)
    delete()
    shell.until(lambda: "work" not in room.page.cards)
    assert seat.names() == ("default",)


def test_the_switcher_speaks_another_language_at_once(rooms: tuple[Shell, ProfileRoom, Seat]) -> None:
    shell, room, _ = rooms
    room.show()
    shell.workspace.settings.set("general.language", "zh_CN")
    shell.until(lambda: shell.window.sidebar.title.toolTip() == "切换、新建或复制配置")
    shell.until(lambda: room.page.isVisible() and "work" in room.page.cards)
    shell.qtbot.mouseClick(shell.window.sidebar.title, Qt.MouseButton.LeftButton)
    assert room.menu is not None
    room.menu.close()


def test_a_window_of_a_profile_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserFault) as told:
        Tenants(tmp_path).open_window("nobody")
    assert told.value.code == "not_found"
