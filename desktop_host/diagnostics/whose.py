"""Several profiles open in one process share its log, its hooks and its threads: whose is what happens now?

Where that cannot be told, it is nobody's: a line of one profile in the files of another would be a leak.
"""

from __future__ import annotations

import asyncio
from typing import Generic, TypeVar

T = TypeVar("T")


class Whose(Generic[T]):
    """What is open now, one for each profile, each with the loop that it lives on."""

    def __init__(self) -> None:
        self._open: tuple[tuple[T, asyncio.AbstractEventLoop | None], ...] = ()

    def add(self, one: T, loop: asyncio.AbstractEventLoop | None) -> None:
        """It is open from now on."""
        self._open = (*self._open, (one, loop))

    def remove(self, one: T) -> None:
        """It is closed."""
        self._open = tuple(pair for pair in self._open if pair[0] is not one)

    def all(self) -> tuple[T, ...]:
        """All that are open, the first one first."""
        return tuple(one for one, _ in self._open)

    def now(self) -> T | None:
        """Whose is what this thread does: the only one's, else that of the loop that runs here."""
        try:
            return self.on(asyncio.get_running_loop())
        except RuntimeError:
            return self.on(None)

    def on(self, loop: asyncio.AbstractEventLoop | None) -> T | None:
        """Whose a loop is; None where that cannot be told."""
        pairs = self._open
        if len(pairs) == 1:
            return pairs[0][0]
        found = [one for one, its in pairs if loop is not None and its is loop]
        return found[0] if len(found) == 1 else None
