"""Servers that other programs on this computer have: named, shown whole before anything is taken over."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QWidget

from desktop_host.core.errors import HostError
from desktop_host.core.server_ports import FoundConfig
from desktop_host.i18n import current, tr, trn
from desktop_host.ui.bridge import Bridge
from desktop_host.ui.theme import Space
from desktop_host.ui.widgets.page import told
from desktop_host.ui.widgets.pieces import Card, Elided, button, clear, column, icon_label, label, row


def problem_text(code: str) -> str:
    """Why a file could not be read."""
    key = "found.problem.json" if code.startswith("json") else f"found.problem.{code}"
    return tr(key) if current().has(key) else tr("found.problem", code=code)


class FoundList(QWidget):
    """The configuration files of other hosts, read when the list is first shown."""

    chosen = Signal(object)
    """`tuple[ImportedServer, ...]`: the person wants to see these."""

    def __init__(self, bridge: Bridge) -> None:
        super().__init__()
        self._bridge = bridge
        self.cards: list[Card] = []
        self._list = column(space=Space.S)
        inner = column(self, space=Space.S)
        self._title = label(tr("found.title"), "heading")
        self._lead = label(tr("found.lead"), "muted")
        inner.addWidget(self._title)
        inner.addWidget(self._lead)
        inner.addLayout(self._list)
        self.hide()

    def read(self) -> None:
        """Look for them (again)."""
        self._bridge.then(lambda host: host.servers.found(), self._show, self._fail, self)

    def _show(self, found: tuple[FoundConfig, ...]) -> None:
        clear(self._list)
        self.cards = [self._card(one) for one in found]
        for card in self.cards:
            self._list.addWidget(card)
        self.setVisible(bool(found))

    def _card(self, one: FoundConfig) -> Card:
        card = Card(margin=Space.M)
        words = trn("found.servers", len(one.servers)) if one.problem is None else problem_text(one.problem)
        card.setAccessibleName(f"{one.title}, {words}")
        show = button(tr("found.show"), lambda: self.chosen.emit(one.servers), icon="eye")
        show.setAccessibleName(tr("found.show_of", name=one.title))
        show.setEnabled(bool(one.servers))
        head = row(icon_label("servers"), label(one.title, "strong"), show)
        head.setStretch(1, 1)
        names = ", ".join(s.config.name for s in one.servers)
        said = label(f"{words}: {names}" if names else words, "muted" if one.problem is None else "warning")
        card.add(head, said, Elided(str(one.path), "code"))
        return card

    def _fail(self, error: HostError) -> None:
        clear(self._list)
        self._list.addWidget(label(" ".join(told(error)), "danger"))
        self.show()
