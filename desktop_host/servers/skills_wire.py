"""The requests of the skills extension (SEP-2640), which the SDK does not know."""

from __future__ import annotations

import base64
import binascii
from typing import Any

import mcp_types as T
from mcp import MCPError
from pydantic import ConfigDict, Field, ValidationError

from desktop_host.core.errors import KnownFault, PeerFault
from desktop_host.core.values import FrozenDict, freeze
from desktop_host.servers import calls
from desktop_host.servers.catalog import PAGES
from desktop_host.servers.connection import Connection
from desktop_host.servers.failure import main_leaf


class _ListParams(T.RequestParams):
    cursor: str | None = None


class _UriParams(T.RequestParams):
    uri: str


class _List(T.Request[_ListParams, str]):
    method: str = "skills/list"
    params: _ListParams = _ListParams()


class _Get(T.Request[_UriParams, str]):
    method: str = "skills/get"
    params: _UriParams


class _Listed(T.Result):
    model_config = ConfigDict(extra="allow")
    skills: list[dict[str, Any]] = Field(default_factory=list)
    next_cursor: str | None = None


class _Entry(T.Result):
    model_config = ConfigDict(extra="allow")


async def listing(connection: Connection) -> tuple[FrozenDict, ...]:
    """All pages of `skills/list`.

    Raises:
        KnownFault: `server_lost`, `tool_timed_out`.
        PeerFault: `protocol_error`.
    """
    found: list[FrozenDict] = []
    cursor: str | None = None
    seen: set[str] = set()
    for _ in range(PAGES):
        page = await _sent(connection, _List(params=_ListParams(cursor=cursor)), _Listed)
        found += [freeze(entry) for entry in page.skills]
        cursor = page.next_cursor or (page.model_extra or {}).get("nextCursor")
        if not cursor or cursor in seen:
            break
        seen.add(cursor)
    return tuple(found)


async def entry(connection: Connection, uri: str) -> FrozenDict:
    """`skills/get`; raises as `listing`."""
    result = await _sent(connection, _Get(params=_UriParams(uri=uri)), _Entry)
    whole = dict(result.model_extra or {})
    inner = whole.get("skill", whole)
    if not isinstance(inner, dict):
        raise PeerFault("protocol_error", f"{connection.floor.server} answered skills/get with no entry")
    made: FrozenDict = freeze(inner)
    return made


async def read(connection: Connection, uri: str) -> bytes:
    """The bytes of one resource; raises as `listing`, and `not_found`."""
    whole = await calls.ask(connection, calls.running(uri, kind="resource"), lambda c: c.client.read_resource(uri))
    for item in whole.get("contents") or ():
        if not isinstance(item, dict) or item.get("uri", uri) != uri:
            continue
        if isinstance(item.get("text"), str):
            return str(item["text"]).encode()
        if isinstance(item.get("blob"), str):
            try:
                return base64.b64decode(item["blob"], validate=True)
            except binascii.Error as error:
                raise PeerFault("protocol_error", f"{connection.floor.server}: {uri} is no base64: {error}") from error
    raise PeerFault("protocol_error", f"{connection.floor.server} answered {uri} without its contents")


async def _sent(connection: Connection, request: Any, kind: Any) -> Any:
    name = connection.floor.server

    async def work(_deadline: object) -> Any:
        return await connection.client.session.send_request(request, kind)

    try:
        return await calls.within_deadline(
            connection, work, about=calls.running(request.method, kind="resource"),
            session=connection.floor.session, call_id=None,
        )  # fmt: skip
    except TimeoutError as error:
        raise KnownFault("tool_timed_out", f"{name} did not answer {request.method} in time", server=name) from error
    except (MCPError, ValidationError, RuntimeError, BaseExceptionGroup) as raised:
        leaf = main_leaf(raised)
        told = leaf.message if isinstance(leaf, MCPError) else (str(leaf).splitlines() or [type(leaf).__name__])[0]
        if connection.gone.is_set():
            raise KnownFault("server_lost", f"{name} was lost during {request.method}", server=name) from raised
        told = connection.wiring.redact(told)
        raise PeerFault("protocol_error", f"{name} refused {request.method}: {told}", server=name) from raised
