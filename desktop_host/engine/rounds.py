"""How often a server has asked during one call, and whether the person wants no more of it."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

from desktop_host.core.exchange import Origin

KEPT = 256
"""Calls that are remembered."""


@dataclass(slots=True)
class _Asked:
    times: int = 0
    stopped: bool = False


class Rounds:
    """Counts by server, session and call. What cannot be ascribed to a call is always a first question."""

    def __init__(self) -> None:
        self._calls: OrderedDict[tuple[str, str | None, str], _Asked] = OrderedDict()

    def next(self, origin: Origin) -> int | None:
        """Number of this question, from 1; None: the person stopped this call's questions."""
        if origin.call_id is None:
            return 1
        asked = self._of(origin, origin.call_id)
        if asked.stopped:
            return None
        asked.times += 1
        return asked.times

    def stop(self, origin: Origin) -> None:
        """Answer nothing more that this call asks."""
        if origin.call_id is not None:
            self._of(origin, origin.call_id).stopped = True

    def _of(self, origin: Origin, call_id: str) -> _Asked:
        key = (origin.server, origin.session, call_id)
        found = self._calls.setdefault(key, _Asked())
        self._calls.move_to_end(key)
        if len(self._calls) > KEPT:
            self._calls.popitem(last=False)
        return found
