"""A code block: language, Copy, and text that is coloured line by line while it streams."""

from __future__ import annotations

from PySide6.QtCore import QEvent, Qt, QTimer
from PySide6.QtGui import (
    QColor,
    QFontMetrics,
    QGuiApplication,
    QResizeEvent,
    QTextCharFormat,
    QTextCursor,
    QTextOption,
    QWheelEvent,
)
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QPlainTextEdit, QPushButton, QVBoxLayout, QWidget

from desktop_host.i18n import tr
from desktop_host.ui.highlight import language_title, runs
from desktop_host.ui.sheet import quoted
from desktop_host.ui.theme import Space, set_icon, set_role, theme
from desktop_host.ui.widgets.pieces import Button

HIGHLIGHT_LIMIT = 200_000
"""Longer code (characters) is shown plain."""


class CodeText(QPlainTextEdit):
    """Read-only code as tall as its lines; scrolls sideways only."""

    def __init__(self, parent: QWidget | None = None, max_lines: int = 0, *, wrap: bool = False) -> None:
        super().__init__(parent)
        self._max_lines = max_lines
        self.setReadOnly(True)
        self.setUndoRedoEnabled(False)
        self.setFrameShape(QFrame.Shape.NoFrame)
        mode = QPlainTextEdit.LineWrapMode
        self.setLineWrapMode(mode.WidgetWidth if wrap else mode.NoWrap)
        self.setWordWrapMode(QTextOption.WrapMode.WrapAtWordBoundaryOrAnywhere if wrap else QTextOption.WrapMode.NoWrap)
        self.setTabChangesFocus(True)
        self.setTextInteractionFlags(
            Qt.TextInteractionFlag.TextSelectableByMouse | Qt.TextInteractionFlag.TextSelectableByKeyboard
        )
        if not max_lines:
            self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.document().setDocumentMargin(theme.px(Space.XS))
        self.fit()

    def fit(self) -> None:
        """Be as tall as the lines, with room for the sideways scroll bar where one is needed."""
        font = theme.mono()
        look = (
            f"QPlainTextEdit {{ font-family: {quoted(font.families())}; font-size: {font.pixelSize()}px; "
            "background: transparent; border: none; padding: 0px; }"
        )
        if self.styleSheet() != look:  # the application's sheet outranks setFont
            self.setStyleSheet(look)
        self.document().setDefaultFont(font)
        self.setTabStopDistance(4 * QFontMetrics(font).horizontalAdvance(" "))
        # Lines with other scripts are higher than the font says, so the text itself is measured.
        text = self.blockBoundingGeometry(self.document().lastBlock()).bottom()
        if self._max_lines:
            text = min(text, self._max_lines * QFontMetrics(font).lineSpacing())
        bar = self.horizontalScrollBar()
        extra = bar.sizeHint().height() if bar.maximum() > 0 else 0
        self.setFixedHeight(int(text) + 2 * theme.px(Space.XS) + extra + 2)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Wrapped lines are more in a narrower column."""
        super().resizeEvent(event)
        if self.lineWrapMode() is QPlainTextEdit.LineWrapMode.WidgetWidth:
            self.fit()

    def changeEvent(self, event: QEvent) -> None:
        """Keep the fixed-width font when the application's style changes."""
        super().changeEvent(event)
        if event.type() is QEvent.Type.FontChange and self.document().defaultFont() != theme.mono():
            self.document().setDefaultFont(theme.mono())

    def wheelEvent(self, event: QWheelEvent) -> None:
        """Sideways is ours; up and down is the conversation's, unless the text is cut short here."""
        if abs(event.angleDelta().x()) > abs(event.angleDelta().y()):
            super().wheelEvent(event)
            return
        bar = self.verticalScrollBar()
        if self._max_lines and self.hasFocus() and bar.maximum() > bar.minimum():
            super().wheelEvent(event)
            return
        event.ignore()


