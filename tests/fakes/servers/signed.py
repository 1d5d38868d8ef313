"""A remote MCP server that wants to be signed in to, and its authorization server on an origin of its own.

Both in threads. Codes are given without asking; PKCE, redirect addresses, clients and
rotation are checked as a real one would.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import queue
import secrets
import threading
import time
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import jwt

TOOLS = ["echo", "slow", "admin"]


@dataclass
class Seen:
    """One request as it came."""

    origin: str
    """`as` or `mcp`."""
    method: str
    path: str
    headers: dict[str, str]
    body: str

    @property
    def form(self) -> dict[str, str]:
        return {k: v[0] for k, v in parse_qs(self.body).items()}


@dataclass
class Signed:
    """Use as a context manager. Fields change how both behave from then on."""

    ttl_s: int = 3600
    rotates: bool = True
    cimd: bool = False
    revokes: bool = True
    auth_methods: tuple[str, ...] = ("none", "client_secret_basic", "client_secret_post")
    secret: str = ""
    """If set, the client `known` is registered with it."""
    denies: bool = False
    greets: bool = False
    """Whether anybody may connect; only tools need a token then."""
    metadata: dict[str, Any] = field(default_factory=dict)
    """Over what the authorization server says of itself; None leaves a key out."""
    resource: dict[str, Any] = field(default_factory=dict)
    """Over what the MCP server says of itself as a resource."""
    challenge: str | None = None
    """What `resource_metadata` of a refusal is, in place of the true address; empty: it is left out."""
    well_known: str = "/.well-known/oauth-authorization-server"
    """The only place that has the authorization server's metadata."""
    about_at: str = "/.well-known/oauth-protected-resource/mcp"
    """The only place that has the resource's, for `/mcp`."""
    back: dict[str, str] = field(default_factory=dict)
    """Over the parameters that the browser brings back."""
    given: dict[str, Any] = field(default_factory=dict)
    """Over what comes with a token."""
    forgetful: bool = False
    """Whether a client that registered is known to the pages for persons only."""
    padding: int = 0
    """Bytes that are added to the metadata."""
    hangs: str = ""
    """A path of the authorization server that does not answer until the end."""
    moves: str = ""
    """Where the token endpoint sends everybody (307: with all they brought)."""
    key: str = ""
    """PEM: if set, the client `robot` signs with it."""
    seen: list[Seen] = field(default_factory=list)
    clients: dict[str, dict[str, Any]] = field(default_factory=dict)
    codes: dict[str, dict[str, str]] = field(default_factory=dict)
    access: dict[str, tuple[float, str]] = field(default_factory=dict)
    """Token to its end (monotonic) and scope."""
    refresh: dict[str, str] = field(default_factory=dict)
    """Living refresh token to scope."""
    spent: set[str] = field(default_factory=set)
    reused: int = 0
    revoked: list[str] = field(default_factory=list)
    answers: queue.Queue[str] = field(default_factory=queue.Queue)
    """What goes out over the stream of the older transport."""
    gate: threading.Event = field(default_factory=threading.Event)
    """`slow` answers when it is set."""

    def __post_init__(self) -> None:
        self.lock = threading.Lock()
        self.servers: list[ThreadingHTTPServer] = []

    def __enter__(self) -> Signed:
        for handler in (_authorization(self), _mcp(self)):
            server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
            server.daemon_threads = True
            threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
            self.servers.append(server)
        return self

    def __exit__(self, *_: object) -> None:
        self.gate.set()
        self.answers.put("")
        for server in self.servers:
            server.shutdown()
            server.server_close()

    @property
    def issuer(self) -> str:
        return f"http://127.0.0.1:{self.servers[0].server_address[1]}"

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.servers[1].server_address[1]}/mcp"

    def paths(self, path: str, **form: str) -> list[Seen]:
        """The requests of a path whose form holds these values."""
        return [s for s in self.seen if s.path == path and form.items() <= s.form.items()]

    def expire(self) -> None:
        """End all access tokens, as time would."""
        self.access.clear()

    def forget_clients(self) -> None:
        self.clients.clear()

    def tokens(self) -> list[str]:
        """Every token ever given."""
        return [*self.access, *self.refresh, *self.spent]

    # ---- the token endpoint
    def grant(self, scope: str, refresh: bool = True) -> dict[str, Any]:
        made = {
            "access_token": f"at-{secrets.token_hex(8)}",
            "token_type": "Bearer",
            "expires_in": self.ttl_s,
            "scope": scope,
        }
        self.access[str(made["access_token"])] = (time.monotonic() + self.ttl_s, scope)
        if refresh:
            made["refresh_token"] = f"rt-{secrets.token_hex(8)}"
            self.refresh[str(made["refresh_token"])] = scope
        return {**made, **self.given}

    def token(self, form: dict[str, str], basic: tuple[str, str] | None) -> tuple[int, dict[str, Any]]:
        client, password = basic or (form.get("client_id", ""), form.get("client_secret", ""))
        if form.get("grant_type") == "urn:ietf:params:oauth:grant-type:token-exchange":
            if form.get("subject_token") != "who-i-am" or form.get("audience") != self.issuer:
                return 400, {"error": "invalid_request"}
            return 200, {"access_token": f"jag:{form.get('resource')}", "token_type": "N_A"}
        if "client_assertion" in form:
            try:
                said = jwt.decode(form["client_assertion"], self.key, ["ES256"], audience=[self.issuer])
            except jwt.InvalidTokenError:
                return 401, {"error": "invalid_client"}
            client = said["sub"]
            if client != "robot":
                return 401, {"error": "invalid_client"}
        elif client == "known" and self.secret:
            way = "client_secret_basic" if basic else "client_secret_post"
            if password != self.secret or way not in self.auth_methods:
                return 401, {"error": "invalid_client"}
        elif client not in self.clients and not (self.cimd and client.startswith("https://")):
            return 401, {"error": "invalid_client"}
        match form.get("grant_type"):
            case "authorization_code" if self.forgetful:
                return 401, {"error": "invalid_client"}
            case "authorization_code":
                asked = self.codes.pop(form.get("code", ""), None)
                digest = hashlib.sha256(form.get("code_verifier", "").encode()).digest()
                challenge = base64.urlsafe_b64encode(digest).decode().rstrip("=")
                if (
                    asked is None
                    or asked["code_challenge"] != challenge
                    or asked["redirect_uri"] != form["redirect_uri"]
                ):
                    return 400, {"error": "invalid_grant"}
                return 200, self.grant(asked.get("scope", ""))
            case "refresh_token":
                old = form.get("refresh_token", "")
                if old in self.spent:
                    self.reused += 1
                    self.refresh.clear()  # As servers do that take a second use for a theft.
                if old not in self.refresh:
                    return 400, {"error": "invalid_grant"}
                if not self.rotates:
                    return 200, self.grant(self.refresh[old], refresh=False)
                self.spent.add(old)
                return 200, self.grant(self.refresh.pop(old))
            case "urn:ietf:params:oauth:grant-type:jwt-bearer":
                if form.get("assertion") != f"jag:{self.url}":
                    return 400, {"error": "invalid_grant"}
                return 200, self.grant(form.get("scope", "read"), refresh=False)
            case "client_credentials":
                return 200, self.grant(form.get("scope", ""), refresh=False)
        return 400, {"error": "unsupported_grant_type"}


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    origin = ""
    peer: Signed

    def log_message(self, *_: Any) -> None:
        """Silence."""

    def take(self) -> Seen:
        length = int(self.headers.get("content-length") or 0)
        headers = {k.lower(): v for k, v in self.headers.items()}
        seen = Seen(self.origin, self.command, self.path.partition("?")[0], headers, self.rfile.read(length).decode())
        with self.peer.lock:
            self.peer.seen.append(seen)
        return seen

    def give(self, status: int, body: Any = None, **headers: str) -> None:
        data = b"" if body is None else json.dumps(body).encode()
        with contextlib.suppress(ConnectionError):
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(data)))
            for name, value in headers.items():
                self.send_header(name.replace("_", "-"), value)
            self.end_headers()
            self.wfile.write(data)


