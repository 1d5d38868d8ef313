"""Requests of the system to stop, turned into calls on the loop."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable
from typing import Any

ENDING = ("SIGTERM", "SIGHUP")
STOPPING = ("SIGINT", *ENDING)


_NESTED: dict[int, list[Callable[[], object]]] = {}
"""What each signal calls now, innermost last; signals belong to the process, so does this."""


class On:
    """While entered, any of these signals calls `stop` on the loop; a system that lacks one is left alone.

    May be nested: the innermost is called, and after it the one around it again.
    """

    def __init__(self, signals: tuple[str, ...], stop: Callable[[], object]) -> None:
        self._stop = stop
        self._signals: list[int] = [getattr(signal, name) for name in signals if hasattr(signal, name)]
        self._before: dict[int, Any] = {}

    def __enter__(self) -> None:
        loop = asyncio.get_running_loop()
        for number in self._signals:
            before = signal.getsignal(number)
            try:
                loop.add_signal_handler(number, self._stop)
            except (NotImplementedError, RuntimeError, ValueError):  # Windows, or not the main thread
                return
            self._before[number] = before
            _NESTED.setdefault(number, []).append(self._stop)

    def __exit__(self, *_: object) -> None:
        loop = asyncio.get_running_loop()
        for number, before in self._before.items():
            around = _NESTED[number]
            around.remove(self._stop)
            if around:
                loop.add_signal_handler(number, around[-1])
            else:
                loop.remove_signal_handler(number)
                if before is not None:  # None: whoever set it was no Python, and cannot be put back
                    signal.signal(number, before)
