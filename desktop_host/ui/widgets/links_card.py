"""Whether the desktop hands install links and bundles to this window."""

from __future__ import annotations

from PySide6.QtWidgets import QLabel

from desktop_host.core.errors import HostError
from desktop_host.core.install_links import LinkState
from desktop_host.i18n import error_text, tr
from desktop_host.ui.bridge import Bridge
from desktop_host.ui.widgets.pieces import Card, Elided, column, label, row
from desktop_host.ui.widgets.switch import Switch


class LinksCard(Card):
    """One switch, and the file that it writes."""

    def __init__(self, bridge: Bridge) -> None:
        super().__init__()
        self._bridge = bridge
        self.switch = Switch(tr("links.open"))
        self.switch.setEnabled(False)
        self.switch.clicked.connect(self._put)
        words = column(space=2)
        words.addWidget(label(tr("links.open")))
        words.addWidget(label(tr("links.open.help"), "caption"))
        self.place = Elided("", "code")
        self.trouble: QLabel = label("", "danger")
        self.trouble.hide()
        line = row(self.switch)
        line.insertLayout(0, words, 1)
        self.add(line, self.place, self.trouble)
        bridge.then(lambda host: host.install_links.state(), self.show_state, self._failed, self)

    def show_state(self, state: LinkState) -> None:
        """Show how it stands."""
        self.switch.put(state.on)
        self.switch.setEnabled(state.possible)
        self.place.put(state.place if state.on else "" if state.possible else tr("links.not_here"))
        self.place.setVisible(state.on or not state.possible)

    def _put(self, on: bool) -> None:
        self.trouble.hide()
        self.switch.setEnabled(False)
        self._bridge.then(lambda host: host.install_links.put(on), self.show_state, self._failed, self)

    def _failed(self, error: HostError) -> None:
        self.trouble.setText(" ".join(error_text(error)))
        self.trouble.show()
        self.switch.setEnabled(True)
