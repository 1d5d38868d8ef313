"""A stretch of Markdown prose: committed blocks stay, only the open tail is rendered anew."""

from __future__ import annotations

from typing import Any

from PySide6.QtCore import QEvent, QMimeData, QPoint, QRectF, QSizeF, Qt, QUrl
from PySide6.QtGui import (
    QImage,
    QPainter,
    QPaintEvent,
    QResizeEvent,
    QTextBlock,
    QTextBlockFormat,
    QTextCharFormat,
    QTextCursor,
    QTextDocument,
    QTextFormat,
    QTextTable,
    QWheelEvent,
)
from PySide6.QtWidgets import QFrame, QSizePolicy, QTextBrowser, QWidget

from desktop_host.i18n import tr
from desktop_host.ui.markdown import presentable
from desktop_host.ui.theme import Space, set_role, theme
from desktop_host.ui.widgets.formula import Formula, the_drawer
from desktop_host.ui.widgets.formula_line import holds, picture, plain, settle, sources_in
from desktop_host.ui.widgets.links import link_menu
from desktop_host.ui.widgets.prose_runs import dress_runs, hide_bullets, paint_mark, take_mark
from desktop_host.ui.widgets.prose_tables import dress_table, fit_columns, shrink

_FEATURES = QTextDocument.MarkdownFeature.MarkdownDialectGitHub | QTextDocument.MarkdownFeature.MarkdownNoHTML
_STAND_IN = "\u2060"
_QUOTE = QTextFormat.Property.BlockQuoteLevel
_RULE = QTextFormat.Property.BlockTrailingHorizontalRulerWidth
LINE_HEIGHT = 135
"""Percent; reads well for Latin and Chinese text."""


