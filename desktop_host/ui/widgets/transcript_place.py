"""What is read stays where it is while rows above it are made and find their heights."""

from __future__ import annotations

from PySide6.QtCore import QObject, QTimer
from PySide6.QtWidgets import QScrollArea, QWidget
from shiboken6 import isValid


class Place(QObject):
    """Holds a row of a scroll area in its place, until it is told to let go."""

    def __init__(self, area: QScrollArea) -> None:
        super().__init__(area)
        self._area = area
        self._row: QWidget | None = None
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
        """Whether a row is held."""
        return self._row is not None and isValid(self._row)

    def top(self, row: QWidget) -> int:
        """Where a row begins in the whole conversation."""
        inner = self._area.widget()
        assert inner is not None
        return row.mapTo(inner, row.rect().topLeft()).y()

    def hold(self, row: QWidget) -> None:
        """Keep a row where it now is."""
        bar = self._area.verticalScrollBar()
        self._row = row
        self._offset, self._left = self.top(row) - bar.value(), bar.maximum() - bar.value()

    def let_go(self) -> None:
        """The reader scrolls, or something new has come."""
        self._row = None

    def grown(self, high: int) -> None:
        """The conversation is another height; rows get their places only after this."""
        self._scroll(high - self._left)
        self._later.start()

    def _correct(self) -> None:
        if self._row is not None and isValid(self._row):
            self._scroll(self.top(self._row) - self._offset)

    def _scroll(self, value: int) -> None:
        self.moving = True
        self._area.verticalScrollBar().setValue(value)
        self.moving = False
