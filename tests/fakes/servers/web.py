"""A stdlib Streamable HTTP server of the handshake era, in a thread, with the oddities of deployed ones."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
import time
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

TOOLS = ["echo", "headers", "slow", "hang_up", "ask", "event", "cut_json"]


class Web:
    """Run it as a context manager; `url` is its address. Flags change how it behaves from then on."""

    def __init__(self, port: int = 0) -> None:
        self.sessions: set[str] = set()
        self.requests: list[tuple[str, dict[str, str], dict[str, Any]]] = []
        """Method, headers and body of everything that came."""
        self.probe_status, self.probe_body = (
            400,
            json.dumps({"jsonrpc": "2.0", "id": None, "error": {"code": -32600, "message": "Missing session ID"}}),
        )
        self.lost_status = 404
        self.lost_body = '{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Session not found"}}'
        self.status: int | None = None
        """If set, every POST is answered by it, in plain text."""
        self.redirect: str | None = None
        self.deaf = False
        """If set, the end of a session is not answered for long."""
        self.stream: threading.Event | None = None
        """If set, GET gives a stream that ends with the event; once it is set, GET is refused."""
        self.connections: list[socket.socket] = []
        self.server = ThreadingHTTPServer(("127.0.0.1", port), _handler(self))
        self.server.daemon_threads = True
        self.port = self.server.server_address[1]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/mcp"

    def forget_sessions(self) -> None:
        """As if it had been restarted."""
        self.sessions.clear()

    def calls(self, tool: str) -> list[dict[str, str]]:
        """The headers of each call of a tool."""
        return [h for _, h, b in self.requests if b.get("method") == "tools/call" and b["params"]["name"] == tool]

    def __enter__(self) -> Web:
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.server.shutdown()
        self.server.server_close()
        for connection in self.connections:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)


def _handler(web: Web) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def setup(self) -> None:
            super().setup()
            web.connections.append(self.connection)

        def handle(self) -> None:
            with contextlib.suppress(ConnectionError):
                super().handle()

        def log_message(self, *_: Any) -> None: ...

        def do_DELETE(self) -> None:
            if web.deaf:
                time.sleep(10)
            self._plain(200, "")

        def do_GET(self) -> None:
            if web.stream is None or web.stream.is_set():
                self._plain(405, "no stream")
                return
            self.close_connection = True
            self.send_response(200)
            self.send_header("content-type", "text/event-stream")
            self.end_headers()
            self.wfile.write(b": open\n\n")
            web.requests.append(("GET", {}, {}))
            web.stream.wait(30)

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            headers = {k.lower(): v for k, v in self.headers.items()}
            web.requests.append(("POST", headers, body))
            if web.redirect:
                self.send_response(307)
                self.send_header("location", web.redirect)
                self.send_header("content-length", "0")
                self.end_headers()
                return
            if web.status:
                self._plain(web.status, "the proxy says no")
                return
            method, number = body.get("method"), body.get("id")
            if method == "server/discover":
                self._json(web.probe_status, web.probe_body)
                return
            if method == "initialize":
                session = uuid.uuid4().hex
                web.sessions.add(session)
                result = {
                    "protocolVersion": "2025-11-25",
                    "capabilities": {"tools": {}},
                    "serverInfo": {"name": "web", "version": "1"},
                }
                self._result(number, result, session)
                return
            if headers.get("mcp-session-id") not in web.sessions:
                self._json(web.lost_status, web.lost_body)
                return
            if number is None or method is None:
                self._plain(202, "")
            elif method == "tools/list":
                self._result(number, {"tools": [{"name": n, "inputSchema": {"type": "object"}} for n in TOOLS]})
            elif method == "tools/call":
                self._call(number, body["params"]["name"], body["params"].get("arguments") or {}, headers)
            else:
                self._json(
                    200, json.dumps({"jsonrpc": "2.0", "id": number, "error": {"code": -32601, "message": "no"}})
                )

        def _call(self, number: Any, tool: str, arguments: dict[str, Any], headers: dict[str, str]) -> None:
            if tool == "hang_up":
                self.close_connection = True
                self.connection.close()
                return
            if tool == "cut_json":
                self.send_response(200)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", "1000")
                self.end_headers()
                self.wfile.write(b'{"jsonrpc":')
                self.close_connection = True
                return
            if tool == "slow":
                time.sleep(float(arguments.get("s", 1)))
            said = json.dumps(headers) if tool == "headers" else str(arguments.get("m", tool))
            if arguments.get("half"):
                said += "\ud83d"
            result = {"content": [{"type": "text", "text": said * int(arguments.get("times", 1))}]}
            if tool == "event":
                data = json.dumps({"jsonrpc": "2.0", "id": number, "result": result})
                event = f"event: message\ndata: {data}\n\n".encode()
                self.send_response(200)
                self.send_header("content-type", "text/event-stream")
                self.send_header("content-length", str(len(event)))
                self.end_headers()
                self.wfile.write(event)
                return
            self._result(number, result)

        def _result(self, number: Any, result: dict[str, Any], session: str | None = None) -> None:
            self._json(200, json.dumps({"jsonrpc": "2.0", "id": number, "result": result}), session)

        def _json(self, status: int, text: str, session: str | None = None) -> None:
            self._send(status, "application/json", text, session)

        def _plain(self, status: int, text: str) -> None:
            self._send(status, "text/plain", text, None)

        def _send(self, status: int, kind: str, text: str, session: str | None) -> None:
            data = text.encode()
            self.send_response(status)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(data)))
            if session:
                self.send_header("mcp-session-id", session)
            self.end_headers()
            self.wfile.write(data)

    return Handler
