"""What a sign-in may ask of the web, and of the person's browser: addresses come from the server and are hostile.

Rules: MCP's security best practices (server-side request forgery), RFC 9700 2.6 and 4.11, RFC 6750 5.3 (TLS).
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import socket
from collections.abc import Iterator
from enum import IntEnum
from urllib.parse import SplitResult, parse_qsl, urlencode, urlsplit, urlunsplit

import httpx2
from mcp.client.auth import OAuthFlowError

from desktop_host.core.auth import Auth
from desktop_host.core.errors import KnownFault, PeerFault
from desktop_host.servers.http import is_loopback, plain_transport
from desktop_host.servers.records import Redactor

WEB_S = 30.0
"""Time limit of one request of a sign-in."""
BODY_LIMIT = 2**20
"""Largest answer to one (bytes, as unpacked): metadata, a registration or tokens take a few thousand."""
_OF_THE_WIRE = ("content-encoding", "content-length", "transfer-encoding")
_NAT64 = ipaddress.ip_network("64:ff9b::/96")


class Reach(IntEnum):
    """How far inside an address lies; a server may lead a sign-in outwards, never further in than it lies itself."""

    LINK = 1
    """169.254.0.0/16: the metadata services of clouds. Nobody's sign-in is here."""
    MACHINE = 2
    PRIVATE = 3
    PUBLIC = 4


class Web:
    """The requests of the sign-in to one server.

    Args:
        home: the server's address.
        trusted: addresses that the person configured; their hosts are not judged.
    """

    def __init__(self, home: str, trusted: tuple[str, ...] = ()) -> None:
        self._home = _host(home)
        self._trusted = {self._home, *(_host(url) for url in trusted if url)}
        self._known: dict[str, Reach | None] = {}

    async def allow(self, url: str) -> None:
        """Whether an address of a sign-in may be asked, or opened in the browser.

        Raises:
            KnownFault: `auth` with `reason` `insecure` (not https, and not this machine), `bad_address` (no web
                address, or one that hides its host) or `inner_address` (further inside the network than the server).
        """
        parts = _parts(url)
        if parts.scheme not in ("http", "https") or not parts.hostname or "@" in parts.netloc or "\\" in parts.netloc:
            raise KnownFault("auth", f"{url[:200]!r} is no address to sign in at", reason="bad_address", url=url[:200])
        refuse_insecure(url)
        host = parts.hostname
        if host in self._trusted:
            return
        inner, home = await self._reach(host), await self._reach(self._home) or Reach.PUBLIC
        if inner is None or (inner >= home and inner is not Reach.LINK):
            return
        raise KnownFault(
            "auth",
            f"the server leads its sign-in to {host}, which lies further inside the network than the server itself",
            reason="inner_address", host=host,
        )  # fmt: skip

    async def send(self, request: httpx2.Request) -> httpx2.Response:
        """Send one request of a sign-in; it shares nothing with the connection to the server, redirects included.

        Raises:
            KnownFault: `network`; `auth` as in `allow`, and with `reason` `too_large`.
        """
        url = str(request.url)
        host = request.url.host
        try:
            async with asyncio.timeout(WEB_S):
                await self.allow(url)
                transport = await asyncio.to_thread(plain_transport, url)
                async with httpx2.AsyncClient(transport=transport, timeout=WEB_S, trust_env=False) as client:
                    response = await client.send(request, stream=True, follow_redirects=False)
                    return await _within(response, BODY_LIMIT)
        except (httpx2.HTTPError, TimeoutError) as error:
            said = f"{type(error).__name__}: {error}".rstrip(": ")
            raise KnownFault(
                "network", f"{host} could not be reached for the sign-in: {said}", retryable=True
            ) from error

    async def _reach(self, host: str) -> Reach | None:
        """None: the name means nothing here; a proxy may know it."""
        if host not in self._known:
            self._known[host] = await _reach_of(host)
        return self._known[host]


