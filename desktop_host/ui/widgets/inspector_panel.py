"""The inspector of a chat: what it may use, what it has cost, and what passes over the wire."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QHideEvent, QKeyEvent, QShowEvent
from PySide6.QtWidgets import QTabWidget, QWidget

from desktop_host.i18n import tr
from desktop_host.ui.bridge import Bridge
from desktop_host.ui.theme import Space, set_role
from desktop_host.ui.viewmodels.chat import Chat
from desktop_host.ui.widgets.inspector_chat import ChatFacts
from desktop_host.ui.widgets.inspector_trace import TraceView
from desktop_host.ui.widgets.pieces import column, icon_button, label, row
from desktop_host.ui.widgets.server_logs import LogsView


class InspectorPanel(QWidget):
    """See the module. Nothing is read while it is hidden.

    Args:
        bridge: the host.
        chat: the open chat; the panel follows it.
    """

    closed = Signal()
    server_wanted = Signal(str, str)
    """`(alias, tab)`: the person wants that page of a server."""

    def __init__(self, bridge: Bridge, chat: Chat) -> None:
        super().__init__()
        self.setObjectName("inspector")
        set_role(self, "aside")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self.setAccessibleName(tr("inspector.title"))
        self._chat = chat
        self._names: tuple[str, ...] = ()
        self._session: str | None = None
        self.facts = ChatFacts(bridge, chat)
        self.facts.server_wanted.connect(self.server_wanted)
        self.trace = TraceView(bridge, lambda: self._names, narrow=True, session=lambda: self._chat.session)
        self.logs = LogsView(bridge, lambda: self._names)
        self.tabs = QTabWidget()
        self.tabs.setDocumentMode(True)
        for tab, widget in (("chat", self.facts), ("trace", self.trace), ("logs", self.logs)):
            self.tabs.addTab(widget, tr(f"inspector.tab.{tab}"))
        title = label(tr("inspector.title"), "heading", wrap=False)
        self.close_button = icon_button("close", tr("inspector.close"), self.closed.emit)
        inner = column(self, space=Space.S)
        inner.setContentsMargins(Space.M, Space.M, Space.M, 0)
        inner.addLayout(row(title, None, self.close_button))
        inner.addWidget(self.tabs, 1)
        chat.choices.servers_changed.connect(self._servers)
        chat.opened.connect(self._servers)
        self._servers()

    @property
    def servers(self) -> tuple[str, ...]:
        """Aliases of the servers that this chat may use."""
        return self._names

    def _servers(self) -> None:
        names = tuple(s.alias for s in self._chat.choices.servers if s.on)
        if (names, self._chat.session) != (self._names, self._session):
            self._names, self._session = names, self._chat.session
            if self.isVisible():
                self.trace.wire.begin()

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._servers()
        self.facts.follow(True)

    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        self.facts.follow(False)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Escape closes the panel."""
        if event.key() == Qt.Key.Key_Escape:
            self.closed.emit()
            return
        super().keyPressEvent(event)
