"""Above the composer: what the message would wake, what that would lack, and versions that could be newer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QPushButton, QWidget

from desktop_host.core.skills import SkillMatch
from desktop_host.core.transcript import UserEntry
from desktop_host.i18n import error_text, tr
from desktop_host.ui.theme import Space, theme
from desktop_host.ui.viewmodels.chat_skills import ChatSkills
from desktop_host.ui.widgets.flow import Flow
from desktop_host.ui.widgets.pieces import button, clear, column, icon_button, label, row
from desktop_host.ui.widgets.skill_chips import chip
from desktop_host.ui.widgets.skill_health import Note
from desktop_host.ui.widgets.skill_words import match_text, need_text, version_text

if TYPE_CHECKING:
    from desktop_host.ui.widgets.chat import ChatPage


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
        if hint.chosen:
            parts.append(label(tr("skills.chat.will_wake"), "caption", wrap=False))
            parts += [self._will_wake(m) for m in hint.chosen]
        if hint.offered:
            parts.append(label(tr("skills.chat.offered"), "caption", wrap=False))
            parts += [self._offered(m) for m in hint.offered]
        if parts:
            self._column.addLayout(Flow(*parts, space=theme.px(Space.XS)))
        notes = [Note(need_text(need)) for need in hint.needs]
        for note in notes:
            self._column.addWidget(note)
        older = [p for p in self.model.older if (p.pin.name, p.pin.digest) not in self._dismissed]
        for pin in older:
            self._column.addWidget(self._older(pin.pin.name, pin.pin.version, pin.pin.digest))
        self.setVisible(bool(parts or notes or older))

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

    def _older(self, name: str, version: str, digest: str) -> QWidget:
        made = QWidget()
        words = Note(tr("skills.chat.newer", name=name, version=version_text(version)), "info", "info")
        use = button(tr("skills.use_newest"), lambda: self.model.use_newest(name), role="link")
        use.setAccessibleName(f"{tr('skills.use_newest')}: {name}")
        keep = icon_button("close", tr("skills.chat.keep", name=name), lambda: self._keep(name, digest))
        line = row(space=theme.px(Space.S), owner=made)
        line.addWidget(words, 1)
        line.addWidget(use)
        line.addWidget(keep)
        return made

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
