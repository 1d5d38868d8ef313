"""The address on this machine that the browser comes back to after signing in (RFC 8252)."""

from __future__ import annotations

import asyncio
import hmac
from urllib.parse import parse_qs, urlsplit

from desktop_host.core.errors import KnownFault
from desktop_host.servers.oauth_web import plain

PATH = "/callback"
REQUEST_S = 10.0
"""How long one visitor may take to say what it wants."""
LINE_LIMIT = 16_384

_PAGE = """<!doctype html><html><head><meta charset="utf-8"><title>Desktop Host</title></head>
<body style="font-family:sans-serif;max-width:32em;margin:15vh auto;padding:0 1em"><h1>{head}</h1><p>{text}</p>
</body></html>"""
# Shown by the browser, outside the window and its language: both languages.
_DONE = (
    "Signed in · 已登录",
    "You can close this page and go back to Desktop Host. · 可以关闭此页面，返回 Desktop Host。",
)
_NOT_DONE = ("Not signed in · 未登录", "Go back to Desktop Host and try again. · 请返回 Desktop Host 重试。")
_STRANGE = ("?", "No sign-in of this kind is waiting here. · 此处没有等待中的登录。")


class Loopback:
    """Listens on 127.0.0.1 for one answer. Only a visitor who knows the `state` of this sign-in is heard."""

    def __init__(self) -> None:
        self.port = 0
        self._server: asyncio.Server | None = None
        self._visitors: set[asyncio.StreamWriter] = set()
        self._state = ""
        self._answer: asyncio.Future[dict[str, str]] = asyncio.get_running_loop().create_future()

    @property
    def uri(self) -> str:
        """The redirect URI."""
        return f"http://127.0.0.1:{self.port}{PATH}"

    async def open(self, port: int) -> None:
        """Listen; `port` 0 takes any.

        Raises:
            KnownFault: `auth` with `reason` `port_taken` and `port`.
        """
        try:
            self._server = await asyncio.start_server(self._visit, "127.0.0.1", port, limit=LINE_LIMIT)
        except OSError as error:
            raise KnownFault(
                "auth",
                f"port {port} of this machine, to which the browser comes back, is taken by another program",
                reason="port_taken", port=port,
            ) from error  # fmt: skip
        self.port = self._server.sockets[0].getsockname()[1]

    def expect(self, state: str) -> None:
        """Hear only who brings this `state`."""
        self._state = state

    async def answer(self) -> dict[str, str]:
        """What the browser brought: `code`, `state` and perhaps `iss`.

        Raises:
            KnownFault: `auth` with `reason` `denied`: the authorization server said no.
        """
        return await asyncio.shield(self._answer)

    async def close(self) -> None:
        """Stop listening."""
        if self._server is not None:
            self._server.close()
            for visitor in self._visitors:
                visitor.transport.abort()
            await self._server.wait_closed()
        if self._answer.done() and not self._answer.cancelled():
            self._answer.exception()  # It may have come after everybody left.

    async def _visit(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._visitors.add(writer)
        try:
            async with asyncio.timeout(REQUEST_S):
                line = (await reader.readline()).decode("latin-1")
                while (await reader.readline()).strip():
                    pass
                status, page = self._heard(line)
                body = _PAGE.format(head=page[0], text=page[1]).encode()
                writer.write(
                    f"HTTP/1.1 {status}\r\ncontent-type: text/html; charset=utf-8\r\ncontent-length: {len(body)}\r\n"
                    "cache-control: no-store\r\nreferrer-policy: no-referrer\r\nconnection: close\r\n\r\n".encode()
                )
                writer.write(body)
                await writer.drain()
        except (TimeoutError, ConnectionError, ValueError):
            pass  # A visitor who says nothing, too much, or leaves: the one we wait for may still come.
        finally:
            self._visitors.discard(writer)
            writer.close()

    def _heard(self, line: str) -> tuple[str, tuple[str, str]]:
        method, _, rest = line.partition(" ")
        url = urlsplit(rest.rpartition(" ")[0])
        query = {k: v[0] for k, v in parse_qs(url.query).items()}
        if method != "GET" or url.path != PATH:
            return "404 Not Found", _STRANGE
        if not self._state or not hmac.compare_digest(query.get("state", "").encode(), self._state.encode()):
            return "400 Bad Request", _STRANGE
        if self._answer.done():
            return "200 OK", _DONE
        if "error" in query or "code" not in query:
            why = plain(query.get("error_description") or query.get("error") or "no code came back", 200)
            self._answer.set_exception(
                KnownFault("auth", f"the sign-in was refused: {why}", reason="denied", detail=why)
            )
            return "200 OK", _NOT_DONE
        self._answer.set_result({k: query[k] for k in ("code", "state", "iss") if k in query})
        return "200 OK", _DONE
