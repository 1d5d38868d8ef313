"""The versions of a skill: shares as sliders, status, and how each did, side by side."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QComboBox, QSlider, QWidget

from desktop_host.core.skill_admin import SkillRow, SkillVersionRow
from desktop_host.core.skills import SkillStatus
from desktop_host.i18n import tr
from desktop_host.ui.theme import Space
from desktop_host.ui.viewmodels.shares import WHOLE, Shares, fitted, moved
from desktop_host.ui.viewmodels.skills import Skills
from desktop_host.ui.widgets.flow import Flow
from desktop_host.ui.widgets.page import Page
from desktop_host.ui.widgets.pieces import Card, button, clear, column, label, pill, row
from desktop_host.ui.widgets.skill_diff import DiffCard
from desktop_host.ui.widgets.skill_results import ResultsCard
from desktop_host.ui.widgets.skill_words import percent, version_text, when


class ShareRow(QWidget):
    """One version's slider and status."""

    slid = Signal(int)
    status_chosen = Signal()

    def __init__(self, version: SkillVersionRow, *, alone: bool) -> None:
        super().__init__()
        self.version = version
        name = version_text(version.version)
        self.title = label(name, "strong", wrap=False, selectable=True)
        self.title.setToolTip(f"{version.digest}\n{version.path}")
        self.slider = QSlider(Qt.Orientation.Horizontal)
        self.slider.setRange(0, WHOLE)
        self.slider.setPageStep(10)
        self.slider.setAccessibleName(tr("skills.share_of", version=name))
        self.slider.setEnabled(not alone and version.loaded)
        self.slider.setMinimumWidth(80)
        self.slider.valueChanged.connect(self.slid)
        self.share = label("", wrap=False)
        self.share.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        self.share.setMinimumWidth(self.share.fontMetrics().horizontalAdvance("100 %") + 8)
        self.status = QComboBox()
        self.status.setAccessibleName(tr("skills.status_of", version=name))
        for status in SkillStatus:
            self.status.addItem(tr(f"skill.status.{status.value}"), status)
        self.status.setCurrentIndex(list(SkillStatus).index(version.status))
        self.status.currentIndexChanged.connect(lambda _i: self.status_chosen.emit())
        marks = []
        if version.stale:
            marks.append(pill(tr("skills.version.stale"), "warning"))
        elif not version.loaded:
            marks.append(pill(tr("skill.state.broken"), "danger"))
        if version.changed:
            marks.append(label(when(version.changed), "caption", wrap=False))
        inner = column(self, space=Space.XS)
        inner.addLayout(row(self.title, *marks, None, self.status))
        inner.addLayout(row(self.slider, self.share, space=Space.M))

    def put(self, share: int) -> None:
        """Show a share without saying that a person slid."""
        blocked = self.slider.blockSignals(True)
        self.slider.setValue(share)
        self.slider.blockSignals(blocked)
        self.share.setText(f"{share} %")
        self.slider.setAccessibleDescription(f"{share} %")

    @property
    def chosen(self) -> SkillStatus:
        """The status that stands in the box."""
        return SkillStatus(self.status.currentData())


class SharesCard(Card):
    """How new chats are shared out. Nothing is kept before Save."""

    def __init__(self, skills: Skills, name: str) -> None:
        super().__init__(space=Space.M)
        self._skills, self._name = skills, name
        self._known: tuple[SkillVersionRow, ...] = ()
        self.rows: dict[str, ShareRow] = {}
        self.shares: Shares = {}
        self._list = column(space=Space.L)
        self.sum = label("", "caption")
        self.save = button(tr("skills.shares.save"), self._save, role="primary")
        self.undo = button(tr("skills.shares.undo"), self.reset, role="quiet")
        self.add(label(tr("skills.shares"), "heading"), label(tr("skills.shares.lead"), "muted"), self._list, self.sum)
        self.add(Flow(self.save, self.undo))

    def show_row(self, skill: SkillRow) -> None:
        """Show what is kept now; sliders that a person is moving stay."""
        if skill.versions == self._known:
            return
        moving = self.dirty and [v.version for v in skill.versions] == list(self.rows)
        self._known = skill.versions
        if moving and self.dirty:
            return
        clear(self._list)
        alone = len(skill.versions) == 1
        self.rows = {}
        for version in reversed(skill.versions):
            made = ShareRow(version, alone=alone)
            made.slid.connect(lambda to, v=version.version: self._slid(v, to))
            made.status_chosen.connect(self._count)
            self.rows[version.version] = made
            self._list.addWidget(made)
        self.rows = {v.version: self.rows[v.version] for v in skill.versions}
        self.reset()

    @property
    def dirty(self) -> bool:
        """Whether something is not kept yet."""
        kept = fitted({v.version: v.weight for v in self._known})
        return self.shares != kept or any(self.rows[v.version].chosen is not v.status for v in self._known)

    def reset(self) -> None:
        """Show what is kept; what was slid is forgotten."""
        self.shares = fitted({v.version: v.weight for v in self._known})
        for version in self._known:
            box = self.rows[version.version].status
            blocked = box.blockSignals(True)
            box.setCurrentIndex(list(SkillStatus).index(version.status))
            box.blockSignals(blocked)
        self._put()

    def _slid(self, version: str, to: int) -> None:
        self.shares = moved(self.shares, version, to)
        self._put()

    def _put(self) -> None:
        for version, made in self.rows.items():
            made.put(self.shares[version])
        self._count()

    def _count(self) -> None:
        alone = len(self.rows) == 1
        self.sum.setText(tr("skills.shares.alone") if alone else tr("skills.shares.sum", sum=sum(self.shares.values())))
        self.save.setEnabled(self.dirty)
        self.undo.setEnabled(self.dirty)

    def _save(self) -> None:
        weights = {v: s / WHOLE for v, s in self.shares.items()}
        statuses = {v: made.chosen for v, made in self.rows.items()}
        words = ", ".join(f"{version_text(v)} {percent(w)}" for v, w in weights.items() if w)
        self._skills.share_out(self._name, weights, statuses, tr("skills.shares.saved", shares=words))


class VersionsTab(Page):
    """Shares, results, differences."""

    def __init__(self, skills: Skills, name: str) -> None:
        super().__init__(inside=True)
        self.shares = SharesCard(skills, name)
        self._known: tuple[SkillVersionRow, ...] = ()
        self.results = ResultsCard(skills, name)
        self.results.acted.connect(self.shares.reset)
        self.diff = DiffCard(skills, name)
        self.add(self.shares, self.results, self.diff)

    def show_row(self, skill: SkillRow) -> None:
        """Show the versions as they are now."""
        self.shares.show_row(skill)
        if skill.versions != self._known:
            self._known = skill.versions
            self.results.show_row(skill)  # reads the journals of all chats that used the skill
        self.diff.show_row(skill)
        self.diff.setVisible(len(skill.versions) > 1)
