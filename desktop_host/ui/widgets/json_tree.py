"""JSON as a tree that is filled as it is opened, and lists of like objects as a table."""

from __future__ import annotations

import json
from typing import Any

from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication, QKeyEvent, QKeySequence, QWheelEvent
from PySide6.QtWidgets import (
    QAbstractItemView,
    QHeaderView,
    QTableWidget,
    QTableWidgetItem,
    QTreeWidget,
    QTreeWidgetItem,
    QWidget,
)

from desktop_host.i18n import tr, trn
from desktop_host.ui.theme import theme

CHILDREN = 500
"""Children shown of one object or list; the rest is counted."""
VISIBLE_ROWS = 14
TABLE_ROWS = 200
_PLACE = Qt.ItemDataRole.UserRole


def table_columns(value: Any) -> tuple[str, ...]:
    """The columns where `value` is a list of like, flat objects; empty where it is no table."""
    if not isinstance(value, tuple | list) or len(value) < 2 or not all(isinstance(v, dict) and v for v in value):
        return ()
    columns = tuple(value[0])
    alike = all(set(row) <= set(columns) for row in value)
    flat = all(not isinstance(cell, dict | list | tuple) for row in value for cell in row.values())
    return columns if alike and flat and len(columns) <= 12 else ()


def cell_text(value: Any) -> str:
    """A leaf for reading."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


class JsonTree(QTreeWidget):
    """An object or list to look into."""

    def __init__(self, value: Any, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._values: list[Any] = []
        """What the rows stand for; Qt's own store would reorder objects and lose large numbers."""
        self.setColumnCount(2)
        self.setHeaderHidden(True)
        self.setAccessibleName(tr("chat.json.tree"))
        self.setFont(theme.mono())
        self.setUniformRowHeights(True)
        self.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.setIndentation(theme.px(16))
        self.header().setSectionResizeMode(0, QHeaderView.ResizeMode.ResizeToContents)
        self.itemExpanded.connect(self._fill)
        self.itemExpanded.connect(lambda _i: self._fit())
        self.itemCollapsed.connect(lambda _i: self._fit())
        self._add_children(self.invisibleRootItem(), value)
        if self.topLevelItemCount() <= 3:
            for row in range(self.topLevelItemCount()):
                item = self.topLevelItem(row)
                if item is not None:
                    item.setExpanded(True)
        self._fit()

    def _add_children(self, item: QTreeWidgetItem, value: Any) -> None:
        pairs = list(value.items()) if isinstance(value, dict) else [(str(i), v) for i, v in enumerate(value)]
        for key, child in pairs[:CHILDREN]:
            nested = isinstance(child, dict | list | tuple)
            brief = _brief(child) if nested else cell_text(child)
            row = QTreeWidgetItem(item, [key, brief.replace("\n", " ⏎ ")[:2000]])
            row.setData(0, _PLACE, len(self._values))
            self._values.append(child)
            if not nested and len(brief) > 60:
                row.setToolTip(1, brief[:4000])
            if nested and child:
                row.setChildIndicatorPolicy(QTreeWidgetItem.ChildIndicatorPolicy.ShowIndicator)
        if len(pairs) > CHILDREN:
            QTreeWidgetItem(item, ["…", trn("chat.json.more", len(pairs) - CHILDREN)])

    def _fill(self, item: QTreeWidgetItem) -> None:
        value = self._values[item.data(0, _PLACE)]
        if item.childCount() == 0 and isinstance(value, dict | list | tuple):
            self._add_children(item, value)

    def _fit(self) -> None:
        rows, item = 0, self.topLevelItem(0)
        while item is not None and rows < VISIBLE_ROWS:
            rows += 1
            item = self.itemBelow(item)
        height = self.sizeHintForRow(0) if self.topLevelItemCount() else theme.px(20)
        self.setFixedHeight(max(1, rows) * height + theme.px(8))

    def _copy(self) -> None:
        item = self.currentItem()
        place = item.data(0, _PLACE) if item is not None else None
        if place is not None:
            value = self._values[place]
            text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2)
            QGuiApplication.clipboard().setText(text)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Copy takes the value, whole."""
        if event.matches(QKeySequence.StandardKey.Copy):
            self._copy()
        else:
            super().keyPressEvent(event)

    def wheelEvent(self, event: QWheelEvent) -> None:
        """The conversation scrolls unless the tree was clicked into."""
        if self.hasFocus() and self.verticalScrollBar().maximum() > 0:
            super().wheelEvent(event)
        else:
            event.ignore()


class JsonTable(QTableWidget):
    """A list of like objects."""

    def __init__(self, rows: Any, columns: tuple[str, ...], parent: QWidget | None = None) -> None:
        shown = rows[:TABLE_ROWS]
        super().__init__(len(shown), len(columns), parent)
        self.setAccessibleName(tr("chat.json.table"))
        self.setHorizontalHeaderLabels(list(columns))
        self.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.verticalHeader().setVisible(False)
        self.setShowGrid(False)
        self.setAlternatingRowColors(True)
        for r, row in enumerate(shown):
            for c, column in enumerate(columns):
                value = row.get(column)
                item = QTableWidgetItem("" if value is None else cell_text(value)[:500])
                if isinstance(value, int | float) and not isinstance(value, bool):
                    item.setTextAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
                self.setItem(r, c, item)
        self.resizeColumnsToContents()
        for c in range(len(columns)):
            self.setColumnWidth(c, min(self.columnWidth(c) + theme.px(8), theme.px(260)))
        self.horizontalHeader().setStretchLastSection(True)
        height = sum(self.rowHeight(r) for r in range(min(len(shown), VISIBLE_ROWS)))
        self.setFixedHeight(height + self.horizontalHeader().sizeHint().height() + theme.px(8))

    def wheelEvent(self, event: QWheelEvent) -> None:
        """The conversation scrolls unless the table was clicked into."""
        if self.hasFocus() and self.verticalScrollBar().maximum() > 0:
            super().wheelEvent(event)
        else:
            event.ignore()


def _brief(value: Any) -> str:
    n = len(value)
    return trn("chat.json.keys", n) if isinstance(value, dict) else trn("chat.json.items", n)
