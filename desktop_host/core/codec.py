"""Values to JSON and back: for the journal, for bundles, and (another shape) for `--json`.

The journal's form tags each dataclass with `"$": "ClassName"`. Unknown fields of a newer host are dropped
on reading and missing ones take their defaults, so old and new journals open.
"""

from __future__ import annotations

import types
from collections.abc import Callable
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from functools import cache
from typing import Any, Union, get_args, get_origin, get_type_hints

from desktop_host.core import (
    asks,
    events,
    exchange,
    messages,
    model_choice,
    permissions,
    servers,
    sessions,
    skills,
    tools,
)
from desktop_host.core.errors import PeerFault
from desktop_host.core.messages import (
    Audio,
    ContentBlock,
    EmbeddedResource,
    Image,
    ResourceLink,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from desktop_host.core.values import FrozenDict, Json, freeze, thaw

JOURNAL_SCHEMA = 1

_CLASSES: dict[str, type] = {
    cls.__name__: cls
    for module in (asks, events, exchange, messages, model_choice, permissions, servers, sessions, skills, tools)
    for cls in vars(module).values()
    if isinstance(cls, type) and is_dataclass(cls)
}


def _is_json(hint: Any) -> bool:
    if hint is FrozenDict:
        return True
    members = get_args(hint)
    return bool(members) and get_origin(hint) in (Union, types.UnionType) and (FrozenDict in members or hint == Json)


def _enum_of(hint: Any) -> type[Enum] | None:
    for candidate in (hint, *get_args(hint)):
        if isinstance(candidate, type) and issubclass(candidate, Enum):
            return candidate
    return None


@cache
def _plan(cls: type) -> tuple[tuple[str, bool, type[Enum] | None, bool], ...]:
    """Per field: name, whether it is raw JSON, its enum, whether it is required."""
    hints = get_type_hints(cls)
    return tuple(
        (
            f.name,
            _is_json(hints[f.name]),
            _enum_of(hints[f.name]),
            f.default is MISSING and f.default_factory is MISSING,
        )
        for f in fields(cls)
    )


def encode(value: Any) -> Any:
    """The journal's form of a value."""
    if value is None or isinstance(value, (bool, int, float)):
        return value
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, str):
        return value
    if isinstance(value, tuple):
        return [encode(v) for v in value]
    if is_dataclass(value) and not isinstance(value, type):
        out: dict[str, Any] = {"$": type(value).__name__}
        for name, raw, _enum, _required in _plan(type(value)):
            item = getattr(value, name)
            out[name] = item if raw else encode(item)
        return out
    if isinstance(value, FrozenDict):
        return value
    raise TypeError(f"no journal form for {type(value).__name__}")


def decode(data: Any) -> Any:
    """The value behind the journal's form.

    Raises:
        PeerFault: `bad_history`, a form that no version of this host wrote.
    """
    if isinstance(data, list):
        return tuple(decode(v) for v in data)
    if not isinstance(data, dict):
        return data
    if "$" not in data:  # A JSON object within a tuple, such as an icon.
        return freeze(data)
    cls = _CLASSES.get(data["$"])
    if cls is None:
        raise PeerFault("bad_history", f"unknown value {data.get('$')!r} in the journal", value=str(data.get("$")))
    known: dict[str, Any] = {}
    for name, raw, enum, required in _plan(cls):
        if name not in data:
            if required:
                raise PeerFault("bad_history", f"{cls.__name__} lacks {name}", value=cls.__name__, field=name)
            continue
        item = data[name]
        if raw:
            known[name] = freeze(item)
        elif enum is not None and isinstance(item, str):
            known[name] = enum(item)
        else:
            known[name] = decode(item)
    return cls(**known)