def _authorization(peer_: Signed) -> type[BaseHTTPRequestHandler]:
    class Handler(_Handler):
        origin, peer = "as", peer_

        def do_GET(self) -> None:
            self.take()
            at = urlsplit(self.path)
            if peer_.hangs == at.path:
                peer_.gate.wait(20)
            if at.path == peer_.well_known:
                base = peer_.issuer
                about = {
                    "issuer": base, "authorization_endpoint": f"{base}/authorize", "token_endpoint": f"{base}/token",
                    "registration_endpoint": f"{base}/register", "response_types_supported": ["code"],
                    "code_challenge_methods_supported": ["S256"], "scopes_supported": ["read", "admin"],
                    "token_endpoint_auth_methods_supported": list(peer_.auth_methods),
                    "client_id_metadata_document_supported": peer_.cimd,
                    **({"revocation_endpoint": f"{base}/revoke"} if peer_.revokes else {}),
                    **({"padding": "x" * peer_.padding} if peer_.padding else {}), **peer_.metadata,
                }  # fmt: skip
                self.give(200, {k: v for k, v in about.items() if v is not None})
            elif at.path == "/authorize":
                asked = {k: v[0] for k, v in parse_qs(at.query).items()}
                known = peer_.clients.get(asked["client_id"])
                if known is not None and asked["redirect_uri"] not in known["redirect_uris"]:
                    return self.give(400, {"error": "invalid_redirect_uri"})
                if known is None and asked["client_id"] != "known" and not asked["client_id"].startswith("https://"):
                    return self.give(400, {"error": "unknown client"})  # A page for the person; nobody is sent back.
                code = f"code-{secrets.token_hex(8)}"
                peer_.codes[code] = asked
                back = {"error": "access_denied", "error_description": "not you"} if peer_.denies else {"code": code}
                back = {**back, "state": asked["state"], **peer_.back}
                self.give(302, location=f"{asked['redirect_uri']}?{urlencode(back)}")
            else:
                self.give(404)

        def do_POST(self) -> None:
            seen = self.take()
            if peer_.moves and seen.path == "/token":
                return self.give(307, location=peer_.moves)
            with peer_.lock:
                if seen.path == "/register":
                    client = {**json.loads(seen.body), "client_id": f"client-{secrets.token_hex(4)}"}
                    client["token_endpoint_auth_method"] = "none"
                    peer_.clients[client["client_id"]] = client
                    return self.give(201, client)
                if seen.path == "/revoke":
                    peer_.revoked.append(seen.form["token"])
                    return self.give(200)
                basic = None
                if (shown := seen.headers.get("authorization", "")).startswith("Basic "):
                    name, _, secret = base64.b64decode(shown[6:]).decode().partition(":")
                    basic = (name, secret)
                status, body = peer_.token(seen.form, basic)
            self.give(status, body)

    return Handler


