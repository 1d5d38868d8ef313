"""Where the inspector stands: beside the chat while the person wants it, and nowhere else."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Qt

from desktop_host.ui.widgets.inspector_panel import InspectorPanel

if TYPE_CHECKING:
    from desktop_host.ui.widgets.workspace import Workspace


class InspectorPlace(QObject):
    """The panel of a workspace; made when it is first wanted, remembered over starts."""

    def __init__(self, workspace: Workspace) -> None:
        super().__init__(workspace)
        self._workspace = workspace
        self.wanted = workspace.window.state.flag("inspector")
        """Whether the person wants it beside the chat."""
        self.panel: InspectorPanel | None = None
        workspace.window.rebuilt.connect(self._forget)

    def toggle(self) -> None:
        """Show or hide it; from another page, the chat comes with it."""
        w = self._workspace
        self.wanted = not (self.wanted and w.page == "chats")
        w.window.state.keep("inspector", self.wanted)
        if self.wanted and w.page != "chats":
            w.back_to_chat()
        self.place()
        if self.wanted and self.panel is not None:
            self.panel.tabs.tabBar().setFocus(Qt.FocusReason.ShortcutFocusReason)
        elif w.page == "chats":
            w.chat.focus_composer()

    def place(self) -> None:
        """Another page is shown, or another wish holds."""
        w = self._workspace
        shown = self.wanted and w.page == "chats"
        if shown and self.panel is None:
            self.panel = InspectorPanel(w.bridge, w.chat.chat)
            self.panel.closed.connect(self.toggle)
            self.panel.server_wanted.connect(w.show_servers)
        w.window.put_aside(self.panel if shown else None)

    def _forget(self) -> None:
        self.panel = None
