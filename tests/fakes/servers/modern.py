"""A server of the SDK that speaks both eras: modern.py [--http PORT]"""

import sys
from typing import Annotated

import anyio
from mcp.server.mcpserver import Context, Elicit, MCPServer, Resolve, Sample
from mcp.types import CreateMessageResult, SamplingMessage, TextContent
from pydantic import BaseModel

mcp = MCPServer("modern", version="2", instructions="be modern", log_level="ERROR")


class Confirm(BaseModel):
    confirm: bool


def _confirm(what: str) -> Elicit[Confirm]:
    return Elicit(f"Really {what}?", Confirm)


def _summary(what: str) -> Sample:
    return Sample([SamplingMessage(role="user", content=TextContent(type="text", text=what))], max_tokens=50)


@mcp.tool()
async def echo(m: str) -> str:
    return m


@mcp.tool()
async def big(n: int) -> str:
    return "x" * n


@mcp.tool()
async def delete(what: str, answer: Annotated[Confirm, Resolve(_confirm)]) -> str:
    return f"deleted {what}" if answer.confirm else "kept"


@mcp.tool()
async def summarise(what: str, summary: Annotated[CreateMessageResult, Resolve(_summary)]) -> str:
    return f"[{summary.model}] {summary.content.text}"


@mcp.tool()
async def steps(ctx: Context, n: int = 3) -> str:
    for i in range(n):
        await anyio.sleep(0.3)
        await ctx.report_progress(i + 1, n, f"step {i + 1}")
    return "done"


@mcp.tool()
async def sleep(seconds: float) -> str:
    await anyio.sleep(seconds)
    return "slept"


@mcp.tool()
async def grow(ctx: Context) -> str:
    async def grown() -> str:
        return "grown"

    mcp.add_tool(grown, name="grown")
    await ctx.notify_tools_changed()
    return "ok"


@mcp.tool()
async def touch(ctx: Context) -> str:
    await ctx.notify_resource_updated("modern://a")
    return "touched"


@mcp.resource("modern://a", mime_type="text/plain")
def a() -> str:
    return "aaa"


@mcp.prompt()
def hello(who: str) -> str:
    return f"hello {who}"


if "--http" in sys.argv:
    mcp.run("streamable-http", host="127.0.0.1", port=int(sys.argv[sys.argv.index("--http") + 1]))
else:
    mcp.run("stdio")
