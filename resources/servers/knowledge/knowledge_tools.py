"""The tools that only read: search, list, read, query."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Annotated, Any, TypeVar

import knowledge_query
from knowledge_index import BadRequest, Index
from knowledge_prompts import doc_uri
from knowledge_shapes import (
    READ_ONLY,
    DocumentList,
    DocumentText,
    FoundPassage,
    ListedDocument,
    QueryRows,
    SearchAnswer,
    answer,
    count,
)
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.mcpserver.tools import Tool
from mcp.types import CallToolResult
from pydantic import Field

READ_LINES = 200
"""Lines that `read_document` gives at most in one answer."""
READ_CHARS = 20_000
LISTED = 200
"""Documents that `list_documents` gives at most in one answer."""

T = TypeVar("T")


def told(work: Callable[[], T]) -> T:
    """Run; what cannot be answered becomes a tool's error that advises."""
    try:
        return work()
    except BadRequest as error:
        raise ToolError(str(error)) from None


def reading_tools(index: Index) -> list[Tool]:
    """The tools. They run in worker threads."""

    def search_knowledge(
        query: Annotated[str, Field(description="What to look for: the telling words of the question", min_length=1)],
        top_k: Annotated[int, Field(description="How many passages at most", ge=1, le=20)] = 5,
    ) -> Annotated[CallToolResult, SearchAnswer]:
        """Search the person's documents and return the passages that fit best, with their sources."""
        hits = told(lambda: index.search(query, top_k))
        total = index.count()
        data = SearchAnswer(query=query, documents=total, passages=[FoundPassage(**vars(h)) for h in hits])
        if not hits:
            return answer(
                f"Nothing was found for {query!r} in {count(total, 'document')}. "
                "Try other words, or see list_documents.",
                data,
            )
        parts = [f"{count(len(hits), 'passage')} for {query!r}, best first."]
        for number, hit in enumerate(hits, 1):
            parts.append(f"[{number}] {hit.path}, lines {hit.first_line}-{hit.last_line} - {hit.heading}\n{hit.text}")
        done, of = index.reading or (0, 0)
        if of:
            parts.append(f"({done} of {of} documents have been read so far; more may be found in a while.)")
        return answer("\n\n".join(parts), data)

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
                           passages=e.passages, uri=doc_uri(e.key)) for e in page
        ]  # fmt: skip
        lines = [f"{count(len(found), 'document')}."] + [f"{e.path} - {e.title} ({e.category})" for e in page]
        if more is not None:
            lines.append(f"Go on with offset {more}.")
        return answer("\n".join(lines), DocumentList(total=len(found), documents=listed, next_offset=more))

    def read_document(
        path: Annotated[str, Field(description="The document, as list_documents or search_knowledge gives it")],
        first_line: Annotated[int, Field(description="Line to begin with", ge=1)] = 1,
    ) -> Annotated[CallToolResult, DocumentText]:
        """Read a document, or up to 200 lines of it from a line on."""
        entry, lines = told(lambda: index.read(path))
        if first_line > max(1, len(lines)):
            raise ToolError(f"{path} has {count(len(lines), 'line')}; first_line must lie within.")
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
        return answer(f"{entry.path} - {entry.title}\n\n{data.text}{tail}", data)

    def query_database(
        sql: Annotated[str, Field(description=knowledge_query.FORM, min_length=1, max_length=10_000)],
    ) -> Annotated[CallToolResult, QueryRows]:
        """Count, group and filter the index with one read-only SELECT (200 rows and 2 seconds at most)."""
        index.refresh()
        made = told(lambda: knowledge_query.query(index.store, sql))
        data = QueryRows(columns=list(made.columns), rows=[list(r) for r in made.rows], more=made.more)
        lines = [" | ".join(made.columns)]
        lines += [" | ".join(json.dumps(v, ensure_ascii=False) if v is None else str(v) for v in r) for r in made.rows]
        if made.more:
            lines.append(f"(cut after {knowledge_query.ROWS} rows; use LIMIT and OFFSET)")
        return answer("\n".join(lines), data)

    titled: list[tuple[Callable[..., Any], str]] = [
        (search_knowledge, "Search the documents"), (list_documents, "List the documents"),
        (read_document, "Read a document"), (query_database, "Query the index"),
    ]  # fmt: skip
    return [Tool.from_function(fn, title=title, annotations=READ_ONLY) for fn, title in titled]
