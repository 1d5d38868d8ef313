"""One address with one key: the vendor's client behind it, opened when first needed.

The SDKs give authentication, headers and errors; bodies go out as bytes already in wire form and answers
are read as undecoded events. What the SDKs would take from the environment (base URLs, organisations,
custom headers, profiles on disk) is shut out, because it would go to whatever address is configured.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import logging
import os
import ssl
import time
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import urlsplit

from desktop_host.core.errors import ModelFault
from desktop_host.core.settings import Network
from desktop_host.providers import sse
from desktop_host.providers.errors import Where, from_exception, protocol

LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1", "[::1]"})
VENDOR_HOSTS = {"anthropic": "api.anthropic.com", "openai": "api.openai.com"}
CONNECT_S = 10.0
READ_S = 300.0
"""Longest silence of a vendor's stream; they send pings."""
READ_LOCAL_S = 900.0
"""A local model may read a long prompt in silence."""
_CUSTOM_HEADERS = {"anthropic": "ANTHROPIC_CUSTOM_HEADERS", "openai": "OPENAI_CUSTOM_HEADERS"}


def is_loopback(base_url: str) -> bool:
    """Whether an address is on this machine."""
    host = urlsplit(base_url).hostname or ""
    return host in LOOPBACK or host.startswith("127.")


def vendor_of(base_url: str) -> str | None:
    """`anthropic` or `openai` if the address is that vendor's own host, over TLS."""
    parts = urlsplit(base_url)
    host = parts.hostname or ""
    if parts.scheme != "https":
        return None
    return next((v for v, own in VENDOR_HOSTS.items() if host == own or host.endswith("." + own)), None)


@dataclass(slots=True)
class Reply:
    """An answer on its way: events, or a whole JSON body where the server ignored `stream`."""

    events: AsyncGenerator[tuple[str, str], None]
    whole: Any = None
    request_id: str | None = None
    declared: bool = True
    """Whether the answer said that it is a stream of events."""


