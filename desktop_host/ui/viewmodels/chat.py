"""The open chat: which session it is, what it may do now, and the verbs of the person."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from PySide6.QtCore import QObject, QTimer, Signal

from desktop_host.core.asks import Answer
from desktop_host.core.errors import HostError
from desktop_host.core.events import Stamped
from desktop_host.core.sessions import SessionOptions
from desktop_host.core.transcript import Transcript
from desktop_host.core.values import FrozenDict
from desktop_host.engine.host import Host, InputFile
from desktop_host.ui.bridge import Bridge
from desktop_host.ui.viewmodels.choices import Choices
from desktop_host.ui.viewmodels.composer import message
from desktop_host.ui.viewmodels.retelling import Retelling
from desktop_host.ui.viewmodels.transcript import TranscriptModel

BEFORE_MS = 200
"""The newest is painted first."""
NEWEST = 400
"""Events that are read before a conversation is shown; those before them come while it is on the screen."""
DRAFT_PAUSE_MS = 600
"""A draft is kept when the person stops typing for so long."""


@dataclass(frozen=True, slots=True)
class _Opened:
    transcript: Transcript
    options: SessionOptions
    draft: str


class Chat(QObject):
    """One chat at a time. `open_session(None)` is a new chat that exists from its first message on."""

    leaving = Signal()
    """Another conversation is about to be shown; what is shown still stands."""
    opened = Signal()
    """Another conversation is shown; transcript, options and draft are ready."""
    new_draft = Signal(str)
    """What is typed for a chat that does not exist yet is to be kept; the session of any other keeps its own."""
    loading = Signal(bool)
    failed = Signal(object)
    """`HostError` of something the person did here."""
    created = Signal(str)
    """The new chat became a session of this id."""
    sent = Signal()
    """The host took the message."""
    refused = Signal(str, object)
    """The host did not take a message: `(text, files)` go back to the composer."""

    def __init__(self, bridge: Bridge, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._bridge = self.bridge = bridge
        self.session: str | None = None
        self.transcript = TranscriptModel(self)
        self.choices = Choices(bridge, self)
        self.choices.failed.connect(self.failed)
        self.choices.picked.connect(self._configure)
        self.busy = False
        """A conversation is being read."""
        self._drafts: dict[str | None, str] = {}
        self._reading: str | None = None
        self._later: list[Stamped] = []
        self._since: list[Stamped] | None = None
        """What happened since the whole conversation is being read."""
        self._draft_timer = QTimer(self)
        self._draft_timer.setSingleShot(True)
        self._draft_timer.setInterval(DRAFT_PAUSE_MS)
        self._draft_timer.timeout.connect(self._keep_draft)
        self.retelling = Retelling(self)
        bridge.batch.connect(self._take)
        bridge.lagged.connect(self._reread)

    # ---- which chat

    def open_session(self, session: str | None) -> None:
        """Show a session, or an empty new chat. What was typed so far stays with its own chat."""
        self._keep_draft()
        self.leaving.emit()
        self.session = session
        self.transcript.load(Transcript(session or ""))
        self._reading, self._later, self._since = None, [], None
        if session is None:
            self.choices.begin(SessionOptions())
            self._set_busy(False)
            self.opened.emit()
            return
        self._set_busy(True)
        self._read(session)

    def _read(self, session: str) -> None:
        self._reading, self._later = session, []

        async def read(host: Host) -> _Opened:
            transcript = await host.transcript(session, NEWEST)
            options = await host.history.options(session)
            draft = await host.history.state(session, "draft")
            return _Opened(transcript, options, draft if isinstance(draft, str) else "")

        def done(found: _Opened) -> None:
            if self._reading != session:
                return
            later, self._reading, self._later = self._later, None, []
            self.choices.begin(found.options)
            self._drafts.setdefault(session, found.draft)
            self.transcript.load(found.transcript, later)
            self._set_busy(False)
            self.opened.emit()
            if found.transcript.partial:
                QTimer.singleShot(BEFORE_MS, self, lambda: self._read_before(session))

        def failed(error: HostError) -> None:
            if self._reading == session:
                self._reading = None
                self._set_busy(False)
                self.failed.emit(error)

        self._bridge.then(read, done, failed, self)

    def _read_before(self, session: str) -> None:
        """Read what was said before, while the newest is shown and goes on."""
        if self.session != session or not self.transcript.now.partial or self._since is not None:
            return
        since: list[Stamped] = []
        self._since = since

        def done(whole: Transcript) -> None:
            if self._since is since:
                self._since = None
                self.transcript.complete(whole, since)

        self._bridge.then(lambda h: h.transcript(session), done, self.failed.emit, self)

    def _reread(self) -> None:
        """Events were lost: read the journal again, quietly."""
        session = self.session
        if session is None or self._reading is not None:
            return
        self._reading, self._later, self._since = session, [], None

        def done(transcript: Transcript) -> None:
            if self._reading == session:
                later, self._reading, self._later = self._later, None, []
                self.transcript.load(transcript, later)

        self._bridge.then(lambda h: h.transcript(session), done, self.failed.emit, self)

    def _set_busy(self, on: bool) -> None:
        self.busy = on
        self.loading.emit(on)

    def _take(self, events: tuple[Stamped, ...]) -> None:
        if self.session is None:
            return
        mine = [s for s in events if s.session == self.session]
        if self._reading is not None:
            self._later += mine
        elif mine:
            if self._since is not None:
                self._since += mine
            self.transcript.take(mine)

    # ---- verbs

    def send(self, text: str, files: tuple[InputFile, ...] = ()) -> None:
        """Say something; a new chat becomes a session first."""
        said = message(text, files)
        session = self.session
        self._drafts.pop(session, None)

        async def submit(host: Host, target: str) -> None:
            if session is not None:
                await host.history.put_state(session, "draft", "")
            await host.submit(target, said)

        def refused() -> None:
            self.refused.emit(text, files)

        self._begin(submit, refused, self.failed.emit)

    def use_prompt(self, server: str, prompt: str, values: dict[str, str], failed: Callable[[HostError], None]) -> None:
        """Let a server's prompt speak for the person; a new chat becomes a session first."""
        given = FrozenDict({k: v for k, v in values.items() if v})

        async def submit(host: Host, target: str) -> None:
            await host.use_prompt(target, server, prompt, given)

        self._begin(submit, lambda: None, failed)

    def _begin(
        self,
        submit: Callable[[Host, str], Awaitable[None]],
        refused: Callable[[], None],
        told: Callable[[HostError], None],
    ) -> None:
        session, options = self.session, self.choices.options

        async def act(host: Host) -> str:
            target = session or await host.new_session(options)
            await submit(host, target)
            return target

        def done(target: str) -> None:
            if session is None and self.session is None:
                self.session = target
                self._drafts[target] = self._drafts.pop(None, "")
                self._read(target)
                self.created.emit(target)
            self.sent.emit()

        def failed(error: HostError) -> None:
            if self.session == session:
                refused()
            told(error)

        self._bridge.then(act, done, failed, self)

    def stop(self) -> None:
        """Stop the running turn."""
        self._do(lambda h, s: h.interrupt(s))

    def resume(self) -> None:
        """Go on with the last turn."""
        self._do(lambda h, s: h.resume(s))

    def _configure(self, options: SessionOptions) -> None:
        self._do(lambda h, s: h.configure(s, options))

    def apply_tools(self) -> None:
        """Give the model the tools as they are now."""
        self._do(lambda h, s: h.apply_tools(s))

    def answer(self, ask_id: str, answer: Answer) -> None:
        """Answer a question."""
        self._bridge.then(lambda h: h.answer(ask_id, answer), lambda _ok: None, self.failed.emit, self)

    def _do(self, verb: Callable[[Host, str], Awaitable[Any]]) -> None:
        session = self.session
        if session is not None:
            self._bridge.then(lambda h: verb(h, session), lambda _x: None, self.failed.emit, self)

    # ---- drafts

    @property
    def draft(self) -> str:
        """What was typed in this chat and not sent."""
        return self._drafts.get(self.session, "")

    def set_draft(self, text: str) -> None:
        """Remember what is typed; it is kept with the session when typing pauses."""
        if text != self.draft:
            self._drafts[self.session] = text
            self._draft_timer.start()

    def keep_draft(self) -> None:
        """Keep what was typed last without waiting for a pause: the window closes."""
        self._keep_draft()

    def put_new_draft(self, text: str) -> None:
        """What was typed for a new chat when the window was last open."""
        if text:
            self._drafts.setdefault(None, text)

    def _keep_draft(self) -> None:
        session = self.session
        if not self._draft_timer.isActive() and self.sender() is not self._draft_timer:
            return
        self._draft_timer.stop()
        if session is None:
            self.new_draft.emit(self.draft)
        else:
            text = self._drafts.get(session, "")
            self._bridge.then(
                lambda h: h.history.put_state(session, "draft", text), lambda _x: None, self.failed.emit, self
            )
