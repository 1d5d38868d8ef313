"""What differs between two versions of a skill."""

from __future__ import annotations

from PySide6.QtWidgets import QComboBox, QWidget

from desktop_host.core.errors import HostError
from desktop_host.core.skill_admin import FileChange, SkillRow
from desktop_host.i18n import tr, trn
from desktop_host.ui.theme import Space
from desktop_host.ui.viewmodels.lifetime import while_alive
from desktop_host.ui.viewmodels.skills import Skills
from desktop_host.ui.widgets.flow import Flow
from desktop_host.ui.widgets.page import ErrorCard
from desktop_host.ui.widgets.pieces import Card, clear, column, icon_button, label, pill, row
from desktop_host.ui.widgets.skill_code import Listing
from desktop_host.ui.widgets.skill_words import version_text

CHANGE_TONES = {"added": "success", "removed": "danger", "changed": "info"}
LINES = 24
"""Lines of a file's difference before it scrolls by itself."""


class FileDiff(QWidget):
    """One file: what became of it, and its unified difference where it is text."""

    def __init__(self, change: FileChange) -> None:
        super().__init__()
        inner = column(self, space=Space.XS)
        tone = CHANGE_TONES.get(change.change, "")
        words = tr(f"skills.change.{change.change}")
        inner.addLayout(row(label(change.path, "code", wrap=False, selectable=True), pill(words, tone), None))
        self.frame: Listing | None = None
        if change.diff:
            self.frame = Listing(change.diff, "diff", tr("skills.diff.unified"), max_lines=LINES)
            inner.addWidget(self.frame)
        self.setAccessibleName(f"{change.path}: {words}")


class DiffCard(Card):
    """Two versions to choose, and the files that differ."""

    def __init__(self, skills: Skills, name: str) -> None:
        super().__init__(space=Space.M)
        self._skills, self._name = skills, name
        self._versions: list[str] = []
        self._asked = ("", "")
        self.old, self.new = QComboBox(), QComboBox()
        self.old.setAccessibleName(tr("skills.diff.old"))
        self.new.setAccessibleName(tr("skills.diff.new"))
        swap = icon_button("restart", tr("skills.diff.swap"), self._swap)
        self.files: list[FileDiff] = []
        self._body = column(space=Space.M)
        self.count = label("", "muted")
        pair = Flow(label(tr("skills.diff.from"), "muted", wrap=False), self.old,
                    label(tr("skills.diff.to"), "muted", wrap=False), self.new, swap)  # fmt: skip
        self.add(label(tr("skills.diff"), "heading"), pair, self.count, self._body)
        for box in (self.old, self.new):
            box.currentIndexChanged.connect(lambda _i: self.refresh())

    def show_row(self, skill: SkillRow) -> None:
        """Offer these versions; the two newest differ first."""
        names = [v.version for v in skill.versions]
        if names != self._versions:
            self._versions = names
            for box, at in ((self.old, len(names) - 2), (self.new, len(names) - 1)):
                blocked = box.blockSignals(True)
                box.clear()
                for version in names:
                    box.addItem(version_text(version), version)
                box.setCurrentIndex(max(0, at))
                box.blockSignals(blocked)
        if len(names) > 1:
            self.refresh()

    def refresh(self) -> None:
        """Compare."""
        old, new = self.old.currentData(), self.new.currentData()
        if old is None or new is None:
            return
        self._asked = (old, new)
        self._skills.ask(
            lambda host: host.skills.diff(self._name, old or "-", new or "-"),
            while_alive(self, lambda changes: self._show((old, new), changes)),
            while_alive(self, self._fail),
            self,
        )

    def _swap(self) -> None:
        old, new = self.old.currentIndex(), self.new.currentIndex()
        blocked = self.old.blockSignals(True)
        self.old.setCurrentIndex(new)
        self.old.blockSignals(blocked)
        self.new.setCurrentIndex(old)

    def _show(self, asked: tuple[str, str], changes: tuple[FileChange, ...]) -> None:
        if asked != self._asked:
            return
        clear(self._body)
        self.files = [FileDiff(change) for change in changes]
        for one in self.files:
            self._body.addWidget(one)
        self.count.setText(trn("skills.diff.files", len(changes)) if changes else tr("skills.diff.same"))

    def _fail(self, error: HostError) -> None:
        clear(self._body)
        self._body.addWidget(ErrorCard(error, self.refresh))
