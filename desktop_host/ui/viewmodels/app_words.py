"""What a page has to say to the model (`ui/update-model-context`): only where the person lets it, the newest only."""

from __future__ import annotations

import json
from typing import Any

from PySide6.QtCore import QObject, QTimer, Signal

from desktop_host.core.apps import AppPage
from desktop_host.core.errors import HostError
from desktop_host.core.session_events import PageSaid
from desktop_host.core.values import freeze, thaw
from desktop_host.engine.host import Host
from desktop_host.ui.bridge import Bridge

REST_MS = 1000
"""Between two updates of one page that are kept; the newest of those between is kept then."""
MOST = 100
"""Updates without an answer."""
DENIED = "Context update denied"


class PageWords(QObject):
    """The updates of one page, on their way to the conversation."""

    wants = Signal(str)
    """The page has something to say and the person has not been asked: what it is."""
    answered = Signal(list, str)
    """`(ids, why)`: requests that are done with; `why` is empty where all went well."""

    def __init__(self, bridge: Bridge, session: str, page: AppPage, call_id: str, parent: QObject) -> None:
        super().__init__(parent)
        self._bridge, self._session, self._page, self._call_id = bridge, session, page, call_id
        self._let: bool | None = None
        """The person's word; None: not asked yet."""
        self._asking = False
        self._next: PageSaid | None = None
        self._last: PageSaid | None = None
        self._waiting: list[int | str] = []
        self._rest = QTimer(self)
        self._rest.setSingleShot(True)
        self._rest.setInterval(REST_MS)
        self._rest.timeout.connect(self._tell)

    def take(self, number: int | str, params: dict[str, Any]) -> str | None:
        """An update; what is wrong with its form, else None."""
        structured = params.get("structuredContent")
        content = params.get("content")
        if not isinstance(structured, dict | None) or not isinstance(content, list | None):
            return "Invalid content format"
        self._next = PageSaid(
            self._call_id, self._page.server, self._page.tool, text_of(content),
            None if structured is None else freeze(structured),
        )  # fmt: skip
        if len(self._waiting) >= MOST:
            return "too many updates wait"
        self._waiting.append(number)
        if self._let is False:
            self._done(DENIED)
        elif self._let:
            self._tell()
        elif not self._asking:
            self._asking = True
            server = self._page.server

            async def speaks(host: Host) -> bool:
                return host.apps.speaks(self._session, server)

            self._bridge.then(speaks, self._found, lambda e: self._done(e.message), self)
        return None

    def decided(self, yes: bool) -> None:
        """The person's word, for this chat."""
        self._let = yes
        if not yes:
            self._done(DENIED)
            return
        server = self._page.server

        async def let(host: Host) -> None:
            host.apps.let_speak(self._session, server)

        self._bridge.then(let, lambda _: self._tell(), lambda e: self._done(e.message), self)

    # ---- inside
    def _found(self, speaks: bool) -> None:
        if speaks:
            self._let = True
            self._tell()
        elif self._next is not None:
            self.wants.emit(shown(self._next))

    def _tell(self) -> None:
        if self._next is None or self._rest.isActive():
            return
        said, self._next = self._next, None
        if said == self._last:
            self._done("")
            return
        self._rest.start()
        numbers, self._waiting = self._waiting, []

        def kept(_: object) -> None:
            self._last = said
            self.answered.emit(numbers, "")

        def failed(error: HostError) -> None:
            self.answered.emit(numbers, error.message)

        self._bridge.then(lambda host: host.apps.told(self._session, said), kept, failed, self)

    def _done(self, why: str) -> None:
        numbers, self._waiting = self._waiting, []
        self.answered.emit(numbers, why)


def text_of(content: Any) -> str:
    """The text of content blocks, or of one."""
    listed = content if isinstance(content, list) else [content]
    texts = [b["text"] for b in listed if isinstance(b, dict) and isinstance(b.get("text"), str)]
    return "\n".join(texts).strip()[:20_000]


def shown(said: PageSaid) -> str:
    """An update as the person reads it."""
    data = "" if said.structured is None else json.dumps(thaw(said.structured), ensure_ascii=False, indent=2)
    return "\n".join(part for part in (said.text, data) if part)
