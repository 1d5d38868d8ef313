"""A model server on loopback that says what a test tells it to, down to the bytes."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Seen:
    """A request as it arrived."""

    method: str
    path: str
    headers: dict[str, str]
    raw: bytes

    @property
    def body(self) -> Any:
        return json.loads(self.raw)


@dataclass(frozen=True, slots=True)
class Reply:
    """What is sent back: `chunks` one by one; `hold` keeps the connection open after them; `reset` cuts it."""

    chunks: Sequence[bytes] = ()
    status: int = 200
    content_type: str | None = "text/event-stream"
    headers: tuple[tuple[str, str], ...] = ()
    hold: bool = False
    reset: bool = False


@dataclass(slots=True)
class ModelServer:
    """`async with ModelServer() as server`: replies are used in order; GET requests have their own, by path."""

    replies: deque[Reply] = field(default_factory=deque)
    gets: dict[str, Reply] = field(default_factory=dict)
    seen: list[Seen] = field(default_factory=list)
    closed: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when a client went away from a held reply."""
    port: int = 0
    tls: ssl.SSLContext | None = None
    _server: asyncio.Server | None = None
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)

    async def __aenter__(self) -> ModelServer:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0, ssl=self.tls)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_exc: object) -> None:
        assert self._server is not None
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._server.wait_closed()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def posts(self) -> list[Seen]:
        return [seen for seen in self.seen if seen.method == "POST"]

    def script(self, *replies: Reply) -> None:
        self.replies.extend(replies)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            await self._serve(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            self.closed.set()
        except asyncio.CancelledError:
            pass
        finally:
            self._tasks.discard(task)
            writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        first, *lines = head.rstrip().split("\r\n")
        method, path, _ = first.split(" ", 2)
        headers = {k.strip().lower(): v.strip() for k, _, v in (line.partition(":") for line in lines)}
        raw = await reader.readexactly(int(headers.get("content-length", 0)))
        self.seen.append(Seen(method, path, headers, raw))
        if method == "GET":
            reply = self.gets.get(path.split("?")[0], answer({"error": {"message": "no such page"}}, 404))
        else:
            reply = self.replies.popleft() if self.replies else answer({"error": {"message": "no reply left"}}, 500)
        out = [f"HTTP/1.1 {reply.status} X"]
        if reply.content_type is not None:
            out.append(f"content-type: {reply.content_type}")
        out += [f"{k}: {v}" for k, v in reply.headers]
        out += ["connection: close", "transfer-encoding: chunked", "", ""]
        writer.write("\r\n".join(out).encode())
        for chunk in reply.chunks:
            if chunk:
                writer.write(f"{len(chunk):x}\r\n".encode() + chunk + b"\r\n")
                await writer.drain()
        if reply.hold:
            await reader.read()
            self.closed.set()
        elif reply.reset:
            writer.transport.abort()
        else:
            writer.write(b"0\r\n\r\n")
            await writer.drain()


def answer(body: Any, status: int = 200, *headers: tuple[str, str]) -> Reply:
    """A JSON answer."""
    return Reply((json.dumps(body).encode(),), status, "application/json", headers)


def page(text: str = "<!doctype html><html><body>Sign in</body></html>", status: int = 200) -> Reply:
    """A web page."""
    return Reply((text.encode(),), status, "text/html; charset=utf-8")


def sse(events: Sequence[Any], *, done: bool = False, named: bool = True, **reply: Any) -> Reply:
    """A stream: dicts become events, text becomes the data of an event as it is, bytes go out raw."""
    chunks: list[bytes] = []
    for event in events:
        if isinstance(event, bytes):
            chunks.append(event)
            continue
        name = f"event: {event['type']}\n" if named and isinstance(event, dict) and "type" in event else ""
        data = event if isinstance(event, str) else json.dumps(event, ensure_ascii=False)
        chunks.append(f"{name}data: {data}\n\n".encode())
    if done:
        chunks.append(b"data: [DONE]\n\n")
    return Reply(chunks, **reply)