def _mcp(peer_: Signed) -> type[BaseHTTPRequestHandler]:
    class Handler(_Handler):
        origin, peer = "mcp", peer_

        def do_GET(self) -> None:
            seen = self.take()
            if seen.path in (peer_.about_at, "/.well-known/oauth-protected-resource/sse"):
                resource = peer_.url.replace("/mcp", "/sse") if seen.path.endswith("/sse") else peer_.url
                about = {"resource": resource, "authorization_servers": [peer_.issuer], "scopes_supported": ["read"]}
                return self.give(200, {**about, **peer_.resource})
            if seen.path == "/sse" and not self.token()[0]:
                return self.refuse()
            if seen.path == "/sse":
                return self.stream()
            self.give(405 if seen.path == "/mcp" else 404)

        def stream(self) -> None:
            """The stream of the older transport: where to post to, then every answer."""
            self.send_response(200)
            self.send_header("content-type", "text/event-stream")
            self.end_headers()
            self.close_connection = True
            said = "event: endpoint\ndata: /messages\n\n"
            with contextlib.suppress(ConnectionError):
                while not peer_.gate.is_set():
                    self.wfile.write(said.encode())
                    self.wfile.flush()
                    said = f"event: message\ndata: {peer_.answers.get()}\n\n"

        def token(self) -> tuple[bool, str]:
            """Whether the token is good, and its scope."""
            shown = (self.headers.get("authorization") or "").removeprefix("Bearer ")
            until, scope = peer_.access.get(shown, (0.0, ""))
            return until > time.monotonic(), scope

        @property
        def about(self) -> str:
            path = "/mcp" if self.path == "/mcp" else "/sse"
            return f"{peer_.url.removesuffix('/mcp')}/.well-known/oauth-protected-resource{path}"

        def refuse(self) -> None:
            where = self.about if peer_.challenge is None else peer_.challenge
            self.give(401, None, www_authenticate=f'Bearer resource_metadata="{where}"' if where else "Bearer")

        def give(self, status: int, body: Any = None, **headers: str) -> None:
            if self.path == "/messages" and status == 200:
                peer_.answers.put(json.dumps(body))
                status, body = 202, None
            super().give(status, body, **headers)

        def do_DELETE(self) -> None:
            self.take()
            self.give(200)

        def do_POST(self) -> None:
            seen = self.take()
            good, scope = self.token()
            message = json.loads(seen.body)
            free = peer_.greets and not str(message.get("method")).startswith("tools/")
            if not good and not free:
                return self.refuse()
            number, params = message.get("id"), message.get("params") or {}
            if params.get("name") == "admin" and "admin" not in scope.split():
                wants = f'Bearer error="insufficient_scope", scope="admin", resource_metadata="{self.about}"'
                return self.give(403, {"error": "insufficient_scope"}, www_authenticate=wants)
            match message.get("method"):
                case "initialize":
                    result: dict[str, Any] = {
                        "protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                        "serverInfo": {"name": "signed", "version": "1"},
                    }  # fmt: skip
                case "tools/list":
                    result = {"tools": [{"name": n, "inputSchema": {"type": "object"}} for n in TOOLS]}
                case "tools/call":
                    if params["name"] == "slow":
                        peer_.gate.wait(20)
                    said = str((params.get("arguments") or {}).get("m", params["name"]))
                    result = {"content": [{"type": "text", "text": said}]}
                case _ if number is None:
                    return self.give(202)
                case _:
                    error = {"code": -32601, "message": "Method not found"}
                    return self.give(200, {"jsonrpc": "2.0", "id": number, "error": error})
            self.give(200, {"jsonrpc": "2.0", "id": number, "result": result})

    return Handler
