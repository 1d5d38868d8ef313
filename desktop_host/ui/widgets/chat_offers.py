"""From `/` or `@` to the message: the list over the conversation, the form for arguments, what comes of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from PySide6.QtCore import QEvent, QObject, QTimer
from PySide6.QtWidgets import QMenu, QVBoxLayout

from desktop_host.core.errors import HostError
from desktop_host.i18n import error_text, tr
from desktop_host.ui.theme import Space, icon, theme
from desktop_host.ui.viewmodels.composer import Filled, Offer, Offers
from desktop_host.ui.widgets.composer_arguments import ArgumentForm
from desktop_host.ui.widgets.composer_offers import OfferList
from desktop_host.ui.widgets.pieces import column

if TYPE_CHECKING:
    from desktop_host.ui.widgets.chat import ChatPage


class OfferDesk(QObject):
    """The offers of a chat page. Its `slot` is a layout above the composer, for the form."""

    def __init__(self, page: ChatPage) -> None:
        super().__init__(page)
        self._page = page
        self._composer = page.composer
        self.offers = Offers(page.chat.bridge, page.chat.choices, self)
        self.list = OfferList(self.offers, page.composer.edit)
        self.list.setParent(page)
        self.list.hide()
        self.slot: QVBoxLayout = column(space=0)
        self.form: ArgumentForm | None = None
        self.list.installEventFilter(self)
        page.installEventFilter(self)
        self.list.picked.connect(self._picked)
        self.list.filled.connect(self._place)
        self.offers.filled.connect(self._filled)
        self.offers.failed.connect(self._failed)
        page.composer.insert_button.clicked.connect(lambda _c=False: self._menu())
        page.chat.opened.connect(self.close_form)
        page.chat.sent.connect(self.close_form)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """The list stands right above the composer, as wide as it."""
        if event.type() in (QEvent.Type.Show, QEvent.Type.Resize, QEvent.Type.LayoutRequest):
            self._place()
        return False

    def close_form(self) -> None:
        """Take the form away."""
        if self.form is not None:
            form, self.form = self.form, None
            self.slot.removeWidget(form)
            form.hide()
            form.deleteLater()
            self._page.focus_composer()

    # ---- inside

    def _place(self) -> None:
        if not self.list.isVisible():
            return
        layout = self.list.layout()
        assert layout is not None
        layout.activate()
        corner = self._composer.mapTo(self._page, self._composer.rect().topLeft())
        room = max(theme.px(80), corner.y() - theme.px(Space.S))
        high = min(layout.totalHeightForWidth(self._composer.width()), room)
        self.list.setGeometry(corner.x(), corner.y() - high - theme.px(Space.XS), self._composer.width(), high)
        self.list.raise_()

    def _menu(self) -> None:
        menu = QMenu(self._composer.insert_button)
        for sign, mark in (("/", "prompt"), ("@", "document")):
            action = menu.addAction(icon(mark, "muted", 16), tr(f"composer.insert.{'slash' if sign == '/' else 'at'}"))
            action.triggered.connect(lambda _c=False, s=sign: self._begin(s))
        self.menu = menu
        corner = self._composer.insert_button.mapToGlobal(self._composer.insert_button.rect().topLeft())
        corner.setY(corner.y() - menu.sizeHint().height())
        menu.popup(corner)

    def _begin(self, sign: str) -> None:
        edit = self._composer.edit
        edit.setFocus()
        cursor = edit.textCursor()
        if sign == "/":
            cursor.movePosition(cursor.MoveOperation.Start)
        elif cursor.position() and not edit.toPlainText()[: cursor.position()][-1:].isspace():
            sign = " @"
        edit.setTextCursor(cursor)
        edit.insertPlainText(sign)

    def _picked(self, offer: Offer) -> None:
        self.close_form()
        if offer.kind == "skill":
            rest = self._composer.text.lstrip()
            self._page.put_text(f"/{offer.name} {rest}")
        elif offer.kind == "prompt" or offer.arguments:
            self.form = ArgumentForm(offer, self.offers)
            self.form.closed.connect(self.close_form)
            self.form.sent.connect(self._send)
            self.slot.addWidget(self.form)
            self.form.begin()
            form, tray = self.form, self._page.tray
            QTimer.singleShot(0, form, lambda: tray.ensureWidgetVisible(form.send, 0, theme.px(Space.M)))
        else:
            self.offers.fill(offer, {}, self._failed)

    def _send(self, offer: Offer, values: dict[str, str], failed: Callable[[HostError], None]) -> None:
        """The prompt speaks for the person; once it was taken the form goes."""
        self._page.chat.use_prompt(offer.server, offer.name, values, failed)
        self._page.view.to_end()

    def _filled(self, filled: Filled) -> None:
        self.close_form()
        if filled.text:
            before = self._composer.text
            joint = "\n\n" if before.strip() else ""
            self._composer.put(f"{before.rstrip()}{joint}{filled.text}", self._composer.files)
        self._composer.add_files(filled.files)
        self._page.focus_composer()

    def _failed(self, error: HostError) -> None:
        self._page.say(*error_text(error))
