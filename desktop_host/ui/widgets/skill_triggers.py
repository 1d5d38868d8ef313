"""When a skill wakes, and a tester: which skills would this sentence wake, and why, and why not."""

from __future__ import annotations

from functools import partial

from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QWidget

from desktop_host.core.errors import HostError
from desktop_host.core.skill_admin import SkillDetail
from desktop_host.core.skills import SkillMatch, SkillVersion
from desktop_host.i18n import tr, trn
from desktop_host.ui.theme import Space, set_role, theme
from desktop_host.ui.viewmodels.lifetime import while_alive
from desktop_host.ui.viewmodels.skills import Skills
from desktop_host.ui.widgets.flow import Flow
from desktop_host.ui.widgets.page import ErrorCard, Page
from desktop_host.ui.widgets.pieces import Card, button, clear, column, icon_label, label, pill, row
from desktop_host.ui.widgets.search_field import SearchField
from desktop_host.ui.widgets.skill_words import match_text, verdict

PAUSE_MS = 250
"""The tester answers when typing pauses for so long."""
MOST = 8
"""Skills that the tester names before it counts the rest."""


class MatchLine(QWidget):
    """What the sentence does to one skill."""

    def __init__(self, match: SkillMatch, *, mine: bool) -> None:
        super().__init__()
        sign, tone, words = verdict(match)
        head = row(label(match.name, "strong" if mine or match.chosen else "", wrap=False), space=Space.XS)
        if match.version:
            head.addWidget(pill(match.version))
        head.addWidget(pill(words, tone if tone in ("success", "info") else ""))
        head.addStretch(1)
        if match.score:
            head.addWidget(label(f"{match.score:.2f}", "caption", wrap=False))
        why = label(match_text(match), "muted", selectable=True)
        inner = column(space=2)
        inner.addLayout(head)
        inner.addWidget(why)
        line = row(space=Space.S, owner=self)
        mark = column(space=0)
        mark.setContentsMargins(0, theme.px(4), 0, 0)
        mark.addWidget(icon_label(sign, tone, 16))
        mark.addStretch(1)
        line.addLayout(mark)
        line.addLayout(inner, 1)
        self.setAccessibleName(f"{match.name}: {words}. {match_text(match)}")


class TriggerTester(Card):
    """A sentence in, a decision for every skill out. `name`: the skill whose page this is; it comes first."""

    def __init__(self, skills: Skills, name: str = "") -> None:
        super().__init__()
        self._skills, self._name = skills, name
        self._asked = ""
        self.matches: tuple[SkillMatch, ...] = ()
        self.field = SearchField(tr("skills.test.hint"), glass=False)
        self.field.setAccessibleName(tr("skills.test.title"))
        self._lines = column(space=Space.M)
        self.rest = label("", "caption")
        self.rest.hide()
        self.add(label(tr("skills.test.title"), "heading"), label(tr("skills.test.lead"), "muted"), self.field)
        self.add(self._lines, self.rest)
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setInterval(PAUSE_MS)
        self._timer.timeout.connect(self.test)
        self.field.textChanged.connect(lambda _t: self._timer.start())
        self.field.returnPressed.connect(self.test)
        skills.changed.connect(self._library_changed)

    def _library_changed(self, _names: object) -> None:
        if self.field.text():
            self.test()

    def put(self, text: str) -> None:
        """Try this sentence."""
        self.field.setText(text)
        self.test()

    def test(self) -> None:
        """Ask what the sentence would wake."""
        self._timer.stop()
        text = self._asked = self.field.text().strip()
        if not text:
            self._show(text, ())
            return
        self._skills.ask(
            lambda host: host.skills.match(text),
            while_alive(self, lambda found: self._show(text, found)),
            while_alive(self, self._fail),
            self,
        )

    def _show(self, text: str, found: tuple[SkillMatch, ...]) -> None:
        if text != self._asked:
            return
        self.matches = found
        clear(self._lines)
        order = sorted(found, key=lambda m: (m.name != self._name, not m.chosen, not m.suggested, -m.score))
        for match in order[:MOST]:
            self._lines.addWidget(MatchLine(match, mine=match.name == self._name))
        woken = sum(m.chosen for m in found)
        left = len(found) - MOST
        words = trn("skills.test.woken", woken) if found else ""
        if left > 0:
            words += " " + trn("skills.test.rest", left)
        self.rest.setText(words)
        self.rest.setVisible(bool(words))

    def _fail(self, error: HostError) -> None:
        clear(self._lines)
        self._lines.addWidget(ErrorCard(error, self.test))


class TriggersTab(Page):
    """The triggers as the skill states them, and the tester."""

    def __init__(self, skills: Skills, name: str) -> None:
        super().__init__(inside=True)
        self.tester = TriggerTester(skills, name)
        self._stated = Card()
        self.add(self.tester, self._stated)

    def show_detail(self, detail: SkillDetail) -> None:
        """Show what the skill says of itself."""
        clear(self._stated.column)
        self._stated.add(label(tr("skills.triggers.stated"), "heading"))
        skill = detail.skill
        groups = (
            ("keywords", skill.triggers.keywords, "success"),
            ("examples", skill.triggers.examples, ""),
            ("exclude", skill.triggers.exclude, "danger"),
            ("requires", skill.requires, "info"),
            ("conflicts", skill.conflicts, "warning"),
        )
        for key, values, tone in groups:
            if values:
                self._stated.add(label(tr(f"skills.triggers.{key}"), "caption"))
                self._stated.add(self._examples(values) if key == "examples" else
                                 Flow(*(pill(v, tone) for v in values), space=Space.XS))  # fmt: skip
        for words in _numbers(skill):
            self._stated.add(label(words, "muted"))
        if not any(values for _, values, _ in groups[:2]):
            self._stated.add(label(tr("skills.triggers.none"), "muted"))

    def _examples(self, values: tuple[str, ...]) -> Flow:
        made = []
        for text in values:
            one = button(text, partial(self.tester.put, text))
            one.setToolTip(tr("skills.test.try"))
            set_role(one, "filter")
            made.append(one)
        return Flow(*made, space=Space.XS)


def _numbers(skill: SkillVersion) -> list[str]:
    words = []
    if skill.triggers.threshold is not None:
        words.append(tr("skills.triggers.threshold", value=f"{skill.triggers.threshold:g}"))
    if skill.priority:
        words.append(tr("skills.triggers.priority", value=skill.priority))
    if not skill.model_invocable:
        words.append(tr("skills.triggers.manual", name=skill.name))
    elif not skill.user_invocable:
        words.append(tr("skills.triggers.no_person"))
    return words
