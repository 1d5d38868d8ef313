"""What is read stays where it is, and a question in sight, while rows are made and find their heights."""

from __future__ import annotations

from typing import TypeGuard

from PySide6.QtCore import QObject, QTimer, Signal
from PySide6.QtWidgets import QScrollArea, QWidget
from shiboken6 import isValid

from desktop_host.ui.theme import Space, theme

NEAR_END = 48
"""Within so many pixels of the end the view follows the stream."""


NARROW = 560
"""Below this width (pixels at 100 %) the conversation has slim edges."""


def edge(width: int) -> int:
    """Pixels beside a conversation in a view of this width; the scroll bar's gutter comes on top."""
    return theme.px(Space.XL if width >= theme.px(NARROW) else Space.S)


class Place(QObject):
    """Holds a row of a scroll area in its place, or a question in sight, until it is told to let go."""

    follows = Signal(bool)
    """Whether the question is seen at the end of the conversation, so that the view follows."""

    def __init__(self, area: QScrollArea) -> None:
        super().__init__(area)
        self._area = area
        self._row: QWidget | None = None
        self._card: QWidget | None = None
        self._offset = 0
        """Where the row stood, from the upper edge of what is seen."""
        self._left = 0
        """How far the upper edge was from the end: right until rows below find their heights, too."""
        self.moving = False
        """We scroll, not the reader."""
        self._later = QTimer(self)
        self._later.setSingleShot(True)
        self._later.setInterval(0)
        self._later.timeout.connect(self._correct)

    @property
    def held(self) -> bool:
        """Whether something is held."""
        return _there(self._row) or (_there(self._card) and self._card.isEnabled())

    def top(self, row: QWidget) -> int:
        """Where a row begins in the whole conversation."""
        inner = self._area.widget()
        assert inner is not None
        return row.mapTo(inner, row.rect().topLeft()).y()

    def hold(self, row: QWidget) -> None:
        """Keep a row where it now is."""
        bar = self._area.verticalScrollBar()
        self._row, self._card = row, None
        self._offset, self._left = self.top(row) - bar.value(), bar.maximum() - bar.value()

    def reveal(self, card: QWidget) -> None:
        """Bring a question into sight: whole where it fits, else from its top."""
        self._row, self._card = None, card
        self._correct()

    def let_go(self) -> None:
        """The reader scrolls."""
        self._row = self._card = None

    def let_row_go(self) -> None:
        """Something new has come below."""
        self._row = None

    def grown(self, high: int) -> None:
        """The conversation is another height; rows get their places only after this."""
        if self._row is not None:
            self._scroll(high - self._left)
        self._later.start()

    def _correct(self) -> None:
        if _there(self._row):
            self._scroll(self.top(self._row) - self._offset)
        elif _there(self._card) and self._card.isEnabled():
            bar, seen, top = self._area.verticalScrollBar(), self._area.viewport().height(), self.top(self._card)
            whole = self._card.height() + NEAR_END < seen and bar.maximum() - top < seen
            self.follows.emit(whole)
            self._scroll(bar.maximum() if whole else top - theme.px(Space.M))

    def _scroll(self, value: int) -> None:
        self.moving = True
        self._area.verticalScrollBar().setValue(value)
        self.moving = False


def _there(widget: QWidget | None) -> TypeGuard[QWidget]:
    return widget is not None and isValid(widget)
