"""A profile that could not be opened: why, and the one step that may open it."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import Qt, QTimer
from PySide6.QtWidgets import QPushButton, QWidget

from desktop_host.core.errors import HostError
from desktop_host.i18n import tr
from desktop_host.ui.theme import Space, theme
from desktop_host.ui.widgets.key_row import secret_field, take
from desktop_host.ui.widgets.page import Empty, told
from desktop_host.ui.widgets.pieces import button, column, icon_label, label, row

_PASSPHRASE = ("no_passphrase", "wrong_passphrase")


def not_open(error: HostError, retry: Callable[..., None], leave: Callable[[], object]) -> QWidget:
    """What stands in the window instead of the profile. `retry` takes the passphrase where one is wanted."""
    what, remedy = told(error)
    quit_text = tr("command.app.quit")
    if error.code == "vault_locked" and error.params.get("reason") in _PASSPHRASE:
        return Unlock(what if error.params["reason"] == "wrong_passphrase" else "", retry, (quit_text, leave))
    return Empty(
        "error", tr("window.failed"), f"{what}\n{remedy}".strip(), (tr("action.retry"), retry), (quit_text, leave)
    )  # fmt: skip


class Unlock(QWidget):
    """Asks for the passphrase of the encrypted file that a shared record's password lies in."""

    def __init__(self, wrong: str, retry: Callable[[str], None], leave: tuple[str, Callable[[], object]]) -> None:
        super().__init__()
        self._retry = retry
        self.open: QPushButton = button(tr("window.unlock"), self._unlock, role="primary")
        self.open.setEnabled(False)
        self.field = secret_field(tr("window.passphrase"))
        self.field.setPlaceholderText(tr("window.passphrase"))
        self.field.returnPressed.connect(self._unlock)
        self.field.textChanged.connect(lambda text: self.open.setEnabled(bool(text)))
        box = QWidget()
        box.setMaximumWidth(theme.px(360))
        middle = column(box, space=Space.M)
        for words, role in ((tr("window.locked"), "heading"), (tr("window.locked.why"), "muted"), (wrong, "danger")):
            if words:
                told_so = label(words, role)
                told_so.setAlignment(Qt.AlignmentFlag.AlignHCenter)
                middle.addWidget(told_so)
        middle.addWidget(self.field)
        middle.addLayout(row(None, self.open, button(*leave), None))
        inner = column(self, space=Space.S, margin=Space.XL)
        inner.addStretch(1)
        inner.addWidget(icon_label("key", "muted", 36), 0, Qt.AlignmentFlag.AlignHCenter)
        line = row(space=0)
        line.addStretch(1)
        line.addWidget(box, 1000)
        line.addStretch(1)
        inner.addLayout(line)
        inner.addStretch(2)
        QTimer.singleShot(0, self, self.field.setFocus)

    def _unlock(self) -> None:
        words = take(self.field)
        if words:
            self._retry(words)
