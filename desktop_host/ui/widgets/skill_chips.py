"""The skills a message woke, as chips that say why, and those it could have used."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QPushButton, QWidget

from desktop_host.core.skills import SkillPin
from desktop_host.i18n import tr
from desktop_host.ui.theme import Space, set_icon, theme
from desktop_host.ui.widgets.flow import Flow
from desktop_host.ui.widgets.pieces import button, clear, column, label
from desktop_host.ui.widgets.skill_words import why_text


def chip(text: str, tip: str, name: str, *, icon: str = "skills") -> QPushButton:
    """A small rounded button; `name` is what a screen reader says."""
    made = button(text, role="filter")
    set_icon(made, icon, "muted", 14)
    made.setToolTip(tip)
    made.setAccessibleName(name)
    return made


class SkillChips(QWidget):
    """See the module. A click on a chip shows why the skill woke."""

    acted = Signal(str)
    """`skill:<id>`: show its page; `use:<id>`: send again with it."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._shown: tuple[tuple[SkillPin, ...], tuple[str, ...]] = ((), ())
        self._column = column(self, space=theme.px(Space.XS))
        self.chips: dict[str, QPushButton] = {}
        self.why = label("", "caption", selectable=True)
        self.open = button("", lambda: self.acted.emit(f"skill:{self._open}"), role="link")
        self._open = ""
        self.hide()

    def show_skills(self, pins: tuple[SkillPin, ...], offered: tuple[str, ...]) -> None:
        """Show what woke, and what could have."""
        if (pins, offered) == self._shown:
            return
        self._shown = (pins, offered)
        clear(self._column)
        self.chips = {pin.name: self._pin(pin) for pin in pins}
        if self.chips:
            self._column.addLayout(Flow(*self.chips.values(), space=theme.px(Space.XS)))
        self.why = label("", "caption", selectable=True)
        self.open = button(tr("skills.chat.open"), lambda: self.acted.emit(f"skill:{self._open}"), role="link")
        self.why.hide()
        self.open.hide()
        self._column.addWidget(self.why)
        self._column.addLayout(Flow(self.open))
        if offered:
            asked = label(tr("skills.chat.offered"), "caption", wrap=False)
            self.chips |= {name: self._offer(name) for name in offered}
            self._column.addLayout(Flow(asked, *(self.chips[n] for n in offered), space=theme.px(Space.XS)))
        self.setVisible(bool(self.chips))

    # ---- inside

    def _pin(self, pin: SkillPin) -> QPushButton:
        why = why_text(pin.reason) or tr("skills.test.nothing")
        text = f"{pin.name} {pin.version}".strip()
        made = chip(text, why, f"{tr('skills.chat.chip', name=pin.name, version=pin.version)}: {why}")
        made.setCheckable(True)
        made.clicked.connect(lambda on: self._unfold(pin.name, why, on))
        return made

    def _offer(self, name: str) -> QPushButton:
        tip = tr("skills.chat.again", name=name)
        made = chip(name, tip, tip, icon="plus")
        made.clicked.connect(lambda _c=False: self.acted.emit(f"use:{name}"))
        return made

    def _unfold(self, name: str, why: str, on: bool) -> None:
        for other, made in self.chips.items():
            if made.isCheckable() and other != name:
                made.setChecked(False)
        self._open = name
        self.why.setText(tr("skills.why", reason=why))
        self.why.setVisible(on)
        self.open.setVisible(on)
