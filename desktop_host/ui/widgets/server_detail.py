"""One server's page: header with its acts, and a tab each for what can be known of it."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QLabel, QTabWidget, QVBoxLayout, QWidget

from desktop_host.core.auth import SignInState
from desktop_host.core.servers import ServerState
from desktop_host.i18n import tr
from desktop_host.ui.bridge import Bridge
from desktop_host.ui.theme import set_icon, set_role
from desktop_host.ui.viewmodels.folders import keeps_folders
from desktop_host.ui.viewmodels.servers import LIVE, Servers
from desktop_host.ui.widgets.flow import Flow
from desktop_host.ui.widgets.inspector_trace import TraceView
from desktop_host.ui.widgets.page import Centred, keep_gutter
from desktop_host.ui.widgets.pieces import Elided, button, icon_button, pill, row, set_pill
from desktop_host.ui.widgets.server_art import art
from desktop_host.ui.widgets.server_folders import FoldersTab
from desktop_host.ui.widgets.server_form import ServerSettings
from desktop_host.ui.widgets.server_logs import LogsView
from desktop_host.ui.widgets.server_overview import Overview
from desktop_host.ui.widgets.server_prompts import PromptsTab
from desktop_host.ui.widgets.server_resources import ResourcesTab
from desktop_host.ui.widgets.server_tools import ToolsTab
from desktop_host.ui.widgets.server_words import TONES, state_text, wants_sign_in

TABS = ("overview", "tools", "resources", "prompts", "logs", "trace", "settings")


class ServerDetail(Centred):
    """See the module. A tab is made when it is first shown."""

    back = Signal()
    remove = Signal()

    def __init__(self, bridge: Bridge, servers: Servers, name: str) -> None:
        super().__init__()
        self.name = name
        self._bridge, self._servers = bridge, servers
        self.title = Elided(name, "title", snug=True)
        self.state = pill("")
        self.run = button(tr("action.start"), self._run, icon="play")
        self.again = button(tr("action.restart"), lambda: servers.restart(name), icon="restart")
        self.sign = button(tr("server.sign_in"), self._sign, icon="key")
        self.gone = button(tr("action.remove"), self.remove.emit, role="quiet", icon="trash")
        self.picture = QLabel()
        art().put(self.picture, name, default="servers", size=24)
        back = icon_button("chevron-left", tr("servers.back"), self.back.emit)
        head = row(back, self.picture, self.title, self.state, None)
        self.tabs = QTabWidget()
        self.tabs.setDocumentMode(True)
        self.tabs.setUsesScrollButtons(True)
        folders = ("folders",) if keeps_folders(servers.config(name)) else ()
        self.names = (*TABS[:1], *folders, *TABS[1:])
        for tab in self.names:
            holder = QWidget()
            QVBoxLayout(holder).setContentsMargins(0, 0, 0, 0)
            self.tabs.addTab(holder, tr(f"server.tab.{tab}"))
        self.tabs.currentChanged.connect(self._fill_tab)
        self.column.addLayout(head)
        self.column.addLayout(Flow(self.run, self.again, self.sign, self.gone))
        self.column.addWidget(self.tabs, 1)
        servers.changed.connect(self._changed)
        self.show_status()
        self._fill_tab(0)

    def show_tab(self, tab: str) -> QWidget:
        """Show a tab of `names`; returns what stands in it."""
        self.tabs.setCurrentIndex(self.names.index(tab))
        return self._content(self.names.index(tab))

    def show_status(self) -> None:
        """Show how the server stands now."""
        status = self._servers.status(self.name)
        if status is None:
            return
        live, busy = status.state in LIVE, self.name in self._servers.busy
        set_pill(self.state, state_text(status), TONES[status.state])
        self.run.setText(tr("action.stop" if live else "action.start"))
        set_icon(self.run, "stop" if live else "play")
        self.run.setEnabled(not busy or status.state is ServerState.STARTING)
        self.again.setEnabled(not busy)
        waiting = status.sign_in is SignInState.SIGNING_IN
        key = "server.sign_cancel" if waiting else "server.sign_in" if wants_sign_in(status) else "server.sign_out"
        self.sign.setText(tr(key))
        set_role(self.sign, "primary" if key == "server.sign_in" else "")
        set_icon(self.sign, "key", "on_accent" if key == "server.sign_in" else "text")
        self.sign.setVisible(wants_sign_in(status) or status.sign_in is not SignInState.NONE)
        self.sign.setEnabled(not busy or waiting)

    # ---- inside

    def _sign(self) -> None:
        status = self._servers.status(self.name)
        if status is None:
            return
        if status.sign_in is SignInState.SIGNING_IN:
            self._servers.cancel_login(self.name)
        elif wants_sign_in(status):
            self._servers.login(self.name)
        else:
            self._servers.logout(self.name)

    def _content(self, at: int) -> QWidget:
        holder = self.tabs.widget(at)
        layout = holder.layout() if holder is not None else None
        assert layout is not None
        if layout.count() == 0:
            if self.names[at] in ("logs", "trace"):
                keep_gutter(layout)
            layout.addWidget(self._make(self.names[at]))
        item = layout.itemAt(0)
        found = item.widget() if item is not None else None
        assert found is not None
        return found

    def _fill_tab(self, at: int) -> None:
        self._content(at)

    def _make(self, tab: str) -> QWidget:
        bridge, servers, name = self._bridge, self._servers, self.name
        makers: dict[str, Callable[[], QWidget]] = {
            "overview": lambda: Overview(servers, name, lambda: self.show_tab("settings")),
            "folders": lambda: FoldersTab(bridge, servers, name),
            "tools": lambda: ToolsTab(bridge, servers, name),
            "resources": lambda: ResourcesTab(bridge, servers, name),
            "prompts": lambda: PromptsTab(bridge, servers, name),
            "logs": lambda: LogsView(bridge, lambda: (name,)),
            "trace": lambda: TraceView(bridge, lambda: (name,)),
            "settings": lambda: ServerSettings(servers, name),
        }
        return makers[tab]()

    def _changed(self, name: str) -> None:
        if name == self.name:
            self.show_status()

    def _run(self) -> None:
        status = self._servers.status(self.name)
        if status is not None:
            (self._servers.stop if status.state in LIVE else self._servers.start)(self.name)
