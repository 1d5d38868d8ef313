"""Where pages of servers (MCP Apps) stand: in the card of the call that they belong to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QUrl
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import QVBoxLayout, QWidget
from shiboken6 import isValid

from desktop_host.core.apps import AppPage
from desktop_host.core.errors import HostError
from desktop_host.core.messages import Outcome
from desktop_host.i18n import error_text, tr
from desktop_host.ui import web_scheme
from desktop_host.ui.bridge import Bridge
from desktop_host.ui.theme import Space, theme
from desktop_host.ui.viewmodels.app_session import AppSession, Wish
from desktop_host.ui.widgets.app_consent import Consent
from desktop_host.ui.widgets.app_looks import looks
from desktop_host.ui.widgets.pieces import button, column, label
from desktop_host.ui.widgets.tool_card import BUILT_IN, ToolCard

if TYPE_CHECKING:
    from desktop_host.ui.widgets.app_frame import AppFrame
    from desktop_host.ui.widgets.chat import ChatPage

LIVE = 3
"""Pages that are alive at once; each is a process of its own."""


class AppDesk(QObject):
    """Shows the pages of a chat's calls: by itself when a call runs in view, on wish in a conversation of the past."""

    def __init__(self, bridge: Bridge, page: ChatPage) -> None:
        super().__init__(page)
        self._bridge, self._page = bridge, page
        self._live: list[AppFrame] = []
        page.chat.leaving.connect(self._leave)

    def attach(self, card: ToolCard) -> None:
        """A card was made. What a page called itself gets no page: it stands on one already."""
        entry = card.entry
        if not web_scheme.available() or entry.server in ("", BUILT_IN) or entry.page:
            return
        if entry.outcome is not None:
            if entry.outcome is Outcome.OK:
                self._offer(card, at_once=False)
        elif entry.started:
            self._offer(card, at_once=True)
        else:
            card.began.connect(lambda: self._offer(card, at_once=True))

    # ---- inside
    def _offer(self, card: ToolCard, at_once: bool) -> None:
        server, tool = card.entry.server, card.entry.tool

        def offered(there: bool) -> None:
            if not there or not isValid(card):
                return
            if at_once and len(self._alive()) < LIVE:
                self._load(card)
            else:
                self._button(card)

        self._bridge.then(lambda host: host.apps.offered(server, tool), offered, lambda _error: None, card)

    def _button(self, card: ToolCard) -> None:
        place = _place(card)
        wish = button(tr("app.show", server=card.entry.server), icon="eye", role="quiet")
        wish.clicked.connect(lambda: self._load(card))
        place.addWidget(wish)

    def _load(self, card: ToolCard) -> None:
        entry = card.entry
        self._bridge.then(
            lambda host: host.apps.page(entry.server, entry.tool), lambda page: self._show(card, page),
            lambda error: self._fail(error), card,
        )  # fmt: skip

    def _show(self, card: ToolCard, page: AppPage | None) -> None:
        if page is None:
            return
        from desktop_host.ui.widgets.app_frame import AppFrame

        place = _place(card)
        while len(alive := self._alive()) >= LIVE:
            self._end(alive[0])
        session = AppSession(self._bridge, self._page.chat.session or "", page, card.entry, looks)
        session.wished.connect(lambda wish: self._ask(place, page, wish))
        card.settled.connect(session.show_entry)
        frame = AppFrame(session)
        place.addWidget(frame)
        key = "app.loads" if page.origins else "app.shut"
        place.addWidget(label(tr(key, server=page.server, origins=", ".join(page.origins)), "caption"))
        self._live.append(frame)

    def _alive(self) -> list[AppFrame]:
        self._live = [one for one in self._live if isValid(one)]
        return self._live

    def _leave(self) -> None:
        """Another chat is opened."""
        for frame in list(self._alive()):
            self._end(frame)

    def _end(self, frame: AppFrame) -> None:
        """Make room, once the page has had time to end by itself: its call gets the button back."""
        self._live.remove(frame)
        at: QWidget | None = frame
        while at is not None and not isinstance(at, ToolCard):
            at = at.parentWidget()
        frame.hide()
        frame.setParent(self._page)  # The card may go sooner.
        frame.session.ended.connect(frame.deleteLater)
        frame.session.end("room is needed")
        if at is not None:
            self._button(at)

    def _ask(self, place: QVBoxLayout, page: AppPage, wish: Wish) -> None:
        consent = Consent(wish, page.server)
        place.addWidget(consent)

        def decided(word: str) -> None:
            consent.hide()
            consent.deleteLater()
            wish.reply(word != "no")
            if wish.kind == "link" and word == "yes":
                QDesktopServices.openUrl(QUrl(wish.text))
            elif wish.kind == "message" and word == "yes":
                self._page.chat.send(wish.text)
            elif word == "edit":
                self._page.put_text(wish.text)

        consent.decided.connect(decided)

    def _fail(self, error: HostError) -> None:
        self._page.say(*error_text(error))


def _place(card: ToolCard) -> QVBoxLayout:
    """The room for a page in a card, made when it is first needed, emptied of what stood there."""
    outer = card.layout()
    assert isinstance(outer, QVBoxLayout)
    found = card.findChild(QWidget, "app-place")
    if found is None:
        found = QWidget()
        found.setObjectName("app-place")
        inner = column(found, space=theme.px(Space.S))
        inner.setContentsMargins(theme.px(Space.M), 0, theme.px(Space.M), theme.px(Space.M))
        outer.insertWidget(1, found)
    layout = found.layout()
    assert isinstance(layout, QVBoxLayout)
    while (item := layout.takeAt(0)) is not None:
        if (old := item.widget()) is not None:
            old.hide()
            old.deleteLater()
    return layout
