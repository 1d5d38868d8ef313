"""HTTP for MCP: one client per connection whose failures stay with the request that met them."""

from __future__ import annotations

import asyncio
import functools
import ipaddress
import json
import logging
import ssl
import urllib.request
from collections.abc import AsyncIterable, AsyncIterator, Callable
from dataclasses import dataclass, field

import httpx2

from desktop_host.core.errors import HostError
from desktop_host.core.servers import Http, Sse
from desktop_host.servers.network_log import Heard, Note
from desktop_host.servers.surrogates import whole_characters

# At INFO it logs whole URLs, which may hold a key.
logging.getLogger("httpx2").setLevel(logging.WARNING)

EVENT_LIMIT = 64 * 2**20
"""Largest event of a stream (bytes); the SDK's own limit of 1 MiB loses ordinary results."""
HTTP_FAILED = -32010
"""A request that met a network failure."""
HTTP_STATUS = -32011
"""A request that was answered by an HTTP error without a JSON-RPC body."""
BODY_SHOWN = 300
FAREWELL_S = 2.0


@dataclass(slots=True)
class HttpFacts:
    """What the wire told below JSON-RPC."""

    status: int | None = None
    """The last status of 400 and above."""
    unreachable: bool = False
    """The last request could not connect."""
    session_lost: bool = False
    """The server no longer knows our MCP session (it was restarted)."""
    streams: int = 0
    """Streams of notifications that are open."""
    stream_ended: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when one of them ends."""
    fault: HostError | None = None
    """Why a request could not be signed in."""


class Shield(httpx2.AsyncBaseTransport):
    """Turns failures of one POST into a JSON-RPC error for that POST; nothing leaves the configured origin.

    In SDK 2.3 a transport error that escapes a POST cancels whoever entered the client and closes all other
    calls (python-sdk issues 3522, 3560). A non-2xx answer with a JSON-RPC error stays with its request.
    """

    def __init__(self, inner: httpx2.AsyncBaseTransport, url: str, facts: HttpFacts) -> None:
        self._inner, self._facts = inner, facts
        self._home = httpx2.URL(url)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        if not is_home(self._home, request.url):
            told = f"refused: {request.url.scheme}://{request.url.host} is not the configured origin"
            if request.method == "POST":
                return _answer(403, HTTP_FAILED, told)
            raise httpx2.UnsupportedProtocol(told)
        try:
            if request.method == "DELETE":
                return await self._farewell(request)
            response = await self._inner.handle_async_request(request)
            if request.method != "POST":
                return self._minded(request, response)
            kind = response.headers.get("content-type", "").lower()
            if response.status_code >= 400:
                return await self._refused(request, response, kind)
            self._facts.unreachable = False
            # Read here, where a cut body can still be told to its request; streams tell it themselves.
            if kind.startswith("application/json"):
                return await whole(response)
            return _lines(response) if kind.startswith("text/event-stream") and _plain(response) else response
        except httpx2.TransportError as error:
            if request.method != "POST":
                raise  # The SDK contains those of the GET stream and of DELETE.
            self._facts.unreachable = isinstance(error, (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.ProxyError))
            return _answer(503, HTTP_FAILED, f"{type(error).__name__}: {error}".rstrip(": "))

    async def aclose(self) -> None:
        await self._inner.aclose()

    async def _farewell(self, request: httpx2.Request) -> httpx2.Response:
        """The end of a session is told, not waited for: the server may be gone."""
        try:
            async with asyncio.timeout(FAREWELL_S):
                return await whole(await self._inner.handle_async_request(request))
        except TimeoutError:
            raise httpx2.ReadTimeout("the server did not take the end of the session") from None

    async def _refused(self, request: httpx2.Request, response: httpx2.Response, kind: str) -> httpx2.Response:
        read = await whole(response)
        status, text = read.status_code, (await read.aread()).decode("utf-8", "replace")
        self._facts.status = status
        known = "mcp-session-id" in request.headers
        if known and (status == 404 or (status == 400 and "session" in text.lower())):
            self._facts.session_lost = True
        if (kind.startswith("application/json") and _is_rpc_error(text)) or status == 404:
            return read
        shown = " ".join(text.split())[:BODY_SHOWN]
        return _answer(status, HTTP_STATUS, f"HTTP {status}{': ' + shown if shown else ''}")

    def _minded(self, request: httpx2.Request, response: httpx2.Response) -> httpx2.Response:
        """Count a stream while it is open: the SDK tells nobody when it gives one up."""
        if request.method != "GET" or response.status_code != 200:
            return response
        stream = (_lines(response) if _plain(response) else response).stream
        assert isinstance(stream, httpx2.AsyncByteStream)
        return httpx2.Response(
            200, headers=response.headers, stream=_Minded(stream, self._facts), extensions=response.extensions
        )


class _Minded(httpx2.AsyncByteStream):
    def __init__(self, inner: httpx2.AsyncByteStream, facts: HttpFacts) -> None:
        self._inner, self._facts, self._open = inner, facts, True
        facts.streams += 1

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for part in self._inner:
            yield part

    async def aclose(self) -> None:
        if self._open:
            self._open = False
            self._facts.streams -= 1
            self._facts.stream_ended.set()
        await self._inner.aclose()


def is_home(home: httpx2.URL, url: httpx2.URL) -> bool:
    """Whether `url` is on the origin of `home`, or on its https upgrade on the default ports."""
    if (url.scheme, url.host, url.port) == (home.scheme, home.host, home.port):
        return True
    upgrade = (home.scheme, url.scheme) == ("http", "https")
    return upgrade and url.host == home.host and home.port is None and url.port is None


def plain_transport(url: str) -> httpx2.AsyncHTTPTransport:
    """A transport to one address by the environment's proxy. Builds a TLS context: call it in a thread."""
    return httpx2.AsyncHTTPTransport(
        verify=_tls(),
        proxy=_proxy(url),
        limits=httpx2.Limits(max_connections=None, max_keepalive_connections=20),
    )


