"""The gateway in the window: a tab of the settings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject

from desktop_host.ui.viewmodels.sharing import SharingModel
from desktop_host.ui.widgets.gateway_tab import GatewayTab

if TYPE_CHECKING:
    from desktop_host.ui.widgets.settings_page import SettingsPage
    from desktop_host.ui.widgets.workspace import Workspace

TAB = "gateway"


class GatewayRoom(QObject):
    """See the module."""

    def __init__(self, workspace: Workspace) -> None:
        super().__init__(workspace)
        self.model = SharingModel(workspace.bridge, self)
        self.model.failed.connect(workspace.window.toasts.fail)

    def attach(self, page: SettingsPage) -> None:
        """Give the settings its tab."""
        page.add_tab(TAB, GatewayTab(self.model))
