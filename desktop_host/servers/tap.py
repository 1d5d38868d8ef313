"""A wrapper around any transport: the wire log, the end of the stream as an event, secrets kept out, lenient repair.

What a server says goes to the record and to models, so the secrets that it was given are masked here already.

Repair is what keeps one bad tool or one odd result from costing the rest: results of the verbs that the
host reads itself travel whole in `_meta` under `WHOLE`, and the SDK, which would reject them as a whole, sees
a minimal valid result in their place. Nothing else of a message is touched.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mcp.shared.message import SessionMessage
from mcp_types import ErrorData, JSONRPCError, JSONRPCNotification, JSONRPCRequest, JSONRPCResponse

from desktop_host.servers.records import Redactor, WireLog

WHOLE = "desktop-host/whole"
"""Key of `_meta` under which a result travels as it came."""

_EMPTIED = {
    "tools/call": "content",
    "prompts/get": "messages",
    "resources/read": "contents",
    "prompts/list": "prompts",
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
}
"""Method to the field that the SDK gets empty."""
_CACHEABLE = frozenset(
    ["tools/list", "prompts/list", "resources/list", "resources/templates/list", "resources/read", "server/discover"]
)
_TYPED = _CACHEABLE | {"tools/call", "prompts/get", "completion/complete"}


class Tap:
    """Use as the transport of a `Client`."""

    def __init__(
        self, transport: Any, wire: WireLog, redact: Redactor, on_end: Callable[[], None], session: str | None = None
    ) -> None:
        self._transport, self._wire, self._redact, self._on_end = transport, wire, redact, on_end
        self._number, self._session = wire.begin(), session
        self._methods: dict[int | str, str] = {}
        """Method of each request that is not answered yet."""

    async def __aenter__(self) -> tuple[Any, Any]:
        read, write = await self._transport.__aenter__()
        return _Read(read, self), _Write(write, self)

    async def __aexit__(self, *error: Any) -> Any:
        self._wire.end(self._number)
        return await self._transport.__aexit__(*error)

    def outbound(self, item: SessionMessage) -> None:
        """See a message on its way to the server."""
        message = item.message
        if isinstance(message, JSONRPCRequest):
            self._methods[message.id] = message.method
        elif isinstance(message, JSONRPCNotification) and message.method == "notifications/cancelled":
            self._methods.pop((message.params or {}).get("requestId", ""), None)
        self._wire.record("out", _plain(message), self._number, self._session)

    def inbound(self, item: Any) -> Any:
        """See, and if need be repair, what came from the server."""
        if isinstance(item, SessionMessage):
            message = item.message
            self._wire.record("in", _plain(message), self._number, self._session)
            if isinstance(message, JSONRPCResponse):
                message.result = self._redact.veiled(message.result)
                method = self._methods.pop(message.id, None)
                if method in _TYPED:
                    message.result = repaired(method, message.result)
            elif isinstance(message, JSONRPCError):
                message.error = self._veiled(message.error)
                if message.id is not None:
                    self._methods.pop(message.id, None)
            elif message.params is not None:
                message.params = self._redact.veiled(message.params)
        return item

    def _veiled(self, error: ErrorData) -> ErrorData:
        message, data = self._redact.veiled(error.message), self._redact.veiled(error.data)
        return error.model_copy(update={"message": message, "data": data})

    def ended(self) -> None:
        """The stream is over."""
        self._wire.end(self._number)
        self._on_end()


def repaired(method: str, result: dict[str, Any]) -> dict[str, Any]:
    """The result that the SDK gets; the whole one is in its `_meta`."""
    meta = result.get("_meta")
    out = {**result, "_meta": dict(meta) if isinstance(meta, dict) else {}}
    kind = result.get("resultType")
    if not isinstance(kind, str):
        out["resultType"] = "complete"  # Early modern servers leave it out; older revisions ignore it.
    if method in _CACHEABLE:
        if not isinstance(result.get("ttlMs"), (int, float)):
            out["ttlMs"] = 0
        if result.get("cacheScope") not in ("public", "private"):
            out["cacheScope"] = "private"
    cursor = result.get("nextCursor")
    if "nextCursor" in out and not (isinstance(cursor, str) and cursor):
        del out["nextCursor"]
    if kind in ("input_required", "task"):
        return out
    if method == "tools/list":
        out["tools"] = [_bare_tool(t) for t in items(result, "tools") if isinstance(t.get("name"), str)]
    elif field := _EMPTIED.get(method):
        out[field] = []
        out.pop("structuredContent", None)
        if "isError" in out:
            out["isError"] = bool(result["isError"])
    else:
        return out
    out["_meta"][WHOLE] = result
    return out


def items(result: dict[str, Any], field: str) -> list[dict[str, Any]]:
    """The objects of a list field; anything else in it is left out."""
    found = result.get(field)
    return [x for x in found if isinstance(x, dict)] if isinstance(found, list) else []


def _bare_tool(tool: dict[str, Any]) -> dict[str, Any]:
    # Without an output schema the SDK has nothing to reject a finished call by; the input schema stays for
    # the headers that modern HTTP servers may want mirrored.
    schema = tool.get("inputSchema")
    schema = {**schema, "type": "object"} if isinstance(schema, dict) else {"type": "object"}
    return {"name": tool["name"], "inputSchema": schema}


def _plain(message: Any) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for field in ("id", "method", "params", "result"):
        value = getattr(message, field, None)
        if value is not None:
            out[field] = value
    error = getattr(message, "error", None)
    if error is not None:
        out["error"] = {"code": error.code, "message": error.message, "data": error.data}
    return out


class _Stream:
    def __init__(self, inner: Any, tap: Tap) -> None:
        self._inner, self._tap = inner, tap

    async def aclose(self) -> None:
        await self._inner.aclose()

    async def __aenter__(self) -> Any:
        await self._inner.__aenter__()
        return self

    async def __aexit__(self, *error: Any) -> Any:
        return await self._inner.__aexit__(*error)


class _Read(_Stream):
    @property
    def last_context(self) -> Any:
        """The sender's contextvars, which the SDK's dispatcher looks for on HTTP."""
        return getattr(self._inner, "last_context", None)

    async def receive(self) -> Any:
        return self._tap.inbound(await self._inner.receive())

    def __aiter__(self) -> _Read:
        return self

    async def __anext__(self) -> Any:
        try:
            item = await self._inner.__anext__()
        except BaseException:  # The end, or our own closing; both end the stream.
            self._tap.ended()
            raise
        return self._tap.inbound(item)


class _Write(_Stream):
    async def send(self, item: SessionMessage) -> None:
        self._tap.outbound(item)
        await self._inner.send(item)
