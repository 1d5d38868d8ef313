"""__TITLE__: an MCP server. Run it: `python server.py` (stdio) or `python server.py --http 8123`."""

import logging
import sys
from typing import Annotated

from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ResourceNotFoundError, ToolError
from mcp.types import ToolAnnotations
from pydantic import BaseModel, Field

NOTES = {"welcome": "Notes are kept in memory; put your own store here."}

server = MCPServer(
    "__NAME__",
    title="__TITLE__",
    version="0.1.0",
    instructions="Search the notes before answering, and name the note that an answer comes from.",
    log_level="WARNING",  # Standard error is the log; standard output belongs to the protocol.
)


class Found(BaseModel):
    """What `search_notes` gives: its output schema is made of this."""

    query: str
    notes: list[str] = Field(description="Names of the notes, for notes://note/{name}")


@server.tool(
    title="Search notes",
    annotations=ToolAnnotations(
        read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False
    ),
)
def search_notes(
    query: Annotated[str, Field(description="Words to look for", min_length=1)],
    limit: Annotated[int, Field(description="How many notes at most", ge=1, le=20)] = 5,
) -> Found:
    """Find notes that hold all the words of the query."""
    words = query.casefold().split()
    fitting = [name for name, text in NOTES.items() if all(w in f"{name} {text}".casefold() for w in words)]
    return Found(query=query, notes=fitting[:limit])


@server.tool(
    title="Add a note",
    annotations=ToolAnnotations(
        read_only_hint=False, destructive_hint=False, idempotent_hint=True, open_world_hint=False
    ),
)
async def add_note(name: str, text: str, ctx: Context) -> str:
    """Add a note, or replace it."""
    if not name.isidentifier():
        # An anticipated failure: say what is wrong and the right form. Anything else is logged, never told.
        raise ToolError(f"{name!r} is no name for a note. Use letters, digits and _, for example shopping_list.")
    NOTES[name] = text
    await ctx.notify_resource_updated(f"notes://note/{name}")
    return f"Saved as notes://note/{name}."


@server.resource("notes://note/{name}", mime_type="text/plain")
def note(name: str) -> str:
    """A note."""
    if name not in NOTES:
        raise ResourceNotFoundError(f"There is no note {name!r}.")
    return NOTES[name]


@server.prompt(title="Answer from the notes")
def answer(question: str) -> str:
    """Answer a question from the notes."""
    listed = "\n".join(f"- {name}: {text}" for name, text in NOTES.items())
    return f"Answer from these notes alone and name the note.\n\n{listed}\n\nQuestion: {question}"


if __name__ == "__main__":
    logging.basicConfig(stream=sys.stderr)
    if "--http" in sys.argv:
        server.run("streamable-http", host="127.0.0.1", port=int(sys.argv[sys.argv.index("--http") + 1]))
    else:
        server.run("stdio")
