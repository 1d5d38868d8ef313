"""How a conversation looks in the list, and the list's own keys and menu."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QModelIndex, QPersistentModelIndex, QPoint, QRect, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QContextMenuEvent, QKeyEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import (
    QAbstractItemView,
    QListView,
    QMenu,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QWidget,
)

from desktop_host.i18n import tr
from desktop_host.ui.theme import Space, Type, icon, icon_pixmap, set_role, theme
from desktop_host.ui.viewmodels.sessions import Role, Sessions

Index = QModelIndex | QPersistentModelIndex


HEADING = 30
"""Height of a day's heading, pixels at 100 %."""


def paint_heading(painter: QPainter, rect: QRect, text: str) -> None:
    """The heading of a day, at the lower edge of its row."""
    painter.setFont(theme.font(Type.CAPTION))
    painter.setPen(theme.color("muted"))
    low = rect.adjusted(theme.px(10), theme.px(8), -theme.px(10), -theme.px(4))
    painter.drawText(low, Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignBottom, text)


class SessionDelegate(QStyledItemDelegate):
    """Draws headings and conversations: title, pin, and a dot while one runs or waits for a person."""

    def sizeHint(self, option: QStyleOptionViewItem, index: Index) -> QSize:
        if not index.data(Role.SESSION):
            return QSize(10, theme.px(HEADING))
        return QSize(10, theme.px(50 if index.data(Role.SNIPPET) else 34))

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        c = theme.color
        rect: QRect = option.rect
        state: QStyle.StateFlag = option.state
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        inner = rect.adjusted(theme.px(10), 0, -theme.px(10), 0)
        if not index.data(Role.SESSION):
            paint_heading(painter, rect, str(index.data()))
            painter.restore()
            return
        chosen = bool(state & QStyle.StateFlag.State_Selected)
        box = QRectF(rect.adjusted(1, 1, -2, -1))
        if chosen or state & QStyle.StateFlag.State_MouseOver:
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(c("accent_soft" if chosen else "hover"))
            painter.drawRoundedRect(box, theme.px(6), theme.px(6))
        view = option.widget
        if isinstance(view, QAbstractItemView) and view.hasFocus() and view.currentIndex() == index:
            painter.setPen(QPen(c("focus"), 2))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRoundedRect(box.adjusted(1, 1, -1, -1), theme.px(6), theme.px(6))
        room = QRect(inner)
        room = self._ornaments(painter, room, index)
        font = theme.font(Type.STRONG if chosen else Type.BODY)
        painter.setFont(font)
        painter.setPen(c("text"))
        snippet = str(index.data(Role.SNIPPET) or "")
        title_room = room.adjusted(0, theme.px(4), 0, -room.height() // 2) if snippet else room
        title = painter.fontMetrics().elidedText(str(index.data()), Qt.TextElideMode.ElideRight, title_room.width())
        painter.drawText(title_room, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft, title)
        if snippet:
            painter.setFont(theme.font(Type.CAPTION))
            painter.setPen(c("muted"))
            below = room.adjusted(0, room.height() // 2, 0, -theme.px(4))
            words = painter.fontMetrics().elidedText(
                " ".join(snippet.split()), Qt.TextElideMode.ElideRight, below.width()
            )
            painter.drawText(below, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft, words)
        painter.restore()

    def createEditor(self, parent: QWidget, option: QStyleOptionViewItem, index: Index) -> QWidget:
        editor = super().createEditor(parent, option, index)
        editor.setAccessibleName(tr("command.chat.rename"))
        editor.setStyleSheet("padding: 0px;")
        return editor

    def setEditorData(self, editor: QWidget, index: Index) -> None:
        """Once only: what happens in the list meanwhile must not take back what is being typed."""
        if not editor.property("filled"):
            editor.setProperty("filled", True)
            super().setEditorData(editor, index)

    def updateEditorGeometry(self, editor: QWidget, option: QStyleOptionViewItem, index: Index) -> None:
        rect: QRect = option.rect
        editor.setGeometry(rect.adjusted(2, 2, -2, -2))

    @staticmethod
    def _ornaments(painter: QPainter, room: QRect, index: Index) -> QRect:
        """Draw what stands at the trailing edge; returns what is left for the title."""
        c = theme.color
        state = str(index.data(Role.STATE))
        middle = room.center().y()
        if state != "idle":
            side = theme.px(8)
            spot = QRectF(room.right() - side, middle - side / 2 + 1, side, side)
            if state == "waiting":
                painter.setPen(Qt.PenStyle.NoPen)
                painter.setBrush(c("warning"))
                painter.drawEllipse(spot)
            else:
                painter.setBrush(Qt.BrushStyle.NoBrush)
                painter.setPen(QPen(c("accent"), theme.px(2)))
                painter.drawEllipse(spot.adjusted(1, 1, -1, -1))
            room = room.adjusted(0, 0, -side - Space.S, 0)
        if index.data(Role.PINNED):
            mark = icon_pixmap("pin", "muted", 14)
            side = theme.px(14)
            painter.drawPixmap(room.right() - side, middle - side // 2 + 1, mark)
            room = room.adjusted(0, 0, -side - Space.XS, 0)
        return room


class SessionList(QListView):
    """The conversations. Enter opens, F2 renames, Delete asks to delete, the menu key shows the menu."""

    opened = Signal(str)
    wanted = Signal(str, str)
    """`(act, session)`: see `SessionActs.do`."""

    def __init__(self, model: Sessions) -> None:
        super().__init__()
        set_role(self, "plain")
        self.setModel(model)
        self.setItemDelegate(SessionDelegate(self))
        self.setMouseTracking(True)
        self.setUniformItemSizes(False)
        self.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setEditTriggers(QAbstractItemView.EditTrigger.EditKeyPressed)
        self.setAccessibleName(tr("sidebar.list"))
        self.clicked.connect(self._open)
        self.activated.connect(self._open)
        theme.changed.connect(self.doItemsLayout)

    @property
    def sessions(self) -> Sessions:
        """The model."""
        model = self.model()
        assert isinstance(model, Sessions)
        return model

    def choose(self, session: str) -> None:
        """Show which conversation is open."""
        row = self.sessions.row_of(session) if session else -1
        if row < 0:
            self.clearSelection()
            self.setCurrentIndex(QModelIndex())
            return
        index = self.sessions.index(row)
        self.setCurrentIndex(index)
        self.scrollTo(index)

    def scrollTo(
        self, index: Index, hint: QAbstractItemView.ScrollHint = QAbstractItemView.ScrollHint.EnsureVisible
    ) -> None:
        """Bring a conversation into sight, below the heading that stays at the upper edge."""
        super().scrollTo(index, hint)
        hidden = theme.px(HEADING) - self.visualRect(index).top()
        bar = self.verticalScrollBar()
        if hidden > 0 and bar.value() > 0:
            bar.setValue(bar.value() - hidden)
        # No row is cut by the heading where there is room to show it whole.
        cut = theme.px(HEADING) - self.visualRect(self.indexAt(QPoint(theme.px(4), theme.px(HEADING)))).top()
        if bar.value() > 0 and cut > 0 and self.visualRect(index).bottom() + cut < self.viewport().height():
            bar.setValue(bar.value() - cut)

    def paintEvent(self, event: QPaintEvent) -> None:
        """The list, the heading of its first day in sight at the upper edge, and hairlines where more is hidden."""
        super().paintEvent(event)
        bar = self.verticalScrollBar()
        view = self.viewport()
        painter = QPainter(view)
        if bar.value() > 0:
            self._paint_day(painter)
        if bar.value() < bar.maximum():
            painter.fillRect(0, view.height() - 1, view.width(), 1, theme.color("border"))

    def _paint_day(self, painter: QPainter) -> None:
        """The next day's heading pushes it out of sight."""
        first = self.indexAt(QPoint(theme.px(4), 0)).row()
        rows = range(first, -1, -1)
        heading = next((r for r in rows if not self.sessions.index(r).data(Role.SESSION)), -1)
        if heading < 0:
            return
        height, width = theme.px(HEADING), self.viewport().width()
        after = range(heading + 1, self.sessions.rowCount())
        tops = (self.visualRect(self.sessions.index(r)).top() for r in after if self._is_day(r))
        top = min(0, next(tops, height) - height)
        strip = QRect(0, top, width, height)
        painter.fillRect(strip, theme.color("sidebar"))
        paint_heading(painter, strip, str(self.sessions.index(heading).data()))
        painter.fillRect(0, strip.bottom(), width, 1, theme.color("border"))

    def _is_day(self, row: int) -> bool:
        return not self.sessions.index(row).data(Role.SESSION)

    def scrollContentsBy(self, dx: int, dy: int) -> None:
        """All anew: what stays at the edges must not be moved along."""
        super().scrollContentsBy(dx, dy)
        self.viewport().update()

    def rename(self, session: str) -> None:
        """Begin to edit a title in place."""
        row = self.sessions.row_of(session)
        if row >= 0:
            self.setCurrentIndex(self.sessions.index(row))
            self.edit(self.sessions.index(row))

    def keyPressEvent(self, event: QKeyEvent) -> None:
        session = str(self.currentIndex().data(Role.SESSION) or "")
        if session and self.state() is not QAbstractItemView.State.EditingState:
            if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
                self.opened.emit(session)
                return
            if event.key() == Qt.Key.Key_Delete:
                self.wanted.emit("delete", session)
                return
        super().keyPressEvent(event)

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        keyed = event.reason() is QContextMenuEvent.Reason.Keyboard
        index = self.currentIndex() if keyed else self.indexAt(event.pos())
        session = str(index.data(Role.SESSION) or "")
        if session:
            at = self.visualRect(index).center() if keyed else event.pos()
            self.menu(session).popup(self.viewport().mapToGlobal(QPoint(at)))

    def viewportEvent(self, event: QEvent) -> bool:
        if event.type() is QEvent.Type.FontChange:
            self.doItemsLayout()
        return super().viewportEvent(event)

    def menu(self, session: str) -> QMenu:
        """The menu of a conversation."""
        menu = QMenu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        found = self.sessions.found(session)
        pinned = bool(found and found.pinned)
        menu.addAction(icon("edit"), tr("action.rename"), lambda: self.rename(session))
        pin = "unpin" if pinned else "pin"
        menu.addAction(icon("pin"), tr(f"action.{pin}"), lambda: self.wanted.emit(pin, session))
        menu.addSeparator()
        menu.addAction(icon("external"), tr("action.window"), lambda: self.wanted.emit("window", session))
        menu.addAction(icon("profile"), tr("action.move"), lambda: self.wanted.emit("move", session))
        menu.addAction(icon("document"), tr("action.compact"), lambda: self.wanted.emit("compact", session))
        menu.addSeparator()
        menu.addAction(icon("document"), tr("action.export_md"), lambda: self.wanted.emit("export_md", session))
        menu.addAction(icon("document"), tr("action.export_html"), lambda: self.wanted.emit("export_html", session))
        menu.addAction(icon("document"), tr("action.export_json"), lambda: self.wanted.emit("export_json", session))
        menu.addSeparator()
        menu.addAction(icon("trash", "danger"), tr("action.delete"), lambda: self.wanted.emit("delete", session))
        return menu

    def _open(self, index: QModelIndex) -> None:
        session = str(index.data(Role.SESSION) or "")
        if session:
            self.opened.emit(session)
