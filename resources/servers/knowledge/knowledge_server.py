"""The MCP face of the index: three read-only tools and one resource, over stdio or Streamable HTTP."""

from __future__ import annotations

import json
import socket
import sys
from typing import Annotated, Any

from knowledge_index import BadRequest, Index
from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError, UnexpectedToolError
from mcp.types import CallToolResult, TextContent, ToolAnnotations
from pydantic import BaseModel, Field, ValidationError

VERSION = "0.1.0"
READ_LINES = 200
"""Lines that `read_document` gives at most in one answer."""
READ_CHARS = 20_000
LISTED = 200
"""Documents that `list_documents` gives at most in one answer."""

INSTRUCTIONS = (
    "Answers stand in the person's own documents. Call search_knowledge with the telling words of the question before"
    " answering, answer from the passages alone, and name their source path. Use read_document for more of a document."
)
FORMS = {
    "search_knowledge": "query (text, required) and top_k (whole number from 1 to 20, default 5), "
    'for example {"query": "warranty kettle", "top_k": 5}',
    "list_documents": "category (text, optional) and offset (whole number from 0, default 0), for example {}",
    "read_document": "path (text, required, as list_documents or search_knowledge gives it) and first_line"
    ' (whole number from 1, default 1), for example {"path": "guide.md", "first_line": 1}',
}
READ_ONLY = ToolAnnotations(read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False)


class FoundPassage(BaseModel):
    """A passage that fits the query."""

    path: str = Field(description="Source document, for read_document")
    title: str
    heading: str = Field(description="Headings above the passage, outermost first")
    passage: int = Field(description="Number of the passage within its document, from 1")
    first_line: int
    last_line: int
    score: float = Field(description="Higher is better; comparable within one answer only")
    text: str


class SearchAnswer(BaseModel):
    """What search_knowledge gives."""

    query: str
    documents: int = Field(description="How many documents were searched")
    passages: list[FoundPassage] = Field(description="Best first")


class ListedDocument(BaseModel):
    """A document."""

    path: str
    title: str
    category: str
    bytes: int
    lines: int
    passages: int


class DocumentList(BaseModel):
    """What list_documents gives."""

    total: int
    documents: list[ListedDocument]
    next_offset: int | None = Field(description="Where to go on; null at the end")


class DocumentText(BaseModel):
    """What read_document gives."""

    path: str
    title: str
    first_line: int
    last_line: int
    total_lines: int
    next_line: int | None = Field(description="Where to go on; null at the end")
    text: str


class KnowledgeServer(MCPServer[Any]):
    """An `MCPServer` that tells a model how to ask rightly, and nothing of its insides."""

    async def call_tool(self, name: str, arguments: dict[str, Any], context: Any = None) -> Any:
        """Run a tool; wrong arguments and anticipated failures become results that advise."""
        try:
            return await super().call_tool(name, arguments, context)
        except UnexpectedToolError as error:
            raise UnexpectedToolError(
                f"{name} could not be carried out: an error inside the knowledge server (its log tells more)."
            ) from error.__cause__
        except ToolError as error:
            cause = error.__cause__
            if isinstance(cause, ValidationError):
                wrong = "; ".join(
                    f"{'.'.join(map(str, e['loc'])) or 'arguments'}: {e['msg'].removeprefix('Value error, ')}"
                    for e in cause.errors(include_url=False, include_input=False)
                )
                return _failed(f"Wrong arguments ({wrong}). {name} takes {FORMS[name]}.")
            if name not in FORMS:
                return _failed(f"There is no tool {name!r}. Tools: {', '.join(FORMS)}.")
            return _failed(str(cause or error))


def _failed(text: str) -> CallToolResult:
    return CallToolResult(content=[TextContent(type="text", text=text)], is_error=True)


def _answer(text: str, data: BaseModel) -> CallToolResult:
    return CallToolResult(
        content=[TextContent(type="text", text=text)], structured_content=data.model_dump(mode="json")
    )


