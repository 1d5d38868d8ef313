"""A loopback server that answers like llama.cpp's: replies are planned, requests are kept."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from desktop_host.core.errors import ModelFault
from desktop_host.providers.local_runtime import Endpoint


@dataclass
class Planned:
    """One reply: pieces of content, or an error status."""

    pieces: tuple[str, ...] = ()
    status: int = 200
    body: str = ""
    finish: str | None = "stop"
    cut: bool = False
    """Close the connection in the middle."""
    hang: bool = False
    """Say nothing more after the pieces, until the client leaves."""
    speed: float = 20.0


@dataclass
class LlamaServer:
    """What a test sees of it; also the `Runtime` of a `LocalChatModel`."""

    key: str = "sesame"
    plan: list[Planned] = field(default_factory=list)
    requests: list[dict[str, Any]] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)
    left: asyncio.Event = field(default_factory=asyncio.Event)
    """A client closed its connection before its reply was whole."""
    address: str = ""
    dead: bool = False

    def reply(self, *pieces: str, **more: Any) -> None:
        self.plan.append(Planned(pieces, **more))

    def act(self, tool: str, **arguments: Any) -> None:
        text = json.dumps({"tool": tool, "arguments": arguments}, ensure_ascii=False)
        self.reply(*(text[i : i + 3] for i in range(0, len(text), 3)))

    @asynccontextmanager
    async def use(self) -> AsyncIterator[Endpoint]:
        yield Endpoint(self.address, self.key)

    async def gone(self) -> bool:
        return self.dead

    def crashed(self, visible: bool) -> ModelFault:
        return ModelFault("model_missing", "gone", retryable=not visible, visible=visible, reason="crashed")

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            fields = dict(line.split(": ", 1) for line in head.split("\r\n")[1:] if ": " in line)
            fields = {k.lower(): v for k, v in fields.items()}
            body = await reader.readexactly(int(fields.get("content-length", "0")))
            self.keys.append(fields.get("authorization", ""))
            self.requests.append(json.loads(body))
            await self._answer(self.plan.pop(0), reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            self.left.set()
        finally:
            writer.close()

    async def _answer(self, planned: Planned, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if planned.status != 200:
            data = planned.body.encode()
            writer.write(f"HTTP/1.1 {planned.status} No\r\ncontent-length: {len(data)}\r\n\r\n".encode() + data)
            await writer.drain()
            return
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n")
        for piece in planned.pieces:
            self._event(writer, {"choices": [{"index": 0, "delta": {"content": piece}}]})
        await writer.drain()
        if planned.hang:
            await reader.read()
            self.left.set()
            return
        if planned.cut:
            return
        timings = {
            "prompt_n": 7, "cache_n": 30, "predicted_n": max(10, len(planned.pieces)),
            "predicted_per_second": planned.speed,
        }  # fmt: skip
        self._event(writer, {"choices": [{"index": 0, "delta": {}, "finish_reason": planned.finish}]})
        self._event(writer, {"choices": [], "timings": timings})
        end = b"data: [DONE]\n\n"
        writer.write(f"{len(end):x}\r\n".encode() + end + b"\r\n0\r\n\r\n")
        await writer.drain()

    def _event(self, writer: asyncio.StreamWriter, data: dict[str, Any]) -> None:
        line = f"data: {json.dumps(data, ensure_ascii=False)}\n\n".encode()
        writer.write(f"{len(line):x}\r\n".encode() + line + b"\r\n")


@asynccontextmanager
async def llama_server() -> AsyncIterator[LlamaServer]:
    llama = LlamaServer()
    server = await asyncio.start_server(llama._serve, "127.0.0.1", 0)
    llama.address = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield llama
    finally:
        server.close()
        await server.wait_closed()
