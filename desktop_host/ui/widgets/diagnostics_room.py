"""Diagnostics in the window: a tab of the settings, and the ways from a finding to where it is mended."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QUrl
from PySide6.QtGui import QDesktopServices

from desktop_host.ui.viewmodels.diagnostics import Diagnostics
from desktop_host.ui.widgets.diagnostics_tab import DiagnosticsTab

if TYPE_CHECKING:
    from desktop_host.ui.widgets.settings_page import SettingsPage
    from desktop_host.ui.widgets.workspace import Workspace

TAB = "diagnostics"


class DiagnosticsRoom(QObject):
    """See the module."""

    def __init__(self, workspace: Workspace) -> None:
        super().__init__(workspace)
        self._w = workspace
        self.model = Diagnostics(workspace.bridge, self)
        self.model.failed.connect(workspace.window.toasts.fail)

    def attach(self, page: SettingsPage) -> None:
        """Give the settings their last tab."""
        made = DiagnosticsTab(self.model, self._w.window.toasts.say)
        made.place_wanted.connect(self.go)
        page.add_tab(TAB, made)

    def show(self) -> None:
        """The tab, its checks run anew."""
        self._w.show_settings(TAB)
        self.model.run_all()

    def go(self, act: str) -> None:
        """Go where a finding is mended."""
        kind, _, what = act.partition(":")
        match kind:
            case "models" | "costs" | "permissions":
                self._w.show_settings(kind)
            case "settings":
                self._w.show_settings("general")
            case "servers":
                self._w.show_servers()
            case "server":
                self._w.show_servers(what)
            case "chat":
                self._w.show_chat(what)
            case "file":
                QDesktopServices.openUrl(QUrl.fromLocalFile(what))
