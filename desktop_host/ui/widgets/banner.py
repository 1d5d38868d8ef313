"""A failure of something the person did here, told in place."""

from __future__ import annotations

from desktop_host.i18n import tr
from desktop_host.ui.theme import Space, theme
from desktop_host.ui.widgets.pieces import Card, column, icon_button, icon_label, label, row


class Banner(Card):
    """A failure of something the person did here, above the composer, until it is closed."""

    def __init__(self) -> None:
        super().__init__("card-danger", margin=theme.px(Space.S), space=0)
        self._what = label("", "strong", selectable=True)
        self._more = label("", selectable=True)
        words = column(space=0)
        words.addWidget(self._what)
        words.addWidget(self._more)
        line = row(icon_label("error", "danger"), space=theme.px(Space.S))
        line.addLayout(words, 1)
        line.addWidget(icon_button("close", tr("chat.close"), self.hide))
        self.column.addLayout(line)
        self.hide()

    def say(self, what: str, more: str = "") -> None:
        """Show a failure."""
        self._what.setText(what)
        self._more.setText(more)
        self._more.setVisible(bool(more))
        self.setAccessibleName(f"{what} {more}".strip())
        self.show()
