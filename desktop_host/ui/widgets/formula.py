"""A LaTeX block drawn as a formula, where the library can; else its source stays. Drawn in a thread, once."""

from __future__ import annotations

from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from PySide6.QtCore import QByteArray, QObject, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QPainter, QPaintEvent, QResizeEvent
from PySide6.QtSvg import QSvgRenderer
from PySide6.QtWidgets import QSizePolicy, QWidget

from desktop_host.i18n import tr
from desktop_host.ui.formula_drawing import Drawing, draw
from desktop_host.ui.theme import Space, theme
from desktop_host.ui.widgets.code import CodeFrame

KEPT = 500


class Formula(NamedTuple):
    """What is drawn."""

    source: str
    color: str
    inline: bool = False


class Drawer(QObject):
    """Draws one formula after the other, off the window's thread."""

    drawn = Signal(object, object)
    """`(Formula, Drawing or None)`."""

    def __init__(self) -> None:
        super().__init__()
        self._pool: ThreadPoolExecutor | None = None
        self._kept: OrderedDict[Formula, Drawing | None] = OrderedDict()
        self._asked: set[Formula] = set()
        self.drawn.connect(self._keep, Qt.ConnectionType.QueuedConnection)

    def kept(self, formula: Formula) -> Drawing | None:
        """What is drawn already."""
        return self._kept.get(formula)

    def ask(self, formula: Formula) -> None:
        """`drawn` follows, once for all who asked meanwhile."""
        if formula in self._kept:
            self.drawn.emit(formula, self._kept[formula])
            return
        if formula in self._asked:
            return
        self._asked.add(formula)
        if self._pool is None:
            self._pool = ThreadPoolExecutor(1, "formulas")
        self._pool.submit(self._draw, formula)

    def _draw(self, formula: Formula) -> None:
        self.drawn.emit(formula, draw(formula.source, formula.color, inline=formula.inline))

    def _keep(self, formula: Formula, drawing: Drawing | None) -> None:
        self._asked.discard(formula)
        self._kept[formula] = drawing
        while len(self._kept) > KEPT:
            self._kept.popitem(last=False)


_drawer: list[Drawer] = []


def the_drawer() -> Drawer:
    """The one of this process."""
    if not _drawer:
        _drawer.append(Drawer())
    return _drawer[0]


class FormulaView(QWidget):
    """The formula of a closed LaTeX block, in place of its lines. Copy still takes the source."""

    def __init__(self, frame: CodeFrame) -> None:
        super().__init__(frame)
        self._frame = frame
        self._source = frame.code
        self._picture: QSvgRenderer | None = None
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setAccessibleName(tr("composer.formula"))
        self.setAccessibleDescription(tr("composer.formula.source", source=self._source))
        self.setToolTip(self._source)
        self.hide()
        layout = frame.layout()
        assert layout is not None
        layout.addWidget(self)
        the_drawer().drawn.connect(self._take, Qt.ConnectionType.QueuedConnection)
        theme.changed.connect(self._ask)
        self._ask()

    @property
    def shown(self) -> bool:
        """Whether it stands in place of the source."""
        return self._picture is not None

    def sizeHint(self) -> QSize:
        if self._picture is None:
            return QSize(0, 0)
        return QSize(0, round(self._scaled().height()) + 2 * theme.px(Space.M))

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Its height follows the width that there is."""
        super().resizeEvent(event)
        if self._picture is not None and self.sizeHint().height() != self.height():
            self.updateGeometry()

    def paintEvent(self, event: QPaintEvent) -> None:
        """Centred; shrunk where the column is narrower."""
        if self._picture is None:
            return
        size = self._scaled()
        left = max(0.0, (self.width() - size.width()) / 2)
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        self._picture.render(painter, QRectF(left, (self.height() - size.height()) / 2, size.width(), size.height()))

    def _scaled(self) -> QRectF:
        assert self._picture is not None
        box = self._picture.viewBoxF()
        factor = theme.scale / 100
        room = max(40, self._frame.width() - 2 * theme.px(Space.M))
        factor *= min(1.0, room / max(1.0, box.width() * factor))
        return QRectF(0, 0, box.width() * factor, box.height() * factor)

    def _ask(self) -> None:
        the_drawer().ask(Formula(self._source, theme.colors.text))

    def _take(self, formula: Formula, drawing: Drawing | None) -> None:
        if drawing is None or formula != Formula(self._source, theme.colors.text):
            return
        picture = QSvgRenderer(QByteArray(drawing.svg), self)
        if not picture.isValid():
            return
        self._picture = picture
        self._frame.text.hide()
        self.updateGeometry()
        self.show()
        self.update()
