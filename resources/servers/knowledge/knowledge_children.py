"""The other servers that a merged search asks: how each is reached, which tool is asked, what its answer holds."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from knowledge_folders import BadRequest

TEXT = 2_000
"""Characters of one result that are passed on."""
QUERY_NAMES = ("query", "q", "search", "text", "question", "keywords", "keyword", "term", "pattern", "message")
"""Arguments that a search may take its words by, best first."""
_REFERENCE = re.compile(r"\$\{(?:env:)?([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")


@dataclass(frozen=True)
class Child:
    """One configured server."""

    name: str
    launch: Mapping[str, Any]
    tool: str | None = None
    """The tool to ask; None: the one that looks most like a search."""
    query: str | None = None
    arguments: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class Item:
    """One result, named by where it comes from."""

    source: str
    title: str
    text: str


def read_chain(file: Path) -> tuple[Child, ...]:
    """The servers of a file `{"mcpServers": {NAME: {…, "ask": {"tool", "query", "arguments"}}}}`.

    Raises:
        BadRequest: the file cannot be read or says something else.
    """
    try:
        listed = json.loads(file.read_text("utf-8-sig"))["mcpServers"]
        made = []
        for name, entry in listed.items():
            if entry.get("disabled") or entry.get("enabled") is False:
                continue
            if not entry.get("command") and not entry.get("url"):
                raise BadRequest(f"{file}: {name} has neither a command nor a url.")
            ask = entry.get("ask") or {}
            made.append(Child(name, entry, ask.get("tool"), ask.get("query"), ask.get("arguments")))
        return tuple(made)
    except (OSError, ValueError) as error:
        raise BadRequest(f"{file} cannot be read: {error}") from None
    except (KeyError, TypeError, AttributeError):
        raise BadRequest(f'{file}: {{"mcpServers": {{NAME: {{"command": …}}}}}} is wanted.') from None


def transport(child: Child) -> Any:
    """What the SDK's client connects to.

    Raises:
        BadRequest: a reference to the environment or to a vault cannot be followed here.
    """
    from mcp import StdioServerParameters
    from mcp.client.stdio import stdio_client

    entry = child.launch
    if url := entry.get("url"):
        import httpx2
        from mcp.client.streamable_http import streamable_http_client

        headers = {k: _expanded(str(v)) for k, v in (entry.get("headers") or {}).items()}
        client = httpx2.AsyncClient(headers=headers, timeout=httpx2.Timeout(30, read=None))
        return streamable_http_client(_expanded(url), http_client=client)
    return stdio_client(
        StdioServerParameters(
            command=_expanded(entry["command"]),
            args=[_expanded(str(a)) for a in entry.get("args") or ()],
            env={k: _expanded(str(v)) for k, v in (entry.get("env") or {}).items()},
            cwd=entry.get("cwd"),
            encoding_error_handler="replace",
        ),
        errlog=sys.stderr,
    )


def _expanded(text: str) -> str:
    if "${keyring:" in text or "${input:" in text:
        raise BadRequest("it needs a secret of the host's vault, which this server cannot open")

    def value(match: re.Match[str]) -> str:
        found = os.environ.get(match[1], match[2])
        if found is None:
            raise BadRequest(f"the environment variable {match[1]} is not set")
        return found

    return _REFERENCE.sub(value, text)


def choose(child: Child, tools: list[Any], query: str, top_k: int) -> tuple[str, dict[str, Any]]:
    """The tool to ask and its arguments.

    Raises:
        BadRequest: no tool looks like a search.
    """
    by_name = {tool.name: tool for tool in tools}
    if child.tool is not None:
        if child.tool not in by_name:
            raise BadRequest(f"it has no tool {child.tool!r}")
        wanted = [by_name[child.tool]]
    else:
        everywhere = [by_name["search_everywhere"]] if "search_everywhere" in by_name else []
        likely = [t for t in tools if re.search(r"search|find|query|lookup", t.name, re.IGNORECASE)]
        safe = [t for t in tools if t.annotations is not None and t.annotations.read_only_hint]
        wanted = [*everywhere, *(t for t in likely if t in safe), *(t for t in likely if not t.annotations)]
    for tool in wanted:
        properties = tool.input_schema.get("properties") or {}
        names = [child.query] if child.query else [n for n in QUERY_NAMES if n in properties]
        if names:
            given = dict(child.arguments or {})
            if "top_k" in properties:
                given.setdefault("top_k", top_k)
            return tool.name, {**given, names[0]: query}
    raise BadRequest('it has no tool that looks like a search; name one with "ask"')


def items_of(child: str, result: Any, top_k: int) -> list[Item]:
    """The results within an answer: known shapes of data, any list of objects, or its texts."""
    data = result.structured_content
    if isinstance(data, dict):
        if isinstance(data.get("results"), list) and isinstance(data.get("sources"), list):
            return [Item(f"{child} > {r.get('source')}", str(r.get("title")), str(r.get("text"))[:TEXT])
                    for r in data["results"] if isinstance(r, dict)]  # fmt: skip
        lists = [v for v in data.values() if isinstance(v, list) and v and all(isinstance(x, dict) for x in v)]
        if lists:
            return [_item(child, entry) for entry in lists[0][:top_k]]
    texts = [block.text for block in result.content if getattr(block, "text", None)]
    return [Item(child, text.strip().splitlines()[0][:120], text[:TEXT]) for text in texts[:top_k] if text.strip()]


def _item(child: str, entry: dict[str, Any]) -> Item:
    title = next((str(entry[k]) for k in ("path", "title", "name", "url", "id") if entry.get(k)), child)
    text = next((str(entry[k]) for k in ("text", "snippet", "content", "body", "message") if entry.get(k)), None)
    return Item(child, title[:200], (text or json.dumps(entry, ensure_ascii=False, default=str))[:TEXT])
