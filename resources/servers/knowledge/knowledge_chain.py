"""A search over this index and other MCP servers at once: merged, with each source's count and state.

A server that is dead or slow is reported and does not fail the answer. What is left of the time goes down the chain
in `_meta`, with the identities of the servers passed: a server that finds its own stops there. What a child asks
of the person or the model is passed on to our own client, under the child's name.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import anyio.to_thread
from knowledge_children import Child, Item, choose, items_of, read_chain, transport
from knowledge_index import BadRequest, Index
from knowledge_passing import Operation, Operations
from knowledge_shapes import READ_ONLY, MergedAnswer, MergedItem, SourceReport, answer, count
from mcp import Client, MCPError
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.mcpserver.tools import Tool
from mcp.types import CallToolResult, Implementation, InputRequiredResult, TextContent, ToolAnnotations
from pydantic import Field

CHAIN = "desktop-host/chain"
"""`_meta` key: identities of the servers that passed the search on, first asker first."""
DEADLINE = "desktop-host/deadline-ms"
"""`_meta` key: how long the asker still waits."""
LOOP = "desktop-host/loop"
"""`_meta` key of a result: the search came back to a server that had passed it on."""
DEPTH = 8
SHARE = 0.85
"""A child gets this part of what is left, so that its answer comes in time to be merged."""
OWN = "documents"
"""The source that is this server's own index."""


class Chain:
    """The other servers of a knowledge server."""

    def __init__(self, file: Path, name: str, seconds: float = 20.0) -> None:
        self.name = name
        self.children: tuple[Child, ...] = read_chain(file)
        self.seconds = seconds
        self.identity = hashlib.sha256(f"{file.resolve()}\0{name}".encode()).hexdigest()[:16]
        self.operations = Operations()


def chain_tools(index: Index, chain: Chain) -> list[Tool]:
    """`search_everywhere`."""

    async def search_everywhere(
        query: Annotated[str, Field(description="What to look for: the telling words of the question", min_length=1)],
        ctx: Context[Any, Any],
        top_k: Annotated[int, Field(description="How many results of each source at most", ge=1, le=20)] = 5,
    ) -> Annotated[CallToolResult, MergedAnswer] | InputRequiredResult:
        """Search the person's documents and all connected servers at once; the answer names its sources."""
        operation = chain.operations.resumed(ctx)
        if operation is None:
            meta: dict[str, Any] = dict(ctx.request_context.meta or {})
            passed = [str(x) for x in meta.get(CHAIN) or ()]
            if chain.identity in passed or len(passed) >= DEPTH:
                why = "a loop: this search has been here before" if chain.identity in passed else "too many servers"
                return CallToolResult(content=[TextContent(type="text", text=f"Not searched again ({why}).")],
                                      is_error=True, _meta={LOOP: True})  # fmt: skip
            left = meta.get(DEADLINE)
            given = float(left) / 1000 if isinstance(left, int | float) else chain.seconds
            seconds = min(chain.seconds, given)
            operation = Operation(chain.name, seconds)
            search = _Search(index, chain, operation, query, top_k, [*passed, chain.identity])
            chain.operations.begin(operation, search.run())
        result = await chain.operations.next(operation, ctx)
        if isinstance(result, InputRequiredResult):
            return result
        made: CallToolResult = result
        return made

    hints = ToolAnnotations(**{**READ_ONLY.model_dump(), "open_world_hint": True})
    return [Tool.from_function(search_everywhere, title="Search everywhere", annotations=hints)]


