"""The action protocol of small models: one JSON object a reply, held to a schema; the tool's name comes first.

`{"tool": "<name>", "arguments": {…}}` calls a tool, `{"tool": "reply", "arguments": {"text": "…"}}` talks.
Works with every server that constrains a reply by a JSON schema; native tool calls fail with such models.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from desktop_host.core.tools import ToolSpec
from desktop_host.core.values import EMPTY, FrozenDict, freeze

REPLY = "reply"
DEPTH = 6
"""Schemas nested deeper than this take any value there; recursive ones end here too."""
_KEPT = frozenset(["type", "enum", "const", "minItems", "maxItems", "required"])
_TYPES = frozenset(["string", "integer", "number", "boolean", "array", "object", "null"])
_ARGUMENTS_FIRST = re.compile(r'\s*\{\s*"tool"\s*:\s*"((?:[^"\\]|\\.)*)"\s*,\s*"arguments"\s*:\s*')
_TEXT_FIRST = re.compile(r'\s*\{\s*"text"\s*:\s*"')
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}


def short_names(tools: Iterable[ToolSpec]) -> dict[str, str]:
    """Wire name to the name that the model reads: the tool's own where no other tool has it."""
    tools = tuple(tools)
    plain = {t.wire_name: re.sub(r"[^a-zA-Z0-9_-]", "_", t.name) for t in tools}
    counts: dict[str, int] = {}
    for name in plain.values():
        counts[name.lower()] = counts.get(name.lower(), 0) + 1
    return {
        wire: name if name and counts[name.lower()] == 1 and name.lower() != REPLY else wire
        for wire, name in plain.items()
    }


def clean_schema(schema: Mapping[str, Any], root: Mapping[str, Any] | None = None, depth: int = 0) -> dict[str, Any]:
    """A copy with only what the grammar converter knows: references inlined; no format, pattern or examples."""
    root = schema if root is None else root
    if depth > DEPTH:
        return {}
    if isinstance(schema.get("$ref"), str):
        target = _resolve(root, schema["$ref"])
        return clean_schema(target, root, depth + 1) if target is not None else {}
    out: dict[str, Any] = {k: _plain(v) for k, v in schema.items() if k in _KEPT}
    if not _known_types(out.get("type", "string")):
        del out["type"]
    for key in ("anyOf", "oneOf", "allOf"):
        branches = [clean_schema(b, root, depth + 1) for b in schema.get(key) or () if isinstance(b, Mapping)]
        if branches and key == "allOf":
            for branch in branches:
                out = _merged(out, branch)
        elif branches and not isinstance(schema.get("properties"), Mapping):
            out["anyOf"] = branches
    if isinstance(schema.get("properties"), Mapping):
        mine = {
            str(k): clean_schema(v, root, depth + 1) if isinstance(v, Mapping) else {}
            for k, v in schema["properties"].items()
        }
        out = _merged(out, {"type": "object", "properties": mine})
    if isinstance(schema.get("items"), Mapping):
        out["items"] = clean_schema(schema["items"], root, depth + 1)
    if "properties" in out:
        out["required"] = [k for k in out.get("required", ()) if k in out["properties"]]
        out["additionalProperties"] = False
    return out


def arguments_schema(schema: Mapping[str, Any], loose: bool = False) -> dict[str, Any]:
    """What a tool's `arguments` may be. `loose`: names and simple types only, which every server can convert."""
    clean = clean_schema(schema)
    properties = clean.get("properties")
    if not properties:
        return {"type": "object", "properties": {}, "additionalProperties": False} if not loose else {"type": "object"}
    if loose:
        properties = {
            k: {"type": v["type"]} if v.get("type") in ("string", "integer", "number", "boolean") else {}
            for k, v in properties.items()
        }
    required = list(clean.get("required", ()))
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def action_schema(
    tools: Iterable[ToolSpec],
    names: Mapping[str, str],
    *,
    reply: bool = True,
    loose: bool = False,
    optional: Callable[[str, Mapping[str, Any]], bool] = lambda name, schema: True,
    longest: Mapping[str, int] = MappingProxyType({}),
) -> dict[str, Any]:
    """The schema of one action: a branch for each tool, and one to talk.

    `optional` tells of an argument that need not be given whether it may be; `longest` gives by wire name how many
    characters the text arguments of a tool may have.
    """
    branches: list[dict[str, Any]] = []
    for tool in tools:
        arguments = arguments_schema(tool.input_schema, loose)
        required = arguments.get("required", ())
        properties = {k: v for k, v in arguments.get("properties", {}).items() if k in required or optional(k, v)}
        if tool.wire_name in longest:
            cap = {"maxLength": longest[tool.wire_name]}
            properties = {k: v | cap if v.get("type") == "string" else v for k, v in properties.items()}
        if "properties" in arguments:
            arguments["properties"] = properties
        branches.append(_branch(names[tool.wire_name], arguments))
    if reply or not branches:
        text = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
        branches.append(_branch(REPLY, {**text, "additionalProperties": False}))
    return {"oneOf": branches}


