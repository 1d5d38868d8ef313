"""The servers: a list with live states, one server's page, and the page that adds one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QDragEnterEvent, QDropEvent, QMouseEvent
from PySide6.QtWidgets import QLabel, QMenu, QStackedWidget, QWidget

from desktop_host.core.auth import SignInState
from desktop_host.core.servers import ServerState
from desktop_host.i18n import tr
from desktop_host.ui.bridge import Bridge
from desktop_host.ui.theme import Space, icon, set_icon
from desktop_host.ui.viewmodels.servers import LIVE, Servers
from desktop_host.ui.widgets.add_server import AddServer
from desktop_host.ui.widgets.composer_edit import local_files
from desktop_host.ui.widgets.confirm import confirm
from desktop_host.ui.widgets.flow import Flow
from desktop_host.ui.widgets.page import Empty, Page
from desktop_host.ui.widgets.pieces import (
    Card,
    Elided,
    button,
    clear,
    column,
    icon_button,
    label,
    pill,
    row,
    set_pill,
)
from desktop_host.ui.widgets.server_art import art
from desktop_host.ui.widgets.server_detail import ServerDetail
from desktop_host.ui.widgets.server_words import TONES, counts, reason, state_text, wants_sign_in
from desktop_host.ui.widgets.switch import Switch

Say = Callable[[str, str], None]
FRAME = 2
"""Pixels of a button's focus frame."""


def ask_remove(parent: QWidget, servers: Servers, name: str) -> None:
    """Ask, then stop and forget a server."""
    confirm(
        parent, tr("server.remove.title", name=name), tr("server.remove.text"), tr("action.remove"),
        lambda: servers.remove(name),
    )  # fmt: skip


class ServerCard(Card):
    """One server of the list; the whole card opens its page."""

    opened = Signal(str)

    def __init__(self, servers: Servers, name: str) -> None:
        super().__init__(margin=Space.L, space=Space.XS)
        self.column.setContentsMargins(Space.L - FRAME, Space.M, Space.M, Space.L)
        self.name = name
        self._servers = servers
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.title = button(name, lambda: self.opened.emit(name), role="name")
        self.title.setAccessibleDescription(tr("server.open", name=name))
        self.run = icon_button("play", tr("action.start"), self._run)
        self.again = icon_button("restart", tr("action.restart"), lambda: servers.restart(name))
        self.more = icon_button("more", tr("action.more_of", name=name), self._menu)
        self.switch = Switch(tr("server.enabled_of", name=name))
        self.switch.clicked.connect(lambda on: servers.enable(name, on))
        self.state = pill("")
        self.transport = pill("")
        self.counts = label("", "caption", wrap=False)
        self.target = Elided("", "code")
        self.reason = label("", "danger")
        self.signed_in = pill(tr("server.sign.signed_in"))
        self.sign_in = button(tr("server.sign_in"), lambda: servers.login(name), role="primary", icon="key")
        self.sign_in.setAccessibleName(tr("server.sign_in_of", name=name))
        self.cancel = button(tr("server.sign_cancel"), lambda: servers.cancel_login(name), icon="key")
        acts = row(self.run, self.again, self.switch, self.more, space=Space.XS)
        self.picture = QLabel()
        art().put(self.picture, name, default="servers", size=20)
        head = row(self.picture, self.title, None, acts)
        head.setAlignment(acts, Qt.AlignmentFlag.AlignVCenter)
        # In line with the title's text, which stands within its focus frame.
        below = column(space=Space.S)
        below.setContentsMargins(FRAME, 0, FRAME, 0)
        below.addLayout(Flow(self.state, self.transport, self.signed_in, self.counts))
        below.addWidget(self.target)
        below.addWidget(self.reason)
        below.addLayout(Flow(self.sign_in, self.cancel))
        self.add(head, below)
        self.column.setSpacing(Space.S)
        self.show_status()

    def show_status(self) -> None:
        """Show how the server stands now."""
        status = self._servers.status(self.name)
        if status is None:
            return
        busy = self.name in self._servers.busy
        live = status.state in LIVE
        words = state_text(status)
        set_pill(self.state, words, TONES[status.state])
        set_pill(self.transport, tr(f"server.transport.{status.transport}"))
        self.counts.setText(counts(status) if status.state.value == "ready" else "")
        self.target.put(status.target)
        self.reason.setText(reason(status.error) if status.error else "")
        self.reason.setVisible(status.error is not None)
        waiting = status.sign_in is SignInState.SIGNING_IN
        self.signed_in.setVisible(status.sign_in is SignInState.SIGNED_IN)
        self.cancel.setVisible(waiting)
        self.sign_in.setVisible(wants_sign_in(status) and not waiting)
        self.sign_in.setEnabled(not busy)
        set_icon(self.run, "stop" if live else "play", "muted")
        act = tr("action.stop_of" if live else "action.start_of", name=self.name)
        self.run.setToolTip(act)
        self.run.setAccessibleName(act)
        self.run.setEnabled(status.enabled and (not busy or status.state is ServerState.STARTING))
        self.again.setEnabled(status.enabled and not busy)
        self.again.setAccessibleName(tr("action.restart_of", name=self.name))
        self.switch.put(status.enabled)
        self.switch.setEnabled(not busy)
        self.setAccessibleName(f"{self.name}, {words}")

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        if event.button() is Qt.MouseButton.LeftButton and self.rect().contains(event.position().toPoint()):
            self.opened.emit(self.name)

    def _run(self) -> None:
        status = self._servers.status(self.name)
        if status is not None:
            (self._servers.stop if status.state in LIVE else self._servers.start)(self.name)

    def _menu(self) -> None:
        menu = QMenu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        menu.addAction(icon("eye"), tr("action.open"), lambda: self.opened.emit(self.name))
        status = self._servers.status(self.name)
        if status is not None and status.sign_in is SignInState.SIGNED_IN:
            menu.addAction(icon("key"), tr("server.sign_out"), lambda: self._servers.logout(self.name))
        menu.addSeparator()
        menu.addAction(icon("trash", "danger"), tr("action.remove"), self._remove)
        menu.popup(self.more.mapToGlobal(self.more.rect().bottomLeft()))

    def _remove(self) -> None:
        ask_remove(self, self._servers, self.name)


