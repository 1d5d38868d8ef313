"""How often a server has asked during one call, and whether the person wants no more of it."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field

from desktop_host.core.exchange import Origin

KEPT = 256
"""Calls that are remembered."""


@dataclass(slots=True)
class _Asked:
    times: int = 0
    stopped: bool = False
    urls: set[str] = field(default_factory=set)


class Rounds:
    """Counts by server, session and call; where it may be one of several calls, by all of them together.

    What cannot be ascribed to any call is always a first question.
    """

    def __init__(self) -> None:
        self._calls: OrderedDict[tuple[str, str | None, str], _Asked] = OrderedDict()

    def next(self, origin: Origin) -> int | None:
        """Number of this question, from 1; None: the person stopped this call's questions."""
        asked = self._of(origin)
        if asked.stopped:
            return None
        asked.times += 1
        return asked.times

    def stop(self, origin: Origin) -> None:
        """Answer nothing more that this call asks."""
        self._of(origin).stopped = True

    def open(self, origin: Origin, url: str) -> None:
        """The person opened a page during this call."""
        self._of(origin).urls.add(url)

    def opened(self, origin: Origin, url: str) -> bool:
        """Whether a page was opened during this call before."""
        return url in self._of(origin).urls

    def _of(self, origin: Origin) -> _Asked:
        call = origin.call_id or " ".join(c.key for c in origin.calls)
        if not call:
            return _Asked()
        key = (origin.server, origin.session, call)
        found = self._calls.setdefault(key, _Asked())
        self._calls.move_to_end(key)
        if len(self._calls) > KEPT:
            self._calls.popitem(last=False)
        return found
