"""Skills of the open chat: what a message would wake while it is typed, what it would lack, and older versions kept."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path

from PySide6.QtCore import QObject, QTimer, Signal

from desktop_host.core.errors import HostError
from desktop_host.core.events import LibraryChanged, SkillPinned, SkillsChosen, Stamped
from desktop_host.core.skill_admin import SessionPin, UntrustedProject
from desktop_host.core.skills import SkillMatch, SkillNeed
from desktop_host.core.transcript import UserEntry
from desktop_host.engine.host import Host
from desktop_host.ui.viewmodels.chat import Chat

log = logging.getLogger(__name__)

PAUSE_MS = 400
"""A message is looked at when typing pauses for so long."""
SHORTEST = 4
"""Characters of a message that are worth a look; a Chinese word has two, a wish at least four."""
LONGEST = 4000
"""Characters of a message that are looked at."""


@dataclass(frozen=True, slots=True)
class Hint:
    """What the message would do if it were sent now."""

    chosen: tuple[SkillMatch, ...] = ()
    offered: tuple[SkillMatch, ...] = ()
    needs: tuple[SkillNeed, ...] = ()
    """What the chosen ones need and is not there."""


class ChatSkills(QObject):
    """See the module."""

    changed = Signal()
    """`hint` or `older` is another."""
    failed = Signal(object)

    def __init__(self, chat: Chat, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._chat = chat
        self.hint = Hint()
        self.older: tuple[SessionPin, ...] = ()
        """Versions that this chat keeps and that a new chat would not get."""
        self.projects: tuple[UntrustedProject, ...] = ()
        """Folders of this chat whose skills wait for a word."""
        self._text = ""
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setInterval(PAUSE_MS)
        self._timer.timeout.connect(self.look)
        chat.opened.connect(self._opened)
        chat.choices.options_changed.connect(self.look_around)
        chat.bridge.batch.connect(self._take)

    def typed(self, text: str) -> None:
        """The message is this now; it is looked at when typing pauses."""
        text = text.strip()[:LONGEST]
        if text == self._text:
            return
        self._text = text
        if len(text) < SHORTEST:
            self._timer.stop()
            self._put(Hint())
        else:
            self._timer.start()

    def look(self) -> None:
        """Ask what the message would wake."""
        self._timer.stop()
        text, session = self._text, self._chat.session
        if len(text) < SHORTEST:
            return

        def done(hint: Hint) -> None:
            if text == self._text and session == self._chat.session:
                self._put(hint)

        self._chat.bridge.then(lambda host: _hint(host, text, session), done, self._not_told, self)

    def use_newest(self, name: str) -> None:
        """Let this chat use what a new chat would get, from its next message on."""
        session = self._chat.session
        if session is not None:
            self._chat.bridge.then(
                lambda host: host.pin_skill(session, name, None), lambda _p: self.refresh(), self.failed.emit, self
            )

    def refresh(self) -> None:
        """Look which versions of this chat are older than a new chat's."""
        session = self._chat.session
        entries = self._chat.transcript.now.entries
        names = tuple({p.name: None for e in entries if isinstance(e, UserEntry) for p in e.skills})
        if session is None or not names:
            self._put_older(())
            return

        def done(pins: tuple[SessionPin, ...]) -> None:
            if session == self._chat.session:
                self._put_older(pins)

        self._chat.bridge.then(lambda host: _older(host, session, names), done, self._not_told, self)

    def look_around(self) -> None:
        """Look whether a folder of this chat holds skills that nobody trusts yet."""
        roots = self._chat.choices.options.roots

        def done(found: tuple[UntrustedProject, ...]) -> None:
            if roots == self._chat.choices.options.roots and found != self.projects:
                self.projects = found
                self.changed.emit()

        if not roots:
            done(())
            return
        self._chat.bridge.then(lambda host: host.skills.untrusted(roots), done, self._not_told, self)

    def trust(self, folder: str) -> None:
        """Let the skills of a project folder count from now on."""
        self._chat.bridge.then(
            lambda host: host.skills.trust_project(Path(folder), True),
            lambda _done: self.look_around(), self.failed.emit, self,
        )  # fmt: skip

    # ---- inside

    def _opened(self) -> None:
        self._put(Hint())
        self.refresh()
        self.look_around()

    def _take(self, batch: tuple[Stamped, ...]) -> None:
        library = any(isinstance(s.event, LibraryChanged) for s in batch)
        chosen = {s.session for s in batch if isinstance(s.event, SkillsChosen | SkillPinned)}
        mine = self._chat.session in chosen
        if library or mine:
            self.refresh()
        if library:
            self.look()
            self.look_around()

    def _put(self, hint: Hint) -> None:
        if hint != self.hint:
            self.hint = hint
            self.changed.emit()

    def _put_older(self, pins: tuple[SessionPin, ...]) -> None:
        if pins != self.older:
            self.older = pins
            self.changed.emit()

    def _not_told(self, error: HostError) -> None:
        # What is typed goes out all the same; the library's own page tells of its failures.
        log.warning("the skills of a chat could not be read: %s", error)


async def _hint(host: Host, text: str, session: str | None) -> Hint:
    matches = await host.skills.match(text, session)
    chosen = tuple(m for m in matches if m.chosen)
    needs: tuple[SkillNeed, ...] = ()
    if chosen:
        rows = {r.name: r for r in await host.skills.skills() if not r.shadowed_by}
        needs = tuple(n for m in chosen if m.name in rows for n in rows[m.name].needs)
    offered = tuple(m for m in matches if m.suggested and not m.chosen)[:3]
    return Hint(chosen, offered, needs)


async def _older(host: Host, session: str, names: tuple[str, ...]) -> tuple[SessionPin, ...]:
    out: list[SessionPin] = []
    there = {r.name for r in await host.skills.skills()}
    for name in names:
        if name in there:
            out += [p for p in await host.skills.pins(name) if p.session == session and not p.newest]
    return tuple(out)
