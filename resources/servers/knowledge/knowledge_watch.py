"""Watches the folders of an index: a change is taken in a third of a second later, and whoever listens is told."""

from __future__ import annotations

import sys
import threading
from pathlib import Path
from typing import Any

from knowledge_index import Index

QUIET_S = 0.3
"""A change is taken in when nothing more has changed for so long…"""
LATEST_S = 2.0
"""…or after this, whatever happens."""
LOOK_S = 300.0
"""How often the folders are looked through anyway: network drives tell nothing."""
_TELLING = frozenset({"created", "modified", "moved", "deleted", "closed"})


class Watch:
    """A thread that keeps an index up to date from `start` until `close`."""

    def __init__(self, index: Index) -> None:
        self._index = index
        self._stop = threading.Event()
        self._told = threading.Event()
        self._observer: Any = None
        self._watched: dict[Path, Any] = {}
        self._thread = threading.Thread(target=self._run, name="knowledge watch", daemon=True)

    def start(self) -> None:
        """Scan once, then watch."""
        self._thread.start()

    def close(self) -> None:
        """Stop watching."""
        self._stop.set()
        self._told.set()
        if self._observer is not None:
            self._observer.stop()
        self._thread.join(timeout=5)

    def _run(self) -> None:
        self._follow()  # First, so that nothing is missed between scan and watch.
        self._scan()
        while not self._stop.is_set():
            self._told.wait(LOOK_S)
            waited = 0.0
            while self._told.is_set() and waited < LATEST_S and not self._stop.is_set():
                self._told.clear()
                self._stop.wait(QUIET_S)
                waited += QUIET_S
            if self._stop.is_set():
                return
            self._index.touch()
            self._follow()
            self._scan()

    def _scan(self) -> None:
        try:
            self._index.refresh(force=True)
            if self._index.meaning is not None:
                self._index.meaning.learn(self._index.store)
        except Exception as error:
            if not self._stop.is_set():
                print(f"knowledge: the folders could not be read: {error!r}", file=sys.stderr)

    def _follow(self) -> None:
        """Watch each folder of the index; where the system cannot, every question looks for changes itself."""
        try:
            from watchdog.events import FileSystemEvent, FileSystemEventHandler
            from watchdog.observers import Observer
        except ImportError:
            return
        watch = self

        class Handler(FileSystemEventHandler):
            def on_any_event(self, event: FileSystemEvent) -> None:
                if event.event_type in _TELLING and not (event.is_directory and event.event_type == "modified"):
                    watch._index.touch()
                    watch._told.set()

        try:
            if self._observer is None:
                self._observer = Observer()
                self._observer.daemon = True
                self._observer.start()
            wanted = set(self._index.folders)
            for gone in self._watched.keys() - wanted:
                self._observer.unschedule(self._watched.pop(gone))
            for new in wanted - self._watched.keys():
                self._watched[new] = self._observer.schedule(Handler(), str(new), recursive=True)
            self._index.watched = True
        except (OSError, KeyError) as error:  # Mostly: the system's limit of watches.
            self._index.watched = False
            print(f"knowledge: changes are looked for at each question ({error})", file=sys.stderr)
