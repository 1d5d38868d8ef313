"""The arguments of a prompt or of a resource template, asked above the composer; servers may complete them."""

from __future__ import annotations

from PySide6.QtCore import QStringListModel, Qt, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QCompleter, QFrame, QLineEdit

from desktop_host.core.errors import HostError
from desktop_host.i18n import tr
from desktop_host.ui.theme import Space, set_icon, set_role, theme
from desktop_host.ui.viewmodels.composer import Offer, Offers
from desktop_host.ui.viewmodels.lifetime import while_alive
from desktop_host.ui.widgets.page import told
from desktop_host.ui.widgets.pieces import button, column, icon_button, icon_label, label, row


class Field(QLineEdit):
    """One argument; what the server proposes opens below it while it is typed."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name
        self._model = QStringListModel(self)
        self.proposals = QCompleter(self._model, self)
        self.proposals.setCaseSensitivity(Qt.CaseSensitivity.CaseInsensitive)
        self.proposals.setFilterMode(Qt.MatchFlag.MatchContains)
        self.setCompleter(self.proposals)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Enter on an open proposal takes it and does no more; another one goes on or sends."""
        popup = self.proposals.popup()
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter) and popup is not None and popup.isVisible():
            event.ignore()
        else:
            super().keyPressEvent(event)

    def propose(self, values: tuple[str, ...]) -> None:
        """Show what the server proposes."""
        if values == tuple(self._model.stringList()):
            return
        self._model.setStringList(list(values))
        if values and self.hasFocus() and values != (self.text(),):
            self.proposals.complete()


class ArgumentForm(QFrame):
    """See the module. Ends by itself when the prompt is filled; Escape closes it."""

    closed = Signal()
    sent = Signal(object, object, object)
    """`(offer, values, failed)`: the prompt is to be sent as it is."""

    def __init__(self, offer: Offer, offers: Offers) -> None:
        super().__init__()
        self.offer = offer
        self._offers = offers
        set_role(self, "toast")
        outer = column(self, space=theme.px(Space.S), margin=theme.px(Space.M))
        title = label(offer.title, "strong")
        head = row(icon_label("prompt" if offer.kind == "prompt" else "folder", "muted", 16), space=theme.px(Space.S))
        head.addWidget(title, 1)
        head.addWidget(icon_button("close", tr("action.cancel"), self.closed.emit))
        outer.addLayout(head)
        if offer.detail:
            outer.addWidget(label(offer.detail, "caption"))
        self.setAccessibleName(offer.title)
        self.fields: dict[str, Field] = {}
        for argument in offer.arguments:
            name = argument.title or argument.name
            words = name if argument.required else tr("composer.argument.optional", name=name)
            outer.addWidget(label(words))
            field = Field(argument.name)
            field.setAccessibleName(words)
            if argument.description:
                field.setPlaceholderText(argument.description)
                field.setAccessibleDescription(argument.description)
                field.setToolTip(argument.description)
            field.textEdited.connect(lambda text, n=argument.name: self._typed(n, text))
            field.returnPressed.connect(self._next)
            self.fields[argument.name] = field
            outer.addWidget(field)
        self._problem = label("", "danger")
        self._problem.hide()
        outer.addWidget(self._problem)
        self.send = button(tr("chat.send"), self.submit, role="primary", icon="send")
        self.use = button(tr("composer.argument.use"), self.put_in, role="quiet")
        if offer.kind != "prompt":
            self.send.setText(tr("composer.argument.attach"))
            set_icon(self.send, "attach", "on_accent")
            self.use.hide()
        outer.addLayout(row(None, self.use, self.send))
        offers.completed.connect(self._completed)

    @property
    def values(self) -> dict[str, str]:
        """What is filled in."""
        return {name: field.text() for name, field in self.fields.items()}

    @property
    def problem(self) -> str:
        """What is wrong, as it is shown."""
        return self._problem.text()

    def begin(self) -> None:
        """Put the caret into the first field, and ask what it could be."""
        for name, field in self.fields.items():
            field.setFocus()
            self._typed(name, "")
            return
        self.send.setFocus()

    def submit(self) -> None:
        """Send the prompt or attach the resource, or say which argument lacks."""
        if not self._complete():
            return
        if self.offer.kind == "prompt":
            self.sent.emit(self.offer, self.values, while_alive(self, self._failed))
        else:
            self._offers.fill(self.offer, self.values, while_alive(self, self._failed))

    def put_in(self) -> None:
        """Put what the prompt gives into the message, to be changed before it is sent."""
        if self._complete():
            self._offers.fill(self.offer, self.values, while_alive(self, self._failed))

    def _complete(self) -> bool:
        for argument in self.offer.arguments:
            if argument.required and not self.fields[argument.name].text().strip():
                self._say(tr("composer.argument.missing", name=argument.title or argument.name))
                self.fields[argument.name].setFocus()
                return False
        self._problem.hide()
        self._enable(False)
        return True

    def _enable(self, on: bool) -> None:
        self.use.setEnabled(on)
        self.send.setEnabled(on)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Escape closes."""
        if event.key() == Qt.Key.Key_Escape:
            self.closed.emit()
            return
        super().keyPressEvent(event)

    def _next(self) -> None:
        order = list(self.fields.values())
        at = next((i for i, f in enumerate(order) if f.hasFocus()), len(order) - 1)
        if at + 1 < len(order):
            order[at + 1].setFocus()
            self._typed(order[at + 1].name, order[at + 1].text())
        else:
            self.submit()

    def _typed(self, name: str, text: str) -> None:
        others = {k: v for k, v in self.values.items() if k != name}
        self._offers.complete(self.offer, name, text, others)

    def _completed(self, name: str, values: tuple[str, ...]) -> None:
        if name in self.fields:
            self.fields[name].propose(values)

    def _failed(self, error: HostError) -> None:
        self._enable(True)
        self._say(" ".join(told(error)))

    def _say(self, words: str) -> None:
        self._problem.setText(words)
        self._problem.show()
