"""One HTTP connection: whoever sends a request too slowly, or comes when all places are taken, has to go.

uvicorn waits without end for the head and the body of a request; so a few hundred idle connections would keep
everybody else out (slowloris).
"""

from __future__ import annotations

import asyncio
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

HEAD_S = 10.0
"""From the first byte, or from the beginning of the connection, to the end of a request's head."""
BODY_S = 30.0
"""From the end of the head to the end of the body."""
CONNECTIONS = 256
"""At once; a stream that listens takes one."""
_LIMITS: dict[Any, str] = {h11.IDLE: "head_s", h11.SEND_BODY: "body_s"}


class Line(H11Protocol):
    """uvicorn's protocol with a clock for what the client has to send."""

    head_s, body_s, most = HEAD_S, BODY_S, CONNECTIONS

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._awaited: Any = None
        self._clock: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # As uvicorn has it.
        """A client has come."""
        super().connection_made(transport)
        if len(self.connections) > self.most:
            transport.abort()
        else:
            self._await(h11.IDLE)

    def data_received(self, data: bytes) -> None:
        """Some of a request has come."""
        super().data_received(data)
        state = self.conn.their_state
        if state is not self._awaited:
            self._await(state)

    def on_response_complete(self) -> None:
        """The next request may come; uvicorn's own clock for idle connections runs until its first byte."""
        super().on_response_complete()
        self._await(None)

    def connection_lost(self, exc: Exception | None) -> None:
        """The client has gone."""
        self._await(None)
        super().connection_lost(exc)

    def _await(self, state: Any) -> None:
        if self._clock is not None:
            self._clock.cancel()
            self._clock = None
        self._awaited = state
        if (limit := _LIMITS.get(state)) is not None:
            self._clock = self.loop.call_later(getattr(self, limit), self.transport.abort)
