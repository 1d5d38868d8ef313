"""JSON-RPC messages as exchanges: a request beside its answer, with the time between. No Qt here."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from desktop_host.core.servers import WireFrame
from desktop_host.core.values import FrozenDict

OPEN = 20_000
"""Requests without an answer that are remembered; the oldest are given up."""


@dataclass(slots=True)
class Exchange:
    """A request with its answer, or a notification."""

    t: float
    outward: bool
    method: str
    sent: FrozenDict
    reply: FrozenDict | None = None
    ms: float | None = None
    server: str = ""
    connection: int = 0
    lost: bool = False
    """The connection ended before an answer came."""
    words: str | None = None
    """Both messages as one folded text, made at the first search."""

    @property
    def state(self) -> str:
        """`notification`, `waiting`, `lost`, `error` or `ok`."""
        if self.reply is not None:
            return "error" if _failed(self.reply) else "ok"
        if "error" in self.sent:
            return "error"
        if "id" not in self.sent or "method" not in self.sent:
            return "notification"
        return "lost" if self.lost else "waiting"

    @property
    def detail(self) -> str:
        """What the call is about: the tool, the resource or the prompt it names."""
        params = self.sent.get("params")
        if not isinstance(params, dict):
            return ""
        return next((str(params[k]) for k in ("name", "uri", "level", "message") if params.get(k)), "")

    @property
    def can_resend(self) -> bool:
        """A request of ours that is whole: nothing of it was masked or shortened for the log."""
        if not self.outward or "id" not in self.sent or self.method in ("initialize", "?"):
            return False
        text = json.dumps(self.sent.get("params"), ensure_ascii=False)
        return "•••" not in text and " characters)" not in text and " items)" not in text

    def holds(self, needle: str) -> bool:
        """Whether a folded text stands anywhere in it."""
        if self.words is None:
            parts = [self.server, *(json.dumps(m, ensure_ascii=False) for m in (self.sent, self.reply) if m)]
            self.words = "\n".join(parts).casefold()
        return needle in self.words

    def pretty(self) -> str:
        """Both messages as indented JSON."""
        parts = [self.sent] if self.reply is None else [self.sent, self.reply]
        return "\n\n".join(json.dumps(p, indent=2, ensure_ascii=False) for p in parts)


def _failed(reply: FrozenDict) -> bool:
    result = reply.get("result")
    return "error" in reply or (isinstance(result, dict) and result.get("isError") is True)


class Pairs:
    """Pairs the messages of one server as they come. Ids count for each connection and direction alone."""

    def __init__(self, server: str = "") -> None:
        self._server = server
        self._waiting: dict[tuple[int, str, str], Exchange] = {}

    def take(self, frame: WireFrame) -> tuple[Exchange, bool]:
        """The exchange a message belongs to, and whether it is a new one."""
        message = frame.message
        method, number = message.get("method"), message.get("id")
        if method is None and number is not None:
            asked_by = "out" if frame.direction == "in" else "in"
            asked = self._waiting.pop((frame.connection, asked_by, json.dumps(number)), None)
            if asked is not None:
                asked.reply, asked.ms, asked.words = message, (frame.t - asked.t) * 1000, None
                return asked, False
        made = Exchange(
            frame.t, frame.direction == "out", str(method or "?"), message, server=self._server,
            connection=frame.connection,
        )  # fmt: skip
        if number is not None and method is not None:
            self._waiting[frame.connection, frame.direction, json.dumps(number)] = made
            if len(self._waiting) > OPEN:  # Their rows have long gone.
                del self._waiting[next(iter(self._waiting))]
        return made, True

    def close(self, connections: frozenset[int]) -> list[Exchange]:
        """The exchanges that are lost from now on, since their connections are over."""
        gone = [key for key in self._waiting if key[0] in connections]
        lost = [self._waiting.pop(key) for key in gone]
        for one in lost:
            one.lost = True
        return lost


def paired(frames: Sequence[WireFrame]) -> tuple[Exchange, ...]:
    """Requests with their answers, in the order they were sent."""
    pairs = Pairs()
    return tuple(one for one, new in map(pairs.take, frames) if new)


def news(before: WireFrame | None, frames: Sequence[WireFrame]) -> Sequence[WireFrame]:
    """What came after `before`; all, where that is no longer kept."""
    if before is not None:
        for at in range(len(frames) - 1, -1, -1):
            if frames[at] is before or frames[at] == before:
                return frames[at + 1 :]
    return frames