def http_client(
    launch: Http | Sse,
    facts: HttpFacts,
    sign: Callable[[httpx2.AsyncBaseTransport], httpx2.AsyncBaseTransport] | None = None,
    note: Note | None = None,
) -> httpx2.AsyncClient:
    """The client for one server; the caller enters and leaves it. Builds a TLS context: call it in a thread.

    `sign` wraps what sends, so that requests carry a token; `note` is told of each request.
    """
    inner: httpx2.AsyncBaseTransport = plain_transport(launch.url)
    if note is not None:
        inner = Heard(inner, note)
    return httpx2.AsyncClient(
        transport=Shield(sign(inner) if sign else inner, launch.url, facts),
        headers=dict(launch.headers),
        # No limit on silence: deadlines are the host's own, and progress extends them.
        timeout=httpx2.Timeout(30, read=None),
        trust_env=False,
        follow_redirects=False,
    )


@functools.cache
def _tls() -> ssl.SSLContext:
    return httpx2.create_ssl_context()  # About 0.9 MB each: one for all servers.


def _proxy(url: str) -> str | None:
    """The environment's proxy for a URL; never for this machine."""
    target = httpx2.URL(url)
    if is_loopback(target.host) or urllib.request.proxy_bypass(target.host):
        return None
    proxies = urllib.request.getproxies()
    found = proxies.get(target.scheme) or proxies.get("all")
    return found if found is None or "://" in found else f"http://{found}"


def is_loopback(host: str) -> bool:
    """Whether a host name or address means this machine."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


class _Lines(httpx2.AsyncByteStream):
    def __init__(self, inner: httpx2.AsyncByteStream) -> None:
        self._inner = inner

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for part in whole_lines(self._inner):
            yield part

    async def aclose(self) -> None:
        await self._inner.aclose()


def _plain(response: httpx2.Response) -> bool:
    """Whether the bytes are the text itself, not a compressed form of it."""
    return response.headers.get("content-encoding", "identity").lower() == "identity"


def _lines(response: httpx2.Response) -> httpx2.Response:
    stream = response.stream
    assert isinstance(stream, httpx2.AsyncByteStream)
    return httpx2.Response(
        response.status_code, headers=response.headers, stream=_Lines(stream), extensions=response.extensions
    )


async def whole_lines(stream: AsyncIterable[bytes]) -> AsyncIterator[bytes]:
    """The stream by whole lines, lone surrogates replaced; no event is ready before its line ends anyway."""
    held: list[bytes] = []
    size = 0
    async for part in stream:
        end = max(part.rfind(b"\n"), part.rfind(b"\r")) + 1
        held.append(part[:end] if end else part)
        size += len(held[-1])
        if end or size > EVENT_LIMIT:  # A line over the limit is the reader's to refuse.
            yield whole_characters(b"".join(held))
            held = [part[end:]] if end else []
            size = len(part) - end if end else 0
    if held:
        yield whole_characters(b"".join(held))


async def whole(response: httpx2.Response) -> httpx2.Response:
    """The response with its body read; the connection is free again."""
    stream = response.stream
    assert isinstance(stream, httpx2.AsyncByteStream)
    try:
        body = b"".join([part async for part in stream])
        if _plain(response):
            body = whole_characters(body)
    finally:
        await response.aclose()
    return httpx2.Response(
        response.status_code, headers=response.headers, stream=httpx2.ByteStream(body), extensions=response.extensions
    )


def _answer(status: int, code: int, message: str) -> httpx2.Response:
    error = {"code": code, "message": message, "data": {"status": status}}
    return httpx2.Response(status, json={"jsonrpc": "2.0", "id": None, "error": error})


def _is_rpc_error(text: str) -> bool:
    try:
        body = json.loads(text)
    except ValueError:
        return False
    return isinstance(body, dict) and isinstance(body.get("error"), dict) and body.get("jsonrpc") == "2.0"
