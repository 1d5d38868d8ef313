"""Which profile a conversation goes to, and whether it stays here as well."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QComboBox, QDialog, QWidget

from desktop_host.i18n import tr
from desktop_host.ui.theme import Space, set_role, theme
from desktop_host.ui.widgets.flow import Flow
from desktop_host.ui.widgets.pieces import button, column, label


class MoveDialog(QDialog):
    """Asks; what was chosen is told by `chosen`."""

    chosen = Signal(str, bool)
    """`(profile, keep)`."""
    make_profile = Signal()
    """There is no other profile yet, and the person wants one."""

    def __init__(self, parent: QWidget, title: str, profiles: Sequence[str]) -> None:
        super().__init__(parent)
        self.setWindowTitle(tr("profiles.move.title"))
        set_role(self, "page")
        layout = column(self, space=Space.M, margin=Space.L)
        layout.addWidget(label(tr("profiles.move.title"), "heading"))
        layout.addWidget(label(tr("profiles.move.text" if profiles else "profiles.move.none", title=title), "muted"))
        self.target = QComboBox()
        self.target.setAccessibleName(tr("profiles.move.target"))
        for name in profiles:
            self.target.addItem(name)
        self.cancel = button(tr("action.cancel"), self.reject)
        if profiles:
            layout.addWidget(self.target)
            self.copy = button(tr("profiles.move.copy"), lambda: self._choose(True))
            self.move_ = button(tr("profiles.move.move"), lambda: self._choose(False), role="primary")
            layout.addLayout(Flow(self.move_, self.copy, self.cancel))
            self.target.setFocus()
        else:
            self.make = button(tr("profiles.create"), self._make, role="primary")
            layout.addLayout(Flow(self.make, self.cancel))
        self.setMinimumWidth(theme.px(380))

    def _choose(self, keep: bool) -> None:
        self.accept()
        self.chosen.emit(self.target.currentText(), keep)

    def _make(self) -> None:
        self.accept()
        self.make_profile.emit()
