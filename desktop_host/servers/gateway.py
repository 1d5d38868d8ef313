"""The gateway: the profile's servers as one MCP server for other hosts, in both protocol eras.

Each caller has a server of its own, so that no list has to be filtered twice and no notification reaches another's
connection. Nothing is decided here: every call goes to the engine's gate through `HostCalls`.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncGenerator, Callable
from typing import Any

import mcp_types as T
from mcp import MCPError
from mcp.server import ServerRequestContext
from mcp.server.context import CallNext, HandlerResult
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

from desktop_host import __version__
from desktop_host.core.errors import HostError, UserFault
from desktop_host.core.host_calls import Caller, GatewaySpec, HostCalls
from desktop_host.core.messages import EmbeddedResource
from desktop_host.core.servers import PromptSpec
from desktop_host.core.sharing import Heard
from desktop_host.core.tools import ToolSpec, wire_name
from desktop_host.core.values import freeze
from desktop_host.servers import gateway_wire as wire
from desktop_host.servers.client import INSTANCE, INSTANCE_ID
from desktop_host.servers.gateway_asking import Operations
from desktop_host.servers.gateway_names import parted
from desktop_host.servers.gateway_news import GatewayNews, connection_of
from desktop_host.servers.wiring import MARKS

PAGE = 200
"""Tools, resources or prompts of one page of a list."""
MARKS_LIMIT = 4_000
INSTRUCTIONS = (
    "Several servers behind one: the part of a tool's name before the double underscore names its server. A call that"
    " is refused says how its owner can allow it; do not try other ways to the same end."
)
_log = logging.getLogger(__name__)
_Context = ServerRequestContext[Any, Any]


class Desk:
    """One caller's view of the host, as an MCP server."""

    def __init__(self, calls: HostCalls, caller: Caller, heard: Callable[[Heard], None] = lambda _heard: None) -> None:
        self._calls, self._caller, self._heard = calls, caller, heard
        self.news, self.operations = GatewayNews(self._watch), Operations()
        self.server: Server[Any] = Server(
            "desktop-host", version=__version__, title="Desktop Host", instructions=INSTRUCTIONS,
            on_list_tools=self._list_tools, on_call_tool=self._call_tool, on_list_resources=self._list_resources,
            on_list_resource_templates=self._list_templates, on_read_resource=self._read_resource,
            on_list_prompts=self._list_prompts, on_get_prompt=self._get_prompt, on_completion=self._complete,
        )  # fmt: skip
        # Not by the constructor, which warns that logging is deprecated since 2026-07-28: older clients have it.
        self.server.add_request_handler("logging/setLevel", T.SetLevelRequestParams, self._set_level)
        self.news.join(self.server)
        self.server.middleware.append(self._hear)

    async def _hear(self, ctx: _Context, call_next: CallNext) -> HandlerResult:
        """Tell of each request; what it carried is not told.

        Raises:
            MCPError: a server of this host is its own gateway.
        """
        began, started, ok = time.perf_counter(), time.time(), False
        if _is_ourselves(ctx):
            raise MCPError(code=T.INVALID_REQUEST, message="a loop: this gateway belongs to the host that asks")
        try:
            result = await call_next(ctx)
            ok = not (isinstance(result, T.CallToolResult) and result.is_error)
            return result
        finally:
            if ctx.request_id is not None:
                given = ctx.params or {}
                what = str(given.get("name") or given.get("uri") or "")[:200]
                took = (time.perf_counter() - began) * 1000
                self._heard(Heard(started, self._caller.name, _client_of(ctx), ctx.method, what, ok, took))

    async def _list_tools(self, _ctx: _Context, params: T.PaginatedRequestParams | None) -> T.ListToolsResult:
        page, following = _page(await self._calls.tools(self._caller), params)
        return T.ListToolsResult(tools=[wire.tool(spec) for spec in page], next_cursor=following)

    async def _call_tool(
        self, ctx: _Context, params: T.CallToolRequestParams
    ) -> T.CallToolResult | T.InputRequiredResult:
        spec = await self._find(params.name)
        if spec is None:
            text = f"There is no tool {params.name!r}. Ask for the list of tools again."
            return T.CallToolResult(content=[T.TextContent(type="text", text=text)], is_error=True)
        given = freeze(params.arguments or {})
        MARKS.set(_marks(dict(ctx.meta or {})))
        outcome = await self.operations.run(
            ctx, params, params.name,
            lambda client: self._calls.call(self._caller, spec, given, client.report, client),
        )  # fmt: skip
        return outcome if isinstance(outcome, T.InputRequiredResult) else wire.result(outcome, spec)

    async def _find(self, name: str) -> ToolSpec | None:
        tools = await self._calls.tools(self._caller)
        return next((spec for spec in tools if name in (spec.wire_name, spec.full_name)), None)

    async def _list_resources(self, _ctx: _Context, params: T.PaginatedRequestParams | None) -> T.ListResourcesResult:
        found = tuple(r for r in await self._calls.resources(self._caller) if not r.template)
        page, following = _page(found, params)
        return T.ListResourcesResult(resources=[wire.resource(spec) for spec in page], next_cursor=following)

    async def _list_templates(
        self, _ctx: _Context, params: T.PaginatedRequestParams | None
    ) -> T.ListResourceTemplatesResult:
        found = tuple(r for r in await self._calls.resources(self._caller) if r.template)
        page, following = _page(found, params)
        return T.ListResourceTemplatesResult(
            resource_templates=[wire.template(spec) for spec in page], next_cursor=following
        )

    async def _read_resource(
        self, ctx: _Context, params: T.ReadResourceRequestParams
    ) -> T.ReadResourceResult | T.InputRequiredResult:
        with _faults():
            server, uri = parted(str(params.uri))
            outcome = await self.operations.run(
                ctx, params, params.uri, lambda client: self._calls.read(self._caller, server, uri, client)
            )
        if isinstance(outcome, T.InputRequiredResult):
            return outcome
        found = [wire.contents(b, server) for b in outcome.content if isinstance(b, EmbeddedResource)]
        return T.ReadResourceResult(contents=found)

    async def _list_prompts(self, _ctx: _Context, params: T.PaginatedRequestParams | None) -> T.ListPromptsResult:
        page, following = _page(await self._calls.prompts(self._caller), params)
        return T.ListPromptsResult(prompts=[wire.prompt(spec) for spec in page], next_cursor=following)

    async def _get_prompt(
        self, ctx: _Context, params: T.GetPromptRequestParams
    ) -> T.GetPromptResult | T.InputRequiredResult:
        with _faults():
            spec = await self._prompt(params.name)
            given = freeze(params.arguments or {})
            messages = await self.operations.run(
                ctx, params, params.name,
                lambda client: self._calls.prompt(self._caller, spec.server, spec.name, given, client),
            )  # fmt: skip
        if isinstance(messages, T.InputRequiredResult):
            return messages
        return T.GetPromptResult(description=spec.description, messages=wire.prompt_messages(messages, spec.server))

    async def _prompt(self, name: str) -> PromptSpec:
        prompts = await self._calls.prompts(self._caller)
        spec = next((p for p in prompts if wire_name(p.server, p.name) == name), None)
        if spec is None:
            raise UserFault("not_found", f"there is no prompt {name!r}", reason="prompt", name=name)
        return spec

    async def _complete(self, _ctx: _Context, params: T.CompleteRequestParams) -> T.CompleteResult:
        with _faults():
            if isinstance(params.ref, T.PromptReference):
                spec = await self._prompt(params.ref.name)
                server, ref = spec.server, spec.name
            else:
                server, ref = parted(str(params.ref.uri))
            filled = freeze((params.context.arguments if params.context is not None else None) or {})
            wanted = params.argument
            found = await self._calls.complete(self._caller, server, ref, wanted.name, wanted.value, filled)
        made = T.Completion(values=list(found.values), total=found.total, has_more=found.has_more)
        return T.CompleteResult(completion=made)

    async def _set_level(self, ctx: _Context, params: T.SetLevelRequestParams) -> T.EmptyResult:
        self.operations.set_level(connection_of(ctx), params.level)
        return T.EmptyResult()

    async def close(self) -> None:
        """Give up what waits and watch nothing any more."""
        await asyncio.gather(self.news.close(), self.operations.close())

    def _watch(self, uri: str) -> AsyncGenerator[str, None]:
        server, own = parted(uri)
        return self._calls.watch(self._caller, server, own)


