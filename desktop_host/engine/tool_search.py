"""Many tools without their definitions: the model looks for one and calls it by name.

`host.search_tools` gives names and schemas, `host.call_tool` runs one through the same gate (the verdict is
about the tool that is called), `host.reset_tools` switches groups. None of them edits the list that the model
was told: where a vendor binds reasoning to it, that would be refused.
"""

from __future__ import annotations

import difflib
import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from desktop_host.core.host_tools import ALIAS
from desktop_host.core.tools import ToolGroup, ToolHints, ToolSpec
from desktop_host.core.values import freeze, thaw

SEARCH, CALL, RESET = "search_tools", "call_tool", "reset_tools"
META = frozenset({SEARCH, CALL, RESET})
LEAST_TOKENS = 2_000
"""Below this no search stands in for the definitions: the meta-tools cost about 400 and each search a round trip."""
USUAL_WINDOW = 128_000
"""Context window that is assumed where nobody tells it."""
_HINTS = ToolHints(read_only=True, destructive=False, idempotent=True, open_world=False)


def needed(tools: Iterable[ToolSpec], window: int | None, share_percent: int) -> bool:
    """Whether the definitions take more than their share of the context.

    Judged by what they likely cost (3.5 bytes a token): `ToolSpec.tokens` is an estimate for budgets, which must not
    be too low (2.5), and by it fifty usual tools would go behind the search of the usual window.
    """
    cost = sum(t.tokens for t in tools if t.server != ALIAS) * 5 // 7
    return bool(share_percent) and cost > room(window, share_percent)


