"""The gateway's door over HTTP: a bearer token for each caller, and a look at Host and Origin before anything else."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import hmac
import ipaddress
import socket
from collections.abc import AsyncIterator, Mapping
from typing import TYPE_CHECKING, Any

from mcp.server.transport_security import TransportSecuritySettings
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from desktop_host.core.errors import KnownFault
from desktop_host.core.host_calls import GatewaySpec

if TYPE_CHECKING:
    from desktop_host.servers.gateway import Desk

SESSIONS = 100
"""MCP sessions of older clients that one key may have at once; one that is idle for half an hour ends."""
GRACE_S = 3
"""Seconds that running requests have when the gateway is stopped."""


def is_loopback(host: str) -> bool:
    """Whether only this computer can come to such an address."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def guarded(host: str, port: int) -> TransportSecuritySettings:
    """The Host and Origin headers that are let in: names of the address served and, on loopback, its synonyms."""
    names = ["127.0.0.1", "localhost", "[::1]"]
    if not is_loopback(host):
        own = f"[{host}]" if ":" in host else host
        names += [own, socket.gethostname(), socket.getfqdn()]
    return TransportSecuritySettings(
        enable_dns_rebinding_protection=True,
        allowed_hosts=[f"{name}:{port}" for name in names],
        allowed_origins=[f"http://{name}:{port}" for name in names],
    )


class Door:
    """Lets each token in to its caller's server, and nobody else anywhere."""

    def __init__(
        self, digests: Mapping[str, str], apps: Mapping[str, ASGIApp], guard: TransportSecuritySettings
    ) -> None:
        self._digests, self._apps, self._guard = digests, apps, guard

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        headers = {k.lower(): v.decode("latin-1") for k, v in scope["headers"]}
        if headers.get(b"host") not in self._guard.allowed_hosts:
            await JSONResponse({"error": "this Host is not served here"}, 421)(scope, receive, send)
            return
        origin = headers.get(b"origin")
        if origin is not None and origin not in self._guard.allowed_origins:
            await JSONResponse({"error": "this Origin is not let in"}, 403)(scope, receive, send)
            return
        scheme, _, token = headers.get(b"authorization", "").partition(" ")
        caller = self._holder(token.strip()) if scheme.lower() == "bearer" else None
        if caller is None:
            refused = JSONResponse({"error": "a bearer token is needed"}, 401,
                                   {"WWW-Authenticate": 'Bearer realm="desktop-host"'})  # fmt: skip
            await refused(scope, receive, send)
            return
        await self._apps[caller](scope, receive, send)

    def _holder(self, token: str) -> str | None:
        """Whose token this is: every digest is compared, in constant time each."""
        given, found = hashlib.sha256(token.encode("latin-1")).hexdigest(), None
        for caller, digest in self._digests.items():
            if hmac.compare_digest(given, digest):
                found = caller
        return found


@contextlib.asynccontextmanager
async def _running(desk: Desk, guard: TransportSecuritySettings) -> AsyncIterator[ASGIApp]:
    """A desk's HTTP application; a task of its own enters and leaves what the SDK opens."""
    app = desk.server.streamable_http_app(transport_security=guard, max_sessions=SESSIONS)
    ready, done = asyncio.Event(), asyncio.Event()

    async def own() -> None:
        async with desk.server.session_manager.run():
            ready.set()
            await done.wait()

    owner = asyncio.create_task(own())
    await ready.wait()
    try:
        yield app
    finally:
        done.set()
        await owner


async def serve_http(desks: Mapping[str, Desk], spec: GatewaySpec) -> None:
    """Serve Streamable HTTP at `/mcp` until cancelled.

    Raises:
        KnownFault: `network`, the address cannot be taken.
    """
    import uvicorn

    from desktop_host.servers.gateway_line import Line

    assert spec.address is not None
    host, port = spec.address
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listener = socket.create_server((host, port), family=family)
    except OSError as error:
        raise KnownFault(
            "network", f"{host}:{port} cannot be taken: {error.strerror}", address=f"{host}:{port}"
        ) from error
    with listener:
        port = listener.getsockname()[1]
        guard = guarded(host, port)
        async with contextlib.AsyncExitStack() as stack:
            apps = {name: await stack.enter_async_context(_running(desk, guard)) for name, desk in desks.items()}
            door = Door({key.caller.name: key.sha256 for key in spec.keys}, apps, guard)
            config: Any = uvicorn.Config(
                door, log_config=None, lifespan="off", http=Line, ws="none", access_log=False, server_header=False,
                timeout_graceful_shutdown=GRACE_S,
            )  # fmt: skip
            server = uvicorn.Server(config)
            server.capture_signals = contextlib.nullcontext  # type: ignore[assignment]  # Signals are the face's.
            spec.ready(f"http://{f'[{host}]' if ':' in host else host}:{port}/mcp")
            serving = asyncio.create_task(server.serve(sockets=[listener]))
            try:
                await asyncio.shield(serving)
            except asyncio.CancelledError:
                server.should_exit = True
                await serving
                raise
