"""Columns of a table in prose: as wide as their text, or shared out so that words stay whole while they can."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtGui import (
    QFont,
    QFontMetrics,
    QTextBlock,
    QTextBlockFormat,
    QTextCharFormat,
    QTextCursor,
    QTextDocument,
    QTextFormat,
    QTextFrameFormat,
    QTextLength,
    QTextTable,
)

from desktop_host.ui.theme import Space, theme

ROWS = 60
"""Rows that are measured; a longer table is like its beginning."""


def fit_columns(document: QTextDocument, width: int, metrics: QFontMetrics) -> None:
    """Set the columns of all tables of a document that is `width` pixels wide."""
    for frame in document.rootFrame().childFrames():
        if isinstance(frame, QTextTable):
            _fit(frame, width, metrics)


def dress_table(table: QTextTable) -> None:
    """Frame, padding and head of a table; the head stands as its column does."""
    form = table.format()
    form.setBorder(1)
    form.setBorderBrush(theme.color("border_strong"))
    form.setBorderStyle(QTextFrameFormat.BorderStyle.BorderStyle_Solid)
    form.setBorderCollapse(True)
    form.setCellSpacing(0)
    form.setCellPadding(theme.px(6))
    form.setTopMargin(theme.px(Space.XS))
    form.setBottomMargin(theme.px(Space.M))
    table.setFormat(form)
    for column in range(table.columns()):
        cell = table.cellAt(0, column)
        head = cell.format()
        head.setBackground(theme.color("hover"))
        cell.setFormat(head)
        if table.rows() > 1:
            below = table.cellAt(1, column).firstCursorPosition().blockFormat().alignment()
            at = cell.firstCursorPosition()
            form_of_block = at.blockFormat()
            form_of_block.setAlignment(below)
            at.setBlockFormat(form_of_block)


def shares(wide: Sequence[int], least: Sequence[int], room: int) -> list[float] | None:
    """Per cent for each column; None where all fit as wide as their text is.

    Args:
        wide: pixels that each column's longest text takes.
        least: pixels that its longest word takes.
        room: pixels for all.
    """
    if sum(wide) <= room or not wide:
        return None
    left = float(room - sum(least))
    if left <= 0:
        widths = [float(one) for one in least]
    else:
        # Short columns get what they want; the others share what is left.
        widths, order = [float(one) for one in least], sorted(range(len(wide)), key=lambda at: wide[at] - least[at])
        for done, at in enumerate(order):
            more = min(float(wide[at] - least[at]), left / (len(order) - done))
            widths[at] += more
            left -= more
    return [100 * one / sum(widths) for one in widths]


def _fit(table: QTextTable, width: int, metrics: QFontMetrics) -> None:
    form = table.format()
    edge = 2 * round(form.cellPadding()) + 4
    wide, least = [], []
    font = table.document().defaultFont()
    font.setWeight(QFont.Weight.Bold)
    bold = QFontMetrics(font)
    for column in range(table.columns()):
        texts = [_text(table, row, column) for row in range(min(ROWS, table.rows()))]
        wide.append(max(_advance(text, at == 0, metrics, bold) for at, text in enumerate(texts)) + edge)
        words = ((word, at == 0) for at, text in enumerate(texts) for word in text.split() or ("",))
        least.append(max(_advance(word, head, metrics, bold) for word, head in words) + edge)
    found = shares(wide, least, width - 2)
    variable = QTextLength(QTextLength.Type.VariableLength, 0)
    wanted = [
        variable if found is None else QTextLength(QTextLength.Type.PercentageLength, found[at])
        for at in range(table.columns())
    ]
    if form.columnWidthConstraints() != wanted:
        form.setColumnWidthConstraints(wanted)
        form.setWidth(variable if found is None else QTextLength(QTextLength.Type.PercentageLength, 100))
        table.setFormat(form)


def _advance(text: str, head: bool, metrics: QFontMetrics, bold: QFontMetrics) -> int:
    """The head is bold."""
    return (bold if head else metrics).horizontalAdvance(text)


def _text(table: QTextTable, row: int, column: int) -> str:
    cell = table.cellAt(row, column)
    cursor = cell.firstCursorPosition()
    cursor.setPosition(cell.lastPosition(), cursor.MoveMode.KeepAnchor)
    return cursor.selectedText()


def shrink(block: QTextBlock) -> None:
    """Qt keeps an empty block around each table; it should take no room."""
    form, small = QTextBlockFormat(), QTextCharFormat()
    form.setLineHeight(1, int(QTextBlockFormat.LineHeightTypes.FixedHeight.value))
    small.setProperty(QTextFormat.Property.FontPixelSize, 1)
    cursor = QTextCursor(block)
    cursor.setBlockFormat(form)
    cursor.setBlockCharFormat(small)
