"""The second opinion on a call, as its card shows it."""

from __future__ import annotations

from PySide6.QtWidgets import QFrame

from desktop_host.core.asks import Advice
from desktop_host.i18n import tr
from desktop_host.ui.theme import Space, set_role, theme
from desktop_host.ui.widgets.pieces import icon_label, label, row


class AdviceLine(QFrame):
    """What a second model says of the call. It only advises: no button is pressed by it."""

    def __init__(self, advice: Advice) -> None:
        super().__init__()
        warns = advice.verdict == "ask"
        set_role(self, "card-warning" if warns else "well")
        words = tr(f"chat.ask.advice.{advice.verdict}", model=advice.model, why=advice.text)
        self.words = label(words, "" if warns else "muted", selectable=True)
        mark = icon_label("warning" if warns else "info", "warning" if warns else "muted")
        line = row(mark, space=theme.px(Space.S), owner=self)
        line.addWidget(self.words, 1)
        line.setContentsMargins(*[theme.px(Space.S)] * 4)
        self.setAccessibleName(words)
