"""Quiet notices at the lower edge: they take no focus, block nothing and leave by themselves."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QEvent, QObject, QPoint, QRect, QTimer
from PySide6.QtWidgets import QFrame, QWidget

from desktop_host.core.errors import HostError
from desktop_host.i18n import tr
from desktop_host.ui.theme import Space, set_role, theme
from desktop_host.ui.widgets.page import told
from desktop_host.ui.widgets.pieces import button, column, icon_button, icon_label, label, row

STAYS_MS = 6000
ERROR_STAYS_MS = 15_000
MOST = 3
WIDTH = 420
LEAST = 240
"""Width of the centre, in pixels at 100 %, that still has room for notices."""


class Toasts(QWidget):
    """The stack of notices over a window's centre."""

    def __init__(self, parent: QWidget, over: QWidget) -> None:
        super().__init__(parent)
        self._column = column(self, space=Space.S)
        self._over, self._within = over, parent
        self._clear_of: Callable[[], int] = lambda: Space.XL
        over.installEventFilter(self)
        theme.changed.connect(self._place)
        self.hide()

    def keep_clear(self, height: Callable[[], int]) -> None:
        """Say how many pixels at the lower edge must stay free (a composer); asked whenever notices are placed."""
        self._clear_of = height
        self._place()

    def say(self, text: str, icon: str = "info", action: tuple[str, Callable[[], object]] | None = None) -> None:
        """Show a notice."""
        self._add(text, "", icon, "info" if icon == "info" else "success", STAYS_MS, action)

    def fail(self, error: HostError) -> None:
        """Show what failed and what to do."""
        what, remedy = told(error)
        self._add(what, remedy, "error", "danger", ERROR_STAYS_MS, None)

    def texts(self) -> tuple[str, ...]:
        """What is shown now, oldest first."""
        return tuple(t.accessibleName() for t in self._shown())

    def clear(self) -> None:
        """Take all away."""
        for one in self._shown():
            self._drop(one)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() is QEvent.Type.Resize:
            self._place()
        return False

    def _shown(self) -> list[QWidget]:
        items = [self._column.itemAt(i) for i in range(self._column.count())]
        return [w for i in items if i is not None and (w := i.widget()) is not None]

    def _add(
        self, text: str, more: str, icon: str, tone: str, stays: int, action: tuple[str, Callable[[], object]] | None
    ) -> None:
        full = " ".join(f"{text} {more}".split())
        for old in self._shown():
            if old.accessibleName() == full:
                self._drop(old)
        for old in self._shown()[: max(0, len(self._shown()) - MOST + 1)]:
            self._drop(old)
        frame = QFrame()
        set_role(frame, "toast")
        frame.setAccessibleName(full)
        inner = row(icon_label(icon, tone), owner=frame, space=Space.S)
        inner.setContentsMargins(Space.M, Space.S, Space.S, Space.S)
        words = column(space=Space.XS)
        what, _, quoted = text.partition("\n")
        words.addWidget(label(what))
        for line in filter(None, (quoted, more)):
            words.addWidget(label(line, "caption"))
        inner.addLayout(words, 1)
        if action is not None:
            inner.addWidget(button(action[0], action[1], role="link"))
        inner.addWidget(icon_button("close", tr("action.dismiss"), lambda: self._drop(frame)))
        self._column.addWidget(frame)
        frame.show()
        QTimer.singleShot(stays, frame, lambda: self._drop(frame))
        self._place()
        QTimer.singleShot(0, self, self._place)  # fonts of the style sheet are known now

    def _drop(self, frame: QWidget) -> None:
        self._column.removeWidget(frame)
        frame.hide()
        frame.deleteLater()
        self._place()

    def _place(self) -> None:
        if not self._shown():
            self.hide()
            return
        # A panel may have taken the centre's place: then the notices stand over the whole window.
        over = self._over if self._over.width() >= theme.px(LEAST) else self._within
        width = min(theme.px(WIDTH), over.width() - 2 * Space.L)
        self.setFixedWidth(max(160, width))
        self.show()
        inner = [w.layout() for w in self._shown()]
        heights = [layout.totalHeightForWidth(self.width()) for layout in inner if layout is not None]
        self.resize(self.width(), sum(heights) + Space.S * (len(heights) - 1))
        # The centre may stand in a splitter beside other panels: its own geometry is within that.
        room = QRect(over.mapTo(self._within, QPoint()), over.size())
        self.move(room.center().x() - self.width() // 2, room.bottom() - self.height() - self._clear_of())
        self.raise_()
