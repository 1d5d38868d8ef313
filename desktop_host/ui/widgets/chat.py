"""The chat page: the conversation, what waits for an answer, and the composer."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtGui import QDragEnterEvent, QDropEvent, QKeyEvent, QKeySequence, QResizeEvent, QShortcut, QShowEvent
from PySide6.QtWidgets import QStackedLayout, QVBoxLayout, QWidget

from desktop_host.core.asks import Answer
from desktop_host.core.errors import HostError
from desktop_host.engine.host import InputFile
from desktop_host.i18n import error_text, tr
from desktop_host.ui.bridge import Bridge
from desktop_host.ui.highlight import warm
from desktop_host.ui.theme import Space, theme
from desktop_host.ui.tokens import GUTTER, TEXT_WIDTH
from desktop_host.ui.viewmodels.chat import Chat
from desktop_host.ui.widgets.ask_card import AskCard
from desktop_host.ui.widgets.ask_window import AskDesk
from desktop_host.ui.widgets.banner import Banner
from desktop_host.ui.widgets.chat_links import LinkDesk
from desktop_host.ui.widgets.chat_messages import MessageActs
from desktop_host.ui.widgets.chat_offers import OfferDesk
from desktop_host.ui.widgets.composer import Composer
from desktop_host.ui.widgets.composer_edit import local_files
from desktop_host.ui.widgets.composer_queue import QueueList
from desktop_host.ui.widgets.composer_tray import Tray
from desktop_host.ui.widgets.page import Empty
from desktop_host.ui.widgets.pieces import column, icon_button, row
from desktop_host.ui.widgets.skill_strip import SkillStrip
from desktop_host.ui.widgets.transcript import TranscriptView
from desktop_host.ui.widgets.transcript_place import edge
from desktop_host.ui.widgets.welcome import Welcome

LOADING_MS = 300
"""A conversation that is read faster shows no waiting."""


class ChatPage(QWidget):
    """One conversation at a time.

    Args:
        bridge: the host; may not be started yet.
        parent: Qt's owner.
    """

    session_changed = Signal(str)
    """The new chat became the session of this id."""
    needs_model = Signal()
    """The person wants to choose or set up a model."""
    needs_budget = Signal()
    """The person wants to raise a limit."""
    wanted = Signal(str)
    """Another session is to be shown: a branch that was made, or where one came from."""
    told = Signal(str)
    """Words for a quiet notice."""

    def __init__(self, bridge: Bridge, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("chatPage")
        self.setAcceptDrops(True)
        self._ready = False
        self.chat = Chat(bridge, self)
        self.view = TranscriptView(self.chat.transcript)
        self.composer = Composer(self.chat)
        self.welcome = Welcome(self.chat.choices)
        self._waiting = Empty("clock", tr("chat.loading"), "")
        outer = column(self, space=0)
        self._stack = QStackedLayout()
        outer.addLayout(self._stack, 1)  # first: a layout without a parent shows its widgets as windows
        for widget in (self.welcome, self.view, self._waiting):
            self._stack.addWidget(widget)
        self._banner = Banner()
        self.links = LinkDesk(bridge, self)
        self.messages = MessageActs(self)
        self.queue = QueueList(self.chat.retelling)
        self.offers = OfferDesk(self)
        self.skills = SkillStrip(self)
        self._jump = icon_button("chevron-down", tr("chat.jump"), self._to_end, role="")
        self._jump.setParent(self)
        self._jump.hide()
        foot = QVBoxLayout()
        foot.setSpacing(0)
        self.tray = Tray(self, self.composer)
        self.tray.add(self._banner, self.queue, self.messages.strip, self.skills, self.offers.slot)
        foot.addWidget(self.tray)
        foot.addWidget(self.composer)
        self._foot = QWidget()
        self._foot.setLayout(foot)
        self._line = centred = row(space=0)
        foot.setContentsMargins(0, 0, 0, 0)
        centred.addStretch(1)
        centred.addWidget(self._foot, 1000)
        centred.addStretch(1)
        outer.addLayout(centred)
        self.desk = AskDesk(bridge, lambda session: self.isVisible() and session == self.chat.session, self)
        self._loading_timer = QTimer(self)
        self._loading_timer.setSingleShot(True)
        self._loading_timer.setInterval(LOADING_MS)
        self._loading_timer.timeout.connect(lambda: self._stack.setCurrentWidget(self._waiting))
        self._wire(bridge)
        self._keys()
        self._restyle()
        self._show_state()

    def _wire(self, bridge: Bridge) -> None:
        chat, view, composer = self.chat, self.view, self.composer
        chat.opened.connect(self._on_opened)
        chat.loading.connect(self._on_loading)
        chat.failed.connect(self._on_failed)
        chat.created.connect(self.session_changed)
        chat.refused.connect(self._give_back)
        chat.retelling.branched.connect(self.wanted)
        chat.choices.models_changed.connect(self._show_state)
        chat.choices.options_changed.connect(self._show_state)
        chat.transcript.status.connect(self._on_status)
        chat.transcript.changed.connect(lambda _e: self._show_state())
        view.answered.connect(self._answer)
        view.acted.connect(self.messages.notice)
        view.at_end.connect(lambda on: self._place_jump(not on))
        view.asked.connect(self._on_asked)
        composer.send.connect(self._send)
        composer.stop.connect(chat.stop)
        composer.needs_model.connect(self.needs_model)
        composer.problem.connect(self.say)
        self.welcome.picked.connect(self.put_text)
        self.welcome.needs_model.connect(self.needs_model)
        theme.changed.connect(self._restyle)
        bridge.ready.connect(self._on_ready)
        if bridge.running:
            self._on_ready(None)
        QTimer.singleShot(400, self, warm)

    def _keys(self) -> None:
        for number in range(1, 6):
            answer = QShortcut(QKeySequence(f"Alt+{number}"), self)
            answer.setContext(Qt.ShortcutContext.WidgetWithChildrenShortcut)
            answer.activated.connect(lambda n=number: self._press(n))

    # ---- for the window

    def open_session(self, session: str | None) -> None:
        """Show a session, or (None) an empty new chat."""
        self._banner.hide()
        self.chat.open_session(session)

    def put_text(self, text: str) -> None:
        """Write into the composer without sending."""
        self.composer.put(text, self.composer.files)
        self.focus_composer()

    def say(self, what: str, remedy: str = "") -> None:
        """Tell of a failure above the composer."""
        self._banner.say(what, remedy)

    def focus_composer(self) -> None:
        """Let the person type."""
        self.composer.edit.setFocus()

    # ---- what happens

    def _on_ready(self, _host: object) -> None:
        self._ready = True
        self.chat.choices.refresh_models()
        self.chat.choices.refresh_servers()

    def _on_opened(self) -> None:
        self.composer.put(self.chat.draft)
        self._show_state()
        card = self.view.open_card()
        if card is not None:
            self._on_asked(card)

    def _on_loading(self, on: bool) -> None:
        if on:
            self._loading_timer.start()
        else:
            self._loading_timer.stop()
        self.composer.show_status()
        if not on:
            self._show_state()

    def _on_status(self) -> None:
        self.composer.show_status()
        self.view.mark_last()

    def _show_state(self) -> None:
        if self.chat.busy:
            return
        empty = not self.chat.transcript.now.entries
        self._stack.setCurrentWidget(self.welcome if empty else self.view)
        self.welcome.show_state()
        self._align()

    def _on_failed(self, error: HostError) -> None:
        what, remedy = error_text(error)
        self._banner.say(what, remedy)
        for card in self.view.rows.values():
            if isinstance(card, AskCard) and card.done:
                card.reopen()

    def _give_back(self, text: str, files: tuple[InputFile, ...]) -> None:
        if not self.composer.text:
            self.composer.put(text, files)

    def _on_asked(self, card: AskCard) -> None:
        """A question takes the focus, but never in the middle of a word that is being typed."""
        QTimer.singleShot(0, card, lambda: self._focus_card(card))

    def _focus_card(self, card: AskCard) -> None:
        if self.view.following and self.view.open_card() is card:
            self.view.reveal(card)
        typing = self.composer.edit.hasFocus() and bool(self.composer.text.strip())
        if not typing and self.isVisible() and self.view.open_card() is card:
            first = getattr(card, "form", None)
            if first is not None and first.rows:
                first.rows[0].take_focus()
            else:
                card.setFocus()

    # ---- what the person wants

    def _send(self, text: str, files: tuple[InputFile, ...]) -> None:
        self._banner.hide()
        if self.messages.send(text, files):
            return
        self.chat.send(text, files)
        self.view.to_end()

    def _answer(self, ask_id: str, answer: Answer) -> None:
        self.chat.answer(ask_id, answer)
        self.focus_composer()

    def _press(self, number: int) -> None:
        card = self.view.open_card()
        if card is not None:
            card.press(number)

    def _to_end(self) -> None:
        self.view.to_end()
        self._place_jump(False)

    # ---- looks

    def _place_jump(self, shown: bool) -> None:
        self._jump.setVisible(shown and self._stack.currentWidget() is self.view)
        if shown:
            self._jump.adjustSize()
            area = self._stack.geometry()
            self._jump.move(
                area.center().x() - self._jump.width() // 2, area.bottom() - self._jump.height() - theme.px(Space.S)
            )
            self._jump.raise_()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Escape stops the running turn, wherever on the page the focus is."""
        if event.key() == Qt.Key.Key_Escape and self.messages.active:
            self.messages.cancel()
            return
        if event.key() == Qt.Key.Key_Escape and self.chat.transcript.running:
            self.chat.stop()
            return
        super().keyPressEvent(event)

    def showEvent(self, event: QShowEvent) -> None:
        """Models and servers may be others since the page was last seen."""
        super().showEvent(event)
        if self._ready:
            self.chat.choices.refresh_models()
            self.chat.choices.refresh_servers()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Keep the jump button in its place, and the composer below the conversation."""
        super().resizeEvent(event)
        self._align()
        self._place_jump(self._jump.isVisible())

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        """Files may be dropped anywhere on the page."""
        if event.mimeData().hasUrls():
            event.acceptProposedAction()

    def dropEvent(self, event: QDropEvent) -> None:
        """Attach what was dropped."""
        paths: list[Path] = local_files(event.mimeData())
        self.composer.attach(paths)
        event.acceptProposedAction()

    def _align(self) -> None:
        """Keep the composer below the conversation, whose scroll bar has room of its own at the right."""
        side = edge(self.width()) + theme.px(GUTTER)
        self._line.setContentsMargins(side, 0, side, theme.px(Space.L))

    def _restyle(self) -> None:
        self._align()
        self._foot.setMaximumWidth(theme.px(TEXT_WIDTH))
        self.composer.restyle()