class Connection:
    """The client of one address. Belongs to the host's loop."""

    def __init__(self, wire: str, base_url: str, key: str, provider: str, network: Network) -> None:
        """Remember the place; nothing is imported or opened yet.

        Args:
            wire: `anthropic`, `anthropic-compat`, `responses` or `compat`.
            base_url: address without the path of the API (Anthropic) or with `/v1` (the others).
            key: the key, empty for none.
            provider: name of the place for people.
            network: certificates and proxy of the profile.
        """
        self.wire = wire
        self.base_url = base_url
        self.provider = provider
        self._key = key
        self._network = network
        self.skew_s: float | None = None
        """Our clock minus the address's, by the `Date` of its newest answer."""
        self._client: Any = None
        self._response_type: Any = None
        self._always: dict[str, Any] = {}
        self._opening = asyncio.Lock()

    @property
    def vendor(self) -> str:
        """The SDK that is used."""
        return "anthropic" if self.wire.startswith("anthropic") else "openai"

    @property
    def first_party(self) -> bool:
        """Whether the address is the vendor's own, over TLS."""
        return vendor_of(self.base_url) is not None

    def where(self, model: str) -> Where:
        """The place, for errors."""
        return Where(self.provider, model, self.base_url, self._key)

    @asynccontextmanager
    async def post(self, path: str, body: bytes, model: str, headers: Mapping[str, str]) -> AsyncIterator[Reply]:
        """Send a request; the answer is closed, and with it the vendor's work, when the block is left.

        Raises:
            ModelFault: the request was refused, or what answered is no such API.
        """
        where = self.where(model)
        response = await self._send(where, "post", path, body, headers)
        try:
            yield await self._reply(where, response)
        finally:
            await response.aclose()

    async def get(self, path: str, timeout_s: float) -> Any:
        """A JSON document of the address.

        Raises:
            ModelFault: it cannot be reached, refuses, or sends something else.
        """
        where = self.where("")
        try:
            await self._open()  # Before the clock runs: how long the library takes to load says nothing of the address.
            async with asyncio.timeout(timeout_s):
                response = await self._send(where, "get", path, None, {})
                try:
                    body = await response.aread()
                finally:
                    await response.aclose()
        except TimeoutError as error:
            raise from_exception(where, error) from error
        except ModelFault:
            raise
        except Exception as error:
            raise from_exception(where, error) from error
        try:
            return json.loads(body)
        except ValueError as error:
            raise protocol(where, "not_json", "the list of models is not JSON") from error

    async def close(self) -> None:
        """Close the connections."""
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    async def _send(self, where: Where, method: str, path: str, body: bytes | None, headers: Mapping[str, str]) -> Any:
        try:
            client = await self._open()
            options = {"headers": {**self._always, **headers}}
            if method == "get":
                response = await client.get(path, cast_to=self._response_type, options=options, stream=True)
            else:
                response = await client.post(
                    path, cast_to=self._response_type, content=body, options=options, stream=True
                )
            self._compare(response)
            return response
        except Exception as error:
            self._compare(getattr(error, "response", None))
            # A vendor may repeat the key in its refusal, so the SDK's exception must not reach a log.
            raise from_exception(where, error) from (None if hasattr(error, "response") else error)

    def _compare(self, response: Any) -> None:
        """Note how far our clock is from the address's."""
        told = response.headers.get("date") if response is not None else None
        if told:
            with suppress(TypeError, ValueError):
                self.skew_s = time.time() - parsedate_to_datetime(told).timestamp()

    async def _reply(self, where: Where, response: Any) -> Reply:
        kind = response.headers.get("content-type", "").split(";")[0].strip().lower()
        request_id = response.headers.get("request-id") or response.headers.get("x-request-id")
        if kind == "application/json":
            try:
                whole = json.loads(await response.aread())
            except ValueError as error:
                raise protocol(where, "not_json", "the answer is neither a stream nor JSON") from error
            except Exception as error:
                raise from_exception(where, error) from error
            return Reply(_nothing(), whole, request_id)
        if kind not in ("text/event-stream", "text/plain", "application/octet-stream", ""):
            raise protocol(where, "not_an_api", f"the address answered with {kind}, not with a model's stream")
        return Reply(sse.events(response.aiter_bytes()), None, request_id, kind == "text/event-stream")

    async def _open(self) -> Any:
        if self._client is None:
            async with self._opening:
                if self._client is None:
                    self._client = await self._make()
        return self._client

    async def _make(self) -> Any:
        sdk = await asyncio.to_thread(importlib.import_module, self.vendor)
        httpx2 = await asyncio.to_thread(importlib.import_module, "httpx2")
        self._response_type = httpx2.Response
        # At DEBUG the SDK writes whole requests, the chat included, into the log.
        for name in (self.vendor, "httpx2", "httpcore2"):
            logging.getLogger(name).setLevel(logging.INFO)
        http = await asyncio.to_thread(self._transport, httpx2)
        headers = self._headers(sdk)
        shared = {
            "api_key": self._key or "none", "base_url": self.base_url, "max_retries": 0, "default_headers": headers,
            "http_client": http,
        }  # fmt: skip
        if self.vendor == "anthropic":
            return sdk.AsyncAnthropic(open_telemetry=False, **shared)
        return sdk.AsyncOpenAI(**shared)

    def _transport(self, httpx2: Any) -> Any:
        """The HTTP client. Runs in a thread, because loading certificates takes tens of milliseconds."""
        local = is_loopback(self.base_url)
        verify: Any = True
        if self._network.ca_file:
            try:
                verify = httpx2.create_ssl_context()
                verify.load_verify_locations(cafile=self._network.ca_file)
            except (OSError, ssl.SSLError) as error:
                raise ModelFault(
                    "tls", f"the certificate file {self._network.ca_file} cannot be used: {error}",
                    reason="ca_file", file=self._network.ca_file, detail=str(error), **self.where("").params(),
                ) from error  # fmt: skip
        try:
            return httpx2.AsyncClient(
                follow_redirects=False,
                timeout=httpx2.Timeout(READ_S if self.first_party else READ_LOCAL_S, connect=CONNECT_S, pool=CONNECT_S),
                limits=httpx2.Limits(max_connections=100, max_keepalive_connections=20, keepalive_expiry=30.0),
                verify=verify,
                trust_env=not local,
                proxy=None if local else self._network.proxy or None,
                mounts=None if local else {f"all://{host}": None for host in ("127.0.0.1", "localhost", "[::1]")},
            )
        except (ImportError, ValueError) as error:
            raise ModelFault(
                "proxy", f"the proxy cannot be used: {error}",
                reason="socks" if isinstance(error, ImportError) else "bad_address", **self.where("").params(),
                detail=self.where("").clean(error),
            ) from error  # fmt: skip

    def _headers(self, sdk: Any) -> dict[str, Any]:
        omit = sdk.Omit() if hasattr(sdk, "Omit") else importlib.import_module(f"{self.vendor}._types").Omit()
        headers: dict[str, Any] = {}
        for line in os.environ.get(_CUSTOM_HEADERS[self.vendor], "").split("\n"):
            name, colon, _ = line.partition(":")
            if colon and name.strip():
                headers[name.strip()] = omit
        for own in [name for name in headers if name.lower() in ("authorization", "x-api-key", "anthropic-version")]:
            del headers[own]
        if self.vendor == "openai":
            headers |= {"OpenAI-Organization": omit, "OpenAI-Project": omit}
            self._always = {"Authorization": f"Bearer {self._key}" if self._key else omit}
        elif self.wire == "anthropic-compat":
            headers |= {"Authorization": omit, "anthropic-version": "2023-06-01", "x-api-key": self._key or omit}
        else:
            version = importlib.import_module("anthropic._constants").ANTHROPIC_API_VERSION
            headers |= {"Authorization": f"Bearer {self._key}" if self._key else omit, "x-api-key": omit}
            headers |= {"anthropic-version": version}
        return headers


async def _nothing() -> AsyncGenerator[tuple[str, str], None]:
    return
    yield
