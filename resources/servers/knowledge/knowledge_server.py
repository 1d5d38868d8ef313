"""The MCP face of an index: an `MCPServer` with tools, resources, prompts, completion and subscriptions."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import knowledge_query
from knowledge_asking import folder_tools, judging_tools
from knowledge_chain import Chain, chain_tools
from knowledge_index import Index
from knowledge_news import News
from knowledge_prompts import STATS, add_prompts, add_resources, doc_uri
from knowledge_shapes import failed
from knowledge_store import key_of
from knowledge_tools import reading_tools
from mcp.server.caching import CacheHint
from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError, UnexpectedToolError
from mcp.shared.exceptions import MCPError
from mcp.types import INVALID_PARAMS
from pydantic import ValidationError

VERSION = "0.2.0"

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
    "query_database": f"sql (text, required). {knowledge_query.FORM}",
    "add_folder": 'folder (text, required, an absolute path), for example {"folder": "/home/ada/notes"}',
    "remove_folder": "folder (text, required, one of the folders of knowledge://stats), for example"
    ' {"folder": "/home/ada/notes"}',
    "verify_answer": "query (text, required), answer (text, required) and top_k (whole number from 1 to 20, default"
    ' 5), for example {"query": "warranty kettle", "answer": "Seven years."}',
    "search_everywhere": "query (text, required) and top_k (whole number from 1 to 20, default 5), "
    'for example {"query": "kettle leaks"}',
}
READING = ("search_knowledge", "list_documents", "read_document")
"""The tools of `--tools read`: enough to answer, small enough for a small model."""


class KnowledgeServer(MCPServer[Any]):
    """An `MCPServer` that tells a model how to ask rightly, and nothing of its insides."""

    news: News

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
                return failed(f"Wrong arguments ({wrong}). {name} takes {FORMS[name]}.")
            if name not in self.offered:
                return failed(f"There is no tool {name!r}. Tools: {', '.join(self.offered) or 'none'}.")
            return failed(str(cause or error))

    async def get_prompt(self, name: str, arguments: dict[str, Any] | None = None, context: Any = None) -> Any:
        """A filled prompt; an unknown one, or one with wrong arguments, is told with the right form."""
        known = {p.name: p for p in self._prompt_manager.list_prompts()}
        if name not in known:
            raise MCPError(code=INVALID_PARAMS,
                           message=f"There is no prompt {name!r}. Prompts: {', '.join(known)}.")  # fmt: skip
        takes = {a.name: a.required for a in known[name].arguments or ()}
        missing = [a for a, required in takes.items() if required and not (arguments or {}).get(a)]
        if missing or set(arguments or {}) - set(takes):
            form = ", ".join(f"{a} ({'required' if required else 'optional'})" for a, required in takes.items())
            raise MCPError(code=INVALID_PARAMS, message=f"Wrong arguments. {name} takes {form}.")
        try:
            return await super().get_prompt(name, arguments, context)
        except ValueError as error:
            import logging

            logging.getLogger("knowledge").error("prompt %s failed", name, exc_info=error)
            raise MCPError(
                code=-32603, message=f"{name} could not be made: an error inside the knowledge server."
            ) from error

    @property
    def offered(self) -> list[str]:
        """The tools there are now."""
        return [tool.name for tool in self._tool_manager.list_tools()]

    def offer(self, wanted: Callable[[str], bool]) -> bool:
        """Offer the tools that `wanted` names, and no others; clients are told. Whether anything changed."""
        before = self.offered
        for tool in self.all_tools:
            here = tool.name in self.offered
            if wanted(tool.name) and not here:
                self._tool_manager._tools[tool.name] = tool  # Ready made: `add_tool` would build it from its function.
            elif here and not wanted(tool.name):
                self.remove_tool(tool.name)
        if self.offered == before:
            return False
        self.news.list_changed("tools")
        return True

    all_tools: tuple[Any, ...] = ()


def matching(patterns: Iterable[str]) -> Callable[[str], bool]:
    """Whether a tool's name fits one of these globs; `read` stands for the few that a small model needs."""
    globs = [g for pattern in patterns for g in (READING if pattern == "read" else (pattern,))]
    return lambda name: any(fnmatchcase(name, glob) for glob in globs)


def build(
    index: Index,
    *,
    name: str = "knowledge",
    tools: Iterable[str] = ("*",),
    may_add: Callable[[Path], bool] = lambda _folder: True,
    chain: Chain | None = None,
) -> KnowledgeServer:
    """The server over an index.

    Args:
        index: what is searched.
        name: how the server calls itself.
        tools: globs of the tools that are offered.
        may_add: whether a folder may be taken in by `add_folder`.
        chain: other servers that `search_everywhere` asks too.
    """
    news = News()
    server = KnowledgeServer(
        name, title="Knowledge", version=VERSION, instructions=INSTRUCTIONS, log_level="WARNING",
        description="Searches folders of documents: text, Markdown, HTML, PDF, DOCX and code.",
        subscriptions=news.bus, cache_hints={"resources/templates/list": CacheHint(ttl_ms=60_000)},
    )  # fmt: skip
    server.news = news
    news.join(server)
    add_resources(server, index)
    add_prompts(server, index)
    made = [*reading_tools(index), *folder_tools(index, may_add), *judging_tools(index)]
    if chain is not None:
        made += chain_tools(index, chain)
    server.all_tools = tuple(made)
    server.offer(matching(tools))

    def changed(paths: frozenset[str]) -> None:
        news.updated([STATS, *(doc_uri(key_of(path)) for path in sorted(paths)[:1000])])

    index.on_change.append(changed)
    return server
