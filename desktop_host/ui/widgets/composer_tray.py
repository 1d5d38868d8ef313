"""What stands above the composer for a while: as high as it must be, scrolled where the window is low."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject, Qt
from PySide6.QtWidgets import QLayout, QScrollArea, QSizePolicy, QVBoxLayout, QWidget

from desktop_host.ui.theme import Space, set_role, theme

SHARE = 0.45
"""Most of the page's height that it takes."""


class Tray(QScrollArea):
    """A column of parts that come and go. Without any it takes no room.

    Args:
        page: whose height it takes a share of.
        below: what keeps its height below it.
    """

    def __init__(self, page: QWidget, below: QWidget) -> None:
        super().__init__()
        self._page, self._below = page, below
        self.setWidgetResizable(True)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        inner = QWidget()
        set_role(inner, "page")
        inner.setAutoFillBackground(False)
        self.viewport().setAutoFillBackground(False)
        self.parts = QVBoxLayout(inner)
        self.parts.setSpacing(theme.px(Space.S))
        self.parts.setContentsMargins(0, 0, 0, theme.px(Space.S))
        self.setWidget(inner)
        inner.installEventFilter(self)
        page.installEventFilter(self)
        self._fit()

    def add(self, *parts: QWidget | QLayout) -> None:
        """Append below."""
        for part in parts:
            if isinstance(part, QWidget):
                self.parts.addWidget(part)
            else:
                self.parts.addLayout(part)
        self._fit()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Follow what the parts need and what the page has."""
        kinds = (QEvent.Type.LayoutRequest, QEvent.Type.Resize, QEvent.Type.Show)
        if event.type() in kinds:
            self._fit()
        if event.type() is QEvent.Type.FocusIn and isinstance(watched, QWidget):
            self.ensureWidgetVisible(watched)
        return False

    def _fit(self) -> None:
        items = [self.parts.itemAt(i) for i in range(self.parts.count())]
        used = any(item is not None and not item.isEmpty() for item in items)
        width = max(40, self.viewport().width())
        high = (
            self.parts.totalHeightForWidth(width) if self.parts.hasHeightForWidth() else self.parts.sizeHint().height()
        )
        room = self._page.height()
        most = max(theme.px(72), min(int(room * SHARE), room - self._below.sizeHint().height() - theme.px(120)))
        self.setFixedHeight(min(high, most) if used else 0)
