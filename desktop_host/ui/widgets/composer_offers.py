"""The list above the composer that `/` and `@` open. The caret stays in the text; keys are handed over."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject, QSize, Qt, QTimer, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QFrame, QListWidget, QListWidgetItem, QWidget

from desktop_host.i18n import tr
from desktop_host.ui.theme import Space, Type, set_role, theme
from desktop_host.ui.viewmodels.composer import TRIGGER, Offer, Offers
from desktop_host.ui.widgets.composer_edit import MessageEdit
from desktop_host.ui.widgets.pieces import Elided, column, icon_label, label, row

SHOWN = 7
"""Rows that are seen without scrolling."""
_ICONS = {"prompt": "prompt", "skill": "skills", "resource": "document", "template": "folder"}


class _Line(QWidget):
    """One offer: what it is, its name, and where it comes from."""

    def __init__(self, offer: Offer) -> None:
        super().__init__()
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        name = label(offer.title, "strong", wrap=False)
        line = row(icon_label(_ICONS[offer.kind], "muted", 16), name, space=theme.px(Space.S), owner=self)
        line.addWidget(Elided(offer.detail, "caption"), 1)
        line.setContentsMargins(theme.px(Space.S), 0, theme.px(Space.S), 0)


class OfferList(QFrame):
    """See the module."""

    picked = Signal(object)
    """The `Offer` that was chosen; its trigger is taken out of the text already."""
    filled = Signal()
    """Its height may be another."""

    def __init__(self, offers: Offers, edit: MessageEdit) -> None:
        super().__init__()
        self._offers, self._edit = offers, edit
        self._sign = ""
        self._shown: tuple[Offer, ...] = ()
        self._dismissed = ""
        """The trigger that Escape closed; it stays closed until the word is another."""
        set_role(self, "toast")
        outer = column(self, space=0, margin=theme.px(Space.XS))
        self._note = label("", "caption")
        self._note.setContentsMargins(theme.px(Space.S), theme.px(Space.XS), theme.px(Space.S), theme.px(Space.XS))
        self.list = QListWidget()
        set_role(self.list, "plain")
        self.list.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.list.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.list.setAccessibleName(tr("composer.offers"))
        self.list.itemClicked.connect(lambda item: self._pick(self.list.row(item)))
        outer.addWidget(self.list)
        outer.addWidget(self._note)
        edit.installEventFilter(self)
        edit.textChanged.connect(self._look)
        edit.cursorPositionChanged.connect(self._look)
        offers.changed.connect(self._look)
        self.hide()

    @property
    def shown(self) -> tuple[Offer, ...]:
        """The offers that are listed."""
        return self._shown if self.isVisible() else ()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """While the list is open, arrows, Enter, Tab and Escape are its keys."""
        if event.type() is QEvent.Type.FocusOut:
            QTimer.singleShot(0, self, self._maybe_close)
        if event.type() is QEvent.Type.FocusIn:
            QTimer.singleShot(0, self, self._look)
        if not self.isVisible() or not isinstance(event, QKeyEvent) or event.type() is not QEvent.Type.KeyPress:
            return False
        match event.key():
            case Qt.Key.Key_Escape:
                self._dismissed = self._trigger()
                self.hide()
            case Qt.Key.Key_Down | Qt.Key.Key_Up if self._shown:
                step = 1 if event.key() == Qt.Key.Key_Down else -1
                self._choose((self.list.currentRow() + step) % len(self._shown))
            case Qt.Key.Key_Return | Qt.Key.Key_Enter | Qt.Key.Key_Tab if self._shown and not event.modifiers():
                self._pick(self.list.currentRow())
            case _:
                return False
        return True

    # ---- inside

    def _trigger(self) -> str:
        cursor = self._edit.textCursor()
        found = TRIGGER.search(self._edit.toPlainText()[: cursor.position()]) if not cursor.hasSelection() else None
        return found[0] if found else ""

    def _look(self) -> None:
        trigger = self._trigger()
        if not trigger or trigger == self._dismissed or not self._edit.hasFocus():
            if not trigger:
                self._dismissed = ""
            self.hide()
            return
        self._sign = trigger[0]
        found = self._offers.matching(self._sign, trigger[1:])
        reading = self._sign in self._offers.reading
        if not found and not reading and len(trigger) > 1:
            self.hide()  # nothing is called so: let the person write a path or an address
            return
        self._fill(found, reading)

    def _fill(self, found: tuple[Offer, ...], reading: bool) -> None:
        self._shown = found
        self.list.clear()
        high = theme.px(Type.BODY.px) + 2 * theme.px(Space.S)
        for offer in found:
            item = QListWidgetItem()
            item.setSizeHint(QSize(0, high))
            item.setData(Qt.ItemDataRole.AccessibleTextRole, f"{offer.title}. {offer.detail}")
            self.list.addItem(item)
            self.list.setItemWidget(item, _Line(offer))
        self.list.setVisible(bool(found))
        self.list.setFixedHeight(min(SHOWN, max(1, len(found))) * high + theme.px(Space.XS))
        name = "prompts" if self._sign == "/" else "resources"
        words = tr("composer.offers.reading") if reading else tr(f"composer.offers.none.{name}")
        self._note.setText(tr(f"composer.offers.keys.{name}") if found else words)
        if found:
            self._choose(0)
        self.show()
        self.filled.emit()

    def _choose(self, at: int) -> None:
        self.list.setCurrentRow(at)
        offer = self._shown[at]
        self._edit.setAccessibleDescription(
            tr("composer.offers.at", at=at + 1, of=len(self._shown), name=offer.title, detail=offer.detail)
        )

    def _pick(self, at: int) -> None:
        if not 0 <= at < len(self._shown):
            return
        offer = self._shown[at]
        cursor = self._edit.textCursor()
        cursor.movePosition(cursor.MoveOperation.Left, cursor.MoveMode.KeepAnchor, len(self._trigger()))
        self.hide()
        cursor.removeSelectedText()
        self._edit.setTextCursor(cursor)
        self._edit.setFocus()
        self.picked.emit(offer)

    def _maybe_close(self) -> None:
        if not self._edit.hasFocus():
            self.hide()

    def hideEvent(self, event: QEvent) -> None:
        """The field is described as before."""
        self._edit.setAccessibleDescription(tr("chat.composer.keys"))
