"""A wire to a server that can be cut at a given place of the talk, without TLS."""

from __future__ import annotations

import asyncio
import contextlib
from types import TracebackType


class CutWire:
    """Passes bytes on to a port of this machine; cuts once where `at` was sent.

    With `deliver` the server still gets it, and only its answer is lost.
    """

    def __init__(self, port: int) -> None:
        self._target = port
        self.port = 0
        self.at: bytes | None = None
        self.deliver = True
        self.cuts = 0
        self.journeys = 0
        """How often something was sent that waited for what came back before."""
        self._talks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> CutWire:
        self._server = await asyncio.start_server(self._talk, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.close()
        for talk in list(self._talks):
            talk.cancel()
        await asyncio.gather(*self._talks, return_exceptions=True)
        await self._server.wait_closed()

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._talks.add(task)
        task.add_done_callback(self._talks.discard)
        back, out = await asyncio.open_connection("127.0.0.1", self._target)
        heard = asyncio.Event()
        heard.set()
        answering = asyncio.create_task(self._pass(back, writer, heard))
        try:
            while data := await reader.read(65536):
                self.journeys += heard.is_set()
                heard.clear()
                if self.at is not None and self.at in data:
                    self.at = None
                    self.cuts += 1
                    answering.cancel()
                    if self.deliver:
                        out.write(data)
                        await out.drain()
                        await back.read(65536)  # it was done, and nobody hears of it
                    return
                out.write(data)
                await out.drain()
        except (ConnectionError, asyncio.CancelledError):
            pass
        finally:
            answering.cancel()
            for end in (out, writer):
                end.close()
            with contextlib.suppress(ConnectionError):
                await asyncio.gather(out.wait_closed(), writer.wait_closed(), return_exceptions=True)

    async def _pass(self, back: asyncio.StreamReader, writer: asyncio.StreamWriter, heard: asyncio.Event) -> None:
        with contextlib.suppress(ConnectionError):
            while data := await back.read(65536):
                heard.set()
                writer.write(data)
                await writer.drain()
            writer.close()
