"""The frame of a page: a title, a column of readable width, and designed empty, waiting and error states."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QCoreApplication, QEvent, QObject, Qt, QTimer
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QHBoxLayout, QLayout, QScrollArea, QVBoxLayout, QWidget

from desktop_host.core.errors import HostError
from desktop_host.i18n import error_text, tr
from desktop_host.ui.theme import Space, set_role, theme
from desktop_host.ui.tokens import GUTTER, TEXT_WIDTH
from desktop_host.ui.widgets.flow import Flow
from desktop_host.ui.widgets.happened import happened
from desktop_host.ui.widgets.pieces import Card, button, column, copy_button, icon_label, label, row


def steady_bar(area: QScrollArea) -> None:
    """Keep the scroll bar's room where there is nothing to scroll, so that nothing moves when there is."""
    bar = area.verticalScrollBar()
    area.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOn)
    bar.rangeChanged.connect(lambda low, high: bar.setEnabled(high > low))
    bar.setEnabled(False)


class Page(QScrollArea):
    """A scrolled column in the middle of the room. Append to `column`. `inside`: it stands in a `Centred` already."""

    def __init__(self, title: str = "", lead: str = "", *, inside: bool = False) -> None:
        super().__init__()
        self.setWidgetResizable(True)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAsNeeded)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        steady_bar(self)
        margin = Space.L if inside else Space.XL
        inner = QWidget()
        set_role(inner, "page")
        self._room = QWidget()
        outer = QHBoxLayout(inner)
        side = 0 if inside else Space.L
        self._outer, self._margins = outer, (side, margin, side, margin)
        outer.addStretch(1)
        outer.addWidget(self._room, 1000)
        outer.addStretch(1)
        whole = column(self._room, space=Space.L)
        self.column: QVBoxLayout = column(space=Space.M)
        if title:
            heading = label(title, "title")
            heading.setAccessibleName(title)
            whole.addWidget(heading)
        if lead:
            whole.addWidget(label(lead, "muted"))
        whole.addLayout(self.column)
        whole.addStretch(1)
        self.setWidget(inner)
        self.viewport().setAutoFillBackground(False)
        inner.setAutoFillBackground(False)
        self._fit()
        theme.changed.connect(self._fit)

    def add(self, *parts: QWidget | QLayout) -> None:
        """Append below."""
        for part in parts:
            if isinstance(part, QWidget):
                self.column.addWidget(part)
            else:
                self.column.addLayout(part)

    def showEvent(self, event: QShowEvent) -> None:
        """Take the height that the parts need now: while it was hidden, Qt did not ask them."""
        super().showEvent(event)
        QTimer.singleShot(0, self, self._ask_height)

    def _ask_height(self) -> None:
        QCoreApplication.postEvent(self, QEvent(QEvent.Type.LayoutRequest))

    def _fit(self) -> None:
        self._room.setMaximumWidth(theme.px(TEXT_WIDTH))
        left, top, right, bottom = self._margins
        # As much room at the left as the scroll bar takes at the right: the column stands in the middle.
        self._outer.setContentsMargins(left + theme.px(GUTTER) if left else 0, top, right, bottom)


class Centred(QWidget):
    """A column of readable width, for pages whose parts scroll by themselves. Append to `column`.

    It is wider by the scroll bar's gutter; what does not scroll keeps that free with `keep_gutter`.
    """

    def __init__(self) -> None:
        super().__init__()
        set_role(self, "page")
        self._room = QWidget()
        outer = QHBoxLayout(self)
        outer.setContentsMargins(Space.L, Space.XL, Space.L, 0)
        outer.addStretch(1)
        outer.addWidget(self._room, 1000)
        outer.addStretch(1)
        self.column: QVBoxLayout = column(self._room, space=Space.M)
        self._outer = outer
        self._fit()
        theme.changed.connect(self._fit)

    def _fit(self) -> None:
        gutter = theme.px(GUTTER)
        self._room.setMaximumWidth(theme.px(TEXT_WIDTH) + gutter)
        self._outer.setContentsMargins(Space.L + gutter, Space.XL, Space.L, 0)


class _Gutter(QObject):
    """Part of a layout, so that it ends with it."""

    def __init__(self, layout: QLayout) -> None:
        super().__init__(layout)
        self._layout = layout
        theme.changed.connect(self.fit)
        self.fit()

    def fit(self) -> None:
        margins = self._layout.contentsMargins()
        margins.setRight(theme.px(GUTTER))
        self._layout.setContentsMargins(margins)


def keep_gutter(layout: QLayout) -> None:
    """Leave the scroll bar's gutter free beside what does not scroll in a `Centred`."""
    _Gutter(layout)


class Empty(QWidget):
    """A state with nothing to show: what it is, and one clear next step."""

    def __init__(
        self,
        icon: str,
        title: str,
        text: str,
        action: tuple[str, Callable[[], object]] | None = None,
        second: tuple[str, Callable[[], object]] | None = None,
    ) -> None:
        super().__init__()
        inner = column(self, space=Space.S, margin=Space.XL)
        mark = icon_label(icon, "muted", 36)
        inner.addStretch(1)
        inner.addWidget(mark, 0, Qt.AlignmentFlag.AlignHCenter)
        for words, role in ((title, "heading"), (text, "muted")):
            if words:
                line = label(words, role)
                line.setAlignment(Qt.AlignmentFlag.AlignHCenter)
                inner.addWidget(line)
        buttons = []
        if action is not None:
            buttons.append(button(action[0], action[1], role="primary"))
        if second is not None:
            buttons.append(button(second[0], second[1]))
        if buttons:
            inner.addSpacing(Space.S)
            inner.addLayout(row(None, *buttons, None))
        inner.addStretch(2)


def told(error: HostError) -> tuple[str, str]:
    """What happened and what to do, in the current language."""
    return error_text(error)


class ErrorCard(Card):
    """A failure in place: what happened, what to do, and a way to copy it."""

    def __init__(self, error: HostError, retry: Callable[[], object] | None = None) -> None:
        super().__init__("card-danger")
        what, remedy = told(error)
        self.setAccessibleName(f"{what} {remedy}")
        first, *quoted = happened(what)
        self.add(row(icon_label("error", "danger"), first, space=Space.S), *quoted)
        if remedy:
            self.add(label(remedy))
        buttons = [copy_button(lambda: f"{error.code}: {error.message}\n{error.params}")]
        if retry is not None:
            buttons.insert(0, button(tr("action.retry"), retry, icon="restart"))
        self.add(Flow(*buttons))
