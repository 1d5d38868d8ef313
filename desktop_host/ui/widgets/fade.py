"""A soft edge over a scroll area where more is hidden below."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject, Qt
from PySide6.QtGui import QColor, QLinearGradient, QPainter, QPaintEvent
from PySide6.QtWidgets import QScrollArea, QWidget

from desktop_host.ui.theme import Space, theme


class Fade(QWidget):
    """Lies over the lower edge of an area while that is not at its end; takes no clicks."""

    def __init__(self, area: QScrollArea) -> None:
        super().__init__(area)
        self._area = area
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        bar = area.verticalScrollBar()
        bar.valueChanged.connect(self._fit)
        bar.rangeChanged.connect(self._fit)
        area.installEventFilter(self)
        self._fit()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() is QEvent.Type.Resize:
            self._fit()
        return False

    def paintEvent(self, event: QPaintEvent) -> None:
        color = theme.color("window")
        clear = QColor(color)
        clear.setAlpha(0)
        soft = QLinearGradient(0, 0, 0, self.height())
        soft.setColorAt(0, clear)
        soft.setColorAt(1, color)
        QPainter(self).fillRect(self.rect(), soft)

    def _fit(self) -> None:
        bar, view = self._area.verticalScrollBar(), self._area.viewport().geometry()
        height = theme.px(Space.XL)
        self.setGeometry(view.left(), view.bottom() + 1 - height, view.width(), height)
        self.setVisible(bar.value() < bar.maximum())
