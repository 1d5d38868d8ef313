"""The schema subset of Gemini and of servers that build a grammar (llama.cpp): smaller, self-contained.

`$ref` is inlined (five levels; a recursion becomes a plain object), `const` becomes an enum, a list of types
becomes `nullable` or `anyOf`; what they do not know is dropped and said in words.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

MAX_DEPTH = 5
_DROPPED = (
    "additionalProperties", "patternProperties", "propertyNames", "unevaluatedProperties", "exclusiveMinimum",
    "exclusiveMaximum", "$schema", "$id", "$defs", "definitions", "$comment", "$anchor", "default", "examples",
    "contentEncoding", "contentMediaType", "readOnly", "writeOnly", "deprecated", "dependentRequired",
    "dependentSchemas", "not", "if", "then", "else", "uniqueItems", "multipleOf", "prefixItems", "pattern",
)  # fmt: skip
_SAID = frozenset({"exclusiveMinimum", "exclusiveMaximum", "multipleOf", "pattern", "default", "patternProperties"})
_FORMATS = frozenset({"date-time", "enum", "int32", "int64", "float", "double"})


def reduce(schema: dict[str, Any], notes: list[str]) -> dict[str, Any]:
    """The reduced copy of a root object schema; what is lost is appended to `notes`."""
    return _node(schema, schema, 0, (), notes, "")


def local_target(ref: str, root: Mapping[str, Any]) -> Any:
    """What a `#/…` reference points to; None for an external or broken one."""
    if ref == "#":
        return root
    if not ref.startswith("#/"):
        return None
    here: Any = root
    for step in ref[2:].split("/"):
        name = step.replace("~1", "/").replace("~0", "~")
        if not isinstance(here, Mapping) or name not in here:
            return None
        here = here[name]
    return here


def _node(
    node: Any, root: Mapping[str, Any], depth: int, seen: tuple[str, ...], notes: list[str], place: str
) -> dict[str, Any]:
    if not isinstance(node, Mapping):
        return {}
    ref = node.get("$ref")
    if isinstance(ref, str):
        target = local_target(ref, root)
        if ref in seen or depth > MAX_DEPTH:
            return {"type": "object"}
        rest = {k: v for k, v in node.items() if k != "$ref"}
        if not isinstance(target, Mapping):
            return _node(rest, root, depth, seen, notes, place)
        return _node({**target, **rest}, root, depth + 1, (*seen, ref), notes, place)
    out: dict[str, Any] = {}
    for key, value in node.items():
        if key in _DROPPED:
            if key in _SAID and place:
                notes.append(f"{place}: {key} {json.dumps(value, ensure_ascii=False)[:120]}")
        elif key == "const":
            out["enum"] = [value]
        elif key == "type" and isinstance(value, list):
            out.update(_types(value))
        elif key == "properties" and isinstance(value, Mapping):
            out[key] = {
                name: _node(sub, root, depth, seen, notes, f"{place}.{name}".lstrip(".")) for name, sub in value.items()
            }
        elif key == "items":
            out[key] = _node(value, root, depth, seen, notes, f"{place}[]")
        elif key in ("anyOf", "oneOf", "allOf") and isinstance(value, list):
            _options(out, key, value, root, depth, seen, notes, place)
        elif key == "format":
            if value in _FORMATS:
                out[key] = value
            elif place:
                notes.append(f"{place}: format {value}")
        else:
            out[key] = value
    return out


def _types(value: list[Any]) -> dict[str, Any]:
    kinds = [kind for kind in value if kind != "null"]
    found: dict[str, Any] = {"nullable": True} if len(kinds) < len(value) else {}
    if len(kinds) == 1:
        return {"type": kinds[0], **found}
    return {"anyOf": [{"type": kind} for kind in kinds], **found}


def _options(
    out: dict[str, Any], key: str, value: list[Any], root: Mapping[str, Any], depth: int, seen: tuple[str, ...],
    notes: list[str], place: str,
) -> None:  # fmt: skip
    """`anyOf` with null becomes nullable; `oneOf` becomes `anyOf`; `allOf` is merged."""
    real = [v for v in value if not (isinstance(v, Mapping) and v.get("type") == "null")]
    options = [_node(v, root, depth, seen, notes, place) for v in real]
    if len(real) < len(value):
        out["nullable"] = True
    if key == "allOf" or len(options) == 1:
        for option in options:
            for name, item in option.items():
                if name == "properties" and isinstance(out.get(name), dict):
                    out[name] = {**out[name], **item}
                else:
                    out.setdefault(name, item)
    elif options:
        out["anyOf"] = options
