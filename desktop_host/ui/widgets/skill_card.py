"""One skill of the list: what it is, where it comes from, how it fares."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QMouseEvent
from PySide6.QtWidgets import QLabel, QMenu

from desktop_host.core.skill_admin import SkillRow
from desktop_host.i18n import tr, trn
from desktop_host.ui.theme import Space, icon
from desktop_host.ui.viewmodels.skills import Skills
from desktop_host.ui.widgets.flow import Flow
from desktop_host.ui.widgets.pieces import Card, button, icon_button, label, pill, row, rule
from desktop_host.ui.widgets.skill_health import SHOWN, Health
from desktop_host.ui.widgets.skill_words import STATUS_TONES, TONES, percent, source_text, state_text, version_text
from desktop_host.ui.widgets.switch import Switch

LONGEST = 240
"""Characters of a description on a card; the whole stands on the skill's page."""


class SkillCard(Card):
    """The whole card opens the skill's page; a shadowed skill has none of its own."""

    opened = Signal(str, str)
    """`(id, tab)`."""
    wanted = Signal(str, str)
    """`(act, id)`: `export` or `remove`."""

    def __init__(self, skills: Skills, skill: SkillRow) -> None:
        super().__init__(margin=Space.M, space=Space.S)
        self.skill = skill
        self._skills = skills
        name = skill.name
        self._usable = not skill.shadowed_by
        self.title = button(skill.label or name, self._open, role="name")
        self.title.setAccessibleDescription(tr("skills.open", name=name))
        self.title.setEnabled(self._usable)
        self.switch = Switch(tr("skills.enabled_of", name=name), skill.enabled)
        self.switch.clicked.connect(lambda on: skills.enable(name, on))
        if not (self._usable and skill.loaded):
            self.switch.hide()
        self.more = icon_button("more", tr("action.more_of", name=name), self._menu)
        if not self._usable:
            self.more.hide()
        self.add(row(self.title, None, self.switch, self.more, space=Space.XS))
        self.add(Flow(*self._pills(), space=Space.XS))
        if skill.description:
            text = skill.description
            shown = label(text if len(text) <= LONGEST else text[: LONGEST - 1].rstrip() + "…", "muted")
            self.add(shown)
        self.health = Health(skill, most=SHOWN, more=lambda: self.opened.emit(name, "overview"))
        if self.health.lines:
            self.add(rule(), self.health)
        if self._usable:
            self.setCursor(Qt.CursorShape.PointingHandCursor)
        state = state_text(skill)
        self.setAccessibleName(f"{name}, {version_text(skill.version)}, {state}")

    def _pills(self) -> list[QLabel]:
        skill = self.skill
        parts = [pill(state_text(skill), TONES[skill.state])]
        if skill.version:
            parts.append(pill(skill.version))
        parts.append(pill(source_text(skill.source)))
        live = [v for v in skill.versions if v.weight > 0]
        if len(skill.versions) > 1:
            parts.append(pill(trn("skills.versions", len(skill.versions))))
        parts += [pill(f"{v.version} {percent(v.weight)}", STATUS_TONES[v.status]) for v in live if len(live) > 1]
        for part in parts[1:]:
            part.setToolTip(skill.path)
        return parts

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        if event.button() is Qt.MouseButton.LeftButton and self.rect().contains(event.position().toPoint()):
            self._open()

    def _open(self) -> None:
        if self._usable:
            self.opened.emit(self.skill.name, "")

    def _menu(self) -> None:
        menu = QMenu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        name = self.skill.name
        menu.addAction(icon("eye"), tr("action.open"), self._open)
        menu.addAction(icon("download"), tr("skills.export"), lambda: self.wanted.emit("export", name))
        menu.addSeparator()
        gone = menu.addAction(icon("trash", "danger"), tr("skills.remove"), lambda: self.wanted.emit("remove", name))
        gone.setEnabled(self.skill.removable)
        if not self.skill.removable:
            gone.setText(tr("skills.not_removable"))
        menu.popup(self.more.mapToGlobal(self.more.rect().bottomLeft()))
