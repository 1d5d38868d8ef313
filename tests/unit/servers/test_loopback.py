"""The address that the browser comes back to."""

from __future__ import annotations

import asyncio
import time

import pytest

from desktop_host.core.errors import KnownFault
from desktop_host.servers.loopback import Loopback


async def visit(port: int, request: bytes) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request)
    answer = await reader.read()
    writer.close()
    await writer.wait_closed()
    return answer


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (b"GET /callback?code=c&state=s&iss=http%3A%2F%2Fa HTTP/1.1\r\nhost: x\r\n\r\n", b"200"),
        (b"GET /callback?code=c&state=z HTTP/1.1\r\n\r\n", b"400"),
        (b"GET /callback?code=c HTTP/1.1\r\n\r\n", b"400"),
        (b"POST /callback?code=c&state=s HTTP/1.1\r\n\r\n", b"404"),
        (b"GET /other?code=c&state=s HTTP/1.1\r\n\r\n", b"404"),
        (b"\x00\xff\r\n\r\n", b"404"),
    ],
)
async def test_only_who_brings_the_state_is_heard(request_: bytes, status: bytes) -> None:
    loopback = Loopback()
    await loopback.open(0)
    loopback.expect("s")
    answer = await visit(loopback.port, request_)
    assert answer.split()[1] == status
    if status == b"200":
        assert await loopback.answer() == {"code": "c", "state": "s", "iss": "http://a"}
        assert b"no-store" in answer and b"no-referrer" in answer
    await loopback.close()


async def test_a_refusal_is_told_in_the_servers_words() -> None:
    loopback = Loopback()
    await loopback.open(0)
    loopback.expect("s")
    page = await visit(
        loopback.port, b"GET /callback?error=access_denied&error_description=no&state=s HTTP/1.1\r\n\r\n"
    )
    assert b"Not signed in" in page
    with pytest.raises(KnownFault) as caught:
        await loopback.answer()
    assert (caught.value.params["reason"], caught.value.params["detail"]) == ("denied", "no")
    await loopback.close()


async def test_a_visitor_who_says_nothing_holds_nothing_up() -> None:
    loopback = Loopback()
    await loopback.open(0)
    loopback.expect("s")
    _, silent = await asyncio.open_connection("127.0.0.1", loopback.port)
    long = await visit(loopback.port, b"GET /callback?code=" + b"x" * 70_000)
    assert long == b""
    began = time.monotonic()
    await loopback.close()
    assert time.monotonic() - began < 2
    silent.close()