def build(index: Index) -> KnowledgeServer:
    """The server over an index. Tools run in worker threads."""
    server = KnowledgeServer(
        "knowledge", title="Knowledge", version=VERSION, instructions=INSTRUCTIONS, log_level="WARNING",
        description="Searches folders of Markdown and text files.",
    )  # fmt: skip

    @server.tool(title="Search the documents", annotations=READ_ONLY)
    def search_knowledge(
        query: Annotated[str, Field(description="What to look for: the telling words of the question", min_length=1)],
        top_k: Annotated[int, Field(description="How many passages at most", ge=1, le=20)] = 5,
    ) -> Annotated[CallToolResult, SearchAnswer]:
        """Search the person's documents and return the passages that fit best, with their sources."""
        hits = _told(lambda: index.search(query, top_k))
        total = index.count()
        answer = SearchAnswer(query=query, documents=total, passages=[FoundPassage(**vars(h)) for h in hits])
        if not hits:
            return _answer(
                f"Nothing was found for {query!r} in {_count(total, 'document')}. "
                "Try other words, or see list_documents.",
                answer,
            )
        parts = [f"{_count(len(hits), 'passage')} for {query!r}, best first."]
        for number, hit in enumerate(hits, 1):
            parts.append(f"[{number}] {hit.path}, lines {hit.first_line}-{hit.last_line} - {hit.heading}\n{hit.text}")
        return _answer("\n\n".join(parts), answer)

    @server.tool(title="List the documents", annotations=READ_ONLY)
    def list_documents(
        category: Annotated[str | None, Field(description="Only documents of this category")] = None,
        offset: Annotated[int, Field(description="How many to skip", ge=0)] = 0,
    ) -> Annotated[CallToolResult, DocumentList]:
        """List the documents that can be searched and read, with titles and categories."""
        found = index.documents(category)
        if category is not None and not found:
            known = ", ".join(sorted({e.category for e in index.documents()})) or "none"
            raise ToolError(f"There is no category {category!r}. Categories: {known}.")
        page = found[offset : offset + LISTED]
        more = offset + LISTED if offset + LISTED < len(found) else None
        listed = [
            ListedDocument(path=e.path, title=e.title, category=e.category, bytes=e.size, lines=e.lines,
                           passages=e.passages) for e in page
        ]  # fmt: skip
        lines = [f"{_count(len(found), 'document')}."] + [f"{e.path} - {e.title} ({e.category})" for e in page]
        if more is not None:
            lines.append(f"Go on with offset {more}.")
        return _answer("\n".join(lines), DocumentList(total=len(found), documents=listed, next_offset=more))

    @server.tool(title="Read a document", annotations=READ_ONLY)
    def read_document(
        path: Annotated[str, Field(description="The document, as list_documents or search_knowledge gives it")],
        first_line: Annotated[int, Field(description="Line to begin with", ge=1)] = 1,
    ) -> Annotated[CallToolResult, DocumentText]:
        """Read a document, or up to 200 lines of it from a line on."""
        entry, lines = _told(lambda: index.read(path))
        if first_line > max(1, len(lines)):
            raise ToolError(f"{path} has {_count(len(lines), 'line')}; first_line must lie within.")
        chosen: list[str] = []
        room = READ_CHARS
        for line in lines[first_line - 1 : first_line - 1 + READ_LINES]:
            room -= len(line) + 1
            if room < 0 and chosen:
                break
            chosen.append(line if room >= 0 else line[:READ_CHARS] + "…")
        last = first_line - 1 + len(chosen)
        more = last + 1 if last < len(lines) else None
        data = DocumentText(
            path=entry.path, title=entry.title, first_line=first_line, last_line=last, total_lines=len(lines),
            next_line=more, text="\n".join(chosen),
        )  # fmt: skip
        tail = f"\n\n(lines {first_line}-{last} of {len(lines)}; go on with first_line {more})" if more else ""
        return _answer(f"{entry.path} - {entry.title}\n\n{data.text}{tail}", data)

    @server.resource(
        "knowledge://stats", name="stats", title="What is indexed", mime_type="application/json",
        description="Numbers of documents and passages, categories, and the folders that are searched",
    )  # fmt: skip
    def stats() -> str:
        """Counts of the index as JSON."""
        return json.dumps(index.stats(), ensure_ascii=False)

    return server


def _told(work: Any) -> Any:
    try:
        return work()
    except BadRequest as error:
        raise ToolError(str(error)) from None


def _count(n: int, word: str) -> str:
    return f"{n} {word}" if n == 1 else f"{n} {word}s"


def serve_stdio(index: Index) -> None:
    """Serve on standard input and output until the input ends."""
    build(index).run("stdio")


def serve_http(index: Index, host: str, port: int) -> None:
    """Serve Streamable HTTP at `http://host:port/mcp`; port 0 takes a free one. The address is told on stderr."""
    import uvicorn

    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.create_server((host, port), family=family) as listener:
        shown = f"[{host}]" if ":" in host else host
        print(f"knowledge: serving http://{shown}:{listener.getsockname()[1]}/mcp", file=sys.stderr, flush=True)
        app = build(index).streamable_http_app(host=host)
        uvicorn.Server(uvicorn.Config(app, log_level="warning")).run(sockets=[listener])
