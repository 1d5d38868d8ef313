"""A shelf of notes that uses every feature of MCP in both eras: `dual.py [--http PORT]`.

Structured results, hints, icons, resources and a template, a prompt with completion, sampling, elicitation, progress,
and updates of resources: `subscriptions/listen` in the modern era, `resources/subscribe` in the handshake one.
"""

from __future__ import annotations

import sys
from typing import Annotated, Any

import anyio
from mcp.server import ServerRequestContext
from mcp.server.mcpserver import Context, Elicit, Icon, MCPServer, Resolve, Sample
from mcp.server.mcpserver.exceptions import ResourceNotFoundError
from mcp.types import (
    Completion,
    CreateMessageResult,
    EmptyResult,
    SamplingMessage,
    SubscribeRequestParams,
    TextContent,
    ToolAnnotations,
    UnsubscribeRequestParams,
)
from pydantic import BaseModel

DOT = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk"
    "+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
ALL = "shelf://all"
notes = {"tea": "Steep for three minutes.", "rye": "Proof the rye overnight."}
watchers: dict[str, list[Any]] = {}
mcp = MCPServer(
    "shelf", title="Shelf of notes", version="3.1", instructions="Look before you answer.", log_level="ERROR",
    icons=[Icon(src=DOT, mime_type="image/png", sizes=["1x1"])],
)  # fmt: skip


async def watch(context: ServerRequestContext, params: SubscribeRequestParams) -> EmptyResult:
    watchers.setdefault(params.uri, []).append(context.session)
    return EmptyResult()


async def unwatch(context: ServerRequestContext, params: UnsubscribeRequestParams) -> EmptyResult:
    watchers.pop(params.uri, None)
    return EmptyResult()


# MCPServer has no public hook for subscriptions of the handshake era.
mcp._lowlevel_server.add_request_handler("resources/subscribe", SubscribeRequestParams, watch)
mcp._lowlevel_server.add_request_handler("resources/unsubscribe", UnsubscribeRequestParams, unwatch)


class Found(BaseModel):
    names: list[str]


class Sure(BaseModel):
    sure: bool


def are_you_sure(name: str) -> Elicit[Sure]:
    return Elicit(f"Throw {name} away?", Sure)


def in_short(name: str) -> Sample:
    said = SamplingMessage(role="user", content=TextContent(type="text", text=f"In short: {notes.get(name, '')}"))
    return Sample([said], max_tokens=60)


@mcp.tool(title="Find notes", annotations=ToolAnnotations(read_only_hint=True, open_world_hint=False))
async def find(word: str) -> Found:
    """Notes that hold a word."""
    return Found(names=sorted(n for n, text in notes.items() if word.lower() in text.lower()))


@mcp.tool(annotations=ToolAnnotations(destructive_hint=False, idempotent_hint=True))
async def keep(name: str, text: str, ctx: Context) -> str:
    """Keep a note."""
    notes[name] = text
    for uri in (ALL, f"shelf://note/{name}"):
        await ctx.notify_resource_updated(uri)
        for session in watchers.get(uri, ()):
            await session.send_resource_updated(uri)
    return f"kept {name}"


@mcp.tool(annotations=ToolAnnotations(destructive_hint=True))
async def drop(name: str, answer: Annotated[Sure, Resolve(are_you_sure)]) -> str:
    """Throw a note away, if the person is sure."""
    return f"dropped {name}" if answer.sure and notes.pop(name, None) else "nothing dropped"


@mcp.tool()
async def shorten(name: str, short: Annotated[CreateMessageResult, Resolve(in_short)]) -> str:
    """Let the host's model shorten a note."""
    return f"{short.model}: {short.content.text}"


@mcp.tool()
async def sort(ctx: Context) -> str:
    """Sort the shelf, slowly."""
    for step in (1, 2, 3):
        await anyio.sleep(0.05)
        await ctx.report_progress(step, 3, f"board {step}")
    return "sorted"


@mcp.resource(ALL, mime_type="text/plain")
def everything() -> str:
    return "\n".join(sorted(notes))


@mcp.resource("shelf://note/{name}", mime_type="text/plain")
def note(name: str) -> str:
    if name not in notes:
        raise ResourceNotFoundError(f"no note {name}")
    return notes[name]


@mcp.prompt(title="Explain a note")
def explain(name: str, to: str = "me") -> str:
    return f"Explain to {to}: {notes.get(name, '')}"


@mcp.completion()
async def proposals(ref: Any, argument: Any, context: Any) -> Completion | None:
    known = argument.name == "name"
    return Completion(values=sorted(n for n in notes if n.startswith(argument.value))) if known else None


if "--http" in sys.argv:
    mcp.run("streamable-http", host="127.0.0.1", port=int(sys.argv[sys.argv.index("--http") + 1]))
else:
    mcp.run("stdio")
