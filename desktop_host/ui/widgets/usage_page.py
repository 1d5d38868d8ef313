"""What was used and what it cost: today and this month, limits, thirty days as a chart, and tables."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QResizeEvent, QShowEvent
from PySide6.QtWidgets import (
    QBoxLayout,
    QButtonGroup,
    QComboBox,
    QFileDialog,
    QHeaderView,
    QTableWidget,
    QTableWidgetItem,
    QToolButton,
    QWidget,
)

from desktop_host.i18n import current, tr, trn
from desktop_host.ui.theme import Space, set_role, theme
from desktop_host.ui.viewmodels.usage import MEASURES, VIEWS, Line, Usage, as_csv
from desktop_host.ui.widgets.charts import BarChart
from desktop_host.ui.widgets.flow import Flow
from desktop_host.ui.widgets.page import Empty, ErrorCard, Page
from desktop_host.ui.widgets.pieces import Card, button, clear, column, icon_button, label, row
from desktop_host.ui.widgets.usage_parts import Figure, LimitRow, day_label, money, short

COLUMNS = {
    "server": ("name", "calls", "failed", "requests", "tokens_in", "cost"),
    "day": ("name", "requests", "tokens_in", "tokens_out", "hit", "cost"),
}
"""What a table shows; the others are as `day`."""
ROWS = 12


class UsagePage(Page):
    """The page."""

    limits_wanted = Signal()
    """The person wants to change budgets and quotas."""
    session_wanted = Signal(str)

    def __init__(
        self,
        usage: Usage,
        say: Callable[[str, str], object],
        today: Callable[[], datetime.date] = datetime.date.today,
    ) -> None:
        super().__init__(tr("usage.title"), tr("usage.lead"))
        self._usage, self._say, self._today = usage, say, today
        self._measure, self.by = "cost", "day"
        self._figures = QBoxLayout(QBoxLayout.Direction.LeftToRight)
        self._figures.setSpacing(Space.M)
        self._limits = column(space=Space.S)
        self.chart = BarChart(self._words, day_label)
        self._none = Empty("usage", tr("usage.none"), tr("usage.none.text"))
        self._failure = column(space=0)
        self._body = QWidget()
        body = column(self._body, space=Space.L)
        body.addLayout(self._figures)
        body.addWidget(self._limit_card())
        body.addWidget(self._chart_card())
        body.addWidget(self._table_card())
        self.column.addLayout(self._failure)
        self.column.addWidget(self._none)
        self.column.addWidget(self._body)
        usage.changed.connect(self._show)
        self._show()

    def showEvent(self, event: QShowEvent) -> None:
        """Figures are read when they are looked at."""
        super().showEvent(event)
        self._usage.refresh()

    def show_by(self, by: str) -> None:
        """Show the table of a view."""
        self.by = by
        self.picker.setCurrentIndex(VIEWS.index(by))
        self._fill_table()

    def save_csv(self, path: Path) -> None:
        """Write the table that is shown; a byte order mark lets spreadsheets read it as UTF-8."""
        try:
            path.write_text(as_csv(self.by, self._usage.lines.get(self.by, ())), "utf-8-sig", newline="")
        except OSError as cause:
            self._say(tr("usage.csv.failed", reason=cause.strerror or str(cause)), "warning")
            return
        self._say(tr("usage.csv.saved", name=path.name), "check")

    # ---- parts

    def _limit_card(self) -> QWidget:
        card = Card()
        head = row(label(tr("usage.limits"), "heading", wrap=False), None)
        head.addWidget(button(tr("usage.limits.change"), self.limits_wanted.emit, role="link"))
        card.add(head, self._limits)
        return card

    def _chart_card(self) -> QWidget:
        card = Card()
        group = QButtonGroup(card)
        choices = []
        for name in MEASURES:
            made = QToolButton()
            made.setText(tr(f"usage.measure.{name}"))
            made.setCheckable(True)
            made.setChecked(name == self._measure)
            made.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
            set_role(made, "quiet")
            made.clicked.connect(lambda _c=False, n=name: self._pick_measure(n))
            group.addButton(made)
            choices.append(made)
        self.measures = dict(zip(MEASURES, choices, strict=True))
        card.add(label(tr("usage.chart"), "heading"), Flow(*choices, space=Space.XS), self.chart)
        return card

    def _table_card(self) -> QWidget:
        card = Card()
        self.picker = QComboBox()
        for by in VIEWS:
            self.picker.addItem(tr(f"usage.by.{by}"), by)
        self.picker.setAccessibleName(tr("usage.by"))
        self.picker.activated.connect(lambda at: self.show_by(VIEWS[at]))
        export = icon_button("download", tr("usage.csv"), self._choose_file, role="")
        head = row(label(tr("usage.table"), "heading", wrap=False), None, self.picker, export)
        self.table = QTableWidget()
        self.table.setEditTriggers(QTableWidget.EditTrigger.NoEditTriggers)
        self.table.setSelectionBehavior(QTableWidget.SelectionBehavior.SelectRows)
        self.table.setSelectionMode(QTableWidget.SelectionMode.SingleSelection)
        self.table.setShowGrid(False)
        self.table.setTabKeyNavigation(False)
        self.table.setStyleSheet(f"QTableWidget::item {{ padding: 0px {Space.S}px; }}")
        self.table.verticalHeader().hide()
        self.table.setHorizontalScrollMode(QTableWidget.ScrollMode.ScrollPerPixel)
        self.table.itemActivated.connect(self._activated)
        self._explain = label(tr("usage.hit.help"), "caption")
        card.add(head, self.table, self._explain)
        return card

    # ---- filling

    def _show(self) -> None:
        usage = self._usage
        clear(self._failure)
        if usage.error is not None:
            self._failure.addWidget(ErrorCard(usage.error, usage.refresh))
        empty = usage.loaded and not any(usage.lines.values())
        self._none.setVisible(empty)
        self._body.setVisible(usage.loaded and not empty)
        if not usage.loaded:
            return
        today = self._today()
        clear(self._figures)
        for name, since in (("today", today.isoformat()), ("month", f"{today:%Y-%m}-01"), ("all", "")):
            self._figures.addWidget(Figure(tr(f"usage.sum.{name}"), usage.total(since)), 1)
        clear(self._limits)
        for limit in usage.limits:
            self._limits.addWidget(LimitRow(limit))
        self._fill_chart()
        self._fill_table()

    def _pick_measure(self, name: str) -> None:
        self._measure = name
        self._fill_chart()

    def _fill_chart(self) -> None:
        name = f"{tr('usage.chart')}: {tr(f'usage.measure.{self._measure}')}"
        self.chart.put(name, self._usage.by_day(self._measure, self._today()))

    def _words(self, value: float) -> str:
        return money(value) if self._measure == "cost" else short(value)

    def _fill_table(self) -> None:
        names = COLUMNS.get(self.by, COLUMNS["day"])
        lines = self._usage.lines.get(self.by, ())
        if self.by == "day":
            lines = tuple(reversed(lines))
        else:
            lines = tuple(sorted(lines, key=lambda x: (-(x.cost_usd or 0.0), -(x.tokens_in + x.tokens_out), -x.calls)))
        table = self.table
        table.clear()
        table.setColumnCount(len(names))
        table.setRowCount(len(lines))
        heads = [tr(f"usage.by.{self.by}") if n == "name" else tr(f"usage.column.{n}") for n in names]
        table.setHorizontalHeaderLabels(heads)
        for at, line in enumerate(lines):
            for place, name in enumerate(names):
                item = QTableWidgetItem(self._cell(line, name))
                if name != "name":
                    item.setTextAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
                else:
                    item.setToolTip(line.key)
                    item.setData(Qt.ItemDataRole.UserRole, line.key)
                if name == "cost" and line.unpriced:
                    item.setToolTip(trn("usage.unpriced", line.unpriced))
                table.setItem(at, place, item)
        header = table.horizontalHeader()
        header.setDefaultAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        first = table.horizontalHeaderItem(0)
        if first is not None:
            first.setTextAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)
        header.setSectionResizeMode(QHeaderView.ResizeMode.Interactive)
        self._explain.setVisible("hit" in names)
        table.setAccessibleName(f"{tr('usage.table')}: {tr(f'usage.by.{self.by}')}")
        self._fit_table()

    def _cell(self, line: Line, name: str) -> str:
        match name:
            case "name":
                if self.by == "purpose" and current().has(f"usage.purpose.{line.key}"):
                    return tr(f"usage.purpose.{line.key}")
                return line.name or tr(f"usage.gone.{'session' if self.by == 'session' else 'other'}")
            case "hit":
                return "–" if line.hit is None else f"{line.hit:.0%}"
            case "cost":
                if line.cost_usd is None:
                    return tr("usage.unknown") if line.requests else "–"
                return f"≥ {money(line.cost_usd)}" if line.unpriced else money(line.cost_usd)
        return f"{getattr(line, name):,}"

    def _fit_table(self) -> None:
        """The first column takes what the others leave, and scrolls with them where that is too little."""
        table = self.table
        table.resizeColumnsToContents()
        widths = [table.columnWidth(i) for i in range(table.columnCount())]
        if widths:
            left = table.viewport().width() - sum(widths[1:])
            table.setColumnWidth(0, max(left, min(widths[0], theme.px(240))))
        lines = min(ROWS, max(1, table.rowCount()))
        high = sum(table.rowHeight(i) for i in range(lines)) if table.rowCount() else theme.px(30)
        off, needed = Qt.ScrollBarPolicy.ScrollBarAlwaysOff, Qt.ScrollBarPolicy.ScrollBarAsNeeded
        table.setVerticalScrollBarPolicy(off if table.rowCount() <= ROWS else needed)
        wide = sum(table.columnWidth(i) for i in range(table.columnCount())) > table.viewport().width()
        bar = table.horizontalScrollBar().sizeHint().height() if wide else 0
        table.setFixedHeight(table.horizontalHeader().sizeHint().height() + high + bar + 2 * table.frameWidth() + 4)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if hasattr(self, "table"):
            narrow = self.width() < theme.px(560)
            way = QBoxLayout.Direction.TopToBottom if narrow else QBoxLayout.Direction.LeftToRight
            self._figures.setDirection(way)
            self._fit_table()

    def _activated(self, item: QTableWidgetItem) -> None:
        first = self.table.item(item.row(), 0)
        if self.by == "session" and first is not None and item.text():
            key = str(first.data(Qt.ItemDataRole.UserRole))
            if any(x.key == key and x.name for x in self._usage.lines.get("session", ())):
                self.session_wanted.emit(key)

    def _choose_file(self) -> None:
        dialog = QFileDialog(
            self, tr("usage.csv"), f"usage-by-{self.by}-{self._today().isoformat()}.csv", "CSV (*.csv)"
        )
        dialog.setAcceptMode(QFileDialog.AcceptMode.AcceptSave)
        dialog.setDefaultSuffix("csv")
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.fileSelected.connect(lambda name: self.save_csv(Path(name)))
        dialog.open()
