"""One check of the doctor: well in a line; ill with what was found, where, and what to do about it."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QBoxLayout, QSizePolicy, QWidget

from desktop_host.core.diagnosis import Finding
from desktop_host.i18n import current, finding_text, tr
from desktop_host.ui.theme import Space, set_icon, set_role, theme
from desktop_host.ui.widgets.flow import Flow
from desktop_host.ui.widgets.pieces import Card, button, clear, column, copy_button, icon_button, icon_label, label, row

WIDE = 520
"""Pixels (at 100 %) from which title and finding stand side by side."""


class CheckRow(Card):
    """See the module."""

    again = Signal(str)
    """Run this check again."""
    act = Signal(str, str)
    """`(check, act)`: do what the app can do about it."""

    def __init__(self, name: str) -> None:
        super().__init__("check", margin=Space.S)
        self.name = name
        self._ill = False
        self._mark = icon_label("clock", "muted", 18)
        kind, _, of = name.partition(":")
        self._title = label(tr(f"doctor.{kind}", name=of))
        self._what = label("", "muted", selectable=True)
        self._again = icon_button("restart", tr("diagnostics.again"), lambda: self.again.emit(self.name))
        self._words = QBoxLayout(QBoxLayout.Direction.TopToBottom)
        self._words.setSpacing(2)
        self._words.addWidget(self._title, 2)
        self._words.addWidget(self._what, 3)
        self._head = head = row(self._mark, space=Space.M)
        head.addLayout(self._words, 1)
        head.addWidget(self._again)
        self._more = column(space=Space.S)
        self.add(head, self._more)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Maximum)

    def show_finding(self, found: Finding | None, running: bool) -> None:
        """Show how it stands."""
        clear(self._more)
        self._again.setEnabled(not running)
        if found is None or running:
            set_icon(self._mark, "clock", "muted", 18)
            words = tr("diagnostics.running") if running else tr("diagnostics.not_run")
            if found is None:
                self._what.setText(words)
            self._name(words)
            return
        title, what, remedy = finding_text(found)
        self._ill = not found.ok
        self._fit()
        set_role(self, "check" if found.ok else "card-warning")
        set_role(self._title, "" if found.ok else "strong")
        set_role(self._what, "muted" if found.ok else "")
        set_icon(self._mark, "check" if found.ok else "warning", "success" if found.ok else "warning", 18)
        self._what.setText(what)
        self._what.setVisible(bool(what))
        self._name(f"{tr('diagnostics.well' if found.ok else 'diagnostics.ill')}. {what} {remedy}")
        if found.ok:
            return
        self._more.addWidget(label(remedy, selectable=True))
        if found.place and found.place not in what and len(found.place) < 200:
            self._more.addWidget(label(tr("diagnostics.place", place=found.place), "caption", selectable=True))
        buttons: list[QWidget] = []
        if found.act:
            kind = found.act.partition(":")[0]
            key = f"diagnostics.act.{found.check}" if kind == "mend" else f"diagnostics.act.{kind}"
            words = tr(key if current().has(key) else "diagnostics.act.mend")
            buttons.append(button(words, lambda: self.act.emit(self.name, found.act)))
        buttons.append(copy_button(lambda: f"{title}: {what}\n{remedy}"))
        self._more.addLayout(Flow(*buttons))

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    def _fit(self) -> None:
        """What is well takes one line where there is room for it."""
        wide = not self._ill and self.width() > theme.px(WIDE)
        way = QBoxLayout.Direction.LeftToRight if wide else QBoxLayout.Direction.TopToBottom
        if self._words.direction() != way:
            self._words.setDirection(way)
            self._words.setSpacing(Space.M if wide else 2)
        at = Qt.AlignmentFlag.AlignVCenter if wide else Qt.AlignmentFlag.AlignTop
        for part in (self._mark, self._again):
            self._head.setAlignment(part, at)
        self._more.setContentsMargins(theme.px(18) + Space.M, 0, 0, 0)

    def _name(self, words: str) -> None:
        self.setAccessibleName(f"{self._title.text()}: {words}")
