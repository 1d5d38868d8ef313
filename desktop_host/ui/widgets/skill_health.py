"""What is wrong with a skill: file, line, cause and mend of each problem, and what it needs."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QWidget

from desktop_host.core.skill_admin import SkillRow
from desktop_host.core.skills import SkillProblem
from desktop_host.i18n import tr, trn
from desktop_host.ui.theme import Space, theme
from desktop_host.ui.widgets.flow import Flow
from desktop_host.ui.widgets.pieces import button, column, copy_button, icon_label, label, row
from desktop_host.ui.widgets.skill_words import need_text, place_text, problem_text

SHOWN = 2
"""So many problems stand on a card; the rest on the skill's page."""


class ProblemLine(QWidget):
    """One problem: where, what, and how to mend it."""

    def __init__(self, problem: SkillProblem, path: str = "") -> None:
        super().__init__()
        what, fix = problem_text(problem)
        bad = problem.severity == "error"
        place = label(place_text(problem), "code", wrap=False, selectable=True)
        if path:
            place.setToolTip(path)
        words = column(space=2)
        first = row(space=Space.S)
        place.setContentsMargins(0, theme.px(3), 0, 0)  # on the line of the larger text
        first.addWidget(place, 0, Qt.AlignmentFlag.AlignTop)
        first.addWidget(label(what, "danger" if bad else "", selectable=True), 1)
        words.addLayout(first)
        if fix:
            words.addWidget(label(tr("skills.fix", fix=fix), "muted", selectable=True))
        line = row(space=Space.S, owner=self)
        mark = column(space=0)
        mark.addWidget(icon_label("error" if bad else "warning", "danger" if bad else "warning", 16))
        mark.addStretch(1)
        line.addLayout(mark)
        line.addLayout(words, 1)
        severity = tr(f"skill.severity.{problem.severity}")
        self.setAccessibleName(f"{severity}, {place_text(problem)}: {what} {fix}".strip())


class Note(QWidget):
    """One line with a sign."""

    def __init__(self, text: str, icon: str = "warning", tone: str = "warning") -> None:
        super().__init__()
        line = row(icon_label(icon, tone, 16), space=Space.S, owner=self)
        line.addWidget(label(text, selectable=True), 1)
        self.setAccessibleName(text)


class Health(QWidget):
    """All that is doubtful about a skill; `most` problems at most, then a way to the rest."""

    def __init__(self, skill: SkillRow, *, most: int = 0, more: Callable[[], object] | None = None) -> None:
        super().__init__()
        inner = column(self, space=Space.S)
        self.lines: list[QWidget] = []
        ordered = sorted(skill.problems, key=lambda p: (p.severity != "error", p.file, p.line))
        shown = ordered[:most] if most else ordered
        if skill.shadowed_by:
            self.lines.append(Note(tr("skills.shadowed", path=skill.shadowed_by), "info", "info"))
        stale = [v for v in skill.versions if v.stale]
        if stale:
            self.lines.append(Note(tr("skills.stale"), "info", "info"))
        self.lines += [ProblemLine(p, skill.path) for p in shown]
        self.lines += [Note(need_text(n)) for n in skill.needs]
        for one in self.lines:
            inner.addWidget(one)
        left = len(ordered) - len(shown)
        if left > 0 and more is not None:
            self.more = button(trn("skills.more_problems", left), more, role="link")
            inner.addLayout(Flow(self.more))
        if not self.lines:
            self.hide()

    @staticmethod
    def copy_for(skill: SkillRow) -> QWidget:
        """A button that copies all problems as text."""
        return copy_button(lambda: report(skill), tr("skills.copy_problems"))


def report(skill: SkillRow) -> str:
    """All problems as text to paste."""
    lines = [f"{skill.name} {skill.version}".strip(), skill.path]
    for problem in skill.problems:
        what, fix = problem_text(problem)
        lines.append(f"{place_text(problem)}: {problem.code}: {what} {fix}".rstrip())
    return "\n".join([*lines, *(need_text(n) for n in skill.needs)])
