"""The folders of a knowledge server: what it holds, taking one in or out, its documents, a question by hand."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import aclosing
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import Any

from PySide6.QtCore import QObject, QTimer, Signal

from desktop_host.core import events as ev
from desktop_host.core.errors import HostError, PeerFault
from desktop_host.core.exchange import Progress, ToolOutcome
from desktop_host.core.messages import EmbeddedResource, Outcome, Text
from desktop_host.core.servers import ServerConfig, Stdio
from desktop_host.core.values import FrozenDict
from desktop_host.engine.host import Host
from desktop_host.ui.bridge import Bridge
from desktop_host.ui.viewmodels.servers import UPDATED

STATS = "knowledge://stats"
LOOK_MS = 700
"""How often it is looked at while documents are being read."""


def keeps_folders(config: ServerConfig | None) -> bool:
    """Whether a server is the bundled knowledge server, however it is started."""
    launch = config.launch if config is not None else None
    words = (launch.command, *launch.args) if isinstance(launch, Stdio) else ()
    return any(PurePath(word).name == "knowledge" for word in words)


@dataclass(frozen=True, slots=True)
class Held:
    """What the index holds."""

    folders: tuple[str, ...] = ()
    documents: int = 0
    passages: int = 0
    size: int = 0
    """Bytes."""
    skipped: int = 0
    done: int = 0
    of: int = 0
    """Documents to read in all; 0: nothing is being read."""


class Folders(QObject):
    """One knowledge server; looked at while it is shown."""

    changed = Signal()
    documents_changed = Signal()
    found = Signal(object)
    """The passages of a search: a tuple of what the server gave for each."""
    failed = Signal(object)

    def __init__(self, bridge: Bridge, name: str, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._bridge, self._name = bridge, name
        self.held = Held()
        self.known = False
        self.busy = ""
        """The folder that is being taken in or out."""
        self.documents: tuple[Any, ...] = ()
        self.more_from: int | None = None
        """Where the list of documents goes on."""
        self._lock = threading.Lock()
        self._told: Progress | None = None
        self._watching: Future[None] | None = None
        self._timer = QTimer(self)
        self._timer.setInterval(LOOK_MS)
        self._timer.timeout.connect(self._tick)
        bridge.batch.connect(self._take)

    def watch(self, on: bool) -> None:
        """Follow the index, or no more."""
        if on and self._watching is None:
            self.look()
            self._watching = self._bridge.then(self._follow, lambda _: None, lambda _error: None, self)
        elif not on and self._watching is not None:
            self._watching.cancel()
            self._watching = None
            self._timer.stop()

    def look(self) -> None:
        """Read what the index holds."""
        self._bridge.then(self._read, self._show, self._fail, self)

    def add(self, folder: str) -> None:
        """Take a folder in."""
        self._change("add_folder", folder)

    def remove(self, folder: str) -> None:
        """Take a folder out; the server asks the person first."""
        self._change("remove_folder", folder)

    def search(self, text: str) -> None:
        """Ask the index."""
        arguments = FrozenDict({"query": text})
        self._call("search_knowledge", arguments, lambda data: self.found.emit(tuple(data.get("passages") or ())))

    def list_documents(self, offset: int = 0) -> None:
        """Read the list of documents from a place on."""

        def listed(data: FrozenDict) -> None:
            page = tuple(data.get("documents") or ())
            self.documents = (*self.documents, *page) if offset else page
            self.more_from = data.get("next_offset")
            self.documents_changed.emit()

        self._call("list_documents", FrozenDict({"offset": offset}), listed)

    # ---- inside
    async def _read(self, host: Host) -> Held:
        outcome = await host.servers.read_resource(self._name, STATS)
        text = next((b.text for b in outcome.content if isinstance(b, EmbeddedResource) and b.text), "{}")
        try:
            stats = json.loads(text)
            reading = stats.get("reading") or {}
            return Held(
                tuple(stats["folders"]), stats["documents"], stats["passages"], stats["bytes"], stats["skipped"],
                reading.get("done", 0), reading.get("of", 0),
            )  # fmt: skip
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise PeerFault("protocol_error", f"{self._name}: {STATS} is not what it should be") from error

    async def _follow(self, host: Host) -> None:
        async with aclosing(host.servers.watch(self._name, STATS)) as updates:
            async for _uri in updates:
                pass  # Each is told as an event, too, which `_take` sees.

    def _take(self, batch: tuple[ev.Stamped, ...]) -> None:
        for stamped in batch:
            match stamped.event:
                case ev.ServerChanged(server=self._name, lists=lists) if UPDATED + STATS in lists and not self.busy:
                    self.look()
                    return

    def _show(self, held: Held) -> None:
        changed = (held.folders, held.documents) != (self.held.folders, self.held.documents) or not self.known
        self.held, self.known = held, True
        if (held.of or self.busy) and self._watching is not None:
            self._timer.start()
        else:
            self._timer.stop()
        self.changed.emit()
        if changed and not held.of:
            self.list_documents()

    def _tick(self) -> None:
        with self._lock:
            told, self._told = self._told, None
        if told is not None and self.busy:
            self.held = replace(self.held, done=int(told.progress), of=int(told.total or 0))
            self.changed.emit()
        elif not self.busy:
            self.look()

    def _change(self, tool: str, folder: str) -> None:
        if self.busy:
            return
        self.busy = folder
        self._timer.start()
        self.changed.emit()

        def keep(progress: Progress) -> None:  # Comes on the host's loop.
            with self._lock:
                self._told = progress

        async def act(host: Host) -> ToolOutcome:
            return await host.servers.call_tool(self._name, tool, FrozenDict({"folder": folder}), keep)

        def done(outcome: ToolOutcome) -> None:
            self.busy = ""
            if outcome.outcome is not Outcome.OK:
                self.failed.emit(_fault(outcome))
            self.look()

        def failed(error: HostError) -> None:
            self.busy = ""
            self._fail(error)
            self.look()

        self._bridge.then(act, done, failed, self)

    def _call(self, tool: str, arguments: FrozenDict, done: Callable[[FrozenDict], None]) -> None:
        def settled(outcome: ToolOutcome) -> None:
            if outcome.outcome is not Outcome.OK or not isinstance(outcome.structured, FrozenDict):
                self.failed.emit(_fault(outcome))
            else:
                done(outcome.structured)

        self._bridge.then(lambda host: host.servers.call_tool(self._name, tool, arguments), settled, self._fail, self)

    def _fail(self, error: HostError) -> None:
        self.failed.emit(error)


def _fault(outcome: ToolOutcome) -> HostError:
    said = " ".join(b.text for b in outcome.content if isinstance(b, Text))
    return PeerFault("tool_failed", said or "no reason was given")
