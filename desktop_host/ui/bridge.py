"""The seam between two threads: a host on its own loop, a window on Qt's.

The worker touches no Qt object but this one, and of it only the signals, which are queued: calling into Qt from
there can deadlock (the binding holds the GIL while Qt waits for the window's thread).
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import CancelledError, Future
from dataclasses import replace
from typing import Any, TypeVar

from PySide6.QtCore import QObject, Qt, QTimer, Signal
from shiboken6 import isValid

from desktop_host.core.errors import HostError
from desktop_host.core.events import Stamped
from desktop_host.engine.host import Host, HostSpec, Opener
from desktop_host.ui.outcomes import copy_outcome, named

T = TypeVar("T")

log = logging.getLogger(__name__)

FLUSH_MS = 16
"""Shortest time between two batches: one frame at 60 Hz."""
HELD_EVENTS = 4000
"""Events that may wait for the window; beyond that the reader pauses and the bus applies its own rules."""


class Bridge(QObject):
    """A host in a worker thread, as a window sees it: `opener` is entered and left there. Lives in the window's."""

    batch = Signal(object)
    """`tuple[Stamped, ...]` of all sessions, servers and the library, in order, at most every 16 ms."""
    ready = Signal(object)
    """The `Host` is open. Use it through `call`, `then` and `ask` only."""
    failed = Signal(object)
    """`HostError`: the host could not be opened, or died."""
    failed_call = Signal(object)
    """`HostError` of a call that nobody else heard the failure of."""
    lagged = Signal()
    """Events were lost to this window; what is shown must be read from the journal again."""
    closed = Signal()
    """The worker thread has ended and was joined."""

    _arrived = Signal()
    _deliver = Signal(object)
    _ended = Signal()

    def __init__(self, opener: Opener, spec: HostSpec, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._opener = opener
        self._spec = spec
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()
        self._held: list[Stamped] = []
        self._pending: set[Future[Any]] = set()
        self._failure: HostError | None = None
        self._over = self._closing = False
        self._opened: asyncio.Future[Host] | None = None
        self._main: asyncio.Task[None] | None = None
        self._stop: asyncio.Event | None = None
        self._room: asyncio.Event | None = None
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setInterval(FLUSH_MS)
        self._timer.timeout.connect(self._flush)
        queued = Qt.ConnectionType.QueuedConnection
        self._arrived.connect(self._on_arrived, queued)
        self._deliver.connect(lambda act: act(), queued)
        self._ended.connect(self._on_ended, queued)

    @property
    def running(self) -> bool:
        """Whether the worker thread lives."""
        return self._thread is not None

    def start(self, passphrase: str = "") -> None:
        """Open the host in the worker thread; `ready` or `failed` follows. `passphrase`: see `HostSpec`."""
        if self._thread is not None or self._closing:
            return
        self._spec = replace(self._spec, passphrase=passphrase)
        self._loop, self._over = asyncio.new_event_loop(), False
        self._opened = self._loop.create_future()
        self._thread = threading.Thread(target=self._work, name="host", daemon=True)
        self._thread.start()

    def call(self, make: Callable[[Host], Awaitable[T]]) -> Future[T]:
        """Run `make(host)` on the host's loop, once the host is open; cancelling the future cancels the call.

        It fails with its own error or that of the opening, and is cancelled where the bridge closes first.
        """
        loop, opened = self._loop, self._opened
        future: Future[T] = Future()
        if loop is None or opened is None or self._closing:
            future.cancel()
            return future

        async def run() -> T:
            return await make(await asyncio.shield(opened))

        def begin() -> None:
            if self._over:
                return self._give_up(future)  # a task made now would never run
            task = loop.create_task(run())
            task.add_done_callback(lambda _t: copy_outcome(task, future))
            future.add_done_callback(lambda f: self._on_loop(task.cancel) if f.cancelled() else None)

        with self._lock:
            self._pending.add(future)
        future.add_done_callback(self._forget)
        if not self._on_loop(begin):
            self._give_up(future)
        return future

    def then(
        self,
        make: Callable[[Host], Awaitable[T]],
        done: Callable[[T], None],
        failed: Callable[[HostError], None] | None = None,
        owner: QObject | None = None,
    ) -> Future[T]:
        """Run `make(host)` and hand its result to `done` in the window's thread.

        A failure goes to `failed`, else to the signal `failed_call`. Nothing is delivered once `owner` is gone.
        """

        def settle(future: Future[T]) -> None:
            if isValid(self):
                self._deliver.emit(lambda: self._settle(future, done, failed, owner))

        future = self.call(make)
        future.add_done_callback(settle)
        return future

    def ask(self, make: Callable[[Host], Awaitable[T]]) -> Awaitable[T]:
        """Like `call`, for a coroutine that runs on the window's own (qasync) loop."""
        return asyncio.wrap_future(self.call(make))

    def close(self) -> None:
        """Close the host in order; `closed` follows. Never blocks."""
        if self._closing:
            return
        self._closing = True
        if self._thread is None:
            self._ended.emit()
            return
        self._on_loop(self._request_stop)

    # ---- in the window's thread

    def _on_loop(self, act: Callable[[], object]) -> bool:
        """Run `act` on the host's loop; False where that has ended."""
        try:
            if self._loop is not None:
                self._loop.call_soon_threadsafe(act)
                return True
        except RuntimeError:
            log.debug("the host's loop has ended already")
        return False

    def _forget(self, future: Future[Any]) -> None:
        with self._lock:
            self._pending.discard(future)

    def _give_up(self, future: Future[Any]) -> None:
        if self._failure is None:
            future.cancel()
        elif future.set_running_or_notify_cancel():
            future.set_exception(self._failure)

    def _on_arrived(self) -> None:
        if not self._timer.isActive():
            self._timer.start()

    def _flush(self) -> None:
        with self._lock:
            events, self._held = self._held, []
        if len(events) >= HELD_EVENTS:
            self._on_loop(self._make_room)
        if events:
            self.batch.emit(tuple(events))

    def _settle(
        self,
        future: Future[T],
        done: Callable[[T], None],
        failed: Callable[[HostError], None] | None,
        owner: QObject | None,
    ) -> None:
        if owner is not None and not isValid(owner):
            return
        try:
            value = future.result(timeout=0)
        except (CancelledError, asyncio.CancelledError):
            return
        except Exception as cause:
            if not self._closing:  # else the host was closed under it
                (failed or self.failed_call.emit)(named(cause))
            return
        done(value)

    def _on_ended(self) -> None:
        if self._thread is not None:
            self._thread.join()
            self._thread = None
            with self._lock:
                left = tuple(self._pending)
            for future in left:
                self._give_up(future)
        self._timer.stop()
        self._flush()
        if self._closing:
            self.closed.emit()

    # ---- in the worker thread

    def _work(self) -> None:
        loop = self._loop
        assert loop is not None
        try:
            with asyncio.Runner(loop_factory=lambda: loop) as runner:
                runner.run(self._serve())
        except asyncio.CancelledError:
            pass
        except Exception as cause:
            self._failure = named(cause)
            self.failed.emit(self._failure)
        finally:
            self._ended.emit()

    async def _serve(self) -> None:
        assert self._opened is not None
        self._stop, self._room = asyncio.Event(), asyncio.Event()
        self._main = asyncio.current_task()
        if self._closing:
            self._over = True
            return
        try:
            async with self._opener(self._spec) as host:
                pump = asyncio.create_task(self._pump(host), name="bridge-pump")
                await asyncio.sleep(0)
                self._opened.set_result(host)
                self.ready.emit(host)
                stop = asyncio.create_task(self._stop.wait(), name="bridge-stop")
                await asyncio.wait({pump, stop}, return_when=asyncio.FIRST_COMPLETED)
                stop.cancel()
                if pump.done() and not self._stop.is_set():
                    pump.result()
                pump.cancel()
                await asyncio.wait({pump})
        except Exception as cause:
            if not self._opened.done():
                self._opened.set_exception(named(cause))
                self._opened.exception()
            raise
        finally:
            self._over = True

    async def _pump(self, host: Host) -> None:
        assert self._room is not None
        first = True
        while True:
            reader = host.subscribe(None)
            if not first:
                self.lagged.emit()
            first = False
            try:
                async for events in reader:
                    with self._lock:
                        idle = not self._held
                        self._held.extend(events)
                        full = len(self._held) >= HELD_EVENTS
                        if full:
                            self._room.clear()
                    if idle:
                        self._arrived.emit()
                    if full:
                        await self._room.wait()
            finally:
                reader.close()
            if reader.lagged_seq is None:
                return

    def _make_room(self) -> None:
        if self._room is not None:
            self._room.set()

    def _request_stop(self) -> None:
        if self._stop is not None:
            self._stop.set()
        if self._main is not None and self._opened is not None and not self._opened.done():
            self._main.cancel()
