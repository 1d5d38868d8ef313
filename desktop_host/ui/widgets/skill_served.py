"""Skills that servers serve: nothing of one is used before the person looked into it and approved just these files."""

from __future__ import annotations

from functools import partial

from PySide6.QtWidgets import QWidget

from desktop_host.core.errors import HostError
from desktop_host.core.remote_skills import RemoteSkill
from desktop_host.i18n import tr, trn
from desktop_host.ui.theme import Space, theme
from desktop_host.ui.viewmodels.lifetime import while_alive
from desktop_host.ui.viewmodels.served_skills import ServedSkills
from desktop_host.ui.widgets.flow import Flow
from desktop_host.ui.widgets.page import ErrorCard
from desktop_host.ui.widgets.pieces import Card, button, clear, column, label, pill, row
from desktop_host.ui.widgets.skill_files import viewer

MAIN = "SKILL.md"
MOST_FILES = 60
"""Files that can be looked at here; a skill may list thousands."""


class ServedCard(Card):
    """One skill of one server."""

    def __init__(self, model: ServedSkills, skill: RemoteSkill) -> None:
        super().__init__(margin=Space.M, space=Space.S)
        self._model, self.skill = model, skill
        state = "approved" if skill.approved else "changed" if skill.changed else "new"
        tone = {"approved": "success", "changed": "warning", "new": ""}[state]
        words = tr(f"skills.served.{state}")
        self.look = button(tr("skills.served.look"), self._toggle, role="quiet", icon="eye")
        self.look.setCheckable(True)
        self.look.setAccessibleName(tr("skills.served.look_of", name=skill.id))
        self.use = button(tr("skills.served.use"), lambda: model.approve(skill), role="primary", icon="check")
        self.use.setAccessibleName(tr("skills.served.use_of", name=skill.id))
        self.leave = button(tr("skills.served.leave"), lambda: model.revoke(skill), role="quiet", icon="close")
        self.leave.setAccessibleName(tr("skills.served.leave_of", name=skill.id))
        self.add(row(label(skill.name, "strong", wrap=False), None, self.look, self.leave))
        count = trn("skills.served.files", len(skill.files))
        self.add(
            Flow(pill(words, tone), pill(tr("skills.served.from", server=skill.server)), pill(count), space=Space.XS)
        )
        if skill.description:
            self.add(label(skill.description, "muted"))
        if skill.changed:
            self.add(label(tr("skills.served.changed.text"), "warning"))
        self._inside = QWidget()
        inner = column(self._inside, space=Space.S)
        files = skill.files[:MOST_FILES]
        self.files = {path: button(path, partial(self.show_file, path), role="filter") for path in files}
        for one in self.files.values():
            one.setCheckable(True)
        inner.addLayout(Flow(*self.files.values(), space=Space.XS))
        if len(skill.files) > MOST_FILES:
            inner.addWidget(label(trn("skills.served.more", len(skill.files) - MOST_FILES), "caption"))
        self._view = column(space=Space.S)
        inner.addLayout(self._view)
        inner.addLayout(Flow(self.use))
        self.use.setHidden(skill.approved)
        self.leave.setVisible(skill.approved or skill.changed)
        self.add(self._inside)
        self._inside.hide()
        self._asked = ""
        self.setAccessibleName(f"{skill.id}, {words}")

    def _toggle(self) -> None:
        self._inside.setVisible(self.look.isChecked())
        if self.look.isChecked() and not self._asked:
            self.show_file(MAIN)

    def show_file(self, path: str) -> None:
        """Fetch a file and show it."""
        self._asked = path
        for name, one in self.files.items():
            one.setChecked(name == path)
        clear(self._view)
        self._view.addWidget(label(tr("skills.served.fetching", file=path), "muted"))
        self._model.read(
            self.skill.id, path,
            while_alive(self, lambda data: self._show(path, data)),
            while_alive(self, lambda error: self._fail(path, error)), self,
        )  # fmt: skip

    def _show(self, path: str, data: bytes) -> None:
        if path == self._asked:
            clear(self._view)
            self._view.addWidget(viewer(path, data))

    def _fail(self, path: str, error: HostError) -> None:
        if path != self._asked:
            return
        clear(self._view)
        self._view.addWidget(ErrorCard(error, partial(self.show_file, path)))
        if error.code == "bad_skill":  # It serves another text than it announced: there is nothing to approve.
            self.use.hide()


class ServedList(QWidget):
    """The section below the library; hidden while no server serves skills."""

    def __init__(self, model: ServedSkills) -> None:
        super().__init__()
        self._model = model
        self.cards: dict[str, ServedCard] = {}
        self._list = column(space=Space.M)
        self._troubles = column(space=Space.XS)
        inner = column(self, space=Space.M)
        inner.setContentsMargins(0, theme.px(Space.L), 0, 0)
        inner.addWidget(label(tr("skills.served"), "heading"))
        inner.addWidget(label(tr("skills.served.lead"), "muted"))
        inner.addLayout(self._troubles)
        inner.addLayout(self._list)
        model.loaded.connect(self.fill)
        self.fill()

    def fill(self) -> None:
        """Show what is listed now; a card whose skill is the same stays as it is, with what is open in it."""
        rows = {skill.id: skill for skill in self._model.rows}
        for id_ in [i for i, card in self.cards.items() if rows.get(i) != card.skill]:
            old = self.cards.pop(id_)
            self._list.removeWidget(old)
            old.hide()
            old.deleteLater()
        for at, (id_, skill) in enumerate(rows.items()):
            if id_ not in self.cards:
                self.cards[id_] = ServedCard(self._model, skill)
                self._list.insertWidget(at, self.cards[id_])
        clear(self._troubles)
        for server, told in self._model.problems.items():
            for problem in told[:5]:
                text = tr("skills.served.problem", server=server, problem=problem[:300])
                self._troubles.addWidget(label(text, "warning", selectable=True))
        self.setVisible(bool(rows or self._model.problems))
