"""Requests of the system to stop, turned into calls on the loop."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable

ENDING = ("SIGTERM", "SIGHUP")
STOPPING = ("SIGINT", *ENDING)


class On:
    """While entered, any of these signals calls `stop` on the loop; a system that lacks one is left alone."""

    def __init__(self, signals: tuple[str, ...], stop: Callable[[], object]) -> None:
        self._stop = stop
        self._signals: list[int] = [getattr(signal, name) for name in signals if hasattr(signal, name)]

    def __enter__(self) -> None:
        loop = asyncio.get_running_loop()
        for number in self._signals:
            try:
                loop.add_signal_handler(number, self._stop)
            except (NotImplementedError, RuntimeError, ValueError):  # Windows, or not the main thread
                return

    def __exit__(self, *_: object) -> None:
        loop = asyncio.get_running_loop()
        for number in self._signals:
            try:
                loop.remove_signal_handler(number)
            except NotImplementedError:
                return
