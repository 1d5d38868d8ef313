"""A check box whose words wrap: Qt's own cuts them where the room is short."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtGui import QMouseEvent
from PySide6.QtWidgets import QCheckBox, QHBoxLayout, QLabel

from desktop_host.ui.theme import Space, theme
from desktop_host.ui.widgets.pieces import row


class CheckWords(QLabel):
    """The words beside a box; a click on them is a click on it."""

    def __init__(self, text: str, box: QCheckBox) -> None:
        super().__init__(text)
        self._box = box
        self.setTextFormat(Qt.TextFormat.PlainText)
        self.setWordWrap(True)
        self.setMinimumWidth(1)
        self.setAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignTop)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        if event.button() is Qt.MouseButton.LeftButton and self.rect().contains(event.position().toPoint()):
            self._box.click()


def check_line(box: QCheckBox, text: str) -> QHBoxLayout:
    """A box with its words, which are its name for a screen reader, too."""
    if not box.accessibleName():
        box.setAccessibleName(text)
    line = row(space=theme.px(Space.S))
    line.addWidget(box, 0, Qt.AlignmentFlag.AlignTop)
    line.addWidget(CheckWords(text, box), 1)
    return line
