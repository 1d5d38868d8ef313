"""What a server did, kept for the person: the wire log and the server's log. Secrets are masked on the way in."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
from collections import deque
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

from desktop_host.core.ports import Clock
from desktop_host.core.servers import LogLine, WireFrame
from desktop_host.core.values import FrozenDict
from desktop_host.servers import private

MASK = "•••"
TEXT_LIMIT = 2_000
"""Characters of one string that the wire log keeps."""
NODE_LIMIT = 2_000
"""Values of one message that the wire log keeps."""
FRAMES = 1000
LINES = 500
FILE_LIMIT = 1_000_000
"""Bytes of a log file before it is turned over; one older file is kept."""


_KEPT = frozenset({"nextCursor", "requestState", "taskId", "progressToken", "blob"})
"""Keys whose values a server must get back as they are, or that hold base64; nobody reads them."""


class Redactor:
    """Masks secret values in text. Values under four characters are left: they would mask ordinary words."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._secrets: tuple[str, ...] = ()
        self._telling: tuple[str, ...] = ()
        self.learn(secrets)

    def learn(self, secrets: Iterable[str]) -> None:
        """Mask these too, from now on; also as they stand within an address or within a text of JSON."""
        known = {s for s in secrets if len(s) >= 4} | set(self._secrets)
        known |= {form for s in known for form in (quote(s, safe=""), json.dumps(s)[1:-1]) if form != s}
        self._secrets = tuple(sorted(known, key=len, reverse=True))
        self._telling = tuple(s for s in self._secrets if _tells(s))

    def __call__(self, text: str) -> str:
        return _masked(text, self._secrets)

    def veiled(self, value: Any) -> Any:
        """JSON that a server sent, without the secrets it was given; the same object where it holds none.

        What a server says goes to the record and to a model, and its data must not suffer: only secrets that
        cannot be taken for ordinary words are masked here.
        """
        return _veiled(value, self._telling) if self._telling else value


def _tells(secret: str) -> bool:
    return len(secret) >= 8 and not secret.isalpha() and not secret.isdecimal()


def _masked(text: str, secrets: tuple[str, ...]) -> str:
    for secret in secrets:
        if secret in text:
            text = text.replace(secret, MASK)
    return text


def _veiled(value: Any, secrets: tuple[str, ...]) -> Any:
    match value:
        case str():
            return _masked(value, secrets)
        case dict():
            kept = _KEPT | {"data"} if "mimeType" in value else _KEPT
            fresh = {_masked(k, secrets): v if k in kept else _veiled(v, secrets) for k, v in value.items()}
            same = fresh.keys() == value.keys() and all(fresh[k] is v for k, v in value.items())
            return value if same else fresh
        case list():
            made = [_veiled(v, secrets) for v in value]
            return value if all(a is b for a, b in zip(made, value, strict=True)) else made
        case _:
            return value


class WireLog:
    """The newest JSON-RPC messages of a server, both ways, shortened and masked."""

    def __init__(self, clock: Clock, redact: Redactor) -> None:
        self._clock, self._redact = clock, redact
        self._frames: deque[WireFrame] = deque(maxlen=FRAMES)
        self._numbers = itertools.count(1)
        self._closed: deque[int] = deque(maxlen=FRAMES)

    def begin(self) -> int:
        """The number of a new connection."""
        return next(self._numbers)

    def end(self, connection: int) -> None:
        """A connection is over: what is not answered on it never will be."""
        self._closed.append(connection)

    def record(
        self, direction: str, message: Mapping[str, Any], connection: int = 0, session: str | None = None
    ) -> None:
        """Keep one message; `direction` is `out` or `in`."""
        short = self._short(message, itertools.count())
        self._frames.append(WireFrame(self._clock.now(), direction, short, connection, session))

    def closed(self) -> frozenset[int]:
        """The connections that are over, as far back as the messages go."""
        return frozenset(self._closed)

    def frames(self) -> tuple[WireFrame, ...]:
        """Oldest first."""
        return tuple(self._frames)

    def _short(self, value: Any, seen: itertools.count[int]) -> Any:
        if isinstance(value, str):
            if len(value) <= TEXT_LIMIT:
                return self._redact(value)
            # Masked before it is cut: half a secret would slip through.
            head = self._redact(value[: TEXT_LIMIT * 2])[:TEXT_LIMIT]
            return f"{head}… ({len(value)} characters)"
        if isinstance(value, Mapping):
            return FrozenDict(
                {self._redact(str(k)): self._short(v, seen) for k, v in value.items() if next(seen) < NODE_LIMIT}
            )
        if isinstance(value, (list, tuple)):
            kept = tuple(self._short(v, seen) for v in value if next(seen) < NODE_LIMIT)
            return kept if len(kept) == len(value) else (*kept, f"… ({len(value)} items)")
        return value if value is None or isinstance(value, (bool, int, float)) else self._redact(str(value))


class ServerLog:
    """The newest lines of a server's log in memory, all of them in a file that turns over at 1 MB.

    The file is written in batches by a thread; a folder that cannot be written leaves the lines in memory
    and says so there once.
    """

    def __init__(self, path: Path, clock: Clock, redact: Redactor) -> None:
        self.path = path
        self._clock, self._redact = clock, redact
        self._lines: deque[LogLine] = deque(maxlen=LINES)
        self.count = 0
        """How many lines there were so far."""
        self._unwritten: list[LogLine] = []
        self._writer: asyncio.Task[None] | None = None
        self._broken = False

    def add(self, source: str, text: str, level: str | None = None) -> None:
        """Keep one line; `source` as in `LogLine`."""
        line = LogLine(self._clock.now(), source, self._redact(text), level)
        self._lines.append(line)
        self.count += 1
        if self._broken:
            return
        self._unwritten.append(line)
        if self._writer is None or self._writer.done():
            self._writer = asyncio.create_task(self._write_soon())

    def lines(self) -> tuple[LogLine, ...]:
        """Oldest first."""
        return tuple(self._lines)

    def since(self, count: int) -> tuple[LogLine, ...]:
        """Those that came after the first `count`, as far as they are kept; whatever the clock did meanwhile."""
        return tuple(self._lines)[-n:] if (n := self.count - count) > 0 else ()

    async def close(self) -> None:
        """Write what is still unwritten."""
        if self._writer is not None and not self._writer.done():
            await self._writer
        if self._unwritten:
            await self._write_soon(0)

    async def _write_soon(self, delay: float = 0.2) -> None:
        await asyncio.sleep(delay)
        while self._unwritten and not self._broken:
            batch, self._unwritten = self._unwritten, []
            try:
                await asyncio.to_thread(self._append, batch)
            except OSError as error:
                self._broken = True
                self._lines.append(LogLine(self._clock.now(), "host", f"log file not written: {error}", "error"))

    def _append(self, batch: list[LogLine]) -> None:
        private.folder(self.path.parent)
        if self.path.exists() and self.path.stat().st_size > FILE_LIMIT:
            os.replace(self.path, self.path.with_suffix(".log.1"))
        with open(self.path, "a", encoding="utf-8", opener=private.opener) as file:
            file.writelines(f"{line.t:.3f} {line.source}{_level(line)} {line.text}\n" for line in batch)


def _level(line: LogLine) -> str:
    return f" [{line.level}]" if line.level else ""