def block_to_mcp(block: ContentBlock) -> dict[str, Any]:
    """A content block in MCP's own shape."""
    out: dict[str, Any]
    match block:
        case Text(text=text):
            out = {"type": "text", "text": text}
        case Thinking(text=text):
            return {"type": "thinking", "text": text}
        case Image(data=data, mime_type=mime):
            out = {"type": "image", "data": data, "mimeType": mime}
        case Audio(data=data, mime_type=mime):
            out = {"type": "audio", "data": data, "mimeType": mime}
        case ResourceLink():
            out = {"type": "resource_link", "uri": block.uri, "name": block.name}
            for key, value in (("title", block.title), ("description", block.description),
                               ("mimeType", block.mime_type), ("size", block.size)):  # fmt: skip
                if value is not None:
                    out[key] = value
        case EmbeddedResource():
            inner: dict[str, Any] = {"uri": block.uri}
            if block.mime_type is not None:
                inner["mimeType"] = block.mime_type
            if block.text is not None:
                inner["text"] = block.text
            if block.blob is not None:
                inner["blob"] = block.blob
            out = {"type": "resource", "resource": inner}
        case ToolCall():
            return {
                "type": "tool_use", "id": block.id, "name": block.wire_name, "input": thaw(block.arguments),
            }  # fmt: skip
        case ToolResult():
            return {
                "type": "tool_result", "toolUseId": block.call_id, "outcome": block.outcome.value,
                "content": [block_to_mcp(b) for b in block.content], "structuredContent": thaw(block.structured),
            }  # fmt: skip
    if block.annotations:
        out["annotations"] = thaw(block.annotations)
    return out


def ask_fields(ask: asks.Ask) -> dict[str, Any]:
    """The fields of an ask in `--json`."""
    out: dict[str, Any] = {"ask_id": ask.ask_id, "kind": ask.kind, "server": ask.server, "call_id": ask.call_id}
    match ask:
        case asks.ApproveTool():
            out |= {"tool": ask.tool, "arguments": thaw(ask.arguments), "description": ask.description,
                    "trusted": ask.trusted, "changed": ask.changed}  # fmt: skip
            if ask.advice is not None:
                said = ask.advice
                out["advice"] = {"verdict": said.verdict, "text": said.text, "model": said.model}
        case asks.FillForm():
            out |= {"message": ask.message, "schema": thaw(ask.schema), "round": ask.round}
        case asks.OpenUrl():
            out |= {"message": ask.message, "url": ask.url, "round": ask.round}
            if ask.purpose:
                out["purpose"] = ask.purpose
        case asks.ReviewSampling():
            request = ask.request
            out |= {
                "model": ask.model, "system": request.system, "max_tokens": request.max_tokens,
                "messages": [
                    {"role": m.role.value, "content": [block_to_mcp(b) for b in m.blocks]} for m in request.messages
                ],
                "why": ask.choice.reason if ask.choice else None,
                "estimate_usd": ask.cost.estimate_usd if ask.cost else None,
            }  # fmt: skip
        case asks.ReviewReply():
            out |= {"model": ask.model, "content": [block_to_mcp(b) for b in ask.blocks]}
    if not isinstance(ask, asks.ApproveTool):
        out["calls"] = [{"kind": c.kind, "name": c.name, "arguments": thaw(c.arguments)} for c in ask.calls]
    return out


def _pin(pin: skills.SkillPin) -> dict[str, Any]:
    return {"name": pin.name, "version": pin.version, "digest": pin.digest, "reason": pin.reason}


_RENAMED = {"from_ref": "from", "to_ref": "to"}
_OWN: dict[type, Callable[[Any], dict[str, Any]]] = {
    events.UserSaid: lambda e: {
        "text": e.text,
        "attachments": [{"name": a.name, "mime_type": a.mime_type, "size": a.size} for a in e.attachments],
    },
    events.AssistantSaid: lambda e: {"text": e.text, "model": e.model} | {
        name: True for name in ("partial", "cached") if getattr(e, name)
    },
    events.SkillsChosen: lambda e: {
        "skills": [_pin(s) for s in e.skills], "suggested": list(e.suggested),
    },
    events.SkillPinned: lambda e: _pin(e.pin),
    events.ToolSettled: lambda e: {
        "call_id": e.call_id, "outcome": e.outcome.value, "content": [block_to_mcp(b) for b in e.content],
        "structured": thaw(e.structured), "duration_ms": round(e.duration_ms, 1),
    },
    events.AskRaised: lambda e: ask_fields(e.ask),
    events.ServerChanged: lambda e: {"server": e.server, "state": e.state, "reason": e.reason},
}  # fmt: skip


def event_to_json(stamped: events.Stamped) -> dict[str, Any]:
    """One line of `chat --json`."""
    event = stamped.event
    out: dict[str, Any] = {
        "seq": stamped.seq, "t": round(stamped.t, 3), "session": stamped.session, "turn": stamped.turn,
        "type": event.type,
    }  # fmt: skip
    own = _OWN.get(type(event))
    if own:
        return out | own(event)
    kind: type = type(event)
    for name, raw, _enum, _required in _plan(kind):
        value = getattr(event, name)
        out[_RENAMED.get(name, name)] = thaw(value) if raw else encode(value)
    return out
