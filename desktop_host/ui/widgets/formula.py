"""A LaTeX block drawn as a formula, where the library can; else its source stays. Drawn in a thread, once."""

from __future__ import annotations

import logging
import warnings
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from importlib import import_module
from typing import Any

from PySide6.QtCore import QByteArray, QObject, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtSvg import QSvgRenderer
from PySide6.QtWidgets import QSizePolicy, QWidget

from desktop_host.i18n import tr
from desktop_host.ui.theme import Space, theme
from desktop_host.ui.widgets.code import CodeFrame

log = logging.getLogger(__name__)

MOST = 800
"""Longer sources (characters) are shown as they are: drawing grows worse than their length."""
KEPT = 200
SIZE = 20
"""Height of a letter, pixels at 100 %."""


class _Drawer(QObject):
    """Draws one formula after the other, off the window's thread."""

    drawn = Signal(str, str, object)
    """`(source, colour, svg or None)`."""

    def __init__(self) -> None:
        super().__init__()
        self._pool: ThreadPoolExecutor | None = None
        self._kept: OrderedDict[tuple[str, str], bytes | None] = OrderedDict()
        self.drawn.connect(self._keep, Qt.ConnectionType.QueuedConnection)

    def ask(self, source: str, color: str) -> None:
        """`drawn` follows."""
        if (source, color) in self._kept:
            self.drawn.emit(source, color, self._kept[source, color])
            return
        if self._pool is None:
            self._pool = ThreadPoolExecutor(1, "formulas")
        self._pool.submit(self._draw, source, color)

    def _draw(self, source: str, color: str) -> None:
        self.drawn.emit(source, color, svg_of(source, color))

    def _keep(self, source: str, color: str, svg: object) -> None:
        self._kept[source, color] = svg if isinstance(svg, bytes) else None
        while len(self._kept) > KEPT:
            self._kept.popitem(last=False)


def svg_of(source: str, color: str) -> bytes | None:
    """A formula as SVG; None where it cannot be drawn."""
    if not source.strip() or len(source) > MOST:
        return None
    try:
        drawn = _library().Latex(_aligned(source), size=SIZE, color=color).svg()
    except Exception as cause:  # the library raises what its parsers do: ValueError, IndexError, KeyError, own types
        log.debug("a formula is shown as its source: %s", cause)
        return None
    return str(drawn).encode()


@cache
def _library() -> Any:
    """The library that draws; it is imported with the first formula."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of how it reads its own font
        found: Any = import_module("ziamath")
    found.config.svg2 = False  # Qt draws SVG Tiny
    return found


def _aligned(source: str) -> str:
    """Several aligned lines stand in an environment that knows them."""
    loose = "&" in source or "\\\\" in source
    return source if not loose or "\\begin" in source else f"\\begin{{aligned}}{source}\\end{{aligned}}"


_drawer: list[_Drawer] = []


def _the_drawer() -> _Drawer:
    if not _drawer:
        _drawer.append(_Drawer())
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
        _the_drawer().drawn.connect(self._take, Qt.ConnectionType.QueuedConnection)
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
        _the_drawer().ask(self._source, theme.colors.text)

    def _take(self, source: str, color: str, svg: object) -> None:
        if source != self._source or color != theme.colors.text or not isinstance(svg, bytes):
            return
        picture = QSvgRenderer(QByteArray(svg), self)
        if not picture.isValid():
            return
        self._picture = picture
        self._frame.text.hide()
        self.updateGeometry()
        self.show()
        self.update()
