"""The gateway's door over HTTP, by raw sockets: what an attacker can send, and that others are served meanwhile."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from desktop_host.app.compose import open_host
from desktop_host.core.host_calls import Caller, GatewayKey, GatewaySpec
from desktop_host.engine.host import HeadlessPolicy, HostSpec
from desktop_host.engine.host_calls import outside

pytestmark = pytest.mark.live

TOKEN = "right-token-of-this-test"
OPEN = {
    "jsonrpc": "2.0", "id": 1, "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "0"}},
}  # fmt: skip


@asynccontextmanager
async def door(home: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[int]:
    """A gateway of a profile without servers, with short clocks and few places; yields its port."""
    from desktop_host.servers import gateway, gateway_http, gateway_line

    monkeypatch.setattr(gateway_line.Line, "head_s", 0.5)
    monkeypatch.setattr(gateway_line.Line, "body_s", 0.5)
    monkeypatch.setattr(gateway_line.Line, "most", 20)
    monkeypatch.setattr(gateway_http, "SESSIONS", 3)
    key = GatewayKey(Caller("main"), hashlib.sha256(TOKEN.encode()).hexdigest())
    ready: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    async with open_host(HostSpec(home, headless=HeadlessPolicy())) as host:
        spec = GatewaySpec(address=("127.0.0.1", 0), keys=(key,), ready=ready.set_result)
        serving = asyncio.create_task(gateway.serve(outside(host), spec))
        try:
            yield int((await ready).split(":")[2].partition("/")[0])
        finally:
            serving.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await serving


def request(port: int, body: Any = None, **headers: str) -> bytes:
    sent = json.dumps(body if body is not None else OPEN).encode() if not isinstance(body, bytes) else body
    lines = {
        "Host": f"127.0.0.1:{port}", "Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream", "Content-Length": str(len(sent)), "Connection": "close",
        **{name.replace("_", "-"): value for name, value in headers.items()},
    }  # fmt: skip
    head = "POST /mcp HTTP/1.1\r\n" + "".join(f"{k}: {v}\r\n" for k, v in lines.items() if v) + "\r\n"
    return head.encode("latin-1") + sent


async def answer(port: int, sent: bytes) -> bytes:
    """All that comes back before the connection ends."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(sent)
        return await asyncio.wait_for(reader.read(), 10)
    except ConnectionError:
        return b""
    finally:
        writer.close()


def status(told: bytes) -> int:
    return int(told.split()[1]) if told else 0


async def test_only_the_right_host_origin_and_token_come_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """DNS rebinding, a page of another origin, doubled headers, tokens that nearly fit."""
    async with door(tmp_path, monkeypatch) as port:
        here = f"127.0.0.1:{port}"
        for sent, expected in [
            (request(port), 200), (request(port, Host=f"localhost:{port}"), 200),
            (request(port, Origin=f"http://{here}"), 200),
            (request(port, Host="evil.example"), 421), (request(port, Host=f"127.0.0.1.evil.example:{port}"), 421),
            (request(port, Host=f"{here}@evil.example"), 421), (request(port, Host=""), 400),
            (request(port).replace(b"\r\n", f"\r\nHost: {here}\r\n".encode(), 1), 400),
            (request(port, Origin="null"), 403), (request(port, Origin=f"https://{here}"), 403),
            (request(port, Origin=f"http://{here}.evil.example"), 403),
            (request(port, Authorization=""), 401), (request(port, Authorization="Bearer "), 401),
            (request(port, Authorization=f"Bearer {TOKEN[:-1]}"), 401),
            (request(port, Authorization=f"Bearer {TOKEN}x"), 401),
            (request(port, Authorization=f"Bearer {TOKEN.upper()}"), 401),
            (request(port, Authorization="Bearer \xff\xfe"), 401),
            (request(port, Upgrade="websocket", Connection="Upgrade", Authorization=""), 401),
        ]:  # fmt: skip
            assert status(await answer(port, sent)) == expected, sent[:300]


async def test_a_key_has_so_many_sessions_and_no_body_is_endless(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with door(tmp_path, monkeypatch) as port:
        assert status(await answer(port, request(port, b"[" * 100_000))) == 400
        told = [status(await answer(port, request(port))) for _ in range(5)]
        assert told == [200, 200, 200, 503, 503]
        # Turned away before it was read: the answer may be lost with the connection.
        assert status(await answer(port, request(port, b"x" * 5_000_000))) in (0, 413)
        assert status(await answer(port, request(port, b"", Content_Length="99999999999"))) == 413


async def test_who_sends_too_slowly_goes_and_others_are_served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with door(tmp_path, monkeypatch) as port:
        whole = request(port)

        async def slow(begin: bytes) -> bytes:
            return await answer(port, begin)

        head_only = whole[: whole.index(b"\r\n\r\n") + 4]
        begins = [b"", whole[:30], head_only, whole[:-5]]
        hanging = [asyncio.create_task(slow(begin)) for begin in begins * 4]
        await asyncio.sleep(0)
        assert status(await answer(port, whole)) == 200
        assert set(await asyncio.gather(*hanging)) == {b""}  # Ended without an answer, by their clocks.
        # More than there are places for: the surplus is turned away, and all is well again after them.
        crowd = [asyncio.create_task(slow(b"")) for _ in range(40)]
        await asyncio.gather(*crowd)
        assert status(await answer(port, whole)) == 200


async def test_a_second_request_of_a_connection_has_its_clock_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with door(tmp_path, monkeypatch) as port:
        first = request(port, Authorization="", Connection="keep-alive")
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(first)
        assert b" 401 " in await reader.readuntil(b"\r\n")
        writer.write(b"POST /mcp HTTP/1.1\r\nHo")
        rest = await asyncio.wait_for(reader.read(), 10)
        assert b"HTTP/1.1" not in rest
        writer.close()
