"""A field to search with, and what empties it."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QLineEdit

from desktop_host.i18n import tr
from desktop_host.ui.theme import Space, theme
from desktop_host.ui.widgets.pieces import icon_button, icon_label


class SearchField(QLineEdit):
    """A field with a magnifying glass and, once it says something, a button that empties it.

    Both are drawn by us: Qt's own stand beside the middle where a style sheet gives the field another height.
    """

    def __init__(self, hint: str, *, glass: bool = True) -> None:
        super().__init__()
        self.setPlaceholderText(hint)
        self.setAccessibleName(hint)
        self._glass = icon_label("search", "muted", 16) if glass else None
        if self._glass is not None:
            self._glass.setParent(self)
        self.empty = icon_button("close", tr("action.clear"), self._empty, role="in-field")
        self.empty.setParent(self)
        self.empty.setFocusPolicy(Qt.FocusPolicy.NoFocus)  # Escape and the keys of the field do it as well
        self.empty.setCursor(Qt.CursorShape.ArrowCursor)
        self.textChanged.connect(self._show_empty)
        theme.changed.connect(self._fit)
        self._show_empty()
        self._fit()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    def _show_empty(self) -> None:
        self.empty.setVisible(bool(self.text()))

    def _empty(self) -> None:
        self.clear()
        self.setFocus()

    def _fit(self) -> None:
        side, button = theme.px(16), theme.px(22)
        left = side + Space.XS if self._glass is not None else 0
        self.setTextMargins(left, 0, button, 0)
        if self._glass is not None:
            self._glass.setGeometry(theme.px(9), (self.height() - side) // 2, side, side)
        edge = (self.height() - button) // 2
        self.empty.setGeometry(self.width() - button - max(edge, theme.px(4)), edge, button, button)