def signature(tool: ToolSpec, name: str) -> str:
    """One line for the tool list: `- name(arg: type, optional?: type) - description`."""
    properties = arguments_schema(tool.input_schema)["properties"]
    required = tool.input_schema.get("required") or ()
    args = ", ".join(f"{k}{'' if k in required else '?'}: {_word(v)}" for k, v in properties.items())
    words = " ".join((tool.description or tool.title or "").split())
    first = re.split(r"(?<=[.!?。！？])\s*", words, maxsplit=1)[0] if len(words) > 160 else words
    return f"- {name}({args}) - {first[:160]}".rstrip(" -")


def as_call(name: str, arguments: Mapping[str, Any]) -> str:
    """A past call as the model would have written it."""
    return json.dumps({"tool": name, "arguments": arguments}, ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class Action:
    """What the model did. `tool` is the name it wrote; `reply` with `text` when it talked."""

    tool: str
    arguments: FrozenDict = EMPTY
    text: str = ""
    problem: str | None = None
    """Why the JSON could not be read; it was cut off."""


class ActionReader:
    """Reads an action while it is written, so that a reply can be shown word by word."""

    def __init__(self) -> None:
        self._raw = ""
        self._at = 0
        self.tool: str | None = None
        """Known as soon as the name is written."""
        self._in_text = self._ended = False
        self._text: list[str] = []

    def feed(self, piece: str) -> tuple[str, str]:
        """Take a piece; give the new reply text, and the new JSON of a call's arguments."""
        self._raw += piece
        if self.tool is None:
            head = _ARGUMENTS_FIRST.match(self._raw)
            if head is None:
                return "", ""
            self.tool, self._at = json.loads(f'"{head[1]}"'), head.end()
        if self.tool != REPLY:
            fresh, self._at = self._raw[self._at :], len(self._raw)
            return "", fresh
        if not self._in_text:
            head = _TEXT_FIRST.match(self._raw, self._at)
            if head is None:
                return "", ""
            self._in_text, self._at = True, head.end()
        text = self._decode()
        self._text.append(text)
        return text, ""

    def finish(self) -> Action:
        """The whole action."""
        text = "".join(self._text)
        try:
            whole = json.loads(self._raw)
            tool, arguments = whole["tool"], whole["arguments"]
        except (ValueError, KeyError, TypeError) as error:
            if self.tool == REPLY:
                return Action(REPLY, text=text, problem="cut")
            return Action(self.tool or "", problem=f"the arguments were cut off: {error}")
        if tool == REPLY:
            return Action(REPLY, text=text)
        return Action(str(tool), freeze(arguments) if isinstance(arguments, dict) else EMPTY)

    def _decode(self) -> str:
        """Decode the JSON string from `_at` on, as far as whole characters have come."""
        out: list[str] = []
        raw, at = self._raw, self._at
        while at < len(raw) and not self._ended:
            char = raw[at]
            if char == '"':
                self._ended = True
            elif char != "\\":
                out.append(char)
            elif at + 1 >= len(raw):
                break
            elif raw[at + 1] != "u":
                out.append(_ESCAPES.get(raw[at + 1], raw[at + 1]))
                at += 1
            else:
                width = 12 if raw[at + 2 : at + 4].lower() in ("d8", "d9", "da", "db") else 6
                if at + width > len(raw):
                    break
                out.append(_unescaped(raw[at : at + width]))
                at += width - 1
            at += 1
        self._at = at
        return "".join(out)


def _unescaped(escape: str) -> str:
    try:
        text: str = json.loads(f'"{escape}"')
    except ValueError:
        return "\ufffd"
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _branch(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {"tool": {"const": name}, "arguments": arguments},
        "required": ["tool", "arguments"],
        "additionalProperties": False,
    }


def _resolve(root: Mapping[str, Any], ref: str) -> Mapping[str, Any] | None:
    here: Any = root
    for part in ref.removeprefix("#").strip("/").split("/"):
        key = part.replace("~1", "/").replace("~0", "~")
        here = here.get(key) if part and isinstance(here, Mapping) else here
    return here if isinstance(here, Mapping) and ref.startswith("#") else None


def _merged(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    out = {**one, **other}
    if "properties" in one and "properties" in other:
        out["properties"] = {**one["properties"], **other["properties"]}
    if "required" in one and "required" in other:
        out["required"] = [*one["required"], *other["required"]]
    return out


def _known_types(kind: Any) -> bool:
    kinds = kind if isinstance(kind, (list, tuple)) else [kind]
    return bool(kinds) and all(isinstance(k, str) and k in _TYPES for k in kinds)


def _plain(value: Any) -> Any:
    return [_plain(v) for v in value] if isinstance(value, (list, tuple)) else value


def _word(schema: Mapping[str, Any]) -> str:
    """The type of an argument in a word or two."""
    if schema.get("enum"):
        return "|".join(str(v) for v in schema["enum"][:8])
    kind = schema.get("type")
    if kind == "array":
        return f"{_word(schema.get('items') or {})}[]"
    if isinstance(kind, list):
        return "|".join(kind)
    if kind is None and schema.get("anyOf"):
        return "|".join(dict.fromkeys(_word(branch) for branch in schema["anyOf"]))
    return str(kind or "any")
