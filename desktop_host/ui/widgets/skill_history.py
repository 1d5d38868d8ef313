"""Which chats keep which version of a skill, and what happened to the skill."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QWidget

from desktop_host.core.errors import HostError
from desktop_host.core.skill_admin import SessionPin, SkillChange
from desktop_host.i18n import current, tr
from desktop_host.ui.theme import Space
from desktop_host.ui.viewmodels.lifetime import while_alive
from desktop_host.ui.viewmodels.skills import Skills
from desktop_host.ui.widgets.flow import Flow
from desktop_host.ui.widgets.page import Empty, ErrorCard, Page
from desktop_host.ui.widgets.pieces import Card, button, clear, column, label, pill, row
from desktop_host.ui.widgets.skill_diff import FileDiff
from desktop_host.ui.widgets.skill_words import version_text, when, why_text

EVENT_TONES = {"installed": "success", "trusted": "success", "granted": "info", "removed": "danger",
               "revoked": "warning", "changed": "info", "rollout": "info"}  # fmt: skip
MOST = 200
"""Rows that are drawn of a long list."""


class PinCard(Card):
    """One chat with its version."""

    opened = Signal(str)
    newest = Signal(str)

    def __init__(self, pin: SessionPin) -> None:
        super().__init__(margin=Space.M, space=Space.XS)
        title = pin.title or tr("skills.chats.untitled")
        self.title = button(title, lambda: self.opened.emit(pin.session), role="name")
        self.title.setAccessibleDescription(tr("skills.chats.open"))
        parts: list[QWidget] = [pill(version_text(pin.pin.version)), label(pin.pin.digest[:12], "code", wrap=False)]
        self.add(row(self.title, None))
        self.use: QWidget | None = None
        if pin.newest:
            parts.append(pill(tr("skills.chats.newest"), "success"))
        else:
            parts.append(pill(tr("skills.chats.older"), "warning"))
            use = button(tr("skills.use_newest"), lambda: self.newest.emit(pin.session), icon="restart")
            use.setAccessibleName(tr("skills.use_newest_in", title=title))
            self.use = use
            parts.append(use)
        self.add(Flow(*parts, space=Space.S))
        if why := why_text(pin.pin.reason):
            self.add(label(tr("skills.why", reason=why), "caption"))
        self.setAccessibleName(f"{title}: {version_text(pin.pin.version)}")


class ChatsTab(Page):
    """The chats that are pinned to a version."""

    opened = Signal(str)
    """Id of a chat to show."""

    def __init__(self, skills: Skills, name: str) -> None:
        super().__init__(inside=True)
        self._skills, self._name = skills, name
        self.cards: list[PinCard] = []
        self._list = column(space=Space.S)
        self.add(label(tr("skills.chats.lead"), "muted"), self._list)
        self.refresh()

    def refresh(self) -> None:
        """Read the pins again."""
        self._skills.ask(
            lambda host: host.skills.pins(self._name),
            while_alive(self, self._show), while_alive(self, self._fail), self,
        )  # fmt: skip

    def _show(self, pins: tuple[SessionPin, ...]) -> None:
        clear(self._list)
        self.cards = [PinCard(pin) for pin in pins[:MOST]]
        for card in self.cards:
            card.opened.connect(self.opened)
            card.newest.connect(lambda s: self._skills.newest(s, self._name, while_alive(self, self.refresh)))
            self._list.addWidget(card)
        if not pins:
            self._list.addWidget(Empty("chat", tr("skills.chats.none"), tr("skills.chats.none.text")))

    def _fail(self, error: HostError) -> None:
        clear(self._list)
        self._list.addWidget(ErrorCard(error, self.refresh))


class ChangeCard(Card):
    """One entry of the history; the files unfold."""

    def __init__(self, change: SkillChange) -> None:
        super().__init__(margin=Space.M, space=Space.XS)
        key = f"skills.event.{change.event}"
        words = tr(key) if current().has(key) else change.event
        parts = [pill(words, EVENT_TONES.get(change.event, "")), label(when(change.t), "caption", wrap=False)]
        if change.version:
            parts.append(pill(change.version))
        parts.append(label(change.digest[:12], "code", wrap=False))
        self.add(Flow(*parts, space=Space.S))
        if change.detail:
            self.add(label(change.detail, "muted", selectable=True))
        for one in change.files:
            self.add(FileDiff(one))
        self.setAccessibleName(f"{when(change.t)}: {words} {change.version} {change.detail}".strip())


class HistoryTab(Page):
    """What happened to a skill, newest first."""

    def __init__(self, skills: Skills, name: str) -> None:
        super().__init__(inside=True)
        self._skills, self._name = skills, name
        self._list = column(space=Space.S)
        self.cards: list[ChangeCard] = []
        self.add(label(tr("skills.history.lead"), "muted"), self._list)
        self.refresh()

    def refresh(self) -> None:
        """Read the history again."""
        self._skills.ask(
            lambda host: host.skills.changes(self._name),
            while_alive(self, self._show), while_alive(self, self._fail), self,
        )  # fmt: skip

    def _show(self, changes: tuple[SkillChange, ...]) -> None:
        clear(self._list)
        self.cards = [ChangeCard(change) for change in changes[:MOST]]
        for card in self.cards:
            self._list.addWidget(card)
        if not changes:
            self._list.addWidget(Empty("clock", tr("skills.history.none"), tr("skills.history.none.text")))

    def _fail(self, error: HostError) -> None:
        clear(self._list)
        self._list.addWidget(ErrorCard(error, self.refresh))
