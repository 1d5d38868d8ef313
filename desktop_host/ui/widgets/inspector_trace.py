"""The wire as a person reads it: a table of exchanges with filters, the chosen one as JSON, sent again at will."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable

from PySide6.QtCore import QItemSelection, QModelIndex, QPersistentModelIndex, Qt
from PySide6.QtGui import QHideEvent, QPainter, QResizeEvent, QShowEvent
from PySide6.QtWidgets import (
    QComboBox,
    QHeaderView,
    QPlainTextEdit,
    QSplitter,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QTreeView,
    QWidget,
)

from desktop_host.core.errors import HostError
from desktop_host.i18n import tr, trn
from desktop_host.ui.bridge import Bridge
from desktop_host.ui.theme import Space, set_role, theme
from desktop_host.ui.viewmodels.inspector import EXCHANGE, Wire, WireFilter
from desktop_host.ui.viewmodels.inspector_pairs import Exchange
from desktop_host.ui.widgets.flow import Flow
from desktop_host.ui.widgets.inspector_resend import Resend
from desktop_host.ui.widgets.page import told
from desktop_host.ui.widgets.pieces import button, column, copy_button, label, row
from desktop_host.ui.widgets.search_field import SearchField

SHOWN = 200_000
"""Characters of one exchange shown at once; Copy gives all of it."""
ROOM_FOR_TIMES = 560
"""Width, in pixels at 100 %, below which no clock times are shown."""
_TONES = {"error": "danger", "lost": "danger", "waiting": "warning", "notification": "muted", "ok": "success"}


class _State(QStyledItemDelegate):
    """States in their colours."""

    def initStyleOption(self, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex) -> None:
        super().initStyleOption(option, index)
        one = index.data(EXCHANGE)
        if isinstance(one, Exchange):
            option.palette.setColor(option.palette.ColorRole.Text, theme.color(_TONES[one.state]))

    def paint(
        self, painter: QPainter, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex
    ) -> None:
        own = QStyleOptionViewItem(option)
        self.initStyleOption(own, index)
        view = self.parent()
        assert isinstance(view, QTreeView)
        view.style().drawControl(QStyle.ControlElement.CE_ItemViewItem, own, painter, view)


class TraceView(QWidget):
    """Exchanges of some servers, live while in view.

    Args:
        bridge: the host.
        servers: whose wire is shown; asked at each reading.
        narrow: for a side panel: no clock times.
        session: the conversation whose own connections are shown; None: all.
    """

    def __init__(
        self, bridge: Bridge, servers: Callable[[], Iterable[str]], *, narrow: bool = False,
        session: Callable[[], str | None] = lambda: None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.wire = Wire(bridge, servers, self, session)
        self.shown = WireFilter(self.wire, self)
        self.search = SearchField(tr("inspector.search"))
        self.method = QComboBox()
        self.method.setAccessibleName(tr("inspector.method"))
        self.method.setMinimumContentsLength(11)
        self.method.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        self.method.addItem(tr("inspector.all_methods"), "")
        self.errors = button(tr("inspector.errors"), role="filter")
        self.errors.setCheckable(True)
        self.count = label("", "caption", wrap=False)
        self.table = self._table(narrow)
        self.json = QPlainTextEdit()
        set_role(self.json, "code")
        self.json.setReadOnly(True)
        self.json.setUndoRedoEnabled(False)
        self.json.setTabChangesFocus(True)
        self.json.setAccessibleName(tr("trace.message"))
        self.json.setPlaceholderText(tr("trace.choose"))
        self.resend = Resend(bridge, self.wire.read)
        self.resend.opened.connect(self._make_room)
        self.resend.done.connect(self._expect)
        self._expected: tuple[str, str, float] | None = None
        """What was sent by hand and is to be shown once it is listed: server, method, when."""
        self.problem = label("", "danger")
        self.problem.hide()
        self._build()
        self._widths()
        theme.changed.connect(self._widths)
        self.search.textChanged.connect(lambda _t: self._narrow())
        self.method.currentIndexChanged.connect(lambda _at: self._narrow())
        self.errors.toggled.connect(lambda _on: self._narrow())
        self.wire.methods_changed.connect(self._methods)
        self.wire.came.connect(self._came)
        self.wire.failed.connect(self._fail)
        self.wire.rowsAboutToBeInserted.connect(self._before_insert)
        self._follow = True

    @property
    def current(self) -> Exchange | None:
        """The chosen exchange."""
        found = self.table.currentIndex().data(EXCHANGE)
        return found if isinstance(found, Exchange) else None

    def all_text(self) -> str:
        """What is listed, one JSON object a line."""
        rows = [self.shown.index(at, 0).data(EXCHANGE) for at in range(self.shown.rowCount())]
        return "\n".join(
            json.dumps(
                {"t": x.t, "server": x.server, "direction": "out" if x.outward else "in", "ms": x.ms,
                 "message": x.sent, "reply": x.reply}, ensure_ascii=False,
            ) for x in rows
        )  # fmt: skip

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self.wire.watch(True)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Where room is short the names come before the clock times."""
        super().resizeEvent(event)
        self.table.setColumnHidden(0, self._narrow_place or self.width() < theme.px(ROOM_FOR_TIMES))

    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        self.wire.watch(False)

    # ---- inside

    def _table(self, narrow: bool) -> QTreeView:
        table = QTreeView()
        table.setModel(self.shown)
        table.setAccessibleName(tr("server.tab.trace"))
        table.setRootIsDecorated(False)
        table.setUniformRowHeights(True)
        table.setAllColumnsShowFocus(True)
        table.setItemDelegateForColumn(4, _State(table))
        table.setTextElideMode(Qt.TextElideMode.ElideMiddle)
        table.setMinimumHeight(theme.px(96))
        header = table.header()
        header.setStretchLastSection(False)
        header.setMinimumSectionSize(theme.px(20))
        for at in range(5):
            stretch = at == 2
            mode = QHeaderView.ResizeMode.Stretch if stretch else QHeaderView.ResizeMode.Interactive
            header.setSectionResizeMode(at, mode)
        self._narrow_place = narrow
        table.setColumnHidden(0, narrow)
        table.selectionModel().selectionChanged.connect(self._chosen)
        return table

    def _widths(self) -> None:
        table = self.table
        wide = table.fontMetrics().horizontalAdvance
        pad = theme.px(Space.L)
        states = [tr(f"trace.state.{state}") for state in _TONES]
        samples = {0: ["00:00:00.000"], 1: [tr("trace.way")], 3: ["00000 ms"], 4: [*states, tr("trace.state")]}
        for at, texts in samples.items():
            table.setColumnWidth(at, max(map(wide, texts)) + pad + theme.px(Space.S))

    def _build(self) -> None:
        top = row(self.search, self.method)
        top.setStretch(0, 1)
        clear = button(tr("inspector.clear"), self._clear, role="quiet", icon="trash")
        tools = Flow(self.errors, self.count, copy_button(self.all_text, tr("inspector.copy_all")), clear)
        self._below = below = QWidget()
        under = column(below, space=Space.S)
        copy = copy_button(lambda: self.current.pretty() if self.current else "")
        self._acts = Flow(copy, self.resend.open_button)
        self._acts_holder = QWidget()
        self._acts_holder.setLayout(self._acts)
        self._acts_holder.hide()
        under.addWidget(self.json, 1)
        under.addWidget(self._acts_holder)
        under.addWidget(self.resend, 1)
        self._split = split = QSplitter(Qt.Orientation.Vertical)
        split.setChildrenCollapsible(False)
        split.addWidget(self.table)
        split.addWidget(below)
        split.setStretchFactor(0, 3)
        split.setStretchFactor(1, 2)
        inner = column(self, space=Space.S)
        inner.setContentsMargins(0, Space.M, 0, Space.L)
        inner.addLayout(top)
        inner.addLayout(tools)
        inner.addWidget(self.problem)
        inner.addWidget(split, 1)

    def _narrow(self) -> None:
        self.shown.narrow(self.search.text(), str(self.method.currentData() or ""), self.errors.isChecked())
        self._count()

    def _methods(self) -> None:
        kept = self.method.currentData()
        blocked = self.method.blockSignals(True)
        self.method.clear()
        self.method.addItem(tr("inspector.all_methods"), "")
        for name in sorted(self.wire.methods):
            self.method.addItem(name, name)
        self.method.setCurrentIndex(max(0, self.method.findData(kept)))
        self.method.blockSignals(blocked)

    def _before_insert(self, *_a: object) -> None:
        bar = self.table.verticalScrollBar()
        self._follow = bar.value() >= bar.maximum() - 1

    def _came(self) -> None:
        self.problem.hide()
        self._count()
        if self._follow and not self.table.currentIndex().isValid():
            self.table.scrollToBottom()
        self._show_expected()
        self._detail()

    def _make_room(self, on: bool) -> None:
        """The form of a request takes the place of the messages, and as much of the table's as it needs."""
        self.json.setHidden(on)
        if on:
            self.resend.show()
            table, below = self._split.sizes()
            inner = self._below.layout()
            need = inner.totalHeightForWidth(self._split.width()) if inner is not None else below
            if below < need:
                least = self.table.minimumHeight()
                self._split.setSizes([max(least, table + below - need), need])

    def _expect(self, server: str, method: str, when: float) -> None:
        self._expected = server, method, when

    def _show_expected(self) -> None:
        """Choose what was sent by hand, so that its answer stands below."""
        if self._expected is None:
            return
        server, method, when = self._expected
        for at in range(self.shown.rowCount() - 1, -1, -1):
            one = self.shown.index(at, 0).data(EXCHANGE)
            if one.t < when:
                return
            if one.outward and (one.server, one.method) == (server, method) and one.reply is not None:
                self._expected = None
                self.table.setCurrentIndex(self.shown.index(at, 2))
                return

    def _count(self) -> None:
        n, of = self.shown.rowCount(), len(self.wire.rows)
        self.count.setText(trn("inspector.count", n) if n == of else tr("inspector.count_of", n=n, of=of))

    def _chosen(self, _now: QItemSelection, _before: QItemSelection) -> None:
        self.resend.close_form()
        self._detail()

    def _detail(self) -> None:
        one = self.current
        self._acts_holder.setVisible(one is not None)
        if one is None:
            self.json.clear()
            return
        text = one.pretty()
        if len(text) > SHOWN:
            text = text[:SHOWN] + "\n" + tr("inspector.cut")
        if text != self.json.toPlainText():
            self.json.setPlainText(text)
        self.resend.show_for(one)

    def _clear(self) -> None:
        self.wire.clear()
        self._count()
        self._detail()

    def _fail(self, error: HostError) -> None:
        self.problem.setText(" ".join(told(error)))
        self.problem.show()
