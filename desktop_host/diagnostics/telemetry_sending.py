"""How spans leave the computer: the SDK's queue and thread, an exporter that counts, and what it says of failures.

The SDK is set up without its globals, so each profile has its own. Blocking and heavy: imported in a thread.
"""

from __future__ import annotations

import logging
import os
import uuid
from typing import Any
from urllib.parse import urlsplit

import desktop_host
from desktop_host.core.settings import Network

SEND_S = 3.0
"""How long one sending may take."""
EVERY_MS = 2000
QUEUE = 2048
"""Spans that may wait; beyond that the oldest are dropped."""


def make(endpoint: str, headers: dict[str, str], network: Network) -> tuple[Any, Any]:
    """The SDK's provider and the exporter behind it. Blocking."""
    import requests
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult

    class Sender(SpanExporter):
        """Counts what was sent and what was lost."""

        def __init__(self) -> None:
            session = requests.Session()
            if network.ca_file:
                session.verify = network.ca_file
            if network.proxy and urlsplit(endpoint).hostname not in ("127.0.0.1", "localhost", "::1"):
                session.proxies = {"http": network.proxy, "https": network.proxy}
            self._inner: Any = OTLPSpanExporter(endpoint, headers=headers, timeout=SEND_S, session=session)
            self.sent = self.lost = 0
            self.error = ""
            self._stopped = False

        def export(self, spans: Any) -> Any:
            try:
                result = SpanExportResult.FAILURE if self._stopped else self._inner.export(spans)
                self.error = "" if result is SpanExportResult.SUCCESS else heard.last or "not taken"
            except Exception as error:
                result, self.error = SpanExportResult.FAILURE, f"{type(error).__name__}: {error}"
            if result is SpanExportResult.SUCCESS:
                self.sent += len(spans)
            else:
                self.lost += len(spans)
            return result

        def stop(self) -> None:
            """Send nothing more; a sending that waits to be tried again is given up."""
            if not self._stopped:
                self._stopped = True
                self._inner.shutdown()

        def shutdown(self) -> None:
            self.stop()

        def force_flush(self, timeout_millis: int = 30_000) -> bool:
            return True

    heard = _Heard.listen()
    sender = Sender()
    resource = Resource.create({
        "service.name": os.environ.get("OTEL_SERVICE_NAME") or "desktop-host",
        "service.version": desktop_host.__version__, "service.instance.id": uuid.uuid4().hex,
    })  # fmt: skip
    provider = TracerProvider(resource=resource, shutdown_on_exit=False)
    provider.add_span_processor(
        BatchSpanProcessor(sender, max_queue_size=QUEUE, schedule_delay_millis=EVERY_MS, max_export_batch_size=256)
    )
    return provider, sender


class _Heard(logging.Handler):
    """Takes what the SDK logs of failed sendings: the check tells it, the log would be flooded."""

    last = ""

    def emit(self, record: logging.LogRecord) -> None:
        self.last = record.getMessage()[:300]

    @classmethod
    def listen(cls) -> _Heard:
        """The one handler of this process."""
        for name in ("opentelemetry.exporter", "opentelemetry.sdk"):
            logger = logging.getLogger(name)
            logger.propagate = False
            found = next((h for h in logger.handlers if isinstance(h, cls)), None)
            if found is None:
                logger.addHandler(_ONE)
        return _ONE


_ONE = _Heard()
