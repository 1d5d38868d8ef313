"""Runs of text in prose: code, links, headings, quotes, and formulas that are not drawn yet."""

from __future__ import annotations

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import (
    QPainter,
    QPen,
    QTextBlock,
    QTextBlockFormat,
    QTextCharFormat,
    QTextCursor,
    QTextFormat,
    QTextListFormat,
)

from desktop_host.ui.theme import Space, Type, theme
from desktop_host.ui.widgets.formula_line import formula_of, waiting

_QUOTE = QTextFormat.Property.BlockQuoteLevel
_HEADINGS = {1: 19, 2: 17, 3: 15}
"""Pixels at 100 %; deeper headings are as large as the text, and bold."""


_MARK = int(QTextFormat.Property.UserProperty.value) + 8
Marker = QTextBlockFormat.MarkerType
_BULLETS = (
    QTextListFormat.Style.ListDisc, QTextListFormat.Style.ListCircle, QTextListFormat.Style.ListSquare,
)  # fmt: skip


def take_mark(block: QTextBlock) -> None:
    """Let an item be marked by us: Qt's bullets touch the words, and its mark of what is done reads as a refusal."""
    items = block.textList()
    if items is None or items.format().style() not in _BULLETS:
        return
    form = block.blockFormat()
    marker = form.marker()
    if marker is Marker.NoMarker:
        form.setProperty(_MARK, "ring" if items.format().indent() % 2 == 0 else "dot")
    else:
        form.setProperty(_MARK, "done" if marker is Marker.Checked else "open")
        form.setMarker(Marker.NoMarker)
    QTextCursor(block).setBlockFormat(form)


def hide_bullets(block: QTextBlock) -> None:
    """Take Qt's bullets away, once all items of the list have marks of ours."""
    items = block.textList()
    if items is not None and items.format().style() in _BULLETS and block.blockFormat().hasProperty(_MARK):
        style = items.format()
        style.setStyle(QTextListFormat.Style.ListStyleUndefined)
        items.setFormat(style)


def paint_mark(painter: QPainter, block: QTextBlock, rect: QRectF) -> None:
    """Draw what stands before an item: a dot, a ring, or the box of a task."""
    mark = block.blockFormat().property(_MARK)
    if not isinstance(mark, str) or not block.layout().lineCount():
        return
    task = mark in ("done", "open")
    side = theme.px(14 if task else 5)
    line = block.layout().lineAt(0)
    left = block.layout().position().x() + line.x() - side - theme.px(Space.S)
    middle = rect.top() + line.y() + line.ascent() - theme.px(5)
    box = QRectF(round(left), round(middle - side / 2), side, side)
    painter.save()
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    if task:
        done = mark == "done"
        painter.setPen(QPen(theme.color("accent" if done else "muted"), 1.2))
        painter.setBrush(theme.color("accent" if done else "base"))
        painter.drawRoundedRect(box.adjusted(0.5, 0.5, -0.5, -0.5), 3, 3)
        if done:
            painter.setPen(QPen(theme.color("on_accent"), max(1.5, side / 8)))
            painter.drawPolyline([
                QPointF(box.left() + side * x, box.top() + side * y)
                for x, y in ((0.25, 0.52), (0.43, 0.7), (0.75, 0.32))
            ])  # fmt: skip
    else:
        painter.setPen(QPen(theme.color("muted"), 1.2))
        painter.setBrush(theme.color("muted") if mark == "dot" else Qt.BrushStyle.NoBrush)
        painter.drawEllipse(box)
    painter.restore()


def dress_runs(block: QTextBlock) -> None:
    """Give the runs of a block their fonts and colours; formulas wait as letters."""
    level = block.blockFormat().headingLevel()
    quoted = block.blockFormat().hasProperty(_QUOTE)
    it = block.begin()
    spans: list[tuple[int, int, QTextCharFormat]] = []
    while not it.atEnd():
        fragment = it.fragment()
        form = fragment.charFormat()
        new = QTextCharFormat(form)
        if not form.isImageFormat() and (source := formula_of(form)) is not None:
            new = waiting(new, source)
        if level:
            new.setProperty(QTextFormat.Property.FontPixelSize, theme.px(_HEADINGS.get(level, Type.BODY.px)))
            new.clearProperty(QTextFormat.Property.FontSizeAdjustment)
            new.setFontWeight(600)
        if form.fontFixedPitch() and not new.isAnchor():
            new.setBackground(theme.color("hover"))
            new.setFontFamilies(theme.mono().families())
            if not level:
                new.setProperty(QTextFormat.Property.FontPixelSize, theme.px(Type.BODY.px - 1))
        elif new.isAnchor():
            new.setForeground(theme.color("link"))
            new.setToolTip(form.anchorHref())
        elif quoted:
            new.setForeground(theme.color("muted"))
        if new != form:
            spans.append((fragment.position(), fragment.length(), new))
        it += 1
    for position, length, new in spans:
        cursor = QTextCursor(block.document())
        cursor.setPosition(position)
        cursor.setPosition(position + length, QTextCursor.MoveMode.KeepAnchor)
        cursor.setCharFormat(new)
