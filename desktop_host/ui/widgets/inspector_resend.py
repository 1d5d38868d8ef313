"""Sending a request of the wire again: the person's own act, with the parameters open to change."""

from __future__ import annotations

import json
import time
from collections.abc import Callable

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QPlainTextEdit, QWidget

from desktop_host.core.errors import HostError
from desktop_host.core.values import FrozenDict, freeze, thaw
from desktop_host.i18n import tr
from desktop_host.ui.bridge import Bridge
from desktop_host.ui.theme import Space, set_role, theme
from desktop_host.ui.viewmodels.inspector_pairs import Exchange
from desktop_host.ui.widgets.flow import Flow
from desktop_host.ui.widgets.page import told
from desktop_host.ui.widgets.pieces import button, column, label


class Resend(QWidget):
    """The form below a request; `open_button` stands elsewhere."""

    opened = Signal(bool)
    """The form is shown, or put away."""
    done = Signal(str, str, float)
    """`(server, method, when)`: it was sent and answered."""

    def __init__(self, bridge: Bridge, sent: Callable[[], object]) -> None:
        super().__init__()
        self._bridge, self._sent = bridge, sent
        self._one: Exchange | None = None
        self._when = 0.0
        self.open_button = button(tr("inspector.resend"), self._open, icon="send")
        self.params = QPlainTextEdit()
        set_role(self.params, "code")
        self.params.setTabChangesFocus(True)
        self.params.setAccessibleName(tr("inspector.params"))
        self.params.setMinimumHeight(theme.px(72))
        self.go = button(tr("inspector.send"), self._send, role="primary", icon="send")
        self.said = label("", selectable=True)
        inner = column(self, space=Space.XS)
        inner.addWidget(label(tr("inspector.resend.lead"), "caption"))
        inner.addWidget(self.params, 1)
        inner.addLayout(Flow(self.go, button(tr("action.cancel"), self.close_form)))
        inner.addWidget(self.said)
        self.hide()

    def show_for(self, one: Exchange) -> None:
        """Another exchange is chosen."""
        self._one = one
        can = one.can_resend
        self.open_button.setVisible(one.outward and "id" in one.sent)
        self.open_button.setEnabled(can)
        self.open_button.setToolTip("" if can else tr("inspector.resend.cannot"))
        self.open_button.setAccessibleDescription(self.open_button.toolTip())

    def close_form(self) -> None:
        """Put the form away."""
        self.said.clear()
        self.hide()
        self.opened.emit(False)

    def _open(self) -> None:
        if self._one is not None:
            params = thaw(self._one.sent.get("params") or FrozenDict())
            if isinstance(params, dict):
                params.pop("_meta", None)
            self.params.setPlainText(json.dumps(params, indent=2, ensure_ascii=False))
            self.opened.emit(True)
            self.show()
            self.params.setFocus()

    def _send(self) -> None:
        one = self._one
        if one is None:
            return
        try:
            params = json.loads(self.params.toPlainText() or "{}")
            if not isinstance(params, dict):
                raise TypeError(tr("inspector.object_wanted"))
        except (ValueError, TypeError) as cause:
            self._say(tr("tool.bad_json", reason=str(cause)), "danger")
            return
        self.go.setEnabled(False)
        self._say(tr("tool.running"), "muted")
        self._when = time.time()
        self._bridge.then(
            lambda host: host.resend(one.server, one.method, freeze(params)), self._done, self._fail, self
        )

    def _done(self, _result: object) -> None:
        self.go.setEnabled(True)
        self._say(tr("inspector.sent"), "success")
        if self._one is not None:
            self.done.emit(self._one.server, self._one.method, self._when)
        self._sent()

    def _fail(self, error: HostError) -> None:
        self.go.setEnabled(True)
        self._say(" ".join(told(error)), "danger")
        self._sent()

    def _say(self, text: str, role: str) -> None:
        self.said.setText(text)
        set_role(self.said, role)
