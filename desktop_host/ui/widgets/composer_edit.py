"""The text of a message while it is written."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QMimeData, Qt, Signal
from PySide6.QtGui import QFocusEvent, QKeyEvent
from PySide6.QtWidgets import QFrame, QPlainTextEdit, QWidget

from desktop_host.i18n import tr
from desktop_host.ui.theme import Space, set_role, theme

MAX_LINES = 12


class MessageEdit(QPlainTextEdit):
    """Enter sends, Shift+Enter breaks the line; files and pictures that are pasted or dropped are attached."""

    submitted = Signal()
    files = Signal(object)
    """`list[Path]` that were dropped or pasted."""
    focused = Signal()
    """It got the focus or lost it."""
    picture = Signal(object)
    """`QImage` that was pasted."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        set_role(self, "plain")
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setTabChangesFocus(True)
        self.setPlaceholderText(tr("chat.composer.placeholder"))
        self.setAccessibleName(tr("chat.composer.name"))
        self.setAccessibleDescription(tr("chat.composer.keys"))
        self.document().setDocumentMargin(theme.px(Space.XS))
        self.document().documentLayout().documentSizeChanged.connect(lambda _s: self.fit())
        self.fit()

    def fit(self) -> None:
        """Grow with the text, up to twelve lines."""
        lines = max(1, min(MAX_LINES, round(self.document().size().height())))
        self.setFixedHeight(lines * self.fontMetrics().lineSpacing() + 2 * theme.px(Space.XS) + 4)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Enter sends."""
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            if event.modifiers() & (Qt.KeyboardModifier.ShiftModifier | Qt.KeyboardModifier.AltModifier):
                self.insertPlainText("\n")
                self.ensureCursorVisible()
            else:
                self.submitted.emit()
            return
        super().keyPressEvent(event)

    def focusInEvent(self, event: QFocusEvent) -> None:
        super().focusInEvent(event)
        self.focused.emit()

    def focusOutEvent(self, event: QFocusEvent) -> None:
        super().focusOutEvent(event)
        self.focused.emit()

    def canInsertFromMimeData(self, source: QMimeData) -> bool:
        """Text, pictures and files."""
        return source.hasText() or source.hasImage() or source.hasUrls()

    def insertFromMimeData(self, source: QMimeData) -> None:
        """Attach files and pictures; insert text."""
        paths = local_files(source)
        if paths:
            self.files.emit(paths)
        elif source.hasImage() and not source.hasText():
            self.picture.emit(source.imageData())
        elif source.hasText():
            self.insertPlainText(source.text())


def local_files(source: QMimeData) -> list[Path]:
    """The files of this computer in what was dropped or pasted."""
    return [Path(u.toLocalFile()) for u in source.urls() if u.isLocalFile()] if source.hasUrls() else []
