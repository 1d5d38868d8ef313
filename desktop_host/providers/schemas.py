"""An MCP tool's schema as a vendor will take it: a reduced copy, and in words what was lost.

The original stays the measure: arguments are validated against it before a call. Never `strict`: third
parties write these schemas. A root `anyOf`, `oneOf` or `allOf` is refused by both big vendors, so its
branches are merged and the rule goes into the description. External references are never fetched.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from desktop_host.core.tools import ToolSpec
from desktop_host.core.values import thaw
from desktop_host.providers.reduced import local_target, reduce

PROPERTY = re.compile(r"[a-zA-Z0-9_.-]{1,64}")
"""What Anthropic takes as a property's key (top level)."""
_BRANCHES = ("allOf", "anyOf", "oneOf")
_ROOT_RULES = ("not", "if", "then", "else", "dependentRequired", "dependentSchemas", "enum", "const", "$ref")
_NOTE_CHARS = 400


@dataclass(frozen=True, slots=True)
class WireSchema:
    """What is sent for one tool."""

    schema: dict[str, Any]
    renames: dict[str, str] = field(default_factory=dict)
    """Key on the wire to the tool's own key."""
    notes: tuple[str, ...] = ()


def wire_schema(original: Mapping[str, Any], *, rename: bool = False, reduced: bool = False) -> WireSchema:
    """The schema to send.

    Args:
        original: the tool's `inputSchema`, whatever it is.
        rename: replace property keys that Anthropic refuses.
        reduced: also cut to what Gemini and grammar-building servers understand.
    """
    schema: dict[str, Any] = thaw(original)
    notes: list[str] = []
    schema.pop("$schema", None)
    schema.pop("$id", None)
    schema = _resolved(schema, original)
    if schema.get("type") != "object":
        if "type" in schema:
            notes.append("arguments are always an object")
        schema["type"] = "object"
    _merge_branches(schema, original, notes)
    for rule in _ROOT_RULES:
        if rule in schema:
            notes.append(f"{rule}: {json.dumps(schema.pop(rule), ensure_ascii=False)[:_NOTE_CHARS]}")
    if not isinstance(schema.get("properties"), dict):
        schema["properties"] = {}
    _tidy_required(schema)
    if reduced:
        schema = reduce(schema, notes)
    renames = _rename(schema) if rename or reduced else {}
    return WireSchema(schema, renames, tuple(notes))


def described(spec: ToolSpec, notes: tuple[str, ...], limit: int | None = None) -> str:
    """The description with the notes after it; at `limit` characters the prose is cut, not the notes."""
    prose = (spec.description or spec.title or "").strip()
    tail = "\n".join(f"Note: {note}" for note in notes)
    if limit is not None and len(prose) + len(tail) + 1 > limit:
        tail = tail[: limit // 2]
        prose = prose[: max(0, limit - len(tail) - 2)].rstrip() + "…"
    return f"{prose}\n{tail}".strip()


def restored(arguments: Mapping[str, Any], renames: Mapping[str, str]) -> dict[str, Any]:
    """Arguments with the tool's own keys."""
    return {renames.get(key, key): value for key, value in arguments.items()}


def renamed(arguments: Mapping[str, Any], renames: Mapping[str, str]) -> dict[str, Any]:
    """Arguments with the keys of the wire."""
    back = {own: wire for wire, own in renames.items()}
    return {back.get(key, key): value for key, value in arguments.items()}


def _resolved(branch: dict[str, Any], root: Mapping[str, Any]) -> dict[str, Any]:
    """A root or branch with its own `$ref` replaced by what it points to."""
    for _ in range(8):
        ref = branch.get("$ref")
        if not isinstance(ref, str):
            return branch
        target = local_target(ref, root)
        rest = {k: v for k, v in branch.items() if k != "$ref"}
        if not isinstance(target, Mapping) or target is root:
            return rest
        branch = {**thaw(target), **rest}
    return {k: v for k, v in branch.items() if k != "$ref"}


def _branches(schema: Mapping[str, Any], key: str, root: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for branch in schema[key] if isinstance(schema[key], list) else []:
        if isinstance(branch, dict):
            yield _resolved(branch, root)


def _merge_branches(schema: dict[str, Any], root: Mapping[str, Any], notes: list[str]) -> None:
    for key in _BRANCHES:
        if key not in schema:
            continue
        branches = list(_branches(schema, key, root))
        del schema[key]
        own = schema.setdefault("properties", {})
        if not isinstance(own, dict):
            own = schema["properties"] = {}
        needs = [set(map(str, branch.get("required") or [])) for branch in branches]
        for branch in branches:
            found = branch.get("properties")
            for name, value in found.items() if isinstance(found, dict) else ():
                own.setdefault(name, value)
        already = set(map(str, schema.get("required") or []))
        if key == "allOf":
            schema["required"] = sorted(already.union(*needs))
            continue
        if needs:
            schema["required"] = sorted(already | set.intersection(*needs))
        sets = [need - already for need in needs]
        if any(sets):
            word = "at least one" if key == "anyOf" else "exactly one"
            shown = " | ".join("{" + ", ".join(sorted(need)) + "}" for need in sets)
            notes.append(f"provide {word} of these sets of arguments: {shown}")
        elif len(branches) > 1:
            said = json.dumps(branches, ensure_ascii=False)[:_NOTE_CHARS]
            notes.append(f"{key}: {said}")


def _tidy_required(schema: dict[str, Any]) -> None:
    required = schema.get("required")
    names = [n for n in required if isinstance(n, str)] if isinstance(required, list) else []
    if names:
        schema["required"] = names
    else:
        schema.pop("required", None)


def _rename(schema: dict[str, Any]) -> dict[str, str]:
    renames: dict[str, str] = {}
    properties: dict[str, Any] = schema["properties"]
    taken = {name for name in properties if PROPERTY.fullmatch(name)}
    fixed: dict[str, Any] = {}
    for name, value in properties.items():
        wire = name
        if not PROPERTY.fullmatch(name):
            wire = re.sub(r"[^a-zA-Z0-9_.-]", "_", name)[:55] or "p"
            if wire in taken:
                wire = f"{wire}_{hashlib.sha256(name.encode()).hexdigest()[:8]}"
            taken.add(wire)
            renames[wire] = name
        fixed[wire] = value
    schema["properties"] = fixed
    if renames and "required" in schema:
        back = {own: wire for wire, own in renames.items()}
        schema["required"] = [back.get(name, name) for name in schema["required"]]
    return renames
