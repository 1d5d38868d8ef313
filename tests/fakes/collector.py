"""A collector of OpenTelemetry on loopback that decodes what it is sent (OTLP over HTTP, protobuf)."""

from __future__ import annotations

import gzip
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


@dataclass(frozen=True)
class Seen:
    """One span."""

    name: str
    kind: int
    trace: str
    id: str
    parent: str
    failed: bool
    attributes: dict[str, Any]
    events: tuple[str, ...] = ()
    resource: dict[str, Any] = field(default_factory=dict)


class Collector:
    """`with Collector() as c`: `c.spans` by and by holds what was sent."""

    def __init__(self, status: int = 200) -> None:
        self.spans: list[Seen] = []
        self.raw: list[bytes] = []
        self.headers: list[dict[str, str]] = []
        self.arrived = threading.Event()
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                if self.headers.get("content-encoding") == "gzip":
                    body = gzip.decompress(body)
                collector.headers.append({k.lower(): v for k, v in self.headers.items()})
                self.send_response(status)
                self.send_header("content-length", "0")
                self.end_headers()
                if status == 200:
                    collector._take(body)

            def log_message(self, *_a: object) -> None:
                """Nothing on standard error."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1/traces"

    def __enter__(self) -> Collector:
        self._thread.start()
        return self

    def __exit__(self, *_exc: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(5)

    def _take(self, body: bytes) -> None:
        self.raw.append(body)
        request = ExportTraceServiceRequest.FromString(body)
        for group in request.resource_spans:
            resource = _values(group.resource.attributes)
            for scope in group.scope_spans:
                self.spans += [
                    Seen(
                        s.name, s.kind, s.trace_id.hex(), s.span_id.hex(), s.parent_span_id.hex(), s.status.code == 2,
                        _values(s.attributes), tuple(e.name for e in s.events), resource,
                    )
                    for s in scope.spans
                ]  # fmt: skip
        self.arrived.set()


def _values(attributes: Any) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for one in attributes:
        kind = one.value.WhichOneof("value")
        value = getattr(one.value, kind)
        out[one.key] = [v.string_value for v in value.values] if kind == "array_value" else value
    return out
