"""How the versions of a skill did, side by side, with the acts that follow from it."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QGridLayout, QWidget

from desktop_host.core.errors import HostError
from desktop_host.core.skill_admin import SkillRow, SkillVersionRow, VersionResults
from desktop_host.i18n import tr, trn
from desktop_host.ui.theme import Space, theme
from desktop_host.ui.viewmodels.lifetime import while_alive
from desktop_host.ui.viewmodels.shares import promoted, rolled_back
from desktop_host.ui.viewmodels.skills import Skills
from desktop_host.ui.widgets.confirm import confirm
from desktop_host.ui.widgets.flow import Flow
from desktop_host.ui.widgets.page import ErrorCard
from desktop_host.ui.widgets.pieces import Card, button, clear, column, icon_button, label, pill, row
from desktop_host.ui.widgets.skill_words import STATUS_TONES, percent, version_text

MANY = 0.1
"""From this share of failed turns on a version looks bad."""
COLUMN = 76
"""Least width of a figure, pixels: the same figures of two versions stand below one another."""
FIGURES = ("sessions", "turns", "failed", "tool_errors", "thumbs", "cost", "tokens")


class ResultsCard(Card):
    """How each version did, from the journals of the chats that used it."""

    acted = Signal()
    """The shares are about to be others."""

    def __init__(self, skills: Skills, name: str) -> None:
        super().__init__(space=Space.M)
        self._skills, self._name = skills, name
        self._skill: SkillRow | None = None
        self.buttons: dict[tuple[str, str], QWidget] = {}
        """`(act, version)` to its button; acts are `promote`, `roll_back`, `remove`."""
        self._body = column()
        again = icon_button("restart", tr("skills.results.again"), self.refresh)
        self.add(row(label(tr("skills.results"), "heading", wrap=False), None, again))
        self.add(label(tr("skills.results.lead"), "muted"), self._body)

    def show_row(self, skill: SkillRow) -> None:
        """Read the results for these versions."""
        self._skill = skill
        self.refresh()

    def refresh(self) -> None:
        """Count again."""
        self._skills.ask(
            lambda host: host.skills.results(self._name),
            while_alive(self, self._show), while_alive(self, self._fail), self,
        )  # fmt: skip

    def _fail(self, error: HostError) -> None:
        clear(self._body)
        self._body.addWidget(ErrorCard(error, self.refresh))

    def _show(self, results: tuple[VersionResults, ...]) -> None:
        focused = next((key for key, made in self.buttons.items() if made.hasFocus()), None)
        clear(self._body)
        self.buttons = {}
        skill = self._skill
        rows = {v.version: v for v in skill.versions} if skill else {}
        order = sorted(results, key=lambda r: -(list(rows).index(r.version) if r.version in rows else -1))
        for one in order:
            kept = rows.get(one.version)
            current = kept is not None and kept.digest == one.digest
            self._body.addWidget(self._line(one, kept if current else None))
        if focused is not None:
            same = [made for (_, version), made in self.buttons.items() if version == focused[1]]
            target = self.buttons.get(focused) or next(iter(same), None)
            if target is not None:
                target.setFocus()

    def _line(self, one: VersionResults, kept: SkillVersionRow | None) -> QWidget:
        card = Card("well", margin=Space.M)
        head = row(label(version_text(one.version), "strong", wrap=False), space=Space.XS)
        if kept is None:
            head.addWidget(pill(tr("skills.results.former")))
            head.addWidget(label(one.digest[:12], "code", wrap=False))
        else:
            head.addWidget(pill(tr(f"skill.status.{kept.status.value}"), STATUS_TONES[kept.status]))
            head.addWidget(pill(percent(kept.weight)))
        head.addStretch(1)
        grid = QGridLayout()
        grid.setHorizontalSpacing(Space.L)
        grid.setVerticalSpacing(2)
        values = _figures(one)
        wide = 4 if theme.scale <= 120 else 2
        for at, key in enumerate(FIGURES):
            title = label(tr(f"skills.results.{key}"), "caption", wrap=False)
            value = label(values[key], "danger" if _bad(key, one) else "", wrap=False)
            value.setAccessibleName(f"{title.text()}: {values[key]}")
            grid.addWidget(title, (at // wide) * 2, at % wide)
            grid.addWidget(value, (at // wide) * 2 + 1, at % wide)
            grid.setColumnMinimumWidth(at % wide, COLUMN)
        grid.setColumnStretch(wide, 1)
        card.add(head, grid)
        acts = self._acts(one.version) if kept is not None else []
        if acts:
            card.add(Flow(*acts, space=Space.XS))
        card.setAccessibleName(
            f"{version_text(one.version)}: " + ", ".join(f"{tr(f'skills.results.{k}')} {values[k]}" for k in FIGURES)
        )
        return card

    def _acts(self, version: str) -> list[QWidget]:
        skill = self._skill
        assert skill is not None
        row_ = next(v for v in skill.versions if v.version == version)
        name, made = version_text(version), list[QWidget]()
        if len(skill.versions) < 2:
            return made
        if row_.weight < 1 and row_.loaded:
            made.append(button(tr("skills.promote"), lambda: self._promote(version), icon="chevron-up"))
            made[-1].setAccessibleName(tr("skills.promote_of", version=name))
            self.buttons["promote", version] = made[-1]
        if row_.weight > 0:
            made.append(button(tr("skills.roll_back"), lambda: self._roll_back(version), icon="chevron-down"))
            made[-1].setAccessibleName(tr("skills.roll_back_of", version=name))
            self.buttons["roll_back", version] = made[-1]
        if skill.removable and row_.weight == 0:
            made.append(button(tr("skills.version.remove"), lambda: self._remove(version), role="quiet", icon="trash"))
            made[-1].setAccessibleName(tr("skills.version.remove_of", version=name))
            self.buttons["remove", version] = made[-1]
        return made

    def _promote(self, version: str) -> None:
        assert self._skill is not None
        weights, statuses = promoted(self._skill.versions, version)
        words = tr("skills.promoted", version=version_text(version))
        self.acted.emit()
        self._skills.share_out(self._name, weights, statuses, words)

    def _roll_back(self, version: str) -> None:
        assert self._skill is not None
        weights = rolled_back(self._skill.versions, version)
        words = tr("skills.rolled_back", version=version_text(version))
        self.acted.emit()
        self._skills.share_out(self._name, weights, {}, words)

    def _remove(self, version: str) -> None:
        confirm(
            self, tr("skills.version.remove.title", name=self._name, version=version_text(version)),
            trn("skills.remove.text", 1), tr("skills.version.remove"),
            lambda: self._skills.remove(self._name, version),
        )  # fmt: skip


def _figures(one: VersionResults) -> dict[str, str]:
    return {
        "sessions": f"{one.sessions:,}",
        "turns": f"{one.turns:,}",
        "failed": f"{one.failed_turns:,}" + (f" ({one.failed_turns / one.turns:.0%})" if one.turns else ""),
        "tool_errors": f"{one.tool_errors:,}",
        "thumbs": f"+{one.thumbs_up} / −{one.thumbs_down}",
        "cost": tr("skills.results.unknown") if one.cost_usd is None else f"${one.cost_usd:.4f}",
        "tokens": f"{one.input_tokens + one.output_tokens:,}",
    }


def _bad(key: str, one: VersionResults) -> bool:
    return (key == "failed" and one.failed_turns > one.turns * MANY) or (
        key == "thumbs" and one.thumbs_down > one.thumbs_up
    )
