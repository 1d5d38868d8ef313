"""What an HTTP server was asked and how it answered, one line a request, for the person's view."""

from __future__ import annotations

import time
from collections.abc import Callable

import httpx2

Note = Callable[[str, str], None]
"""Takes a line and its level."""


class Heard(httpx2.AsyncBaseTransport):
    """Passes requests on and notes each: method, address without its query, status, time to the headers."""

    def __init__(self, inner: httpx2.AsyncBaseTransport, note: Note) -> None:
        self._inner, self._note = inner, note

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        began = time.perf_counter()
        url = request.url
        what = f"{request.method} {url.scheme}://{url.netloc.decode('ascii', 'replace').rpartition('@')[2]}{url.path}"
        try:
            response = await self._inner.handle_async_request(request)
        except httpx2.HTTPError as error:
            self._note(f"{what} failed after {_ms(began)}: {type(error).__name__} {error}".rstrip(), "error")
            raise
        kind = response.headers.get("content-type", "").partition(";")[0]
        level = "info" if response.status_code < 400 else "warning"
        self._note(f"{what} {response.status_code} {kind} {_ms(began)}".replace("  ", " "), level)
        return response

    async def aclose(self) -> None:
        await self._inner.aclose()


def _ms(began: float) -> str:
    return f"{(time.perf_counter() - began) * 1000:.0f} ms"
