"""Above the composer: what the message would wake, what that would lack, and versions that could be newer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QLabel, QPushButton, QWidget

from desktop_host.core.skill_admin import UntrustedProject
from desktop_host.core.skills import SkillMatch, SkillNeed, SkillPin
from desktop_host.core.transcript import UserEntry
from desktop_host.i18n import error_text, tr, trn
from desktop_host.ui.theme import Space, theme
from desktop_host.ui.viewmodels.chat_skills import ChatSkills
from desktop_host.ui.widgets.flow import Flow
from desktop_host.ui.widgets.pieces import (
    Card,
    Elided,
    button,
    clear,
    column,
    icon_button,
    icon_label,
    label,
    pill,
    row,
)
from desktop_host.ui.widgets.skill_chips import chip
from desktop_host.ui.widgets.skill_words import match_text, need_text, version_text

if TYPE_CHECKING:
    from desktop_host.ui.widgets.chat import ChatPage

SHOWN = 6
"""Names of an untrusted folder's skills that are said."""
ROOMY = 480
"""On a page lower than this (pixels at 100 %) only what asks for an act is shown."""


class SkillStrip(QWidget):
    """See the module. Hidden while there is nothing to say."""

    opened = Signal(str)
    """Id of a skill whose page is wanted."""

    def __init__(self, page: ChatPage) -> None:
        super().__init__()
        self._page = page
        self.model = ChatSkills(page.chat, self)
        self.chips: dict[str, QPushButton] = {}
        """Skill to its chip: those that will wake and those that are offered."""
        self._dismissed: set[tuple[str, str]] = set()
        self._column = column(self, space=theme.px(Space.XS))
        self.hide()
        self.model.changed.connect(self.show_state)
        self.model.failed.connect(lambda error: page.say(*error_text(error)))
        page.composer.edit.textChanged.connect(lambda: self.model.typed(page.composer.text))
        page.view.message_acted.connect(self._act)

    def show_state(self) -> None:
        """Show what there is to say."""
        clear(self._column)
        hint = self.model.hint
        self.chips = {}
        parts: list[QWidget] = []
        roomy = self._page.height() >= theme.px(ROOMY)
        if hint.chosen and roomy:
            parts.append(label(tr("skills.chat.will_wake"), "caption", wrap=False))
            parts += [self._will_wake(m) for m in hint.chosen]
        if hint.offered:
            parts.append(label(tr("skills.chat.offered"), "caption", wrap=False))
            parts += [self._offered(m) for m in hint.offered]
        parts += [self._missing(need) for need in hint.needs]
        older = [p.pin for p in self.model.older if (p.pin.name, p.pin.digest) not in self._dismissed]
        for pin in older if roomy else ():
            parts += self._older(pin)
        if not roomy:
            parts = parts[-1:]
        asked = [p for p in self.model.projects if (p.folder, "") not in self._dismissed]
        for project in asked:
            self._column.addWidget(self._question(project))
        if parts:
            self._column.addLayout(Flow(*parts, space=theme.px(Space.XS)))
        self.setVisible(bool(parts or asked))

    # ---- inside

    def _will_wake(self, match: SkillMatch) -> QPushButton:
        why = match_text(match)
        text = f"{match.name} {match.version}".strip()
        made = chip(text, why, f"{tr('skills.chat.chip', name=match.name, version=match.version)}: {why}")
        made.clicked.connect(lambda _c=False: self.opened.emit(match.name))
        self.chips[match.name] = made
        return made

    def _offered(self, match: SkillMatch) -> QPushButton:
        use = tr("skills.chat.use", name=match.name)
        made = chip(match.name, f"{use}\n{match_text(match)}", use, icon="plus")
        made.clicked.connect(lambda _c=False: self._use(match.name, self._page.composer.text))
        self.chips[match.name] = made
        return made

    def _missing(self, need: SkillNeed) -> QLabel:
        made = pill(tr("skills.chat.missing", name=need.name), "warning")
        made.setToolTip(f"{need.skill}: {need_text(need)}")
        made.setAccessibleName(made.toolTip())
        return made

    def _older(self, pin: SkillPin) -> list[QWidget]:
        words = tr("skills.chat.newer", name=pin.name, version=version_text(pin.version))
        use = chip(tr("skills.chat.update", name=pin.name), words, f"{tr('skills.use_newest')}: {pin.name}. {words}",
                   icon="restart")  # fmt: skip
        use.clicked.connect(lambda _c=False: self.model.use_newest(pin.name))
        keep = icon_button("close", tr("skills.chat.keep", name=pin.name), lambda: self._keep(pin.name, pin.digest))
        return [use, keep]

    def _question(self, project: UntrustedProject) -> Card:
        """Whether the skills of a folder that came with the chat may count."""
        card = Card("card-warning", margin=theme.px(Space.M), space=theme.px(Space.S))
        card.setObjectName("projectQuestion")
        words = trn("skills.chat.project", len(project.skills), names=", ".join(project.skills[:SHOWN]))
        head = row(icon_label("folder", "warning"), label(words, "strong"), space=theme.px(Space.S))
        head.setStretch(1, 1)
        yes = button(tr("skills.chat.project.trust"), lambda: self.model.trust(project.folder), role="primary")
        no = button(tr("skills.chat.project.later"), lambda: self._keep(project.folder, ""))
        card.add(head, Elided(project.folder, "code", mode=Qt.TextElideMode.ElideMiddle),
                 label(tr("skills.chat.project.why"), "caption"), Flow(yes, no))  # fmt: skip
        card.setAccessibleName(f"{words} {project.folder}")
        return card

    def _keep(self, name: str, digest: str) -> None:
        self._dismissed.add((name, digest))
        self.show_state()

    def _use(self, name: str, text: str) -> None:
        self._page.put_text(f"/{name} {text.strip()}")

    def _act(self, verb: str, key: str) -> None:
        what, _, name = verb.partition(":")
        entry = self._page.chat.transcript.now.entry(key)
        if what == "skill":
            self.opened.emit(name)
        elif what == "use" and isinstance(entry, UserEntry):
            self._use(name, entry.text)
