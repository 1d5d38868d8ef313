"""A quiet sign that the model is at work, for the time when there is nothing else to see."""

from __future__ import annotations

import time

from PySide6.QtCore import QTimer
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QWidget

from desktop_host.i18n import tr
from desktop_host.ui.theme import Space, theme
from desktop_host.ui.widgets.pieces import label, row

PATIENCE_S = 4.0
"""After so long the sign says how long it has been."""


class Pulse(QWidget):
    """Three dots, then words and seconds. Costs nothing while hidden."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._dots = _Dots()
        self._words = label("", "muted", wrap=False)
        layout = row(self._dots, self._words, None, space=theme.px(Space.S), owner=self)
        layout.setContentsMargins(0, theme.px(Space.XS), 0, theme.px(Space.XS))
        self._since = 0.0
        self._timer = QTimer(self)
        self._timer.setInterval(300)
        self._timer.timeout.connect(self._beat)
        self.setAccessibleName(tr("chat.pulse"))
        self.hide()

    def show_working(self, on: bool) -> None:
        """Start or stop."""
        if on == self._timer.isActive():
            return
        if on:
            self._since = time.monotonic()
            self._words.setText("")
            self._timer.start()
        else:
            self._timer.stop()
        self.setVisible(on)

    def _beat(self) -> None:
        self._dots.step()
        gone = time.monotonic() - self._since
        if gone >= PATIENCE_S:
            self._words.setText(tr("chat.pulse.seconds", n=int(gone)))


class _Dots(QWidget):
    def __init__(self) -> None:
        super().__init__()
        self._at = 0
        self.setFixedSize(theme.px(30), theme.px(18))

    def step(self) -> None:
        self._at = (self._at + 1) % 3
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        size = theme.px(6)
        for n in range(3):
            painter.setBrush(theme.color("accent" if n == self._at else "border_strong"))
            painter.setPen(theme.color("accent" if n == self._at else "border_strong"))
            painter.drawEllipse(n * theme.px(10), (self.height() - size) // 2, size, size)