def _marks(meta: dict[str, Any]) -> dict[str, Any]:
    """What a chain of hosts says of itself; nothing else of `_meta` is passed on."""
    marks = {key: value for key, value in meta.items() if key.startswith(wire.MARK)}
    return marks if len(repr(marks)) < MARKS_LIMIT else {}


def _is_ourselves(ctx: _Context) -> bool:
    known = ctx.session.client_capabilities
    extensions: Any = known.extensions if known is not None else None
    if extensions is None and ctx.method == "initialize":
        extensions = ((ctx.params or {}).get("capabilities") or {}).get("extensions")
    return ((extensions or {}).get(INSTANCE) or {}).get("id") == INSTANCE_ID


def _client_of(ctx: _Context) -> str:
    known = ctx.session.client_params
    info = known.client_info if known is not None else None
    return f"{info.name} {info.version}"[:80] if info is not None else ""


@contextlib.contextmanager
def _faults() -> Any:
    """A host's fault as the protocol's error; nothing inner is told."""
    try:
        yield
    except HostError as fault:
        code = T.INVALID_PARAMS if isinstance(fault, UserFault) else T.INTERNAL_ERROR
        raise MCPError(code=code, message=fault.message) from fault


def _page(found: tuple[Any, ...], params: T.PaginatedRequestParams | None) -> tuple[tuple[Any, ...], str | None]:
    cursor = params.cursor if params is not None else None
    if cursor is not None and not (cursor.isdecimal() and len(cursor) < 9):
        raise MCPError(code=T.INVALID_PARAMS, message="there is no such page")
    start = int(cursor or 0)
    return found[start : start + PAGE], str(start + PAGE) if start + PAGE < len(found) else None


async def serve(calls: HostCalls, spec: GatewaySpec) -> None:
    """Serve until cancelled or, over standard input, until that ends.

    Raises:
        KnownFault: `network`, the address cannot be taken.
    """
    callers = [key.caller for key in spec.keys] if spec.address is not None else [spec.stdio or Caller("main")]
    await asyncio.gather(*(calls.open(caller) for caller in callers))
    desks = {caller.name: Desk(calls, caller, spec.heard) for caller in callers}
    following = asyncio.create_task(_follow(calls, list(desks.values())))
    try:
        if spec.address is not None:
            from desktop_host.servers.gateway_http import serve_http

            await serve_http(desks, spec)
            return
        (desk,) = desks.values()
        async with stdio_server() as (read, write):
            await desk.server.run(read, write, desk.server.create_initialization_options())
    finally:
        following.cancel()
        await asyncio.gather(following, *(desk.close() for desk in desks.values()), return_exceptions=True)
        await calls.close()


async def _follow(calls: HostCalls, desks: list[Desk]) -> None:
    """Pass on that lists have changed."""
    async for lists in calls.changes():
        for desk in desks:
            await desk.news.lists_changed(sorted(lists))
    _log.debug("the host has closed")
