"""Where the pictures of servers come from, against a real web server."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import time
from types import SimpleNamespace
from typing import cast

import pytest

from desktop_host.core.servers import Http, ServerConfig
from desktop_host.core.tools import ToolSpec
from desktop_host.core.values import FrozenDict
from desktop_host.servers import translate
from desktop_host.servers.icons import Icons
from desktop_host.servers.keeper import Keeper
from desktop_host.servers.wiring import Wiring
from tests.fakes.servers.stage import script, stage

pytestmark = pytest.mark.live


async def test_a_tool_without_a_picture_wears_its_servers(tmp_path):
    async with stage(tmp_path, script("dual", "dual.py", "stdio")) as s:
        dot = await s.servers.icon("dual")
        assert dot is not None and dot.startswith(b"\x89PNG")
        assert await s.servers.icon("dual", "tool", s.servers.tools("dual")[0].name) == dot
        assert await s.servers.icon("dual", "prompt", "none") == dot
        await s.servers.stop("dual")


async def test_pictures_come_from_data_and_the_servers_own_host_only() -> None:
    picture = b"\x89PNG\r\n\x1a\nmine"
    asked: list[tuple[str, dict[str, str]]] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        lines = head.split("\r\n")
        asked.append((lines[0].split()[1], dict(x.split(": ", 1) for x in lines[1:] if ": " in x)))
        body = b"x" * 300_000 if "/big" in lines[0] else picture
        status = "302 Found\r\nLocation: /good.png" if "/moved" in lines[0] else "200 OK"
        writer.write(f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode() + body)
        with contextlib.suppress(ConnectionError):
            await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    config = ServerConfig("web", Http(f"http://127.0.0.1:{port}/mcp", FrozenDict({"Authorization": "Bearer k"})))

    def tool(name: str, *icons: dict[str, object]) -> ToolSpec:
        return ToolSpec("web", name, icons=translate.icons({"icons": list(icons)}))

    here = f"http://127.0.0.1:{port}"
    data = "data:image/png;base64," + base64.b64encode(picture).decode()
    wiring = SimpleNamespace(clock=SimpleNamespace(now=time.time), config=config)
    keeper = Keeper(cast(Wiring, wiring), lambda _lists: None)
    keeper.tools = (
        tool("data", {"src": data}),
        tool("own", {"src": f"{here}/good.png"}),
        tool("moved", {"src": f"{here}/moved"}),
        tool("big", {"src": f"{here}/big"}),
        tool("foreign", {"src": "http://127.0.0.2:1/x.png"}, {"src": "https://tracker.example/x.png"}),
        tool("file", {"src": "file:///etc/passwd"}),
        tool("dark", {"src": f"{here}/light", "theme": "light"}, {"src": f"{here}/dark", "theme": "dark"}),
        tool("sizes", {"src": f"{here}/512", "sizes": ["512x512"]}, {"src": f"{here}/48", "sizes": ["48x48"]}),
    )
    pictures = Icons()
    try:
        found = {t.name: await pictures.of(config, (keeper,), "tool", t.name, False) for t in keeper.tools}
        assert {k for k, v in found.items() if v == picture} == {"data", "own", "dark", "sizes"}
        assert {k for k, v in found.items() if v is None} == {"moved", "big", "foreign", "file"}
        assert await pictures.of(config, (keeper,), "tool", "dark", True) == picture
        paths = [path for path, _ in asked]
        assert sorted(paths) == ["/48", "/big", "/dark", "/good.png", "/light", "/moved"]
        assert not any("authorization" in {k.lower() for k in head} for _, head in asked), "no key goes along"
        await pictures.of(config, (keeper,), "tool", "own", False)
        assert len(asked) == len(paths), "a picture is fetched once"
    finally:
        await pictures.close()
        server.close()
        await server.wait_closed()
