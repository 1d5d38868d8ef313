"""The gateway's tab: other apps on this computer use this profile's servers, as far as the person lets them."""

from __future__ import annotations

import datetime
import json

from PySide6.QtGui import QHideEvent, QShowEvent
from PySide6.QtWidgets import QComboBox, QHBoxLayout

from desktop_host.i18n import tr, trn
from desktop_host.ui.theme import Space, set_role, theme
from desktop_host.ui.viewmodels.lifetime import while_alive
from desktop_host.ui.viewmodels.sharing import WAYS, Offered, SharingModel
from desktop_host.ui.widgets.confirm import confirm
from desktop_host.ui.widgets.flow import Flow
from desktop_host.ui.widgets.forms import NumberBox
from desktop_host.ui.widgets.page import ErrorCard, Page
from desktop_host.ui.widgets.pieces import (
    Card,
    CodeBox,
    Elided,
    button,
    clear,
    column,
    copy_button,
    label,
    pill,
    row,
    rule,
    set_pill,
)
from desktop_host.ui.widgets.switch import Switch

SHOWN = 30
"""Requests that are listed."""


class GatewayTab(Page):
    """See the module. It looks at the gateway while it is shown."""

    def __init__(self, model: SharingModel) -> None:
        super().__init__(inside=True)
        self._model = model
        self.switch = Switch(tr("gateway.switch"))
        self.switch.clicked.connect(self._turn)
        self.state = pill("")
        self.port = NumberBox(1024, 65535)
        self.port.setGroupSeparatorShown(False)
        self.port.setKeyboardTracking(False)
        self.port.lineEdit().setAccessibleName(tr("settings.gateway.port"))
        self.port.valueChanged.connect(model.set_port)
        self.address = CodeBox("", tr("gateway.address"), lines=1)
        self.copy_address = copy_button(self.address.toPlainText, tr("gateway.copy_address"))
        set_role(self.copy_address, "")
        self._fault = column(space=0)
        main = Card(space=Space.M)
        main.add(
            row(label(tr("gateway.switch"), "strong"), self.state, self.switch), label(tr("gateway.lead"), "muted"),
            self._fault, row(label(tr("settings.gateway.port"), wrap=False), self.port, None), self.address,
            Flow(self.copy_address),
        )  # fmt: skip
        self.key = _Key(model)
        self._servers = Card(space=Space.M)
        self.boxes: dict[str, QComboBox] = {}
        self._guests, self._log = Card(space=Space.S), Card(space=Space.S)
        self.add(main, self.key)
        for heading, help_key, card in (
            ("gateway.offered", "gateway.offered.help", self._servers), ("gateway.guests", "", self._guests),
            ("gateway.log", "gateway.log.help", self._log),
        ):  # fmt: skip
            self.column.addSpacing(Space.S)
            self.add(label(tr(heading), "heading"), *((label(tr(help_key), "muted"),) if help_key else ()), card)
        self._drawn: tuple[object, ...] = ()
        model.changed.connect(self._show)
        self._show()

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._model.watch(True)

    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        self._model.watch(False)
        self.key.forget()

    # ---- inside
    def _turn(self, on: bool) -> None:
        if on and not self._model.state.has_key:
            self.key.make(lambda: self._model.turn(True))
        else:
            self._model.turn(on)

    def _show(self) -> None:
        model, state = self._model, self._model.state
        self.switch.put(state.on or (model.busy and self.switch.isChecked()))
        self.switch.setEnabled(model.known and not model.busy)
        word = "busy" if model.busy else "on" if state.on else "off"
        set_pill(self.state, tr(f"gateway.state.{word}"), "success" if word == "on" else "")
        blocked = self.port.blockSignals(True)
        if not self.port.hasFocus():
            self.port.setValue(model.port)
        self.port.blockSignals(blocked)
        self.address.put(state.url)
        for part in (self.address, self.copy_address):
            part.setVisible(bool(state.url))
        self.key.show_state(state.has_key, state.url or f"http://127.0.0.1:{model.port}/mcp")
        drawn = (state.fault, model.offered, state.guests, state.heard)
        if drawn != self._drawn:
            before = self._drawn or (None, None, None, None)
            self._drawn = drawn
            if drawn[0] is not before[0]:
                clear(self._fault)
                if state.fault is not None:
                    self._fault.addWidget(ErrorCard(state.fault, lambda: self._model.turn(True)))
            if drawn[1] != before[1]:
                self._show_servers(model.offered)
            self._show_guests()

    def _show_servers(self, offered: tuple[Offered, ...]) -> None:
        if list(self.boxes) != [one.alias for one in offered]:
            clear(self._servers.column)
            self.boxes = {}
            for one in offered:
                if self.boxes:
                    self._servers.add(rule())
                box = self.boxes[one.alias] = QComboBox()
                box.setAccessibleName(tr("gateway.offered.of", server=one.title))
                for way in WAYS:
                    box.addItem(tr(f"gateway.way.{way}"), way)
                box.setMinimumWidth(theme.px(150))
                box.activated.connect(lambda _at, a=one.alias, b=box: self._model.offer(a, b.currentData()))
                self._servers.add(_wide(row(Elided(one.title), box), 0))
            if not offered:
                self._servers.add(label(tr("gateway.offered.none"), "muted"))
        for one in offered:
            box = self.boxes[one.alias]
            box.setCurrentIndex(box.findData(one.way))

    def _show_guests(self) -> None:
        state = self._model.state
        clear(self._guests.column)
        for guest in state.guests:
            words = trn("gateway.guest", guest.requests, last=_clock(guest.last))
            line = row(Elided(guest.client or tr("gateway.unnamed")), label(words, "muted", wrap=False))
            self._guests.add(_wide(line, 0))
        if not state.guests:
            self._guests.add(label(tr("gateway.guests.none"), "muted"))
        clear(self._log.column)
        for one in state.heard[:SHOWN]:
            failed = () if one.ok else (pill(tr("gateway.failed"), "danger"),)
            what = Elided(one.what or one.method)
            what.setToolTip(f"{one.method} {one.what}".strip())
            took = label(f"{one.ms:.0f} ms", "caption", wrap=False)
            self._log.add(_wide(row(label(_clock(one.at), "caption", wrap=False), what, *failed, took), 1))
        if not state.heard:
            self._log.add(label(tr("gateway.log.none"), "muted"))