class ServersPage(QStackedWidget):
    """List, detail and adding, one at a time."""

    def __init__(self, bridge: Bridge, servers: Servers, say: Say) -> None:
        super().__init__()
        self.setAcceptDrops(True)
        self._bridge, self._servers, self._say = bridge, servers, say
        self.cards: dict[str, ServerCard] = {}
        self.detail: ServerDetail | None = None
        self.adding: AddServer | None = None
        self._next = ""
        """Just added: shown once it is in the list."""
        self._list = Page()
        self._list.add(row(label(tr("nav.servers"), "title", wrap=False), None, self._add_button()))
        self._list.add(label(tr("servers.lead"), "muted"))
        self._cards = column(space=Space.M)
        self._list.add(self._cards)
        self._empty = Empty("servers", tr("servers.empty.title"), tr("servers.empty.text"),
                            (tr("command.servers.add"), self.show_add))  # fmt: skip
        self._list.add(self._empty)
        self.addWidget(self._list)
        servers.loaded.connect(self._fill)
        servers.changed.connect(self._changed)
        servers.removed.connect(self._removed)
        servers.signed_out.connect(self._signed_out)
        servers.left_tokens.connect(lambda name: self._say(tr("server.removed.not_revoked", name=name), "warning"))
        self._fill()

    def show_list(self) -> None:
        """All servers."""
        self.setCurrentWidget(self._list)
        self._drop_others()

    def show_server(self, name: str, tab: str = "") -> None:
        """One server's page, maybe at one of its tabs."""
        if self._servers.status(name) is None:
            self.show_list()
            return
        if self.detail is not None and self.detail.name == name:
            self.setCurrentWidget(self.detail)
            if tab:
                self.detail.show_tab(tab)
            return
        made = ServerDetail(self._bridge, self._servers, name)
        made.back.connect(self.show_list)
        made.remove.connect(lambda: ask_remove(self, self._servers, name))
        self.addWidget(made)
        self.setCurrentWidget(made)
        self._drop_others(keep=made)
        self.detail = made
        if tab:
            made.show_tab(tab)

    def show_add(self, text: str = "") -> None:
        """The page that takes a pasted server."""
        if self.adding is None:
            made = AddServer(self._bridge, self._servers)
            made.back.connect(self.show_list)
            made.added.connect(self._added)
            self.addWidget(made)
            self.setCurrentWidget(made)
            self._drop_others(keep=made)
            self.adding = made
        self.setCurrentWidget(self.adding)
        self.adding.begin(text)

    def take(self, path: Path) -> None:
        """Show what a file would add: a bundle, or a text with servers."""
        self.show_add()
        if self.adding is not None:
            self.adding.take(path)

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        """Bundles and texts may be dropped anywhere on the page."""
        if local_files(event.mimeData()):
            event.acceptProposedAction()

    def dropEvent(self, event: QDropEvent) -> None:
        """Show what was dropped; the first file counts."""
        paths = local_files(event.mimeData())
        if paths:
            event.acceptProposedAction()
            self.take(paths[0])

    # ---- inside

    def _add_button(self) -> QWidget:
        self.add_button = button(tr("command.servers.add"), self.show_add, role="primary", icon="plus")
        return self.add_button

    def _drop_others(self, keep: QWidget | None = None) -> None:
        for widget in (self.detail, self.adding):
            if widget is not None and widget is not keep:
                self.removeWidget(widget)
                widget.deleteLater()
        if self.detail is not keep:
            self.detail = None
        if self.adding is not keep:
            self.adding = None

    def _fill(self) -> None:
        names = [s.name for s in self._servers.statuses()]
        if names != list(self.cards):
            clear(self._cards)
            self.cards = {}
            for name in names:
                made = ServerCard(self._servers, name)
                made.opened.connect(self.show_server)
                self._cards.addWidget(made)
                self.cards[name] = made
        if self._next in names:
            wanted, self._next = self._next, ""
            self.show_server(wanted)
        self._empty.setVisible(not names and not self._servers.reading)

    def _changed(self, name: str) -> None:
        if name in self.cards:
            self.cards[name].show_status()

    def _removed(self, name: str) -> None:
        self._say(tr("server.removed", name=name), "check")
        if self.detail is not None and self.detail.name == name:
            self.show_list()

    def _signed_out(self, name: str, told: bool) -> None:
        self._say(tr("server.signed_out" if told else "server.signed_out.here", name=name), "check")

    def _added(self, names: tuple[str, ...]) -> None:
        if len(names) == 1:
            self._next = names[0]  # Its page says enough.
            self._servers.refresh()
        else:
            self._say(tr("server.added", name=", ".join(names)), "check")
            self.show_list()