class _Search:
    """One merged search."""

    def __init__(
        self, index: Index, chain: Chain, operation: Operation, query: str, top_k: int, passed: list[str]
    ) -> None:
        self._index, self._chain, self._operation = index, chain, operation
        self._query, self._top_k, self._passed = query, top_k, passed

    async def run(self) -> CallToolResult:
        started = time.perf_counter()
        asked = {asyncio.create_task(self._own()): OWN}
        for child in self._chain.children:
            asked[asyncio.create_task(self._ask(child))] = child.name
        try:
            finished = await self._operation.within(set(asked))
        finally:
            for task in asked:
                task.cancel()  # One that is closing its server goes on doing so by itself.
        reports: list[SourceReport] = []
        found: list[list[Item]] = []
        for task, name in asked.items():
            took = int((time.perf_counter() - started) * 1000)
            if task not in finished:
                self._operation.leave(task)
                reports.append(SourceReport(source=name, state="timed_out", count=0, ms=took,
                                            detail=f"no answer within {self._operation.seconds:.1f} s"))  # fmt: skip
                continue
            more, items = task.result()
            reports += more
            found.append(items)
        return _merged(self._query, reports, found)

    async def _own(self) -> tuple[list[SourceReport], list[Item]]:
        started = time.perf_counter()
        try:
            hits = await anyio.to_thread.run_sync(self._index.search, self._query, self._top_k)
        except BadRequest as error:
            raise ToolError(str(error)) from None
        items = [Item(OWN, f"{h.path}:{h.first_line}", h.text) for h in hits]
        return [SourceReport(source=OWN, state="ok", count=len(items), ms=_ms(started))], items

    async def _ask(self, child: Child) -> tuple[list[SourceReport], list[Item]]:
        started = time.perf_counter()
        try:
            result = await self._result(child)
        except BaseException as error:
            if isinstance(error, asyncio.CancelledError | KeyboardInterrupt | SystemExit):
                raise
            why = _told(error)
            return [SourceReport(source=child.name, state="failed", count=0, ms=_ms(started), detail=why)], []
        if (result.meta or {}).get(LOOP):
            return [SourceReport(source=child.name, state="loop", count=0, ms=_ms(started),
                                 detail="it had passed the search on itself")], []  # fmt: skip
        if result.is_error:
            said = " ".join(getattr(b, "text", "") for b in result.content)[:300]
            return [SourceReport(source=child.name, state="failed", count=0, ms=_ms(started), detail=said)], []
        items = items_of(child.name, result, self._top_k)
        reports = [SourceReport(source=child.name, state="ok", count=len(items), ms=_ms(started))]
        deeper = (result.structured_content or {}).get("sources") if isinstance(result.structured_content, dict) else ()
        for one in deeper if isinstance(deeper, list) else ():
            with contextlib.suppress(ValueError):
                report = SourceReport.model_validate(one)
                reports.append(report.model_copy(update={"source": f"{child.name} > {report.source}"}))
        return reports, items

    async def _result(self, child: Child) -> Any:
        sampling, elicitation = self._operation.callbacks(child.name)
        client = Client(
            transport(child), sampling_callback=sampling, elicitation_callback=elicitation,
            client_info=Implementation(name=self._chain.name, version="0"), mode=child.launch.get("protocol", "auto"),
        )  # fmt: skip
        async with client:
            tools: list[Any] = []
            cursor = None
            while True:
                page = await client.list_tools(cursor=cursor)
                tools += page.tools
                cursor = page.next_cursor
                if cursor is None:
                    break
            name, arguments = choose(child, tools, self._query, self._top_k)
            left = int(self._operation.left() * SHARE * 1000)
            meta: Any = {CHAIN: self._passed, DEADLINE: left}
            return await client.call_tool(name, arguments, meta=meta)


def _told(error: BaseException) -> str:
    """Why a child could not answer, in one line that tells nothing of its insides."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, BadRequest):
        return str(error)
    if isinstance(error, FileNotFoundError):
        return "its command was not found"
    if isinstance(error, MCPError):
        return f"it ended or refused ({error.code})"
    return f"it could not be reached ({type(error).__name__})"


def _ms(started: float) -> int:
    return int((time.perf_counter() - started) * 1000)


def _merged(query: str, reports: list[SourceReport], found: Sequence[list[Item]]) -> CallToolResult:
    """The best of each source by turns, below one line that says who answered."""
    longest = max((len(items) for items in found), default=0)
    items = [one for place in range(longest) for source in found for one in source[place : place + 1]]
    complete = all(report.state in ("ok", "loop") for report in reports)
    data = MergedAnswer(query=query, sources=reports, complete=complete,
                        results=[MergedItem(**vars(item)) for item in items])  # fmt: skip
    shown = ", ".join(
        f"{r.source} {r.count}"
        if r.state == "ok"
        else f"{r.source} {r.state.replace('_', ' ')}{f' ({r.detail})' if r.detail else ''}"
        for r in reports
    )
    parts = [f"{count(len(items), 'result')} for {query!r}. By source: {shown}."]
    parts += [f"[{n}] {item.source}: {item.title}\n{item.text}" for n, item in enumerate(items, 1)]
    return answer("\n\n".join(parts), data)
