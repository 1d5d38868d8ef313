"""The command palette: every command, conversation and server by a few letters of its name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from PySide6.QtCore import QAbstractListModel, QEvent, QModelIndex, QObject, QPersistentModelIndex, QSize, Qt, Signal
from PySide6.QtGui import QColor, QHideEvent, QKeyEvent, QMouseEvent, QPainter, QPaintEvent
from PySide6.QtWidgets import (
    QFrame,
    QLineEdit,
    QListView,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QWidget,
)

from desktop_host.i18n import tr
from desktop_host.ui.theme import Space, Type, icon_pixmap, set_role, theme
from desktop_host.ui.widgets.pieces import column, label

WIDTH = 560
SHOWN = 60
ROW = 36
"""Height of a line, pixels at 100 %."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of the palette."""

    text: str
    icon: str
    act: Callable[[], object]
    hint: str = ""


def score(query: str, text: str) -> int | None:
    """How well `query` fits `text`: lower is better, None: its letters do not occur in this order."""
    q, t = query.casefold().strip(), text.casefold()
    if not q:
        return 0
    at = t.find(q)
    if at >= 0:
        return at if at == 0 or not t[at - 1].isalnum() else at + 50
    place, gaps = -1, 0
    for letter in q:
        if letter == " ":
            continue
        found = t.find(letter, place + 1)
        if found < 0:
            return None
        gaps += found - place - 1
        place = found
    return 200 + gaps


