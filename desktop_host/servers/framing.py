"""The streams of a child process: messages in order for the SDK, bytes to lines in linear time."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

import anyio
from mcp.shared.message import SessionMessage


class Inbox:
    """The reading end that the SDK sees: messages in order, then the end."""

    def __init__(self, on_level: Callable[[int], None]) -> None:
        self._items: deque[tuple[SessionMessage | Exception, int]] = deque()
        self._wake = asyncio.Event()
        self._ended = self._closed = False
        self._size = self._served = 0
        self._on_level = on_level

    def put(self, item: SessionMessage | Exception, size: int) -> None:
        """Add a message of `size` bytes."""
        if self._ended or self._closed:
            return
        self._items.append((item, size))
        self._size += size
        self._on_level(self._size)
        self._wake.set()

    def end(self) -> None:
        """No more will come."""
        self._ended = True
        self._wake.set()

    @property
    def ended(self) -> bool:
        """Whether the server's side is over."""
        return self._ended

    async def receive(self) -> SessionMessage | Exception:
        """The next message.

        Raises:
            anyio.EndOfStream: the server is gone.
        """
        self._served += 1
        if self._served % 32 == 0:
            await asyncio.sleep(0)  # A flood must not starve the other servers of the loop.
        while not self._items:
            if self._ended or self._closed:
                raise anyio.EndOfStream
            self._wake.clear()
            await self._wake.wait()
        item, size = self._items.popleft()
        self._size -= size
        self._on_level(self._size)
        return item

    def __aiter__(self) -> Inbox:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    async def aclose(self) -> None:
        self._closed = True
        self._items.clear()
        self._wake.set()

    async def __aenter__(self) -> Inbox:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


class Outbox:
    """The writing end: waits while the server does not read."""

    def __init__(self, encoding: str) -> None:
        self.pipe: asyncio.WriteTransport | None = None
        self._free = asyncio.Event()
        self._free.set()
        self._closed = False
        self._utf8 = encoding.lower().replace("_", "-") in ("utf-8", "utf8")

    async def send(self, item: SessionMessage) -> None:
        """Write one message.

        Raises:
            anyio.BrokenResourceError: the server is gone.
        """
        await self._free.wait()
        if self._closed or self.pipe is None or self.pipe.is_closing():
            raise anyio.BrokenResourceError
        text = item.message.model_dump_json(by_alias=True, exclude_unset=True, ensure_ascii=not self._utf8)
        self.pipe.write(text.encode() + b"\n")

    def hold(self, on: bool) -> None:
        if on:
            self._free.clear()
        else:
            self._free.set()

    def close(self) -> None:
        self._closed = True
        self._free.set()

    async def aclose(self) -> None:
        self.close()

    async def __aenter__(self) -> Outbox:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()


class Lines:
    """Bytes to lines, each byte touched once."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._parts: list[bytes] = []
        self._size = 0
        self._head = b""
        """Start of a line that was over the limit."""

    def feed(self, data: bytes) -> list[tuple[bytes, bool]]:
        """The lines completed by `data`: `(line, whole)`; of an over-long line only its first 4 KB."""
        first, *rest = data.split(b"\n")
        out: list[tuple[bytes, bool]] = []
        for n, piece in enumerate([first, *rest]):
            self._add(piece)
            if n < len(rest):
                out.append((self._head, False) if self._head else (b"".join(self._parts), True))
                self._parts, self._size, self._head = [], 0, b""
        return out

    def rest(self) -> bytes:
        """What stands after the last line end."""
        return b"".join(self._parts)

    def _add(self, piece: bytes) -> None:
        if self._head or not piece:
            return
        self._parts.append(piece)
        self._size += len(piece)
        if self._size > self._limit:
            self._head = b"".join(self._parts)[:4096]
            self._parts = []
