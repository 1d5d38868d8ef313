"""Small charts drawn by hand: bars over days, and a bar that fills up to a limit."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QFontMetrics, QKeyEvent, QMouseEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QToolTip, QWidget

from desktop_host.ui.theme import Type, theme

STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)


def nice(top: float) -> float:
    """The next round number, so that the scale reads well."""
    if top <= 0:
        return 1.0
    size = 1.0
    while size * 10 <= top:
        size *= 10
    while size > top:
        size /= 10
    return next(size * s for s in STEPS if size * s >= top - 1e-12)


class BarChart(QWidget):
    """Bars with a scale. The mouse or the arrow keys show one bar's figure.

    Args:
        words: a figure as text.
        labels: a key as text.
    """

    def __init__(self, words: Callable[[float], str], labels: Callable[[str], str]) -> None:
        super().__init__()
        self._words, self._labels = words, labels
        self._bars: list[tuple[str, float]] = []
        self._at = -1
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.setMouseTracking(True)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        theme.changed.connect(self.updateGeometry)

    def put(self, name: str, bars: list[tuple[str, float]]) -> None:
        """Show these figures."""
        self._bars, self._at = bars, -1
        self.setAccessibleName(name)
        peak = max(bars, key=lambda b: b[1], default=("", 0.0))
        total = self._words(sum(v for _, v in bars))
        self.setAccessibleDescription(f"{total}; {self._labels(peak[0])}: {self._words(peak[1])}" if bars else "")
        self.update()

    def sizeHint(self) -> QSize:
        return QSize(theme.px(400), theme.px(180))

    def minimumSizeHint(self) -> QSize:
        return QSize(theme.px(160), theme.px(180))

    @property
    def chosen(self) -> str:
        """The bar that is pointed at, in words."""
        if not 0 <= self._at < len(self._bars):
            return ""
        key, value = self._bars[self._at]
        return f"{self._labels(key)}: {self._words(value)}"

    # ---- drawing

    def _room(self) -> QRectF:
        metrics = QFontMetrics(theme.font(Type.CAPTION))
        top = nice(max((v for _, v in self._bars), default=0.0))
        left = metrics.horizontalAdvance(self._words(top)) + theme.px(8)
        high = metrics.height()
        return QRectF(left, high / 2, self.width() - left - 2, self.height() - high * 2)

    def _bar(self, at: int, room: QRectF, top: float) -> QRectF:
        wide = room.width() / max(1, len(self._bars))
        value = self._bars[at][1]
        high = room.height() * value / top
        high = max(high, 2.0) if value > 0 else 0.0
        gap = min(wide * 0.25, theme.px(6))
        return QRectF(room.left() + at * wide + gap / 2, room.bottom() - high, max(1.0, wide - gap), high)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setFont(theme.font(Type.CAPTION))
        metrics = painter.fontMetrics()
        room = self._room()
        top = nice(max((v for _, v in self._bars), default=0.0))
        for part in (0.0, 0.5, 1.0):
            y = room.bottom() - room.height() * part
            painter.setPen(QPen(theme.color("border"), 1))
            painter.drawLine(QPointF(room.left(), y), QPointF(room.right(), y))
            painter.setPen(theme.color("muted"))
            box = QRectF(0, y - metrics.height() / 2, room.left() - theme.px(6), metrics.height())
            painter.drawText(
                box, int(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter), self._words(top * part)
            )
        radius = theme.px(2)
        for at in range(len(self._bars)):
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(theme.color("text" if at == self._at else "accent"))
            painter.drawRoundedRect(self._bar(at, room, top), radius, radius)
        self._draw_labels(painter, room)
        if self.hasFocus():
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.setPen(QPen(theme.color("focus"), 2))
            painter.drawRoundedRect(QRectF(self.rect()).adjusted(1, 1, -1, -1), theme.px(6), theme.px(6))

    def _draw_labels(self, painter: QPainter, room: QRectF) -> None:
        if not self._bars:
            return
        metrics = painter.fontMetrics()
        wide = room.width() / len(self._bars)
        widest = max(metrics.horizontalAdvance(self._labels(k)) for k, _ in self._bars) + theme.px(10)
        every = max(1, int(widest / wide + 0.999))
        painter.setPen(theme.color("muted"))
        for at in range(len(self._bars) - 1, -1, -every):
            text = self._labels(self._bars[at][0])
            width = metrics.horizontalAdvance(text) + 2
            x = room.left() + (at + 0.5) * wide - width / 2
            x = max(room.left(), min(x, room.right() - width))
            painter.drawText(QRectF(x, room.bottom() + theme.px(4), width, metrics.height()), 0, text)

    # ---- pointing

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """Show the figure of the bar under the mouse."""
        room = self._room()
        if not self._bars or not room.left() <= event.position().x() <= room.right():
            self._point(-1)
            return
        self._point(
            min(len(self._bars) - 1, int((event.position().x() - room.left()) / room.width() * len(self._bars)))
        )
        QToolTip.showText(event.globalPosition().toPoint(), self.chosen, self)

    def leaveEvent(self, event: QEvent) -> None:
        """No bar is pointed at."""
        self._point(-1)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Left and right go from bar to bar."""
        step = {Qt.Key.Key_Left: -1, Qt.Key.Key_Right: 1}.get(Qt.Key(event.key()))
        if step is None or not self._bars:
            super().keyPressEvent(event)
            return
        start = len(self._bars) if self._at < 0 and step < 0 else self._at
        self._point(max(0, min(len(self._bars) - 1, start + step)))
        bar = self._bar(self._at, self._room(), nice(max(v for _, v in self._bars)))
        QToolTip.showText(self.mapToGlobal(bar.topLeft().toPoint()), self.chosen, self)
        self.setAccessibleDescription(self.chosen)

    def _point(self, at: int) -> None:
        if at != self._at:
            self._at = at
            self.update()


class Gauge(QWidget):
    """How much of a limit is used: accent, from four fifths on a warning, at the limit danger."""

    def __init__(self, name: str, share: float | None) -> None:
        super().__init__()
        self.share = share
        self.setAccessibleName(name)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)

    def sizeHint(self) -> QSize:
        return QSize(theme.px(160), theme.px(10))

    @property
    def tone(self) -> str:
        """The role of its colour."""
        share = self.share or 0.0
        return "danger" if share >= 1 else "warning" if share >= 0.8 else "accent"

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        whole = QRectF(0.5, 0.5, self.width() - 1, self.height() - 1)
        radius = whole.height() / 2
        painter.setPen(QPen(theme.color("border_strong"), 1))
        painter.setBrush(theme.color("sunken"))
        painter.drawRoundedRect(whole, radius, radius)
        if self.share:
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(theme.color(self.tone))
            wide = max(whole.height(), whole.width() * min(1.0, self.share))
            painter.drawRoundedRect(QRectF(whole.left(), whole.top(), wide, whole.height()), radius, radius)
