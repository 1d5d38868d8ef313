"""What a page asks the person for: a line below the page, never a box in the way. Nothing is done without a word."""

from __future__ import annotations

from PySide6.QtCore import QUrl, Signal
from PySide6.QtWidgets import QFrame, QWidget

from desktop_host.i18n import tr
from desktop_host.ui.theme import Space, set_role, theme
from desktop_host.ui.viewmodels.app_session import Wish
from desktop_host.ui.widgets.flow import Flow
from desktop_host.ui.widgets.pieces import CodeBox, button, column, icon_label, label, row

LINES = 8
"""Of a text shown at once; the rest scrolls, nothing is cut."""
_ICONS = {"link": "external", "message": "send", "speak": "eye"}


class Consent(QFrame):
    """One wish of a page.

    Args:
        wish: what it wants.
        server: whose page it is.
    """

    decided = Signal(str)
    """`yes`, `no`, or for a message `edit`: the person wants to change it first."""

    def __init__(self, wish: Wish, server: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.wish = wish
        set_role(self, "card-info")
        host = QUrl(wish.text).host() if wish.kind == "link" else ""
        title = tr(f"app.{wish.kind}.title", server=server, host=host)
        self.setAccessibleName(title)
        inner = column(self, space=theme.px(Space.S), margin=theme.px(Space.M))
        line = row(icon_label(_ICONS[wish.kind], "info"))
        line.addWidget(label(title, "strong"), 1)
        inner.addLayout(line)
        if wish.kind == "speak":
            inner.addWidget(label(tr("app.speak.lead", server=server), "muted"))
        self.text = CodeBox(wish.text, title, lines=LINES)
        inner.addWidget(self.text)
        self.yes = button(tr(f"app.{wish.kind}.yes"), lambda: self._say("yes"), role="primary")
        self.no = button(tr(f"app.{wish.kind}.no"), lambda: self._say("no"))
        buttons = Flow(self.yes)
        if wish.kind == "message":
            self.edit = button(tr("app.message.edit"), lambda: self._say("edit"))
            buttons.addWidget(self.edit)
        buttons.addWidget(self.no)
        inner.addLayout(buttons)

    def _say(self, word: str) -> None:
        self.setEnabled(False)
        self.decided.emit(word)
