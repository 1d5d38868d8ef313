"""The small parts pages are made of: labels, buttons, cards, wells, rows and columns."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QEvent, QRect, QSize, Qt, QTimer
from PySide6.QtGui import QGuiApplication, QKeyEvent, QPainter, QPaintEvent, QResizeEvent, QTextOption
from PySide6.QtWidgets import (
    QAbstractButton,
    QFrame,
    QHBoxLayout,
    QLabel,
    QLayout,
    QPlainTextEdit,
    QPushButton,
    QSizePolicy,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from desktop_host.i18n import tr
from desktop_host.ui.theme import Space, set_icon, set_role, theme
from desktop_host.ui.tokens import BASE_ICON


def label(text: str = "", role: str = "", *, wrap: bool = True, selectable: bool = False) -> QLabel:
    """A label; plain text always, so that nothing a server says is read as markup."""
    made = QLabel(text)
    made.setTextFormat(Qt.TextFormat.PlainText)
    made.setWordWrap(wrap)
    if role:
        set_role(made, role)
    if selectable:
        made.setTextInteractionFlags(
            Qt.TextInteractionFlag.TextSelectableByMouse | Qt.TextInteractionFlag.TextSelectableByKeyboard
        )
        made.setFocusPolicy(Qt.FocusPolicy.ClickFocus)
    if wrap:
        made.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Preferred)
        made.setMinimumWidth(1)
    return made


def pill(text: str, tone: str = "") -> QLabel:
    """A short word in a rounded field; `tone` is success, warning, danger, info or nothing."""
    made = label(text, f"pill-{tone}" if tone else "pill", wrap=False)
    made.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Maximum)
    return made


def set_pill(which: QLabel, text: str, tone: str = "") -> None:
    """Change a pill."""
    which.setText(text)
    set_role(which, f"pill-{tone}" if tone else "pill")


def icon_label(name: str, role: str = "muted", size: int = BASE_ICON) -> QLabel:
    """An ornament; says nothing to a screen reader."""
    made = QLabel()
    made.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
    set_icon(made, name, role, size)
    return made


class Button(QPushButton):
    """A button that Enter presses, too: many platforms know the space bar only."""

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if not _entered(self, event):
            super().keyPressEvent(event)


class IconButton(QToolButton):
    """The same with an icon only."""

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if not _entered(self, event):
            super().keyPressEvent(event)


def _entered(button: QAbstractButton, event: QKeyEvent) -> bool:
    found = event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter) and not event.isAutoRepeat()
    if found:
        button.click()
    return found


def button(text: str, act: Callable[[], object] | None = None, *, role: str = "", icon: str = "") -> QPushButton:
    """A button with a text. Roles: primary, quiet, danger, link."""
    made = Button(text)
    made.setAutoDefault(False)
    if role:
        set_role(made, role)
    if icon:
        tint = {"primary": "on_accent", "danger": "danger"}.get(role, "text")
        set_icon(made, icon, tint)
    if act is not None:
        made.clicked.connect(lambda _checked=False: act())
    return made


class TextButton(Button):
    """A button whose text wraps."""

    def __init__(self, text: str, act: Callable[[], object], *, icon: str) -> None:
        super().__init__()
        set_role(self, "suggestion")
        self.setAutoDefault(False)
        self.setAccessibleName(text)
        self.words = label(text)
        inner = row(icon_label(icon), self.words, owner=self)
        inner.setStretch(1, 1)
        inner.setContentsMargins(Space.M, Space.S, Space.M, Space.S)
        policy = QSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Preferred)
        policy.setHeightForWidth(True)
        self.setSizePolicy(policy)
        for child in self.findChildren(QLabel):
            child.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self.clicked.connect(lambda _checked=False: act())

    def sizeHint(self) -> QSize:
        layout = self.layout()
        return layout.totalSizeHint() if layout is not None else super().sizeHint()

    def minimumSizeHint(self) -> QSize:
        layout = self.layout()
        return layout.totalMinimumSize() if layout is not None else super().minimumSizeHint()

    def heightForWidth(self, width: int) -> int:
        layout = self.layout()
        return layout.totalHeightForWidth(width) if layout is not None else -1


def icon_button(icon: str, name: str, act: Callable[[], object] | None = None, *, role: str = "quiet") -> QToolButton:
    """A button with an icon only; `name` is its tool tip and what a screen reader says."""
    made = IconButton()
    set_role(made, role)
    set_icon(made, icon, "muted")
    made.setToolTip(name)
    made.setAccessibleName(name)
    made.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
    if act is not None:
        made.clicked.connect(lambda _checked=False: act())
    return made


def copy_button(text: Callable[[], str], name: str = "") -> QPushButton:
    """A button that puts a text on the clipboard and says so for a moment."""
    words = name or tr("action.copy")
    made = button(words, role="quiet", icon="copy")

    def act() -> None:
        QGuiApplication.clipboard().setText(text())
        made.setText(tr("action.copied"))
        QTimer.singleShot(1500, made, lambda: made.setText(words))

    made.clicked.connect(lambda _checked=False: act())
    return made


def column(owner: QWidget | None = None, *, space: int = Space.M, margin: int = 0) -> QVBoxLayout:
    """A vertical layout."""
    layout = QVBoxLayout(owner) if owner is not None else QVBoxLayout()
    layout.setSpacing(space)
    layout.setContentsMargins(margin, margin, margin, margin)
    return layout


def row(*parts: QWidget | QLayout | None, space: int = Space.S, owner: QWidget | None = None) -> QHBoxLayout:
    """A horizontal layout; None is a stretch."""
    layout = QHBoxLayout(owner) if owner is not None else QHBoxLayout()
    layout.setSpacing(space)
    layout.setContentsMargins(0, 0, 0, 0)
    for part in parts:
        if part is None:
            layout.addStretch(1)
        elif isinstance(part, QWidget):
            layout.addWidget(part)
        else:
            layout.addLayout(part)
    return layout


class Card(QFrame):
    """A framed group. Roles: card, card-warning, card-danger, card-info, well."""

    def __init__(self, role: str = "card", *, margin: int = Space.L, space: int = Space.S) -> None:
        super().__init__()
        set_role(self, role)
        self.column = column(self, space=space, margin=margin)

    def add(self, *parts: QWidget | QLayout) -> None:
        """Append below."""
        for part in parts:
            if isinstance(part, QWidget):
                self.column.addWidget(part)
            else:
                self.column.addLayout(part)


def rule() -> QFrame:
    """A thin line."""
    made = QFrame()
    set_role(made, "line")
    return made


def clear(layout: QLayout) -> None:
    """Take all out of a layout; widgets are deleted."""
    while (item := layout.takeAt(0)) is not None:
        if (widget := item.widget()) is not None:
            widget.hide()
            widget.setParent(None)
            widget.deleteLater()
        elif (inner := item.layout()) is not None:
            clear(inner)
            inner.deleteLater()


class Elided(QLabel):
    """One line that ends in an ellipsis where the room is short; the whole is its tool tip.

    `snug`: no wider than its text.
    """

    def __init__(
        self,
        text: str = "",
        role: str = "",
        mode: Qt.TextElideMode = Qt.TextElideMode.ElideRight,
        *,
        snug: bool = False,
    ) -> None:
        super().__init__(text)
        self._mode = mode
        self.setTextFormat(Qt.TextFormat.PlainText)
        wide = QSizePolicy.Policy.Maximum if snug else QSizePolicy.Policy.Ignored
        self.setSizePolicy(wide, QSizePolicy.Policy.Fixed)
        self.setMinimumWidth(theme.px(40))
        if role:
            set_role(self, role)
        self.setToolTip(text)

    def put(self, text: str) -> None:
        """Show another text."""
        self.setText(text)
        self.setToolTip(text)

    def sizeHint(self) -> QSize:
        return QSize(self.fontMetrics().horizontalAdvance(self.text()) + 2, super().sizeHint().height())

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        text = self.fontMetrics().elidedText(" ".join(self.text().split("\n")), self._mode, self.width())
        painter.setPen(self.palette().color(self.foregroundRole()))
        painter.drawText(QRect(0, 0, self.width(), self.height()), self.alignment(), text)


class CodeBox(QPlainTextEdit):
    """Text as it is, in a well: selectable, wrapped anywhere, as high as its text up to `lines`."""

    def __init__(self, text: str, name: str, *, lines: int = 8) -> None:
        super().__init__()
        self._lines = lines  # before the role: a change of font fits the height
        set_role(self, "code")
        self.setReadOnly(True)
        self.setUndoRedoEnabled(False)
        self.setAccessibleName(name)
        self.setTabChangesFocus(True)
        self.setWordWrapMode(QTextOption.WrapMode.WrapAtWordBoundaryOrAnywhere)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.put(text)

    def put(self, text: str) -> None:
        """Show another text."""
        if text != self.toPlainText():
            self.setPlainText(text)
        self._fit()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() is QEvent.Type.FontChange:
            self._fit()

    def _fit(self) -> None:
        whole = max(1, round(self.document().size().height()))
        fits = whole <= self._lines
        off, needed = Qt.ScrollBarPolicy.ScrollBarAlwaysOff, Qt.ScrollBarPolicy.ScrollBarAsNeeded
        self.setVerticalScrollBarPolicy(off if fits else needed)
        shown = min(self._lines, whole)
        self.setFixedHeight(shown * self.fontMetrics().lineSpacing() + theme.px(5) * 2 + 12)
