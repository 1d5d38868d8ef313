"""What the tools answer as data: the models behind their output schemas."""

from __future__ import annotations

from typing import Any

from mcp.types import CallToolResult, TextContent, ToolAnnotations
from pydantic import BaseModel, Field

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
    uri: str = Field(description="Address of the whole document as a resource")


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


class FolderChange(BaseModel):
    """What add_folder and remove_folder give."""

    folder: str
    changed: bool
    documents: int = Field(description="How many documents the index holds now")
    folders: list[str]


class QueryRows(BaseModel):
    """What query_database gives."""

    columns: list[str]
    rows: list[list[Any]]
    more: bool = Field(description="There are more rows than are given")


class Judgement(BaseModel):
    """What verify_answer gives."""

    supported: bool | None = Field(description="Whether the passages support the answer; null: the model did not say")
    reason: str
    model: str = Field(description="The model that judged")
    sources: list[str] = Field(description="Where the passages stand, as path:line")


class SourceReport(BaseModel):
    """How one source of a merged search did."""

    source: str
    state: str = Field(description="ok, failed, timed_out or loop")
    count: int = Field(description="How many results it gave")
    ms: int
    detail: str | None = None


class MergedItem(BaseModel):
    """A result of a merged search."""

    source: str
    title: str
    text: str


class MergedAnswer(BaseModel):
    """What search_everywhere gives."""

    query: str
    sources: list[SourceReport]
    results: list[MergedItem]
    complete: bool = Field(description="Whether every source answered")


def answer(text: str, data: BaseModel) -> CallToolResult:
    """A result as text for people and models, and as data."""
    return CallToolResult(
        content=[TextContent(type="text", text=text)], structured_content=data.model_dump(mode="json")
    )


def failed(text: str) -> CallToolResult:
    """A result that tells what went wrong and what to do instead."""
    return CallToolResult(content=[TextContent(type="text", text=text)], is_error=True)


def count(n: int, word: str) -> str:
    """`1 document`, `2 documents`."""
    return f"{n} {word}" if n == 1 else f"{n} {word}s"
