"""`allowed-tools` of a skill to rules of this host's gate: a request that a person grants, never more."""

from __future__ import annotations

import re
from collections.abc import Iterable

from desktop_host.core.permissions import Effect, Life, Rule

_DOTTED = re.compile(r"[a-z0-9-]{1,32}\.[^\s()]+")
_MCP = re.compile(r"mcp__([A-Za-z0-9_-]+?)(?:__(.+))?")


def pattern_of(tool: str) -> str | None:
    """The gate's pattern for one entry, or None where this host has no such tool.

    `files.read_*` is this host's own form, `mcp__files__read` that of others. `Bash`, `Read` and their like are
    tools of other hosts; a whole-host wildcard is never granted.
    """
    match = _MCP.fullmatch(tool)
    if match:
        alias = match[1].lower().replace("_", "-")
        return f"{alias}.{match[2] or '*'}"
    return tool if _DOTTED.fullmatch(tool) else None


def rules_of(skill: str, tools: Iterable[str]) -> tuple[Rule, ...]:
    """The rules for those entries that mean something here; they never beat a deny or an ask.

    A skill's grant for the host's own tools of skills holds for that skill alone.
    """
    rules = []
    for tool in tools:
        pattern = pattern_of(tool)
        if pattern is None:
            continue
        own = rf'"(?:skill|name)":"{re.escape(skill)}"' if pattern.startswith("host.") else None
        rules.append(Rule(Effect.ALLOW, pattern, own, life=Life.SESSION, origin="skill"))
    return tuple(rules)
