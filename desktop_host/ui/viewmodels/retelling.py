"""What a person does with what was said: branch, ask again, other words, thumbs, and what waits."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING, TypeVar

from PySide6.QtCore import QObject, Signal

from desktop_host.core.events import Stamped, StateChanged, TurnStarted
from desktop_host.core.session_events import QueuedMessage
from desktop_host.core.transcript import AssistantEntry, Entry, ToolEntry, UserEntry
from desktop_host.engine.host import Host, InputFile
from desktop_host.ui.viewmodels.composer import message

if TYPE_CHECKING:
    from desktop_host.ui.viewmodels.chat import Chat

T = TypeVar("T")
QUOTED = 4000
"""Longer texts (characters) are cut where they are quoted."""


class Retelling(QObject):
    """The verbs on single messages of the open chat. A branch is opened as soon as it is made."""

    branched = Signal(str)
    """A branch was made; its session is to be shown."""
    queue_changed = Signal()

    def __init__(self, chat: Chat) -> None:
        super().__init__(chat)
        self._chat = chat
        self.queue: tuple[QueuedMessage, ...] = ()
        """What waits behind the running turn, the next one first."""
        self._reading = False
        chat.bridge.batch.connect(self._take)
        chat.opened.connect(self._opened)

    # ---- branches

    def branch(self, before_turn: int | None) -> None:
        """Go on from before a turn (None: from here) in a chat of its own."""
        self._make(lambda h, s: h.branch(s, before_turn))

    def regenerate(self, turn: int) -> None:
        """Ask a turn anew."""
        self._make(lambda h, s: h.regenerate(s, turn))

    def resend(self, turn: int, text: str, files: tuple[InputFile, ...]) -> None:
        """Say something else in a turn."""
        self._make(lambda h, s: h.edit_and_resend(s, turn, message(text, files)))

    def _make(self, verb: Callable[[Host, str], Awaitable[str]]) -> None:
        self._do(verb, self.branched.emit)

    # ---- the rest

    def judge(self, turn: int, good: bool | None) -> None:
        """Thumb up, down, or neither."""
        self._do(lambda h, s: h.give_feedback(s, turn, good), lambda _: None)

    def undo_summary(self) -> None:
        """Let the model read the messages themselves again."""
        self._do(lambda h, s: h.undo_compaction(s), lambda _: None)

    def cancel_queued(self, message: str) -> None:
        """Take back a message that waits."""
        self._do(lambda h, s: h.cancel_queued(s, message), lambda _: self.read_queue())

    def move_queued(self, message: str, to: int) -> None:
        """Let a message wait at another place."""
        self._do(lambda h, s: h.move_queued(s, message, to), lambda _: self.read_queue())

    def read_queue(self) -> None:
        """Ask what waits."""
        session = self._chat.session

        def done(queue: tuple[QueuedMessage, ...]) -> None:
            self._reading = False
            if self._chat.session == session:
                self._show(queue)

        self._reading = True
        self._do(lambda h, s: h.queued(s), done)

    def _opened(self) -> None:
        self._show(())
        if self._chat.session is not None and self._chat.transcript.running:
            self.read_queue()

    def _take(self, events: tuple[Stamped, ...]) -> None:
        session = self._chat.session
        for stamped in events:
            if stamped.session != session:
                continue
            match stamped.event:
                case StateChanged(queued=n) if n or self.queue:
                    self.read_queue()
                    return
                case TurnStarted() if self.queue:
                    self.read_queue()
                    return

    def _show(self, queue: tuple[QueuedMessage, ...]) -> None:
        if queue != self.queue:
            self.queue = queue
            self.queue_changed.emit()

    def _do(self, verb: Callable[[Host, str], Awaitable[T]], done: Callable[[T], None]) -> None:
        session = self._chat.session
        if session is not None:
            self._chat.bridge.then(lambda h: verb(h, session), done, self._chat.failed.emit, self)


def quoted(text: str) -> str:
    """Text as a Markdown quote, with an empty line after it."""
    short = text if len(text) <= QUOTED else f"{text[:QUOTED].rstrip()}…"
    return "".join(f"> {line}".rstrip() + "\n" for line in short.strip().splitlines()) + "\n"


def excerpt(entries: Iterable[Entry], yours: str, called: str) -> str:
    """Rows as Markdown for the clipboard; `yours` heads what the person said, `called` what a tool was asked."""
    parts = []
    for entry in entries:
        match entry:
            case UserEntry(text=text):
                files = "".join(f"\n[{a.name}]" for a in entry.attachments)
                parts.append(f"**{yours}**\n\n{text}{files}")
            case AssistantEntry(text=text, model=model) if text:
                parts.append(f"**{model}**\n\n{text}" if model else text)
            case ToolEntry(server=server, tool=tool) if tool:
                parts.append(f"*{called}: {server}.{tool}*")
    return "\n\n".join(parts)
