"""The profiles in the window: the switcher at the head of the sidebar, and their page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject
from PySide6.QtWidgets import QMenu

from desktop_host.core.profiles import ProfilesPort
from desktop_host.i18n import tr
from desktop_host.ui.theme import icon
from desktop_host.ui.viewmodels.profiles import ProfileList
from desktop_host.ui.widgets.move_dialog import MoveDialog
from desktop_host.ui.widgets.profiles_page import ProfilesPage

if TYPE_CHECKING:
    from desktop_host.ui.widgets.workspace import Workspace

PAGE = "profiles"


class ProfileRoom(QObject):
    """See the module. Made by the face once it knows where profiles are kept."""

    def __init__(self, workspace: Workspace, port: ProfilesPort, current: str) -> None:
        super().__init__(workspace)
        self._w = workspace
        self.model = ProfileList(workspace.bridge, port, current, self)
        self._page: ProfilesPage | None = None
        self._return = False
        self.menu: QMenu | None = None
        self.dialog: MoveDialog | None = None
        self.model.failed.connect(workspace.window.toasts.fail)
        self.model.told.connect(self._told)
        self.model.handed.connect(self._handed)
        workspace.acts.elsewhere.connect(lambda act, session: self.choose_target(session) if act == "move" else None)
        workspace.window.commands.bind("go.profiles", self.show)
        workspace.language_changed.connect(self._remember)
        workspace.window.rebuilt.connect(self._rebuilt)
        workspace.bridge.ready.connect(self._ready)
        self._attach()

    @property
    def page(self) -> ProfilesPage:
        """The page of all profiles."""
        if self._page is None:
            self._page = ProfilesPage(self.model)
        return self._page

    def show(self) -> None:
        """All profiles."""
        self.model.refresh()
        self._w.go(PAGE, self.page)

    def open_menu(self) -> None:
        """The profiles to switch to, below the name of this one."""
        self.model.refresh()
        title = self._w.window.sidebar.title
        menu = QMenu(title)
        menu.setToolTipsVisible(True)
        for name in self.model.names:
            action = menu.addAction(name)
            action.setCheckable(True)
            action.setChecked(name == self.model.current)
            if name != self.model.current:
                action.setIcon(icon("external", "muted", 16))
                action.setToolTip(tr("profiles.open.of", name=name))
                action.triggered.connect(lambda _c=False, n=name: self.model.open_window(n))
        menu.addSeparator()
        menu.addAction(icon("plus", "muted", 16), tr("profiles.create"), self._create)
        menu.addAction(icon("profile", "muted", 16), tr("profiles.manage"), self.show)
        self.menu = menu
        menu.popup(title.mapToGlobal(title.rect().bottomLeft()))

    def choose_target(self, session: str) -> None:
        """Ask which profile a conversation is to move to, or to be copied to."""
        self.model.refresh()
        found = self._w.sessions.found(session)
        others = [name for name in self.model.names if name != self.model.current]
        dialog = MoveDialog(self._w.window, (found.title if found else "") or tr("sidebar.untitled"), others)
        dialog.chosen.connect(lambda name, keep: self.model.hand_over(session, name, keep=keep))
        dialog.make_profile.connect(self._create)
        self.dialog = dialog
        dialog.open()

    def _handed(self, session: str, name: str, made: str, kept: bool) -> None:
        if not kept:
            if session == self._w.session:
                self._w.show_chat(None)
            self._w.sessions.refresh()
        words = tr("profiles.copied_to" if kept else "profiles.moved_to", name=name)
        there = (tr("profiles.open"), lambda: self.model.open_window(name, None, made))
        self._w.window.toasts.say(words, "check", there)

    def _create(self) -> None:
        self.show()
        self.page.ask_create()

    def _ready(self, _host: object) -> None:
        self._w.window.commands.say("profiles", True)
        self.model.refresh()

    def _attach(self) -> None:
        sidebar = self._w.window.sidebar
        sidebar.profile_wanted.connect(self.open_menu)

    def _remember(self, _language: str) -> None:
        """The window is about to be built anew: come back to this page after it."""
        self._return = self._w.page == PAGE

    def _rebuilt(self) -> None:
        """The window was built anew in another language."""
        self._page = None
        self._attach()
        if self._return:
            self.show()

    def _told(self, what: str, name: str) -> None:
        open_it = (tr("profiles.open"), lambda: self.model.open_window(name))
        action = open_it if what in ("created", "cloned", "imported") else None
        self._w.window.toasts.say(tr(f"profiles.told.{what}", name=name), "check", action)
