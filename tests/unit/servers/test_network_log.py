"""The network view: a line for each HTTP request, without what is secret in an address."""

from __future__ import annotations

import httpx2
import pytest

from desktop_host.servers.network_log import Heard


class Canned(httpx2.AsyncBaseTransport):
    def __init__(self, status: int | None) -> None:
        self.status = status

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        if self.status is None:
            raise httpx2.ConnectError("refused")
        return httpx2.Response(self.status, headers={"content-type": "text/event-stream; charset=utf-8"})


@pytest.mark.parametrize(
    ("status", "words", "level"),
    [(200, " 200 text/event-stream ", "info"), (404, " 404 ", "warning"), (None, "ConnectError refused", "error")],
)
async def test_each_request_is_noted_without_query_or_credentials(status: int | None, words: str, level: str) -> None:
    lines: list[tuple[str, str]] = []
    client = httpx2.AsyncClient(transport=Heard(Canned(status), lambda line, how: lines.append((line, how))))
    async with client:
        try:
            await client.get("https://ada:secret@example.com:8443/mcp?token=hush")
        except httpx2.ConnectError:
            assert status is None
    assert len(lines) == 1
    line, how = lines[0]
    assert line.startswith("GET https://example.com:8443/mcp ")
    assert words in line
    assert how == level
    assert "secret" not in line
    assert "hush" not in line
