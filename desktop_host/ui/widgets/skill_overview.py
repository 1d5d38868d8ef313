"""A skill at a glance: what is wrong, what it needs and asks for, and its text as it reads."""

from __future__ import annotations

from desktop_host.core.skill_admin import SkillDetail, SkillRow
from desktop_host.core.skills import SkillVersion
from desktop_host.i18n import tr
from desktop_host.ui.theme import Space, theme
from desktop_host.ui.viewmodels.skills import Skills
from desktop_host.ui.widgets.flow import Flow
from desktop_host.ui.widgets.message import MarkdownView
from desktop_host.ui.widgets.page import Page
from desktop_host.ui.widgets.pieces import Card, button, clear, column, icon_label, label, pill, row
from desktop_host.ui.widgets.server_overview import Facts
from desktop_host.ui.widgets.skill_code import Listing
from desktop_host.ui.widgets.skill_health import Health
from desktop_host.ui.widgets.skill_words import source_text, version_text
from desktop_host.ui.widgets.switch import Switch

FIRST = 30_000
"""Characters of a body that are drawn at once; the rest on wish."""


class GrantCard(Card):
    """The tools a skill asks for, and the switch that allows them while it is active."""

    def __init__(self, skills: Skills, row_: SkillRow, tools: tuple[str, ...]) -> None:
        super().__init__()
        self.switch = Switch(tr("skills.grant"), row_.granted)
        self.switch.clicked.connect(lambda on: skills.grant(row_.name, on))
        words = column(space=2)
        words.addWidget(label(tr("skills.grant"), "strong"))
        words.addWidget(label(tr("skills.grant.text"), "muted"))
        head = row(icon_label("shield", "warning" if row_.granted else "muted"), space=Space.S)
        head.addLayout(words, 1)
        head.addWidget(self.switch)
        self.add(head, Flow(*(pill(t, "warning" if row_.granted else "") for t in tools), space=Space.XS))
        self.setAccessibleName(f"{tr('skills.grant')}: {', '.join(tools)}")


class OverviewTab(Page):
    """See the module."""

    def __init__(self, skills: Skills) -> None:
        super().__init__(inside=True)
        self._skills = skills
        self._health = column(space=Space.M)
        self._grants = column(space=Space.M)
        self.facts = Facts()
        self._facts_card = Card()
        self._facts_card.add(self.facts)
        self._read = Card(margin=Space.L, space=Space.M)
        self.text = MarkdownView()
        self.source: Listing | None = None
        self._whole = ""
        self.all = button(tr("chat.show_all"), self._show_all, role="link")
        self.raw = button(tr("skills.source.show"), self._toggle_source, role="quiet", icon="document")
        self.raw.setCheckable(True)
        self._read.add(row(label("SKILL.md", "heading", wrap=False), None, self.raw), self.text, Flow(self.all))
        self.lead = label("", "muted", selectable=True)
        self.add(self.lead, self._health, self._grants, self._read, self._facts_card)
        theme.changed.connect(self._restyle)
        self._shown: tuple[object, ...] = ()
        self._detail: SkillDetail | None = None

    def show_detail(self, detail: SkillDetail) -> None:
        """Show a version as it reads now."""
        row_, skill = detail.row, detail.skill
        state = (row_.problems, row_.needs, row_.granted, row_.shadowed_by, row_.versions, skill.allowed_tools)
        if state != self._shown:
            self._shown = state
            self._show_health(row_)
            clear(self._grants)
            if skill.allowed_tools:
                self._grants.addWidget(GrantCard(self._skills, row_, skill.allowed_tools))
        self.lead.setText(skill.description)
        if not skill.description:
            self.lead.hide()
        self.facts.put(_facts(detail))
        before, self._detail = self._detail, detail
        if before is None or before.source != detail.source or before.skill.body != skill.body:
            self._whole = skill.body
            self.text.show_text(self._whole[:FIRST], finished=True)
            self.all.setVisible(len(self._whole) > FIRST)
            if self.source is not None:
                self.source.replace(detail.source)

    def grant(self) -> GrantCard | None:
        """The card of the tools, where the skill asks for some."""
        item = self._grants.itemAt(0)
        found = item.widget() if item is not None else None
        return found if isinstance(found, GrantCard) else None

    def _show_health(self, skill: SkillRow) -> None:
        clear(self._health)
        found = Health(skill)
        if not found.lines:
            found.deleteLater()
            return
        broken = not skill.loaded
        card = Card("card-danger" if broken else "card-warning", space=Space.M)
        title = tr("skills.health.broken") if broken else tr("skills.health")
        card.add(row(label(title, "heading", wrap=False), None, Health.copy_for(skill)), found)
        card.setAccessibleName(title)
        self._health.addWidget(card)

    def _show_all(self) -> None:
        self.all.hide()
        self.text.show_text(self._whole, finished=True)

    def _toggle_source(self) -> None:
        on = self.raw.isChecked()
        if self.source is None and self._detail is not None:
            self.source = Listing(self._detail.source, "markdown", "SKILL.md")
            self._read.add(self.source)
        if self.source is not None:
            self.source.setVisible(on)
        self.text.setVisible(not on)
        self.all.setVisible(not on and len(self._whole) > FIRST and self.all.isVisible())

    def _restyle(self) -> None:
        self.text.restyle()


def _facts(detail: SkillDetail) -> tuple[tuple[str, str], ...]:
    skill, row_ = detail.skill, detail.row
    pairs = [
        (tr("skills.fact.version"), version_text(skill.version)),
        (tr("skills.fact.call"), _call(skill)),
        (tr("skills.fact.source"), source_text(row_.source)),
        (tr("skills.fact.path"), row_.path),
        (tr("skills.fact.servers"), ", ".join(skill.servers)),
        (tr("skills.fact.route"), skill.route or ""),
        (tr("skills.fact.fallback"), ", ".join(skill.fallback)),
        (tr("skills.fact.license"), skill.license),
        (tr("skills.fact.compatibility"), skill.compatibility),
        (tr("skills.fact.digest"), skill.digest[:16]),
    ]
    return tuple((n, v) for n, v in pairs if v)


def _call(skill: SkillVersion) -> str:
    return f"/{skill.name} {skill.argument_hint}".strip() if skill.user_invocable else ""
