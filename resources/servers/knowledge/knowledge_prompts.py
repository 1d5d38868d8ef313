"""Resources and prompts over the index, with completion of documents' names."""

from __future__ import annotations

import json
from typing import Any

from knowledge_index import BadRequest, Entry, Index
from knowledge_shapes import count
from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ResourceNotFoundError
from mcp.shared.exceptions import MCPError
from mcp.types import INVALID_PARAMS, Completion, ResourceTemplateReference

STATS = "knowledge://stats"
PAGE_LINES = 1_000
"""Lines of a page of `knowledge://doc/{id}`."""
PAGE_CHARS = 100_000
PROMPT_CHARS = 12_000
"""Characters of a document that go into a prompt."""


def doc_uri(key: str) -> str:
    """The address of a document."""
    return f"knowledge://doc/{key}"


def add_resources(server: MCPServer[Any], index: Index) -> None:
    """`knowledge://stats`, and documents whole or page by page."""

    @server.resource(
        STATS, name="stats", title="What is indexed", mime_type="application/json",
        description="Numbers of documents and passages, categories, and the folders that are searched",
    )  # fmt: skip
    def stats() -> str:
        """Counts of the index as JSON."""
        return json.dumps(index.stats(), ensure_ascii=False)

    @server.resource(
        "knowledge://doc/{id}", name="document", title="A document", mime_type="text/plain",
        description="The text of a document; a long one page by page, with the address of the next page at its end",
    )  # fmt: skip
    def document(id: str) -> str:
        """A document, or the first page of a long one."""
        return _page(index, id, 1)

    @server.resource(
        "knowledge://doc/{id}/{page}", name="document-page", title="A page of a document", mime_type="text/plain",
        description="A page of a long document, counted from 1",
    )  # fmt: skip
    def document_page(id: str, page: str) -> str:
        """A page of a document."""
        return _page(index, id, int(page) if page.isdecimal() and len(page) < 7 else 0)


def _page(index: Index, key: str, number: int) -> str:
    try:
        found = index.by_key(key)
    except BadRequest as error:
        raise ResourceNotFoundError(str(error)) from None
    if found is None:
        raise ResourceNotFoundError(f"There is no document with the id {key!r}. list_documents tells the addresses.")
    entry, lines = found
    pages = _pages(lines)
    if not 1 <= number <= len(pages):
        raise ResourceNotFoundError(f"{entry.path} has {count(len(pages), 'page')}, counted from 1.")
    text = "\n".join(pages[number - 1])
    if number < len(pages):
        text += f"\n\n[page {number} of {len(pages)}; go on with {doc_uri(key)}/{number + 1}]"
    return text


def _pages(lines: list[str]) -> list[list[str]]:
    pages: list[list[str]] = [[]]
    room = PAGE_CHARS
    for whole in lines:
        for at in range(0, max(1, len(whole)), PAGE_CHARS):
            line = whole[at : at + PAGE_CHARS]
            if pages[-1] and (len(pages[-1]) >= PAGE_LINES or len(line) > room):
                pages.append([])
                room = PAGE_CHARS
            pages[-1].append(line)
            room -= len(line)
    return pages


def add_prompts(server: MCPServer[Any], index: Index) -> None:
    """`summarize`, `compare`, `answer_with_sources`, and completion of their documents."""

    @server.prompt(title="Summarize a document")
    def summarize(document: str, focus: str = "") -> str:
        """Summarize a document of the index; `focus` says what matters most."""
        entry, text = _text(index, document)
        wish = f" Pay most attention to: {focus}." if focus.strip() else ""
        return (
            f"Summarize the document {entry.path} in at most ten sentences, from its text alone.{wish}"
            f" Say what is missing if the text was cut.\n\n<document path={entry.path!r}>\n{text}\n</document>"
        )

    @server.prompt(title="Compare two documents")
    def compare(first: str, second: str) -> str:
        """Compare two documents of the index: what both say, where they differ, what only one tells."""
        parts = []
        for name in (first, second):
            entry, text = _text(index, name)
            parts.append(f"<document path={entry.path!r}>\n{text}\n</document>")
        return (
            "Compare these two documents: what both say, where they contradict each other, and what only one of"
            " them tells. Quote the lines that differ and name their document.\n\n" + "\n\n".join(parts)
        )

    @server.prompt(title="Answer with sources")
    def answer_with_sources(question: str) -> str:
        """Answer a question from the indexed documents, with the source of each statement."""
        try:
            hits = index.search(question, 8)
        except BadRequest as error:
            raise MCPError(code=INVALID_PARAMS, message=str(error)) from None
        passages = "\n\n".join(f"[{n}] {h.path}, lines {h.first_line}-{h.last_line}\n{h.text}"
                               for n, h in enumerate(hits, 1))  # fmt: skip
        return (
            f"Question: {question}\n\nAnswer from these passages alone and put the number of the passage behind each"
            " statement, like [1]. End with the list of sources used (path and lines). If the passages do not answer"
            f" the question, say so.\n\n{passages or '(nothing was found)'}"
        )

    @server.completion()
    async def complete(ref: Any, argument: Any, _context: Any) -> Completion | None:
        by_key = isinstance(ref, ResourceTemplateReference)
        if argument.name not in (("id",) if by_key else ("document", "first", "second")):
            return None
        import anyio

        typed = argument.value.casefold()
        documents: list[Entry] = await anyio.to_thread.run_sync(index.documents)
        starts = [e for e in documents if e.path.casefold().startswith(typed) or e.key.startswith(typed)]
        holds = [e for e in documents if e not in starts and typed in f"{e.path} {e.title}".casefold()]
        found = [*starts, *holds]
        return Completion(values=[e.key if by_key else e.path for e in found[:100]], total=len(found),
                          has_more=len(found) > 100)  # fmt: skip


def _text(index: Index, path: str) -> tuple[Entry, str]:
    try:
        entry, lines = index.read(path)
    except BadRequest as error:
        raise MCPError(code=INVALID_PARAMS, message=str(error)) from None
    text = "\n".join(lines)
    cut = f"\n[cut after {PROMPT_CHARS} characters]" if len(text) > PROMPT_CHARS else ""
    return entry, text[:PROMPT_CHARS] + cut