async def _within(response: httpx2.Response, limit: int) -> httpx2.Response:
    body = bytearray()
    try:
        async for part in response.aiter_bytes():
            body += part
            if len(body) > limit:
                raise KnownFault(
                    "auth", f"{response.url.host} answered the sign-in with more than {limit} bytes",
                    reason="too_large", host=response.url.host,
                )  # fmt: skip
    finally:
        await response.aclose()
    headers = [(k, v) for k, v in response.headers.multi_items() if k not in _OF_THE_WIRE]
    return httpx2.Response(response.status_code, headers=headers, content=bytes(body), request=response.request)


async def _reach_of(host: str) -> Reach | None:
    with contextlib.suppress(ValueError):
        return _reach_of_ip(host)
    if is_loopback(host):
        return Reach.MACHINE
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return None
    return min((_reach_of_ip(str(entry[4][0])) for entry in found), default=None)


def _reach_of_ip(text: str) -> Reach:
    """Raises: ValueError, it is no IP address."""
    ip = ipaddress.ip_address(text.partition("%")[0].strip("[]"))
    if isinstance(ip, ipaddress.IPv6Address):
        wrapped = ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF) if ip in _NAT64 else ip.ipv4_mapped or ip.sixtofour
        ip = wrapped or ip
    if ip.is_loopback or ip.is_unspecified:
        return Reach.MACHINE
    if ip.version == 4 and (ip.is_link_local or ip.is_multicast):
        return Reach.LINK
    return Reach.PUBLIC if ip.is_global else Reach.PRIVATE


def web_for(url: str, auth: Auth) -> Web:
    """The web of a server as configured."""
    return Web(url, tuple(str(getattr(auth, name, "")) for name in ("issuer", "idp_token_endpoint")))


def is_secure(url: str) -> bool:
    """Whether what is sent to an address is hidden from others, or stays within this machine."""
    parts = _parts(url)
    return parts.scheme == "https" or (parts.scheme == "http" and is_loopback(parts.hostname or ""))


def refuse_insecure(url: str) -> None:
    """Nothing of a sign-in is sent in the clear, except within this machine.

    Raises:
        KnownFault: `auth` with `reason` `insecure`.
    """
    if not is_secure(url):
        parts = _parts(url)
        where = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
        raise KnownFault("auth", f"{where} is no place to sign in: only https is", reason="insecure", url=where)


def merged(endpoint: str, url: str) -> str:
    """The SDK's authorization address with the endpoint's own query kept (RFC 6749, 3.1), and no fragment.

    SDK 2.3 appends `?…` to whatever the endpoint is. What the endpoint names itself never takes the place of a
    parameter of ours.
    """
    asked = dict(parse_qsl(url.removeprefix(f"{endpoint}?"), keep_blank_values=True))
    parts = _parts(endpoint)
    own = [(k, v) for k, v in parse_qsl(parts.query, keep_blank_values=True) if k not in asked]
    return urlunsplit((parts.scheme, parts.netloc, parts.path, urlencode([*own, *asked.items()]), ""))


@contextlib.contextmanager
def understood(redact: Redactor) -> Iterator[None]:
    """What the SDK says of an answer it cannot use, as a fault of ours.

    Raises:
        KnownFault, PeerFault: `auth` with `reason` `flow`.
    """
    try:
        yield
    except OAuthFlowError as error:
        raise KnownFault("auth", f"the sign-in failed: {_short(error, redact)}", reason="flow") from error
    except (ValueError, OverflowError, RecursionError, AttributeError, TypeError) as error:
        raise PeerFault("auth", f"the sign-in failed: {_short(error, redact)}", reason="flow") from error


def plain(text: str, limit: int = 300) -> str:
    """Words of a stranger, on one line and without signs that move a terminal's cursor."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())[:limit]


def _short(error: Exception, redact: Redactor) -> str:
    return plain(redact(str(error))) or type(error).__name__


def _parts(url: str) -> SplitResult:
    """Empty parts for what cannot be read."""
    try:
        parts = urlsplit(url)
        assert parts.port is None or parts.port >= 0  # Reading it checks it.
        return parts
    except ValueError:  # A port or a bracket that is none.
        return SplitResult("", "", "", "", "")


def _host(url: str) -> str:
    return _parts(url).hostname or ""