class _Entries(QAbstractListModel):
    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self.all: tuple[Entry, ...] = ()
        self.shown: list[Entry] = []

    def rowCount(self, parent: QModelIndex | QPersistentModelIndex = QModelIndex()) -> int:  # noqa: B008
        return 0 if parent.isValid() else len(self.shown)

    def data(self, index: QModelIndex | QPersistentModelIndex, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        if not index.isValid():
            return None
        entry = self.shown[index.row()]
        if role in (Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.AccessibleTextRole):
            return entry.text
        return entry if role == Qt.ItemDataRole.UserRole else None

    def narrow(self, query: str) -> None:
        self.beginResetModel()
        ranked = [(s, i, e) for i, e in enumerate(self.all) if (s := score(query, e.text)) is not None]
        ranked.sort(key=lambda r: (r[0], r[1]))
        self.shown = [e for _, _, e in ranked[:SHOWN]]
        self.endResetModel()


class _EntryDelegate(QStyledItemDelegate):
    def sizeHint(self, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex) -> QSize:
        return QSize(10, theme.px(ROW))

    def paint(
        self, painter: QPainter, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex
    ) -> None:
        entry = index.data(Qt.ItemDataRole.UserRole)
        rect = option.rect
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        if option.state & QStyle.StateFlag.State_Selected:
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(theme.color("accent_soft"))
            painter.drawRoundedRect(rect.adjusted(0, 1, 0, -1), theme.px(6), theme.px(6))
        side = theme.px(16)
        painter.drawPixmap(
            rect.left() + Space.M, rect.center().y() - side // 2 + 1, icon_pixmap(entry.icon, "muted", 16)
        )
        room = rect.adjusted(Space.M + side + Space.M, 0, -Space.M, 0)
        if entry.hint:
            painter.setFont(theme.font(Type.CAPTION))
            painter.setPen(theme.color("muted"))
            painter.drawText(room, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignRight, entry.hint)
            room = room.adjusted(0, 0, -painter.fontMetrics().horizontalAdvance(entry.hint) - Space.M, 0)
        painter.setFont(theme.font())
        painter.setPen(theme.color("text"))
        text = painter.fontMetrics().elidedText(entry.text, Qt.TextElideMode.ElideRight, room.width())
        painter.drawText(room, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft, text)
        painter.restore()


class Scrim(QWidget):
    """Dims all of a window that a palette lies on; a click on it is a click elsewhere."""

    clicked = Signal()

    def __init__(self, over: QWidget) -> None:
        super().__init__(over)
        self.hide()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.fillRect(self.rect(), QColor(0, 0, 0, 150 if theme.dark else 90))

    def mousePressEvent(self, event: QMouseEvent) -> None:
        self.clicked.emit()


class CommandPalette(QFrame):
    """A field and a list over the window; Escape or a click elsewhere closes it."""

    def __init__(self, over: QWidget) -> None:
        super().__init__(over)
        set_role(self, "toast")
        self._over = over
        self._before: QWidget | None = None
        self.scrim = Scrim(over)
        self.scrim.clicked.connect(self.close_palette)
        self.setAccessibleName(tr("command.view.palette"))
        self.field = QLineEdit()
        self.field.setPlaceholderText(tr("palette.hint"))
        self.field.setAccessibleName(tr("palette.hint"))
        self.entries = _Entries(self)
        self.view = QListView()
        set_role(self.view, "plain")
        self.view.setAccessibleName(tr("command.view.palette"))
        self.view.setModel(self.entries)
        self.view.setItemDelegate(_EntryDelegate(self.view))
        self.view.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.view.setMinimumHeight(1)  # one line may be all there is
        self.view.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self._none = label(tr("palette.none"), "muted")
        self._none.setAlignment(Qt.AlignmentFlag.AlignHCenter)
        inner = column(self, space=Space.S, margin=Space.S)
        inner.addWidget(self.field)
        inner.addWidget(self.view, 1)
        inner.addWidget(self._none, 1)
        self.field.textChanged.connect(self._narrow)
        self.field.installEventFilter(self)
        self.view.clicked.connect(lambda index: self._run(index.row()))
        over.installEventFilter(self)
        self.hide()

    def open(self, entries: tuple[Entry, ...]) -> None:
        """Show it with these entries."""
        self._before = self._over.window().focusWidget()
        self.entries.all = entries
        self.field.clear()
        self._narrow("")
        self._place()
        self.scrim.show()
        self.scrim.raise_()
        self.show()
        self.raise_()
        self.field.setFocus(Qt.FocusReason.PopupFocusReason)

    def close_palette(self) -> None:
        """Hide it and give the focus back."""
        self.hide()
        if self._before is not None and self._before.isVisible():
            self._before.setFocus(Qt.FocusReason.PopupFocusReason)

    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        self.scrim.hide()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if watched is self._over and event.type() is QEvent.Type.Resize:
            self._place()
        if watched is self.field:
            if event.type() is QEvent.Type.FocusOut and self.isVisible():
                self.hide()
            if isinstance(event, QKeyEvent) and event.type() is QEvent.Type.KeyPress:
                return self._key(event.key())
        return False

    def _key(self, key: int) -> bool:
        row, last = self.view.currentIndex().row(), self.entries.rowCount() - 1
        match key:
            case Qt.Key.Key_Escape:
                self.close_palette()
            case Qt.Key.Key_Down:
                self._select(0 if row >= last else row + 1)
            case Qt.Key.Key_Up:
                self._select(last if row <= 0 else row - 1)
            case Qt.Key.Key_Return | Qt.Key.Key_Enter:
                self._run(row)
            case _:
                return False
        return True

    def _narrow(self, query: str) -> None:
        self.entries.narrow(query)
        found = self.entries.rowCount() > 0
        self.view.setVisible(found)
        self._none.setVisible(not found)
        self._select(0)
        self._place()

    def _select(self, row: int) -> None:
        self.view.setCurrentIndex(self.entries.index(row))

    def _run(self, row: int) -> None:
        if 0 <= row < len(self.entries.shown):
            entry = self.entries.shown[row]
            self.close_palette()
            entry.act()

    def _place(self) -> None:
        self.scrim.setGeometry(self._over.rect())
        width = min(theme.px(WIDTH), self._over.width() - 2 * Space.L)
        rows = max(1, self.entries.rowCount())
        wanted = rows * theme.px(ROW) + self.field.sizeHint().height() + 4 * Space.S
        height = min(wanted, theme.px(420), self._over.height() - 2 * Space.XL)
        self.setGeometry((self._over.width() - width) // 2, Space.XL * 2, width, max(height, theme.px(80)))