class Prose(QTextBrowser):
    """Grows with its text and never scrolls by itself. Fetches nothing: only `data:` images are drawn."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        set_role(self, "plain")
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setOpenLinks(False)
        self.anchorClicked.connect(self._offer_link)
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setContextMenuPolicy(Qt.ContextMenuPolicy.DefaultContextMenu)
        self.setTabChangesFocus(True)
        self.setAccessibleName(tr("chat.message.text"))
        self.viewport().setAutoFillBackground(False)
        document = self.document()
        document.setUndoRedoEnabled(False)
        document.setDocumentMargin(0)
        document.documentLayout().documentSizeChanged.connect(self._fit)
        the_drawer().drawn.connect(self._drawn, Qt.ConnectionType.QueuedConnection)
        self._cursor = QTextCursor(document)
        self._tail_at = 0
        self._settled = False
        """The last block is committed: the next tail begins a new one."""
        self._committed: list[str] = []
        self._tail = ""
        self.setFixedHeight(theme.px(Space.L))

    # ---- text

    @property
    def size_hint_chars(self) -> int:
        """Characters of Markdown committed here."""
        return sum(map(len, self._committed))

    def set_tail(self, markdown: str, *, unfinished: bool = True) -> None:
        """Show `markdown` as the open block, in place of what the open block was."""
        if self._settled and not markdown.strip():
            return
        self._tail = markdown
        cursor = self._cursor
        cursor.beginEditBlock()
        if self._settled:
            self._begin_block()
        cursor.setPosition(self._tail_at)
        cursor.movePosition(QTextCursor.MoveOperation.End, QTextCursor.MoveMode.KeepAnchor)
        cursor.removeSelectedText()
        self._plain_block()
        if markdown.strip():
            # Qt merges the first block of what is inserted into the open one and loses what it was (a quote, a
            # heading, an item); so a stand-in goes first and is taken away again.
            cursor.insertMarkdown(f"{_STAND_IN}\n\n{presentable(markdown, unfinished=unfinished)}", _FEATURES)
            cursor.setPosition(self._tail_at)
            cursor.setPosition(self._tail_at + len(_STAND_IN), QTextCursor.MoveMode.KeepAnchor)
            cursor.removeSelectedText()
            cursor.deleteChar()
            cursor.endEditBlock()  # tables are known only after this
            cursor.beginEditBlock()
            self._dress(self._tail_at)
        elif self._tail_at:
            cursor.deletePreviousChar()
            self._settled = True
        cursor.endEditBlock()
        self._fit(self.document().documentLayout().documentSize())

    def commit(self, markdown: str) -> None:
        """Settle the open block; the next one begins behind it."""
        self.set_tail(markdown, unfinished=False)
        self._committed.append(markdown)
        self._tail = ""
        self._settled = True

    def _begin_block(self) -> None:
        self._settled = False
        cursor = self._cursor
        cursor.movePosition(QTextCursor.MoveOperation.End)
        block = cursor.block()
        if block.text() or block.blockFormat().hasProperty(_RULE) or self._in_table(block):
            cursor.insertBlock(QTextBlockFormat(), QTextCharFormat())
        self._tail_at = cursor.position()

    def _plain_block(self) -> None:
        cursor = self._cursor
        if cursor.currentList() is not None:
            cursor.currentList().remove(cursor.block())
        cursor.setBlockFormat(QTextBlockFormat())
        cursor.setCharFormat(QTextCharFormat())
        cursor.setBlockCharFormat(QTextCharFormat())

    def restyle(self) -> None:
        """Render anew in the colours of the theme."""
        blocks, tail = self._committed, self._tail
        self._committed, self._tail_at, self._settled = [], 0, False
        self.clear()
        for block in blocks:
            self.commit(block)
        if tail:
            self.set_tail(tail)

    # ---- looks

    def _dress(self, start: int) -> None:
        document = self.document()
        block = document.findBlock(start)
        tables: list[QTextTable] = []
        while block.isValid():
            table = QTextCursor(block).currentTable()
            if table is not None and table not in tables:
                tables.append(table)
            self._dress_block(block)
            dress_runs(block)
            block = block.next()
        block = document.findBlock(start)
        while block.isValid():
            hide_bullets(block)
            block = block.next()
        settle(document, start)
        for table in tables:
            dress_table(table)
        if tables:
            self._fit_columns()

    def _fit_columns(self) -> None:
        self.ensurePolished()
        fit_columns(self.document(), self.viewport().width(), self.fontMetrics())

    def _dress_block(self, block: QTextBlock) -> None:
        form = block.blockFormat()
        if self._in_table(block):
            form.setTopMargin(0)
            form.setBottomMargin(0)
            QTextCursor(block).setBlockFormat(form)
            return
        if not block.text() and not form.hasProperty(_RULE):
            shrink(block)
            return
        if form.hasProperty(_RULE):
            form.setTopMargin(theme.px(Space.S))
            form.setBottomMargin(theme.px(Space.M))
            QTextCursor(block).setBlockFormat(form)
            return
        if form.headingLevel():
            form.setTopMargin(theme.px(Space.M) if block.position() else 0)
            form.setBottomMargin(theme.px(Space.XS))
        elif block.textList() is not None:
            take_mark(block)
            form = block.blockFormat()
            form.setTopMargin(0)
            form.setBottomMargin(theme.px(Space.XS))
        elif form.hasProperty(_QUOTE):
            form.setLeftMargin(theme.px(Space.L) * int(form.property(_QUOTE)))
            form.setTopMargin(0)
            form.setBottomMargin(theme.px(Space.S))
        else:
            form.setTopMargin(0)
            form.setBottomMargin(theme.px(Space.S))
        form.setLineHeight(LINE_HEIGHT, int(QTextBlockFormat.LineHeightTypes.ProportionalHeight.value))
        QTextCursor(block).setBlockFormat(form)

    def _in_table(self, block: QTextBlock) -> bool:
        return QTextCursor(block).currentTable() is not None

    def paintEvent(self, event: QPaintEvent) -> None:
        """Draw the bar beside block quotes, then the text."""
        painter = QPainter(self.viewport())
        layout = self.document().documentLayout()
        block = self.document().begin()
        width = theme.px(3)
        while block.isValid():
            level = block.blockFormat().property(_QUOTE)
            if level:
                rect: QRectF = layout.blockBoundingRect(block)
                painter.fillRect(QRectF(0, rect.top(), width, rect.height()), theme.color("border_strong"))
            elif block.textList() is not None:
                paint_mark(painter, block, layout.blockBoundingRect(block))
            block = block.next()
        painter.end()
        super().paintEvent(event)

    def _fit(self, size: QSizeF) -> None:
        wanted = max(1, int(size.height() + 0.99))
        if wanted != self.height():
            self.setFixedHeight(wanted)
        self.verticalScrollBar().setValue(0)

    def _drawn(self, formula: Formula, _drawing: object) -> None:
        """A formula is drawn: put it in place of its letters. What is marked and where one reads stays."""
        if not formula.inline or not holds(self.document(), formula.source):
            return
        for position, growth in settle(self.document()):
            if position < self._tail_at:
                self._tail_at += growth
        self._fit(self.document().documentLayout().documentSize())

    # ---- behaviour

    def loadResource(self, kind: int, name: QUrl | str) -> Any:
        """Only images that the text itself holds; nothing is read from disk or network."""
        url = name if isinstance(name, QUrl) else QUrl(name)
        if url.scheme() == "data":
            return super().loadResource(kind, url)
        return picture(url) or QImage()

    def createMimeDataFromSelection(self) -> QMimeData:
        """With the source of each formula where its picture stands."""
        made = super().createMimeDataFromSelection()
        at = self.textCursor()
        made.setText(plain(made.text(), sources_in(self.document(), at.selectionStart(), at.selectionEnd())))
        return made

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Tables share the room anew."""
        super().resizeEvent(event)
        self._fit_columns()

    def wheelEvent(self, event: QWheelEvent) -> None:
        """The conversation scrolls, not the paragraph."""
        event.ignore()

    def changeEvent(self, event: QEvent) -> None:
        """A new font changes the height."""
        super().changeEvent(event)
        if event.type() is QEvent.Type.FontChange and hasattr(self, "_committed"):
            self._fit(self.document().documentLayout().documentSize())

    def _offer_link(self, url: QUrl) -> None:
        menu = link_menu(url, self)
        menu.popup(self.mapToGlobal(self.cursorRect().bottomLeft() + QPoint(0, theme.px(Space.XS))))
