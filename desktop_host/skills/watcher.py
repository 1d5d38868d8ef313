"""Hot reload: what changes on disk is in the library within a second, however it was saved.

`watchdog` says that something changed; what changed is found by looking (a stat per file), so no lost, doubled or
misnamed event can leave the library behind. Where the system grants no watches, folders are polled.
"""

from __future__ import annotations

import asyncio
import logging
import os
import threading
import time
import warnings
from typing import Any

from desktop_host.skills.library import Library

START_S = 0.5
"""How long reading and watching wait for the start of the host, unless skills are asked for: a short command
should not pay for them."""
QUIET_S = 0.3
"""A change is taken up once it was quiet for so long…"""
LONGEST_S = 0.5
"""…but at the latest after so long."""
CHECK_S = 1.0
"""How often it is looked whether a folder came, went or was replaced."""
SWEEP_S = 60.0
"""How often everything is looked at without a reason."""
POLL_S = 1.0
"""How often folders are polled where they cannot be watched."""
CROWD = 64
"""Paths at once from which everything is looked at, and a second time when it is quiet."""
_REAL = frozenset({"created", "deleted", "modified", "moved", "closed"})
"""Kinds of events that change something; reading a file is none."""
_log = logging.getLogger(__name__)


class Watcher:
    """Watches the places of a library and lets it look again."""

    def __init__(self, library: Library, *, polling: bool = False) -> None:
        self._library = library
        self._polling = polling
        self._observer: Any = None
        self._watched: dict[str, tuple[Any, tuple[int, int]]] = {}
        self._touched = asyncio.Event()
        self._last = 0.0
        self._first: float | None = None
        self._task: asyncio.Task[None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._guard = threading.Lock()
        """Held while watches are changed."""
        self._naming = threading.Lock()
        """Held for a moment while `_paths` is changed: the observer's thread must never wait for `_guard`."""
        self._paths: set[str] = set()
        self._closed = False
        self.scans = 0
        """How often the library looked again because something changed."""

    @property
    def polling(self) -> bool:
        """Whether the system granted no watches."""
        return self._polling

    @property
    def watching(self) -> frozenset[str]:
        """The folders that are watched now."""
        return frozenset(self._watched)

    def start(self) -> None:
        """Read the library and begin to watch, in the background."""
        self._loop = asyncio.get_running_loop()
        self._task = asyncio.create_task(self._run(), name="skills watcher")

    async def close(self) -> None:
        """Stop watching."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        await asyncio.to_thread(self._stop)

    def touch(self, *paths: str) -> None:
        """Something changed at these paths; called from any thread."""
        with self._naming:
            self._paths.update(paths)
        now = time.monotonic()
        self._last = now
        if self._first is None:
            self._first = now
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._touched.set)

    async def _run(self) -> None:
        await asyncio.sleep(START_S)
        await self._library.ready()
        await asyncio.to_thread(self._follow)
        await self._look()  # what changed between the first reading and the first watch
        swept = polled = time.monotonic()
        while True:
            try:
                async with asyncio.timeout(CHECK_S):
                    await self._touched.wait()
            except TimeoutError:
                now = time.monotonic()
                if await asyncio.to_thread(self._follow):
                    await self._look()
                elif await asyncio.to_thread(self._library.state_changed):
                    await self._look()
                    self._library.announce()
                elif now - swept > SWEEP_S or (self._polling and now - polled >= POLL_S):
                    swept = polled = now
                    await self._look()
                continue
            await self._settle()
            came = await asyncio.to_thread(self._follow)
            with self._naming:
                paths, self._paths = frozenset(self._paths), set()
            crowd = len(paths) > CROWD
            await self._look(None if came or crowd else paths)
            if crowd:  # The system's queue may have run over: what was lost is found by looking once more.
                swept = time.monotonic() - SWEEP_S + CHECK_S

    async def _settle(self) -> None:
        """Wait until it is quiet, but no longer than `LONGEST_S` since the first change."""
        while True:
            now = time.monotonic()
            first = self._first if self._first is not None else now
            wait = min(self._last + QUIET_S, first + LONGEST_S) - now
            if wait <= 0:
                break
            await asyncio.sleep(wait)
        self._first = None
        self._touched.clear()

    async def _look(self, touched: frozenset[str] | None = None) -> None:
        self.scans += 1
        try:
            await self._library.rescan(touched)
        except Exception:  # The watch must outlive one scan that fails.
            _log.exception("the skills could not be read again; the last reading stays")

    # ---- watches; blocking
    def _follow(self) -> bool:
        """Watch the places that are there now; whether any came, went or was replaced."""
        with self._guard:
            return not self._closed and self._follow_now()

    def _follow_now(self) -> bool:
        wanted: dict[str, tuple[int, int]] = {}
        for folder in self._library.watched_folders():
            try:
                info = os.stat(folder)
            except OSError:
                continue
            wanted[str(folder)] = (info.st_dev, info.st_ino)
        changed = False
        for path in [p for p, (_, mark) in self._watched.items() if wanted.get(p) != mark]:
            self._unwatch(path)
            changed = True
        for path, mark in wanted.items():
            if path not in self._watched:
                self._watched[path] = (self._watch(path), mark)
                changed = True
        return changed

    def _watch(self, path: str) -> Any:
        if self._polling:
            return None
        try:
            if self._observer is None:
                from watchdog.observers import Observer

                # watchdog warns when a folder moves while it walks it; it replaces the watch and goes on.
                warnings.filterwarnings("ignore", "Callback with id .* already exists", RuntimeWarning)
                observer = Observer()
                observer.daemon = True
                observer.start()
                self._observer = observer
            return self._observer.schedule(_handler(self), path, recursive=True, event_filter=_kinds())
        except OSError as error:  # no watches or no instances left: fs.inotify limits
            _log.warning("folders of skills are polled, for they cannot be watched: %s", error)
            self._polling = True
            return None

    def _unwatch(self, path: str) -> None:
        watch, _ = self._watched.pop(path)
        if watch is not None and self._observer is not None:
            try:
                self._observer.unschedule(watch)
            except (KeyError, OSError):
                _log.debug("the watch of %s is gone already", path)

    def _stop(self) -> None:
        """Waits for a `_follow` that still runs in its thread: nothing is watched afterwards."""
        with self._guard:
            self._closed = True
            if self._observer is not None:
                self._observer.stop()
                self._observer.join(timeout=5)


def _kinds() -> list[Any]:
    """What the system is asked to tell: changes, not that a file was opened, so that our own reading is silent."""
    from watchdog import events as e

    return [
        e.FileCreatedEvent, e.FileModifiedEvent, e.FileDeletedEvent, e.FileMovedEvent, e.FileClosedEvent,
        e.DirCreatedEvent, e.DirDeletedEvent, e.DirMovedEvent,
    ]  # fmt: skip


def _handler(watcher: Watcher) -> Any:
    from watchdog.events import FileSystemEvent, FileSystemEventHandler

    class Touch(FileSystemEventHandler):
        """Passes on that something changed."""

        def on_any_event(self, event: FileSystemEvent) -> None:
            if event.event_type not in _REAL:
                return
            if event.is_directory and event.event_type == "modified":
                return  # the entry that changed in it says so itself
            paths = [os.fsdecode(p) for p in (event.src_path, event.dest_path) if p]
            if not all(os.path.basename(p).startswith(".incoming-") for p in paths):
                watcher.touch(*paths)

    return Touch()
