"""The host's side of one page of a server (MCP Apps): answers its requests, by the rules that hold for the model.

Everything that arrives was written by a stranger: it may read and call its own server, through the gate; open a
link, write to the person's chat or tell the model something only where the person says so; and nothing else.
Sections named here are those of the MCP Apps specification, revision 2026-01-26.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from PySide6.QtCore import QObject, QTimer, Signal

from desktop_host.core.apps import AppPage
from desktop_host.core.codec import block_to_mcp
from desktop_host.core.errors import HostError
from desktop_host.core.exchange import ToolOutcome
from desktop_host.core.messages import Outcome
from desktop_host.core.transcript import ToolEntry
from desktop_host.core.values import FrozenDict, freeze, thaw
from desktop_host.engine.host import Host
from desktop_host.i18n import tr
from desktop_host.ui.bridge import Bridge
from desktop_host.ui.viewmodels.app_hello import HIGHEST, LOWEST, hello, room
from desktop_host.ui.viewmodels.app_words import PageWords, text_of

LARGEST = 2_000_000
"""Characters of one message of a page."""
MOST_CALLS = 8
"""Calls of one page at once; more are refused, so that none can drown the person in questions."""
MOST_LOGGED = 200
"""Messages that one page may write to the log."""
FAREWELL_MS = 500
"""How long a page may take to end by itself (`ui/resource-teardown`)."""
METHOD_NOT_FOUND, INVALID, REFUSED = -32601, -32602, -32000
_TEARDOWN = "desktop-host-teardown"
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Wish:
    """Something that a page may do only if the person says so; `reply` is called once, with their word."""

    kind: str
    """`link`, `message` or `speak`."""
    text: str
    reply: Callable[[bool], None]


class AppSession(QObject):
    """Speaks with one page. `receive` takes its messages as text; `send` is how it hears from us.

    Args:
        bridge: the host.
        session: the conversation.
        page: what is shown.
        entry: the call in whose card it stands.
        looks: the part of the host's context that the theme decides, as it is now.
    """

    send = Signal(str)
    resized = Signal(int)
    """How high the page wants to be."""
    wished = Signal(object)
    """A `Wish`."""
    ended = Signal()
    """The page said good-bye, or took too long: it may be taken away."""

    def __init__(
        self, bridge: Bridge, session: str, page: AppPage, entry: ToolEntry, looks: Callable[[], dict[str, Any]],
        parent: QObject | None = None,
    ) -> None:  # fmt: skip
        super().__init__(parent)
        self._bridge, self._session, self.page, self._looks = bridge, session, page, looks
        self._entry = entry
        self.ready = False
        """Whether the page said that it is: before, nothing is sent to it."""
        self.width = 0
        """How wide it stands, in pixels; 0: not known yet."""
        self._under_way = 0
        self._logged = 0
        self._wish_open = False
        self._ending = False
        self._words = PageWords(bridge, session, page, entry.call_id, self)
        self._words.wants.connect(lambda text: self.wished.emit(Wish("speak", text, self._words.decided)))
        self._words.answered.connect(self._answered_words)

    def receive(self, text: str) -> None:
        """A message of the page."""
        if len(text) > LARGEST:
            return
        try:
            message = json.loads(text)
        except (ValueError, RecursionError):
            return
        if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
            return
        method, number = message.get("method"), message.get("id")
        params = message.get("params")
        params = params if isinstance(params, dict) else {}
        if not isinstance(method, str):
            if number == _TEARDOWN and self._ending:
                self._end()
        elif number is None:
            self._noted(method, params)
        elif isinstance(number, (int, str)) and not isinstance(number, bool):
            self._asked(number, method, params)

    def show_entry(self, entry: ToolEntry) -> None:
        """The call as it now is: its result follows as soon as there is one."""
        news, self._entry = entry.outcome is not self._entry.outcome, entry
        if news and self.ready:
            self._tell_result()

    def looks_changed(self) -> None:
        """The window has other colours now."""
        if self.ready:
            self._note("ui/notifications/host-context-changed", self._looks())

    def resize(self, width: int) -> None:
        """The page has another width."""
        news, self.width = width != self.width, width
        if news and self.ready:
            self._note("ui/notifications/host-context-changed", room(width))

    def end(self, reason: str) -> None:
        """Tell the page that it ends (`ui/resource-teardown`); `ended` follows within `FAREWELL_MS`."""
        if self._ending:
            return
        self._ending = True
        if not self.ready:
            QTimer.singleShot(0, self, self.ended.emit)
            return
        self._send({"id": _TEARDOWN, "method": "ui/resource-teardown", "params": {"reason": reason}})
        QTimer.singleShot(FAREWELL_MS, self, self._end)

    # ---- inside
    def _end(self) -> None:
        if self._ending and self.ready:
            self.ready = False
            self.ended.emit()

    def _noted(self, method: str, params: dict[str, Any]) -> None:
        match method:
            case "ui/notifications/initialized" if not self.ready and not self._ending:
                self.ready = True
                self._note("ui/notifications/tool-input", {"arguments": thaw(self._entry.arguments)})
                self._tell_result()
            case "ui/notifications/size-changed":
                height = params.get("height")
                if isinstance(height, (int, float)) and 0 < height < 100_000:
                    self.resized.emit(max(LOWEST, min(HIGHEST, round(height))))
            case "notifications/message" if self._logged < MOST_LOGGED:
                self._logged += 1
                said = json.dumps(params.get("data"), ensure_ascii=False)[:1000]
                _log.info("page of %s.%s: %s", self.page.server, self.page.tool, said)
            case _:
                pass  # Whatever later revisions add needs no answer.

    def _asked(self, number: int | str, method: str, params: dict[str, Any]) -> None:
        if self._ending:
            self._error(number, REFUSED, "the page is being taken away")
            return
        match method:
            case "ui/initialize":
                self.ready = False  # A page that begins anew is given its call anew.
                self._answer(number, hello(self.page, self._entry.call_id, self._looks(), self.width))
            case "ping":
                self._answer(number, {})
            case "ui/request-display-mode":
                self._answer(number, {"mode": "inline"})
            case "ui/open-link":
                url = params.get("url")
                if isinstance(url, str) and url.startswith(("https://", "http://")) and len(url) < 8000:
                    self._wish(number, "link", url, "Link opening denied by user")
                else:
                    self._error(number, INVALID, "only web addresses can be opened")
            case "ui/message":
                text = text_of(params.get("content"))
                if text and params.get("role", "user") == "user":
                    self._wish(number, "message", text, "Message sending denied")
                else:
                    self._error(number, INVALID, "there is no text of the user's in it")
            case "ui/update-model-context":
                if (why := self._words.take(number, params)) is not None:
                    self._error(number, INVALID, why)
            case "tools/call":
                self._call(number, params)
            case "resources/read":
                self._read(number, params)
            case _:
                self._error(number, METHOD_NOT_FOUND, f"{method[:100]} is not offered to pages")

    def _wish(self, number: int | str, kind: str, text: str, denied: str) -> None:
        """Ask the person; a page asks one thing at a time."""
        if self._wish_open:
            self._error(number, REFUSED, "another question of this page is open")
            return
        self._wish_open = True

        def reply(yes: bool) -> None:
            self._wish_open = False
            self._answer(number, {}) if yes else self._error(number, REFUSED, denied)

        self.wished.emit(Wish(kind, text, reply))

    def _answered_words(self, numbers: list[int | str], why: str) -> None:
        for number in numbers:
            self._error(number, REFUSED, why) if why else self._answer(number, {})

    def _call(self, number: int | str, params: dict[str, Any]) -> None:
        name, arguments = params.get("name"), params.get("arguments") or {}
        if not isinstance(name, str) or not isinstance(arguments, dict):
            self._error(number, INVALID, "a name and arguments are needed")
            return
        if self._under_way >= MOST_CALLS:
            self._error(number, REFUSED, f"{MOST_CALLS} calls of this page are under way")
            return
        server, tool, given = self.page.server, self.page.tool, freeze(arguments)
        self._under_way += 1

        async def call(host: Host) -> ToolOutcome:
            return await host.apps.call(self._session, server, name, given, tool)

        def done(outcome: ToolOutcome) -> None:
            self._under_way -= 1
            self._answer(number, result_of(outcome))

        def failed(error: HostError) -> None:
            self._under_way -= 1
            self._failed(number, error)

        self._bridge.then(call, done, failed, self)

    def _read(self, number: int | str, params: dict[str, Any]) -> None:
        uri = params.get("uri")
        if not isinstance(uri, str) or len(uri) > 2000:
            self._error(number, INVALID, "an address is needed")
            return
        server = self.page.server
        self._bridge.then(
            lambda host: host.servers.read_resource(server, uri),
            lambda outcome: self._answer(number, thaw(outcome.raw)), lambda e: self._failed(number, e), self,
        )  # fmt: skip

    def _tell_result(self) -> None:
        entry = self._entry
        if entry.outcome is None:
            return
        if entry.outcome in (Outcome.OK, Outcome.ERROR):
            told: dict[str, Any] = {"content": [block_to_mcp(b) for b in entry.content]}
            if entry.structured is not None:
                told["structuredContent"] = thaw(entry.structured)
            if entry.meta is not None:
                told["_meta"] = thaw(entry.meta)
            if entry.outcome is Outcome.ERROR:
                told["isError"] = True
            self._note("ui/notifications/tool-result", told)
        else:
            self._note("ui/notifications/tool-cancelled", {"reason": tr(f"chat.outcome.{entry.outcome.value}")})

    def _failed(self, number: int | str, error: HostError) -> None:
        self._error(number, REFUSED, error.message)

    def _note(self, method: str, params: dict[str, Any]) -> None:
        self._send({"method": method, "params": params})

    def _answer(self, number: int | str, result: Any) -> None:
        self._send({"id": number, "result": result})

    def _error(self, number: int | str, code: int, message: str) -> None:
        self._send({"id": number, "error": {"code": code, "message": message}})

    def _send(self, body: dict[str, Any]) -> None:
        self.send.emit(json.dumps({"jsonrpc": "2.0", **body}, ensure_ascii=False))


def result_of(outcome: ToolOutcome) -> dict[str, Any]:
    """A call's outcome as the page has it: what the server said, or why there is nothing."""
    raw = thaw(outcome.raw) if isinstance(outcome.raw, FrozenDict) else {}
    if isinstance(raw, dict) and "content" in raw:
        return raw
    return {"content": [block_to_mcp(b) for b in outcome.content], "isError": outcome.outcome is not Outcome.OK}
