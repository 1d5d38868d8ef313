"""An on/off switch."""

from __future__ import annotations

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QAbstractButton, QSizePolicy

from desktop_host.ui.theme import theme


class Switch(QAbstractButton):
    """A check box that looks like a switch; `name` is what a screen reader says."""

    def __init__(self, name: str, on: bool = False) -> None:
        super().__init__()
        self.setCheckable(True)
        self.setChecked(on)
        self.setAccessibleName(name)
        self.setToolTip(name)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        theme.changed.connect(self.updateGeometry)

    def sizeHint(self) -> QSize:
        return QSize(theme.px(40), theme.px(26))

    def put(self, on: bool) -> None:
        """Show a state without saying that a person switched."""
        blocked = self.blockSignals(True)
        self.setChecked(on)
        self.blockSignals(blocked)
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        c = theme.color
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        high, wide = theme.px(18), theme.px(32)
        track = QRectF((self.width() - wide) / 2, (self.height() - high) / 2, wide, high)
        on = self.isChecked()
        live = self.isEnabled()
        fill = c("accent") if on else c("sunken")
        edge = c("accent") if on else c("muted")
        if not live:
            fill, edge = c("hover") if on else c("window"), c("border_strong")
        painter.setPen(QPen(edge, 1))
        painter.setBrush(fill)
        painter.drawRoundedRect(track, high / 2, high / 2)
        knob = high - theme.px(6)
        x = track.right() - knob - theme.px(3) if on else track.left() + theme.px(3)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush((c("on_accent") if on else c("muted")) if live else c("faint"))
        painter.drawEllipse(QRectF(x, track.center().y() - knob / 2, knob, knob))
        if self.hasFocus():
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.setPen(QPen(c("focus"), 2))
            ring = track.adjusted(-3, -3, 3, 3)
            painter.drawRoundedRect(ring, ring.height() / 2, ring.height() / 2)