def _wide(line: QHBoxLayout, at: int) -> QHBoxLayout:
    """A row in which one part takes all the room that is left."""
    line.setStretch(at, 1)
    return line


def _clock(at: float) -> str:
    return datetime.datetime.fromtimestamp(at).strftime("%H:%M:%S")


class _Key(Card):
    """The key: made here, shown once, copied, never shown again."""

    def __init__(self, model: SharingModel) -> None:
        super().__init__(space=Space.M)
        self._model = model
        self._url = ""
        self.state = pill("")
        self.made = CodeBox("", tr("gateway.key"), lines=2)
        self.snippet = CodeBox("", tr("gateway.snippet"), lines=12)
        self.copy_key = copy_button(self.made.toPlainText, tr("gateway.key.copy"))
        self.copy_snippet = copy_button(self.snippet.toPlainText, tr("gateway.snippet.copy"))
        self.new = button(tr("gateway.key.make"), self._wanted, icon="key")
        self.once = label(tr("gateway.key.once"), "muted")
        self.add(
            row(label(tr("gateway.key"), "strong", wrap=False), self.state, None),
            label(tr("gateway.key.help"), "muted"), self.once, self.made, self.snippet,
            Flow(self.new, self.copy_key, self.copy_snippet),
        )  # fmt: skip
        self._has = False
        self.forget()

    def show_state(self, has: bool, url: str) -> None:
        """Whether there is a key, and where it is good for."""
        self._has, self._url = has, url
        set_pill(self.state, tr("key.set" if has else "key.not_set"), "success" if has else "")
        self.new.setText(tr("gateway.key.again" if has else "gateway.key.make"))
        if self.made.toPlainText():
            self._fill(self.made.toPlainText())

    def make(self, then: object = None) -> None:
        """Make a key and show it."""

        def done(key: str) -> None:
            self._fill(key)
            if callable(then):
                then()

        self._model.new_key(while_alive(self, done))

    def forget(self) -> None:
        """Show the key no longer."""
        self.made.put("")
        self.snippet.put("")
        for part in (self.once, self.made, self.snippet, self.copy_key, self.copy_snippet):
            part.hide()

    # ---- inside
    def _wanted(self) -> None:
        if self._has:
            confirm(self, tr("gateway.key.again"), tr("gateway.key.replaces"), tr("gateway.key.again"), self.make)
        else:
            self.make()

    def _fill(self, key: str) -> None:
        self.made.put(key)
        entry = {"url": self._url, "headers": {"Authorization": f"Bearer {key}"}}
        self.snippet.put(json.dumps({"mcpServers": {"desktop-host": entry}}, indent=2))
        for part in (self.once, self.made, self.snippet, self.copy_key, self.copy_snippet):
            part.show()