class CodeFrame(QFrame):
    """One fenced block. `add_lines` while it streams, `close_block` at its end. `wrap`: nothing is off to the side."""

    def __init__(
        self, language: str, parent: QWidget | None = None, *, title: str = "", max_lines: int = 0, wrap: bool = False
    ) -> None:
        super().__init__(parent)
        set_role(self, "well")
        label = title or language_title(language) or tr("chat.code.plain")
        self.language = language
        self.source: str | None = None
        """What Copy takes, where that is more than is shown."""
        self._closed = False
        self._empty = True
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, theme.px(Space.XS))
        column.setSpacing(0)
        head = QHBoxLayout()
        head.setContentsMargins(theme.px(Space.M), theme.px(2), theme.px(Space.XS), 0)
        name = QLabel(label)
        name.setTextFormat(Qt.TextFormat.PlainText)
        set_role(name, "caption")
        head.addWidget(name)
        head.addStretch()
        self.copy_button = Button(tr("chat.copy"))
        set_role(self.copy_button, "quiet")
        set_icon(self.copy_button, "copy", "muted", 14)
        self.copy_button.setAccessibleName(tr("chat.code.copy"))
        self.copy_button.clicked.connect(self._copy)
        head.addWidget(self.copy_button)
        column.addLayout(head)
        self.text = CodeText(self, max_lines, wrap=wrap)
        self.text.setAccessibleName(tr("chat.code.text", language=label))
        body = QHBoxLayout()
        body.setContentsMargins(theme.px(Space.S), 0, theme.px(Space.XS), 0)
        body.addWidget(self.text)
        column.addLayout(body)
        self._cursor = QTextCursor(self.text.document())
        self.text.horizontalScrollBar().rangeChanged.connect(lambda _a, _b: self.text.fit())

    @property
    def code(self) -> str:
        """The text as it stands."""
        return self.text.toPlainText()

    def add_lines(self, text: str) -> None:
        """Append whole lines."""
        cursor = self._cursor
        cursor.beginEditBlock()
        cursor.movePosition(QTextCursor.MoveOperation.End)
        if not self._empty:
            cursor.insertText("\n", QTextCharFormat())
        self._empty = False
        self._insert(text)
        cursor.endEditBlock()
        self.text.fit()

    def close_block(self) -> None:
        """The block is whole: colour it as a whole, once (strings over several lines come right only so)."""
        if not self._closed:
            self._closed = True
            if self.text.blockCount() > 1:
                self.restyle()

    def replace(self, code: str) -> None:
        """Show another text."""
        cursor = self._cursor
        cursor.beginEditBlock()
        cursor.select(QTextCursor.SelectionType.Document)
        cursor.removeSelectedText()
        self._insert(code)
        cursor.endEditBlock()
        self._empty = False
        self.text.fit()

    def restyle(self) -> None:
        """Colour anew for the theme."""
        self.replace(self.code)

    def _insert(self, code: str) -> None:
        if len(code) > HIGHLIGHT_LIMIT or not self.language:
            self._cursor.insertText(code, QTextCharFormat())
            return
        for piece, color, bold, italic in runs(code, self.language, theme.dark):
            look = QTextCharFormat()
            if color:
                look.setForeground(QColor(color))
            if bold:
                look.setFontWeight(600)
            look.setFontItalic(italic)
            self._cursor.insertText(piece, look)

    def _copy(self) -> None:
        QGuiApplication.clipboard().setText(self.code if self.source is None else self.source)
        copied(self.copy_button)


def copied(button: QPushButton) -> None:
    """Say on a Copy button that it worked, for a moment."""
    before = button.property("plainText") or button.text()
    button.setProperty("plainText", before)
    button.setText(tr("chat.copied"))
    set_icon(button, "check", "success", 14)

    def back() -> None:
        button.setText(before)
        set_icon(button, "copy", "muted", 14)

    QTimer.singleShot(1500, button, back)
