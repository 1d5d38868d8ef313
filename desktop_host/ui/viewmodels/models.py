"""Models and keys: what can be picked, what lacks a key, what is being fetched."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future

from PySide6.QtCore import QObject, QTimer, Signal

from desktop_host.core.errors import HostError
from desktop_host.core.models import ModelEntry, ModelProgress
from desktop_host.core.settings import Endpoint
from desktop_host.core.values import FrozenDict
from desktop_host.engine.host import Host
from desktop_host.ui.bridge import Bridge

PROGRESS_MS = 100
VENDORS = ("anthropic", "openai")

_WIRE_PREFIX = {"compat": "compat", "responses": "responses", "anthropic": "anthropic",
                "anthropic-compat": "anthropic-compat"}  # fmt: skip
WIRES = tuple(_WIRE_PREFIX)


def endpoint_ref(endpoint: Endpoint, model: str) -> str:
    """The REF of a model at an address."""
    return f"{_WIRE_PREFIX[endpoint.wire]}:{endpoint.base_url}#{model}"


class Models(QObject):
    """The models of the profile and the keys they need. Never holds a key: it is sent to the vault and forgotten."""

    changed = Signal()
    """Entries or keys are others."""
    store_changed = Signal()
    """The state of the vault is known (again)."""
    progress = Signal(object)
    """`ModelProgress` of the fetch under way."""
    fetching_changed = Signal()
    failed = Signal(object)

    def __init__(self, bridge: Bridge, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._bridge = bridge
        self.entries: tuple[ModelEntry, ...] = ()
        self.keys: frozenset[str] = frozenset()
        """Names of secrets that are set."""
        self.store: FrozenDict | None = None
        """`{store, ok, detail, remedy}`; None: not known yet."""
        self.store_error: HostError | None = None
        self.loaded = False
        self.fetching: str | None = None
        """Name of the model whose weights are being fetched."""
        self.last: ModelProgress | None = None
        self._fetch: Future[None] | None = None
        self._lock = threading.Lock()
        self._newest: ModelProgress | None = None
        self._timer = QTimer(self)
        self._timer.setInterval(PROGRESS_MS)
        self._timer.timeout.connect(self._show_progress)

    def refresh(self, ask_vendors: bool = False) -> None:
        """Read the models; `ask_vendors` also asks vendors and endpoints anew."""

        async def read(host: Host) -> tuple[ModelEntry, ...]:
            return await host.models.entries(refresh=ask_vendors)

        self._bridge.then(read, self._show, self.failed.emit, self)
        self.read_keys()

    def read_keys(self) -> None:
        """Read which keys are set."""
        self._bridge.then(lambda host: host.secrets.names(), self._show_keys, self._store_failed, self)

    def probe_store(self) -> None:
        """Try the vault by write, read and delete."""
        self._bridge.then(lambda host: host.secrets.probe(), self._show_store, self._store_failed, self)

    def local(self) -> tuple[ModelEntry, ...]:
        """The embedded models."""
        return tuple(e for e in self.entries if e.source == "local")

    def ready(self) -> tuple[ModelEntry, ...]:
        """What can be used now."""
        return tuple(e for e in self.entries if e.ready)

    # ---- keys

    def put_key(self, name: str, value: str, done: Callable[[], None], failed: Callable[[HostError], None]) -> None:
        """Keep a key in the vault."""

        def kept(_: None) -> None:
            self.refresh(ask_vendors=True)
            done()

        self._bridge.then(lambda host: host.secrets.put(name, value), kept, failed, self)

    def delete_key(self, name: str) -> None:
        """Forget a key."""
        self._bridge.then(lambda host: host.secrets.delete(name), lambda _: self.refresh(True), self.failed.emit, self)

    def check(self, ref: str, done: Callable[[], None], failed: Callable[[HostError], None]) -> None:
        """Send one tiny request to a model."""
        self._bridge.then(lambda host: host.models.check(ref), lambda _: done(), failed, self)

    def check_ref(self, source: str) -> str | None:
        """A REF of this source that a key can be tested with."""
        return next((e.ref for e in self.entries if e.source == source), None)

    # ---- weights

    def fetch(self, name: str) -> None:
        """Fetch the weights of an embedded model; one at a time."""
        if self.fetching is not None:
            return
        self.fetching, self.last = name, None
        # The callback runs on the host's loop: it leaves the newest report here, a timer of the window takes it.
        self._fetch = self._bridge.then(
            lambda host: host.models.fetch(name, self._keep_progress), self._fetched, self._fetch_failed, self
        )
        self._timer.start()
        self.fetching_changed.emit()

    def cancel_fetch(self) -> None:
        """Stop fetching; what was fetched so far is the fetcher's to keep or drop."""
        if self._fetch is not None:
            self._fetch.cancel()
        self._end_fetch()

    def remove(self, name: str) -> None:
        """Delete the weights of an embedded model."""
        self._bridge.then(lambda host: host.models.remove(name), lambda _: self.refresh(), self.failed.emit, self)

    # ---- inside

    def _keep_progress(self, progress: ModelProgress) -> None:
        with self._lock:
            self._newest = progress

    def _show_progress(self) -> None:
        with self._lock:
            newest, self._newest = self._newest, None
        if newest is not None:
            self.last = newest
            self.progress.emit(newest)

    def _fetched(self, _: None) -> None:
        self._show_progress()
        self._end_fetch()

    def _fetch_failed(self, error: HostError) -> None:
        self._end_fetch()
        self.failed.emit(error)

    def _end_fetch(self) -> None:
        self._timer.stop()
        self._fetch, self.fetching, self.last = None, None, None
        self.fetching_changed.emit()
        self.refresh()

    def _show(self, entries: tuple[ModelEntry, ...]) -> None:
        self.entries, self.loaded = entries, True
        self.changed.emit()

    def _show_keys(self, names: tuple[str, ...]) -> None:
        self.keys = frozenset(names)
        self.changed.emit()

    def _show_store(self, store: FrozenDict) -> None:
        self.store, self.store_error = store, None
        self.store_changed.emit()

    def _store_failed(self, error: HostError) -> None:
        self.store_error = error
        self.store_changed.emit()
