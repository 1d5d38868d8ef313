"""Questions of chats that are not in view, and of no chat at all, in a window of their own that blocks nothing."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from PySide6.QtCore import QCoreApplication, QObject, Qt, QTimer
from PySide6.QtGui import QCloseEvent
from PySide6.QtWidgets import QDialog, QScrollArea, QWidget
from shiboken6 import isValid

from desktop_host.core import events as ev
from desktop_host.core.asks import Answer, ApproveTool, Ask, Dismiss
from desktop_host.engine.host import Host
from desktop_host.i18n import tr
from desktop_host.ui.bridge import Bridge
from desktop_host.ui.theme import Space, set_role, theme
from desktop_host.ui.widgets.ask_card import card_for
from desktop_host.ui.widgets.pieces import column


class AskDesk(QObject):
    """Opens and closes the windows.

    Args:
        bridge: the host.
        in_view: whether a session's conversation is before the person's eyes.
        over: the widget the windows belong to.
    """

    def __init__(self, bridge: Bridge, in_view: Callable[[str], bool], over: QWidget) -> None:
        super().__init__(over)
        self._bridge, self._in_view, self._over = bridge, in_view, over
        self.windows: dict[str, AskWindow] = {}
        _desks.append(self)
        self.destroyed.connect(_tidy)
        bridge.batch.connect(self._take)
        bridge.lagged.connect(self._look)
        bridge.ready.connect(lambda _h: self._look())
        self.destroyed.connect(partial(_close, self.windows))  # The next desk, of a window made anew, asks again.
        if bridge.running:
            self._look()

    def _look(self) -> None:
        """Take up what was asked before anyone listened; close what was answered meanwhile."""

        async def read(host: Host) -> tuple[Ask, ...]:
            return host.asks()

        def done(asks: tuple[Ask, ...]) -> None:
            for ask_id in set(self.windows) - {a.ask_id for a in asks}:
                self._settled(ask_id)
            for ask in asks:
                self._raised(ask)

        self._bridge.then(read, done, owner=self)

    def _take(self, batch: tuple[ev.Stamped, ...]) -> None:
        for stamped in batch:
            match stamped.event:
                case ev.AskRaised(ask=ask):
                    self._raised(ask)
                case ev.AskSettled(ask_id=ask_id):
                    self._settled(ask_id)

    def _raised(self, ask: Ask) -> None:
        # Approvals wait in their chat, and the sidebar says so; what a server asks may time out unseen.
        if isinstance(ask, ApproveTool) or ask.ask_id in self.windows:
            return
        _tidy()
        desks = [d for d in _desks if d._bridge is self._bridge]
        # Where several windows show one host, a question that none of them shows comes up once.
        if desks[0] is not self or (ask.session and any(d._in_view(ask.session) for d in desks)):
            return
        window = AskWindow(ask, self._over.window())
        window.card.answered.connect(self._answer)
        self.windows[ask.ask_id] = window
        window.show()

    def _settled(self, ask_id: str) -> None:
        window = self.windows.pop(ask_id, None)
        if window is not None and isValid(window):
            window.card.done = True
            window.close()

    def _answer(self, ask_id: str, answer: Answer) -> None:
        def failed(error: object) -> None:
            window = self.windows.get(ask_id)
            if window is not None and isValid(window):
                window.card.reopen()
                window.show()
            self._bridge.failed_call.emit(error)

        self._bridge.then(lambda h: h.answer(ask_id, answer), lambda _ok: self._settled(ask_id), failed, self)


_desks: list[AskDesk] = []


def _close(windows: dict[str, AskWindow], *_gone: object) -> None:
    for window in windows.values():
        if isValid(window):
            window.card.done = True
            window.close()
    if QCoreApplication.instance() is not None:
        QTimer.singleShot(0, _look_again)


def _look_again() -> None:
    """A desk that came while the old one still stood has left its questions to that."""
    _tidy()
    for desk in _desks:
        if desk._bridge.running:
            desk._look()


def _tidy() -> None:
    _desks[:] = [d for d in _desks if isValid(d)]


class AskWindow(QDialog):
    """One question. Closing the window dismisses it."""

    def __init__(self, ask: Ask, parent: QWidget | None) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setModal(False)
        self.card = card_for(ask)
        self.setWindowTitle(self.card.title.text())
        area = QScrollArea()
        area.setWidgetResizable(True)
        area.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        inner = QWidget()
        set_role(inner, "page")
        layout = column(inner, margin=theme.px(Space.M))
        layout.addWidget(self.card)
        layout.addStretch(1)
        area.setWidget(inner)
        column(self).addWidget(area)
        self.setAccessibleName(tr("chat.ask.window"))
        # As high as the question where the screen allows it, so that the answers are in view.
        room = self.screen().availableGeometry()
        wide = min(theme.px(620), round(room.width() * 0.95))
        high = layout.totalHeightForWidth(wide - theme.px(16)) + theme.px(Space.S)
        self.resize(wide, min(max(high, theme.px(240)), round(room.height() * 0.85)))

    def reject(self) -> None:
        """Escape closes, which dismisses."""
        self.close()

    def closeEvent(self, event: QCloseEvent) -> None:
        """Dismiss what was not answered; the window comes back if the answer does not arrive."""
        if self.card.done:
            event.accept()  # QDialog's own would call `reject` and take this for refused: the window would stay.
        else:
            self.card.reply(Dismiss())
            self.hide()
            event.ignore()
