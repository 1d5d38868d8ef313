"""The host's side of one page of a server (MCP Apps): answers its requests, by the rules that hold for the model.

Everything that arrives was written by a stranger: it may read and call its own server, through the gate; open a
link or speak to the person only through the window; and nothing else.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from PySide6.QtCore import QObject, Signal

import desktop_host
from desktop_host.core.apps import PROTOCOL, AppPage
from desktop_host.core.codec import block_to_mcp
from desktop_host.core.errors import HostError
from desktop_host.core.exchange import ToolOutcome
from desktop_host.core.messages import Outcome
from desktop_host.core.transcript import ToolEntry
from desktop_host.core.values import FrozenDict, freeze, thaw
from desktop_host.engine.host import Host
from desktop_host.i18n import current, tr
from desktop_host.ui.bridge import Bridge

LARGEST = 2_000_000
"""Characters of one message of a page."""
LOWEST, HIGHEST = 48, 640
"""How high a page may make itself, in pixels."""
METHOD_NOT_FOUND, INVALID, REFUSED = -32601, -32602, -32000


class AppSession(QObject):
    """Speaks with one page. `receive` takes its messages as text; `send` is how it hears from us."""

    send = Signal(str)
    resized = Signal(int)
    """How high the page wants to be."""
    link_wanted = Signal(str)
    """A web address that the page wants opened; nothing is opened before the person agrees."""
    said = Signal(str)
    """Words that the page proposes for the person's next message."""

    def __init__(
        self, bridge: Bridge, session: str, page: AppPage, entry: ToolEntry, dark: Callable[[], bool],
        parent: QObject | None = None,
    ) -> None:  # fmt: skip
        super().__init__(parent)
        self._bridge, self._session, self.page, self._dark = bridge, session, page, dark
        self._entry = entry
        self.ready = False
        """Whether the page said that it is."""

    def receive(self, text: str) -> None:
        """A message of the page."""
        if len(text) > LARGEST:
            return
        try:
            message = json.loads(text)
        except ValueError:
            return
        if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
            return
        method, number = message.get("method"), message.get("id")
        params = message.get("params")
        params = params if isinstance(params, dict) else {}
        if not isinstance(method, str):
            return  # The answer to a request of ours; we make none that matters.
        if number is None:
            self._noted(method, params)
        elif isinstance(number, (int, str)):
            self._asked(number, method, params)

    def show_entry(self, entry: ToolEntry) -> None:
        """The call as it now is: its result follows as soon as there is one."""
        news, self._entry = entry.outcome is not self._entry.outcome, entry
        if news and self.ready:
            self._tell_result()

    def theme_changed(self) -> None:
        """The window is dark now, or light."""
        if self.ready:
            self._note("ui/notifications/host-context-changed", {"theme": self._theme()})

    # ---- inside
    def _noted(self, method: str, params: dict[str, Any]) -> None:
        match method:
            case "ui/notifications/initialized":
                self.ready = True
                self._note("ui/notifications/tool-input", {"arguments": thaw(self._entry.arguments)})
                self._tell_result()
            case "ui/notifications/size-changed":
                height = params.get("height")
                if isinstance(height, (int, float)) and 0 < height < 100_000:
                    self.resized.emit(max(LOWEST, min(HIGHEST, round(height))))
            case _:
                pass  # Logging of a page, and whatever later revisions add, needs no answer.

    def _asked(self, number: int | str, method: str, params: dict[str, Any]) -> None:
        match method:
            case "ui/initialize":
                self._answer(number, self._hello())
            case "ping":
                self._answer(number, {})
            case "ui/request-display-mode":
                self._answer(number, {"mode": "inline"})
            case "ui/open-link":
                url = params.get("url")
                if isinstance(url, str) and url.startswith(("https://", "http://")) and len(url) < 8000:
                    self.link_wanted.emit(url)
                    self._answer(number, {})
                else:
                    self._error(number, INVALID, "only web addresses can be opened")
            case "ui/message":
                text = _text_of(params)
                if text:
                    self.said.emit(text)
                    self._answer(number, {})
                else:
                    self._error(number, INVALID, "there is no text in it")
            case "tools/call":
                self._call(number, params)
            case "resources/read":
                self._read(number, params)
            case _:
                self._error(number, METHOD_NOT_FOUND, f"{method[:100]} is not offered to pages")

    def _call(self, number: int | str, params: dict[str, Any]) -> None:
        name, arguments = params.get("name"), params.get("arguments") or {}
        if not isinstance(name, str) or not isinstance(arguments, dict):
            self._error(number, INVALID, "a name and arguments are needed")
            return
        server, given = self.page.server, freeze(arguments)

        async def call(host: Host) -> ToolOutcome:
            return await host.apps.call(self._session, server, name, given)

        self._bridge.then(call, lambda o: self._answer(number, result_of(o)), lambda e: self._failed(number, e), self)

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

    def _hello(self) -> dict[str, Any]:
        return {
            "protocolVersion": PROTOCOL,
            "hostInfo": {"name": "desktop-host", "version": desktop_host.__version__},
            "hostCapabilities": {"openLinks": {}, "serverTools": {}, "serverResources": {}},
            "hostContext": {
                "theme": self._theme(), "displayMode": "inline", "availableDisplayModes": ["inline"],
                "locale": current().language.replace("_", "-"), "platform": "desktop",
                "containerDimensions": {"maxHeight": HIGHEST},
            },
        }  # fmt: skip

    def _theme(self) -> str:
        return "dark" if self._dark() else "light"

    def _tell_result(self) -> None:
        entry = self._entry
        if entry.outcome is None:
            return
        if entry.outcome in (Outcome.OK, Outcome.ERROR):
            told: dict[str, Any] = {"content": [block_to_mcp(b) for b in entry.content]}
            if entry.structured is not None:
                told["structuredContent"] = thaw(entry.structured)
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


def _text_of(params: dict[str, Any]) -> str:
    blocks = params.get("content")
    listed = blocks if isinstance(blocks, list) else [blocks]
    texts = [b["text"] for b in listed if isinstance(b, dict) and isinstance(b.get("text"), str)]
    return "\n".join(texts).strip()[:20_000]
