"""OpenTelemetry, where a person switched it on: spans over OTLP/HTTP to a collector of their own.

Spans wait in a bounded queue and are sent by a thread of the SDK: a collector that is slow or down costs spans,
never time. Names and attributes follow the GenAI and MCP semantic conventions (opentelemetry.io, 2026); what they
have no word for begins with `desktop_host.`. Every text is redacted; what was said goes along only if `content` is on.
"""

from __future__ import annotations

import asyncio
import importlib.util
import json
import logging
import os
import threading
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any
from urllib.parse import urlsplit

import desktop_host
from desktop_host.core.admin import SecretStore
from desktop_host.core.errors import HostError
from desktop_host.core.settings import Network, Settings
from desktop_host.core.settings_telemetry import Telemetry as Wanted
from desktop_host.core.telemetry import NOTHING, Span, Value
from desktop_host.diagnostics import telemetry_sending
from desktop_host.diagnostics.redaction import Redactor

DEFAULT = "http://127.0.0.1:4318/v1/traces"
HEADERS = "telemetry"
"""The vault's secret with headers for the collector: `name=value,name=value`."""
CLOSE_S = 1.5
"""How long quitting waits for the last spans."""
TEXT_CHARS = 4_000
CONTENT_CHARS = 20_000
_log = logging.getLogger(__name__)


def endpoint_of(wanted: Wanted, environ: Mapping[str, str]) -> str:
    """Where spans go: the setting, else the standard variables, else this computer."""
    if wanted.endpoint:
        return wanted.endpoint
    if own := environ.get("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"):
        return own
    if base := environ.get("OTEL_EXPORTER_OTLP_ENDPOINT"):
        return f"{base.rstrip('/')}/v1/traces"
    return DEFAULT


class Telemetry:
    """Implements `core.telemetry.Tracing`. Belongs to the host's loop."""

    def __init__(
        self,
        settings: Callable[[], Settings],
        secrets: SecretStore,
        redactor: Redactor,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        self._settings, self._secrets, self._redactor = settings, secrets, redactor
        self._environ = os.environ if environ is None else environ
        self._made_for: tuple[Wanted, Network] | None = None
        self._provider: Any = None
        self._tracer: Any = None
        self._sender: Any = None
        self._making: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Get ready, if it is switched on. Raises nothing."""
        await self._make()

    async def close(self) -> None:
        """Send what waits, for `CLOSE_S` at most."""
        if self._making is not None:
            await asyncio.wait({self._making}, timeout=CLOSE_S)
        await self._drop()

    async def telemetry(self) -> Mapping[str, object]:
        """How it does; see `core.telemetry.TelemetryState`."""
        wanted = self._settings().telemetry
        sender = self._sender
        return {
            "on": wanted.on, "installed": installed(), "endpoint": _shown(endpoint_of(wanted, self._environ)),
            "sent": sender.sent if sender else 0, "lost": sender.lost if sender else 0,
            "error": self._redactor(sender.error) if sender else "",
        }  # fmt: skip

    def begin(self, name: str, kind: str = "internal", **values: Value | None) -> Span:
        settings = self._settings()
        if (settings.telemetry, settings.network) != self._made_for and self._making is None:
            # Settings changed: spans go on in the old way until the new one is ready.
            self._making = asyncio.ensure_future(self._make())
        tracer = self._tracer
        if tracer is None or not settings.telemetry.on:
            return NOTHING
        from opentelemetry.trace import SpanKind

        which = SpanKind.CLIENT if kind == "client" else SpanKind.INTERNAL
        span = _Traced(tracer.start_span(self._redactor(name), kind=which), self._redactor, settings.telemetry.content)
        span.put(**values)
        return span

    def inside(self, span: Span) -> AbstractContextManager[object]:
        if not isinstance(span, _Traced):
            return nullcontext()
        from opentelemetry.trace import use_span

        return use_span(span.raw, end_on_exit=False, record_exception=False, set_status_on_exception=False)

    async def _make(self) -> None:
        settings = self._settings()
        try:
            await self._drop()
            self._made_for = (settings.telemetry, settings.network)
            if settings.telemetry.on and installed():
                headers = await self._headers(settings.telemetry)
                self._provider, self._sender = await asyncio.to_thread(
                    telemetry_sending.make, endpoint_of(settings.telemetry, self._environ), headers, settings.network
                )
                self._tracer = self._provider.get_tracer("desktop-host", desktop_host.__version__)
            elif settings.telemetry.on:
                _log.warning("telemetry is switched on, but the extra [telemetry] is not installed")
        except Exception:  # Of the exporters of others; the host works without them.
            _log.exception("telemetry could not be started")
        finally:
            self._making = None

    async def _headers(self, wanted: Wanted) -> dict[str, str]:
        from opentelemetry.util.re import parse_env_headers

        try:
            given = await self._secrets.get(HEADERS) or ""
        except HostError as fault:
            _log.warning("the headers for telemetry stay in the vault: %s", fault)
            given = ""
        headers = dict(parse_env_headers(given, liberal=True))
        if wanted.endpoint:
            # The SDK adds what the environment holds for another address; an empty value of ours goes before.
            for name in ("OTEL_EXPORTER_OTLP_TRACES_HEADERS", "OTEL_EXPORTER_OTLP_HEADERS"):
                theirs = parse_env_headers(self._environ.get(name, ""), liberal=True)
                headers = {**dict.fromkeys(theirs, ""), **headers}
        return headers

    async def _drop(self) -> None:
        provider, self._provider, self._tracer, self._made_for = self._provider, None, None, None
        if provider is None:
            return
        done = asyncio.Event()
        loop = asyncio.get_running_loop()

        def shut() -> None:
            provider.shutdown()
            try:
                loop.call_soon_threadsafe(done.set)
            except RuntimeError:
                _log.debug("telemetry ended after its host")

        # Not a thread of the pool: the interpreter would wait for it at its end.
        threading.Thread(target=shut, name="telemetry end", daemon=True).start()
        try:
            async with asyncio.timeout(CLOSE_S):
                await done.wait()
        except TimeoutError:
            _log.warning("telemetry: the last spans were not sent in time")
            self._sender.stop()


class _Traced:
    """A span of the SDK."""

    def __init__(self, raw: Any, redactor: Redactor, content: bool) -> None:
        self.raw = raw
        self._redactor, self._content = redactor, content

    def put(self, **values: Value | None) -> None:
        self.raw.set_attributes(self._clean(values))

    def content(self, **values: object) -> None:
        if self._content:
            for name, value in values.items():
                text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
                self.raw.set_attribute(name.replace("__", "."), self._redactor(text)[:CONTENT_CHARS])

    def event(self, name: str, **values: Value | None) -> None:
        self.raw.add_event(name, self._clean(values))

    def fail(self, code: str, message: str = "") -> None:
        from opentelemetry.trace import StatusCode

        self.raw.set_attribute("error.type", code)
        self.raw.set_status(StatusCode.ERROR, code)
        if message:
            self.content(desktop_host__error=message)

    def end(self) -> None:
        if self.raw.is_recording():
            self.raw.end()

    def _clean(self, values: Mapping[str, Value | None]) -> dict[str, Any]:
        return {
            name.replace("__", "."): self._redactor(value)[:TEXT_CHARS] if isinstance(value, str) else value
            for name, value in values.items()
            if value is not None
        }


def installed() -> bool:
    """Whether the extra is there."""
    try:
        return importlib.util.find_spec("opentelemetry.exporter.otlp.proto.http") is not None
    except ModuleNotFoundError:
        return False


def _shown(url: str) -> str:
    parts = urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="").geturl()
