"""Who called from outside, as long as the call runs: what a server asks meanwhile may go to the caller's own client."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from desktop_host.core.exchange import Origin
from desktop_host.core.host_calls import Asking


@dataclass(frozen=True, slots=True)
class Asker:
    """Whom to ask, and during which of the server's tools; empty where that would be a guess."""

    client: Asking
    tool: str


@dataclass(frozen=True, slots=True)
class _Held:
    session: str
    server: str
    asker: Asker


class Askers:
    """The calls from outside that run now."""

    def __init__(self) -> None:
        self._calls: dict[str, _Held] = {}

    @contextmanager
    def held(self, session: str, call_id: str, server: str, tool: str, client: Asking | None) -> Iterator[None]:
        """While open, questions of this call can be put to its client."""
        if client is None:
            yield
            return
        self._calls[call_id] = _Held(session, server, Asker(client, tool))
        try:
            yield
        finally:
            del self._calls[call_id]

    def of(self, origin: Origin) -> Asker | None:
        """The client behind a question: that of its call, else the one client that has calls on this server.

        None: no call from outside, or it would be a guess whose question this is.
        """
        if origin.call_id is not None:
            held = self._calls.get(origin.call_id)
            return held.asker if held is not None and held.session == origin.session else None
        found = [h.asker for h in self._calls.values() if (h.session, h.server) == (origin.session, origin.server)]
        if len({asker.client.name for asker in found}) != 1:
            return None
        return Asker(found[0].client, found[0].tool if len(found) == 1 else "")