def room(window: int | None, share_percent: int) -> int:
    """Tokens that definitions may take."""
    return max((window or USUAL_WINDOW) * share_percent // 100, LEAST_TOKENS)


def kept(tools: Iterable[ToolSpec], names: Iterable[str]) -> tuple[ToolSpec, ...]:
    """What a model is told of beside the search: our own tools, and those of these full names."""
    wanted = set(names)
    return tuple(t for t in tools if t.server == ALIAS or t.full_name in wanted)


def likely(tools: Iterable[ToolSpec], query: str, limit: int) -> list[ToolSpec]:
    """The tools that fit a query best by words, the others behind them."""
    pool = [t for t in tools if t.enabled and t.server != ALIAS]
    ranked = sorted(zip(_scores(pool, query), pool, strict=True), key=lambda item: (-item[0], item[1].full_name))
    return [tool for _score, tool in ranked[:limit]]


def search_spec(tools: Iterable[ToolSpec]) -> ToolSpec:
    """The definition of `host.search_tools`; names the servers, so that the model knows what to look for."""
    count = Counter(t.server for t in tools if t.server != ALIAS)
    servers = ", ".join(f"{name} ({n})" for name, n in sorted(count.items())[:100])
    return ToolSpec(
        ALIAS, SEARCH,
        "Find tools by what they do. Most tools are not listed here: search for them, then run one with "
        f"{ALIAS}__{CALL}. Servers and how many tools each has: {servers}.",
        freeze({
            "type": "object",
            "properties": {
                "query": {"type": "string", "description": "What the tool should do, in a few words."},
                "server": {"type": "string", "description": "Only tools of this server."},
                "limit": {"type": "integer", "minimum": 1, "maximum": 20, "default": 5},
            },
            "required": ["query"],
        }),
        title="Search tools", hints=_HINTS,
    )  # fmt: skip


def call_spec() -> ToolSpec:
    """The definition of `host.call_tool`."""
    return ToolSpec(
        ALIAS, CALL, f"Run a tool that {ALIAS}__{SEARCH} found, or one of a group that was just switched on.",
        freeze({
            "type": "object",
            "properties": {
                "name": {"type": "string", "description": "The tool's name as it was found, like `server.tool`."},
                "arguments": {"type": "object", "description": "The tool's arguments, by its own schema."},
            },
            "required": ["name", "arguments"],
        }),
        title="Call a tool",
    )  # fmt: skip


def reset_spec(groups: Iterable[ToolGroup]) -> ToolSpec:
    """The definition of `host.reset_tools`: one switch for each group, the final state and no difference."""
    properties = {g.name: {"type": "boolean", "description": g.description or f"Tools of {g.name}."} for g in groups}
    return ToolSpec(
        ALIAS, RESET,
        "Choose which groups of tools you have. Give the final state: groups that are left out are switched off.",
        freeze({"type": "object", "properties": properties}), title="Switch tool groups", hints=_HINTS,
    )  # fmt: skip


def found(tools: Iterable[ToolSpec], query: str, server: str | None = None, limit: int = 5) -> list[dict[str, Any]]:
    """The tools that fit a query best, with all that is needed to call them."""
    pool = [t for t in tools if t.enabled and t.server != ALIAS and (not server or t.server == server)]
    ranked = sorted(zip(_scores(pool, query), pool, strict=True), key=lambda item: (-item[0], item[1].full_name))
    return [
        {"name": t.full_name, "title": t.display_name, "description": t.description,
         "input_schema": thaw(t.input_schema)}
        for score, t in ranked[:limit] if score > 0
    ]  # fmt: skip


def _scores(tools: list[ToolSpec], query: str) -> list[float]:
    """A score for each tool: words weighed by how rare they are; a name counts more than a description."""
    wanted, exact = _words(query), query.strip().lower()
    texts = [(_words(f"{t.server} {t.name} {t.title or ''}"), _words(_about(t))) for t in tools]
    seen = Counter(word for name, about in texts for word in name | about)
    rare = {word: math.log(1 + len(tools) / (1 + seen[word])) for word in wanted}
    out: list[float] = []
    for tool, (name, about) in zip(tools, texts, strict=True):
        score = 0.0
        for word in wanted:
            close = word in name or any(len(word) > 3 and (n.startswith(word) or word.startswith(n)) for n in name)
            score += rare[word] * (3 * close + (word in about))
        if exact in (tool.name.lower(), tool.full_name.lower(), tool.wire_name.lower()):
            score += 100
        out.append(score)
    return out


def _about(tool: ToolSpec) -> str:
    properties = tool.input_schema.get("properties")
    names = properties.items() if isinstance(properties, Mapping) else ()
    parts = [f"{k} {v.get('description', '')}" for k, v in names if isinstance(v, Mapping)]
    return f"{tool.description} {' '.join(parts)}"


def _words(text: str) -> set[str]:
    """Lower-case words of camelCase, snake_case and prose; Chinese by pairs of characters."""
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", text)
    out = {w.lower().rstrip("s") if len(w) > 3 else w.lower() for w in re.findall(r"[A-Za-z0-9]+", spaced)}
    for run in re.findall(r"[\u3400-\u9fff\uf900-\ufaff]+", text):
        out |= {run[i : i + 2] for i in range(max(1, len(run) - 1))}
    return out


def called(tools: Iterable[ToolSpec], arguments: Mapping[str, Any]) -> tuple[ToolSpec | None, dict[str, Any], str]:
    """The tool and arguments of a `host.call_tool`, or (None) what to tell the model."""
    name, inner = arguments.get("name"), arguments.get("arguments", {})
    if isinstance(inner, str):  # Models quote it now and then.
        try:
            inner = json.loads(inner or "{}")
        except ValueError:
            inner = None
    if not isinstance(name, str) or not isinstance(inner, Mapping):
        return None, {}, "Give `name` (a text) and `arguments` (an object)."
    every = {t.full_name: t for t in tools if t.enabled and t.name not in META}
    spec = every.get(name) or next((t for t in every.values() if t.wire_name == name), None)
    if spec is None:
        alone = [t for t in every.values() if t.name == name]
        spec = alone[0] if len(alone) == 1 else None
    if spec is None:
        close = difflib.get_close_matches(name, every, n=3, cutoff=0.5)
        hint = f" Did you mean: {', '.join(close)}?" if close else f" Search with {ALIAS}__{SEARCH}."
        return None, {}, f"There is no tool named {name!r}.{hint}"
    return spec, dict(inner), ""
