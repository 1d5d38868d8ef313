"""A stretch of Markdown prose: committed blocks stay, only the open tail is rendered anew."""

from __future__ import annotations

from typing import Any

from PySide6.QtCore import QEvent, QPoint, QRectF, QSizeF, Qt, QUrl
from PySide6.QtGui import (
    QAction,
    QDesktopServices,
    QGuiApplication,
    QImage,
    QPainter,
    QPaintEvent,
    QTextBlock,
    QTextBlockFormat,
    QTextCharFormat,
    QTextCursor,
    QTextDocument,
    QTextFormat,
    QTextTable,
    QWheelEvent,
)
from PySide6.QtWidgets import QFrame, QMenu, QSizePolicy, QTextBrowser, QWidget

from desktop_host.i18n import tr
from desktop_host.ui.markdown import presentable
from desktop_host.ui.theme import Space, Type, set_role, theme

_FEATURES = QTextDocument.MarkdownFeature.MarkdownDialectGitHub | QTextDocument.MarkdownFeature.MarkdownNoHTML
_QUOTE = QTextFormat.Property.BlockQuoteLevel
_RULE = QTextFormat.Property.BlockTrailingHorizontalRulerWidth
LINE_HEIGHT = 135
"""Percent; reads well for Latin and Chinese text."""
_HEADINGS = {1: 19, 2: 17, 3: 15}
"""Pixels at 100 %; deeper headings are as large as the text, and bold."""


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
        self._cursor = QTextCursor(document)
        self._tail_at = 0
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
        self._tail = markdown
        cursor = self._cursor
        cursor.beginEditBlock()
        cursor.setPosition(self._tail_at)
        cursor.movePosition(QTextCursor.MoveOperation.End, QTextCursor.MoveMode.KeepAnchor)
        cursor.removeSelectedText()
        if cursor.currentList() is not None:
            cursor.currentList().remove(cursor.block())
        cursor.setBlockFormat(QTextBlockFormat())
        cursor.setCharFormat(QTextCharFormat())
        if markdown.strip():
            cursor.insertMarkdown(presentable(markdown, unfinished=unfinished), _FEATURES)
            self._dress(self._tail_at)
        cursor.endEditBlock()

    def commit(self, markdown: str) -> None:
        """Settle the open block; the next one begins behind it."""
        self.set_tail(markdown, unfinished=False)
        self._committed.append(markdown)
        self._tail = ""
        cursor = self._cursor
        cursor.beginEditBlock()
        cursor.movePosition(QTextCursor.MoveOperation.End)
        if (
            cursor.block().text()
            or cursor.currentTable() is not None
            or cursor.block().blockFormat().hasProperty(_RULE)
        ):
            cursor.insertBlock(QTextBlockFormat(), QTextCharFormat())
        if cursor.currentList() is not None:
            cursor.currentList().remove(cursor.block())
            cursor.setBlockFormat(QTextBlockFormat())
        cursor.endEditBlock()
        self._tail_at = cursor.position()
        self._fit(self.document().documentLayout().documentSize())

    def restyle(self) -> None:
        """Render anew in the colours of the theme."""
        blocks, tail = self._committed, self._tail
        self._committed, self._tail_at = [], 0
        self.clear()
        for block in blocks:
            self.commit(block)
        if tail:
            self.set_tail(tail)

    # ---- looks

    def _dress(self, start: int) -> None:
        document = self.document()
        block = document.findBlock(start)
        while block.isValid():
            self._dress_block(block)
            self._dress_runs(block)
            block = block.next()
        for frame in document.rootFrame().childFrames():
            if isinstance(frame, QTextTable) and frame.firstPosition() >= start:
                self._dress_table(frame)

    def _dress_block(self, block: QTextBlock) -> None:
        form = block.blockFormat()
        if self._in_table(block):
            form.setTopMargin(0)
            form.setBottomMargin(0)
        elif form.headingLevel():
            form.setTopMargin(theme.px(Space.M) if block.position() else 0)
            form.setBottomMargin(theme.px(Space.XS))
        elif block.textList() is not None:
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

    def _dress_runs(self, block: QTextBlock) -> None:
        level = block.blockFormat().headingLevel()
        quoted = block.blockFormat().hasProperty(_QUOTE)
        it = block.begin()
        spans: list[tuple[int, int, QTextCharFormat]] = []
        while not it.atEnd():
            fragment = it.fragment()
            form, new = fragment.charFormat(), QTextCharFormat()
            if level:
                new.setProperty(QTextFormat.Property.FontPixelSize, theme.px(_HEADINGS.get(level, Type.BODY.px)))
                new.setProperty(QTextFormat.Property.FontSizeAdjustment, 0)
                new.setFontWeight(600)
            if form.fontFixedPitch() and not form.isAnchor():
                new.setBackground(theme.color("hover"))
                new.setFontFamilies(theme.mono().families())
                if not level:
                    new.setProperty(QTextFormat.Property.FontPixelSize, theme.px(Type.BODY.px - 1))
            elif form.isAnchor():
                new.setForeground(theme.color("link"))
                new.setToolTip(form.anchorHref())
            elif quoted:
                new.setForeground(theme.color("muted"))
            if new.propertyCount():
                spans.append((fragment.position(), fragment.length(), new))
            it += 1
        for position, length, new in spans:
            cursor = QTextCursor(self.document())
            cursor.setPosition(position)
            cursor.setPosition(position + length, QTextCursor.MoveMode.KeepAnchor)
            cursor.mergeCharFormat(new)

    def _dress_table(self, table: QTextTable) -> None:
        form = table.format()
        form.setBorder(1)
        form.setBorderBrush(theme.color("border"))
        form.setBorderCollapse(True)
        form.setCellSpacing(0)
        form.setCellPadding(theme.px(6))
        form.setTopMargin(theme.px(Space.XS))
        form.setBottomMargin(theme.px(Space.M))
        table.setFormat(form)
        for column in range(table.columns()):
            cell = table.cellAt(0, column)
            head = cell.format()
            head.setBackground(theme.color("sunken"))
            cell.setFormat(head)

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
            block = block.next()
        painter.end()
        super().paintEvent(event)

    def _fit(self, size: QSizeF) -> None:
        height = size.height()
        last = self.document().lastBlock()
        if (
            self._committed
            and not self._tail
            and not last.text()
            and last.position() >= self._tail_at
            and last.position()
        ):
            # The empty block that waits for the next tail takes no room.
            height -= self.document().documentLayout().blockBoundingRect(last).height()
        wanted = max(1, int(height + 0.99))
        if wanted != self.height():
            self.setFixedHeight(wanted)

    # ---- behaviour

    def loadResource(self, kind: int, name: QUrl | str) -> Any:
        """Only images that the text itself holds; nothing is read from disk or network."""
        url = name if isinstance(name, QUrl) else QUrl(name)
        if url.scheme() == "data":
            return super().loadResource(kind, url)
        return QImage()

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


def link_menu(url: QUrl, parent: QWidget) -> QMenu:
    """Show a link whole before anything opens; only web and mail addresses can be opened."""
    menu = QMenu(parent)
    menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    text = url.toString()
    shown = QAction(text if len(text) <= 120 else f"{text[:100]}…{text[-19:]}", menu)
    shown.setEnabled(False)
    menu.addAction(shown)
    menu.addSeparator()
    if url.scheme() in ("http", "https", "mailto"):
        menu.addAction(tr("chat.link.open"), lambda: QDesktopServices.openUrl(url))
    menu.addAction(tr("chat.link.copy"), lambda: QGuiApplication.clipboard().setText(text))
    return menu
