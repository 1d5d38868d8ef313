"""The window's gateway: on this computer's loopback address, for one key, as long as the window is open."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import logging
import secrets
from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable
from importlib import import_module
from typing import Any

from desktop_host.core.admin import SecretStore, ServerAdmin, SettingsStore
from desktop_host.core.errors import HostError, KnownFault, UserFault
from desktop_host.core.host_calls import Caller, GatewayKey, GatewaySpec
from desktop_host.core.sharing import Guest, Heard, Sharing
from desktop_host.engine.host import Host

SECRET = "gateway"
"""The same token as the command line's `serve --http`."""
KEPT = 200
"""Requests that are remembered."""
GUESTS = 50
_log = logging.getLogger(__name__)

Serve = Callable[[GatewaySpec], Awaitable[None]]


async def serve_gateway(host: Host, spec: GatewaySpec) -> None:
    """Serve a host to other hosts until cancelled; the SDK is imported now.

    Raises:
        KnownFault: `network`, the address cannot be taken.
    """
    from desktop_host.engine.host_calls import outside

    gateway = await asyncio.to_thread(import_module, "desktop_host.servers.gateway")
    await gateway.serve(outside(host), spec)


class WindowSharer:
    """The `Sharer` of a host that a window opened."""

    def __init__(self, settings: SettingsStore, secrets: SecretStore, servers: ServerAdmin, serve: Serve) -> None:
        self._settings, self._secrets, self._servers, self._serve = settings, secrets, servers, serve
        self._lock = asyncio.Lock()
        self._task: asyncio.Task[None] | None = None
        self._url = ""
        self._has_key: bool | None = None
        self._told = False
        """The person has switched; what was kept from last time counts no more."""
        self._fault: HostError | None = None
        self._heard: deque[Heard] = deque(maxlen=KEPT)
        self._guests: OrderedDict[tuple[str, str], Guest] = OrderedDict()

    async def state(self) -> Sharing:
        """See `Sharer`."""
        on = self._task is not None and not self._task.done()
        guests = tuple(reversed(self._guests.values()))
        if self._has_key is None:
            try:
                self._has_key = bool(await self._secrets.get(SECRET))
            except HostError as fault:  # Asked for once: a keyring may ask the person each time.
                self._has_key, self._fault = False, fault
        return Sharing(
            on, self._url if on else "", self._has_key, self._fault, guests, tuple(reversed(self._heard))
        )  # fmt: skip

    async def turn(self, on: bool) -> Sharing:
        """See `Sharer`."""
        async with self._lock:
            self._told = True
            await self._settings.set("gateway.on", on)
            await self._stop()
            if on:
                await self._start()
        return await self.state()

    async def begin(self) -> None:
        """Serve if the settings say so; for the opening of the host."""
        async with self._lock:
            if self._settings.current().gateway.on and not self._told:
                await self._start()

    async def close(self) -> None:
        """Serve nothing any more."""
        async with self._lock:
            await self._stop()

    async def new_key(self) -> str:
        """See `Sharer`."""
        key = secrets.token_urlsafe(32)
        async with self._lock:
            await self._secrets.put(SECRET, key)
            self._has_key = True
            if self._task is not None:
                await self._stop()
                await self._start()
        return key

    # ---- inside
    def _caller(self) -> Caller:
        settings = self._settings.current().gateway
        hidden = set(settings.hidden.split())
        tools = tuple(f"{c.name}.*" for c in self._servers.configs() if c.name not in hidden)
        return Caller("main", tools, tuple(settings.allow.split()))

    async def _start(self) -> None:
        self._fault, self._url = None, ""
        try:
            token = await self._secrets.get(SECRET)
            self._has_key = bool(token)
            if not token:
                raise UserFault("usage", "there is no bearer token", reason="no_token", name=SECRET)
            key = GatewayKey(self._caller(), hashlib.sha256(token.encode()).hexdigest())
            ready: asyncio.Future[str] = asyncio.get_running_loop().create_future()
            port = self._settings.current().gateway.port
            spec = GatewaySpec(address=("127.0.0.1", port), keys=(key,), ready=ready.set_result, heard=self._hear)
            task = self._task = asyncio.ensure_future(self._serve(spec))
            either: set[asyncio.Future[Any]] = {task, ready}
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            if not ready.done():
                self._task = None
                await task
                raise KnownFault("network", "the gateway ended at once")
            self._url = ready.result()
            task.add_done_callback(self._ended)
        except HostError as fault:
            self._fault = fault

    async def _stop(self) -> None:
        task, self._task = self._task, None
        self._fault = None
        if task is not None:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError, HostError):
                await task

    def _ended(self, task: asyncio.Task[None]) -> None:
        if self._task is task and not task.cancelled():
            error = task.exception()
            _log.error("the gateway ended by itself", exc_info=error)
            self._fault = error if isinstance(error, HostError) else HostError("bug", "the gateway ended by itself")

    def _hear(self, heard: Heard) -> None:
        self._heard.append(heard)
        key = (heard.caller, heard.client)
        before = self._guests.pop(key, None)
        self._guests[key] = Guest(*key, heard.at, (before.requests if before else 0) + 1)
        while len(self._guests) > GUESTS:
            self._guests.popitem(last=False)
