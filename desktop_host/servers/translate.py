"""JSON of the protocol to the host's own values. Reads what came, not what should have come."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from desktop_host.core.exchange import ToolOutcome
from desktop_host.core.messages import (
    Audio,
    ContentBlock,
    EmbeddedResource,
    Image,
    Message,
    Outcome,
    ResourceLink,
    Role,
    Text,
    ToolCall,
    ToolResult,
)
from desktop_host.core.servers import PromptArgument, PromptSpec, ResourceSpec
from desktop_host.core.tools import ToolHints, ToolSpec
from desktop_host.core.values import EMPTY, FrozenDict, freeze, thaw

NOTE_LIMIT = 500
ICONS, ICON = 8, 262_144
_PICTURED = re.compile(r"(?i)data:image/|https://|http://(127\.0\.0\.1|localhost|\[::1\])[:/]")
"""Icons kept of one thing, and the longest address (a `data:` address holds the picture itself)."""


def text_of(value: Any) -> str | None:
    """A string that says something, or None."""
    return value if isinstance(value, str) and value else None


def frozen(value: Any) -> FrozenDict | None:
    """A frozen copy of an object; None for anything else."""
    return freeze(value) if isinstance(value, Mapping) else None


def block(raw: Any) -> ContentBlock:
    """One content block; a kind that we do not know, or a broken one, becomes a note that shows it."""
    if isinstance(raw, str):
        return Text(raw)
    if not isinstance(raw, Mapping):
        return _note("unreadable", raw)
    notes = frozen(raw.get("annotations"))
    match raw.get("type"):
        case "text" if isinstance(raw.get("text"), str):
            return Text(raw["text"], notes)
        case "image" if isinstance(raw.get("data"), str):
            return Image(raw["data"], text_of(raw.get("mimeType")) or "image/png", notes)
        case "audio" if isinstance(raw.get("data"), str):
            return Audio(raw["data"], text_of(raw.get("mimeType")) or "audio/wav", notes)
        case "resource_link" if isinstance(raw.get("uri"), str):
            size = raw.get("size")
            return ResourceLink(
                uri=raw["uri"],
                name=text_of(raw.get("name")) or raw["uri"],
                title=text_of(raw.get("title")),
                description=text_of(raw.get("description")),
                mime_type=text_of(raw.get("mimeType")),
                size=size if isinstance(size, int) else None,
                annotations=notes,
            )
        case "resource" if isinstance(raw.get("resource"), Mapping):
            return contents(raw["resource"], notes)
        case "tool_use" if isinstance(raw.get("id"), str) and isinstance(raw.get("name"), str):
            return ToolCall(raw["id"], raw["name"], frozen(raw.get("input")) or EMPTY)
        case "tool_result" if isinstance(raw.get("toolUseId"), str):
            outcome = Outcome.ERROR if raw.get("isError") else Outcome.OK
            inner = blocks(raw.get("content"))
            return ToolResult(raw["toolUseId"], inner, outcome, freeze(raw.get("structuredContent")))
        case kind:
            return _note(str(kind), raw)


def blocks(raw: Any) -> tuple[ContentBlock, ...]:
    """The blocks of a `content` field: a list, or one block on its own."""
    if raw is None:
        return ()
    return tuple(block(x) for x in raw) if isinstance(raw, (list, tuple)) else (block(raw),)


def contents(raw: Mapping[str, Any], notes: FrozenDict | None = None) -> EmbeddedResource:
    """The contents of a resource; an empty `text` beside a `blob` does not hide it."""
    blob, text = text_of(raw.get("blob")), raw.get("text")
    return EmbeddedResource(
        uri=str(raw.get("uri", "")),
        mime_type=text_of(raw.get("mimeType")),
        text=text if isinstance(text, str) and (text or blob is None) else None,
        blob=blob,
        annotations=notes,
    )


def tool_outcome(raw: Mapping[str, Any], duration_ms: float) -> ToolOutcome:
    """The result of `tools/call`. Judged by nothing but `isError`: what was done is never lost."""
    structured = freeze(raw.get("structuredContent"))
    made = blocks(raw.get("content"))
    if not made and structured is not None:
        made = (Text(json.dumps(raw["structuredContent"], ensure_ascii=False)),)
    return ToolOutcome(
        outcome=Outcome.ERROR if raw.get("isError") else Outcome.OK,
        content=made,
        structured=structured,
        duration_ms=duration_ms,
        raw=freeze(raw),
    )


def needs_task(raw: Mapping[str, Any]) -> bool:
    """Whether a tool only runs as a task (MCP 2025-11-25)."""
    execution = raw.get("execution")
    return isinstance(execution, Mapping) and execution.get("taskSupport") == "required"


def tool_spec(server: str, raw: Mapping[str, Any], *, dropped: bool = False, tasks: bool = False) -> ToolSpec:
    """One tool. `problem` holds the codes of what was repaired or why the model cannot have it, by spaces.

    Codes: `schema_missing`, `schema_not_object`, `description_bad`, `output_schema_bad`, `header_bad`,
    `task_required` (unless the connection can run `tasks`); with the last two the tool is not enabled.
    """
    problems: list[str] = []
    schema = raw.get("inputSchema")
    if not isinstance(schema, Mapping):
        problems.append("schema_missing")
        schema = {"type": "object"}
    elif not _is_object(schema):
        problems.append("schema_not_object")
        schema = {"type": "object", **{k: v for k, v in schema.items() if k != "type"}}
    output = raw.get("outputSchema")
    if output is not None and not isinstance(output, Mapping):
        problems.append("output_schema_bad")
        output = None
    description = raw.get("description")
    if "description" in raw and not isinstance(description, str):
        problems.append("description_bad")
    notes = raw.get("annotations")
    if needs_task(raw) and not tasks:
        problems.append("task_required")
    if dropped:
        problems.append("header_bad")
    hints: Mapping[str, Any] = notes if isinstance(notes, Mapping) else {}
    return ToolSpec(
        server=server,
        name=str(raw["name"]),
        description=description if isinstance(description, str) else "",
        input_schema=freeze(schema),
        output_schema=frozen(output),
        title=text_of(raw.get("title")) or text_of(hints.get("title")),
        hints=ToolHints(
            read_only=_flag(hints, "readOnlyHint"),
            destructive=_flag(hints, "destructiveHint"),
            idempotent=_flag(hints, "idempotentHint"),
            open_world=_flag(hints, "openWorldHint"),
        ),
        enabled=not ({"task_required", "header_bad"} & set(problems)),
        problem=" ".join(problems) or None,
        meta=frozen(raw.get("_meta")),
        icons=icons(raw),
    )


def resource_spec(server: str, raw: Mapping[str, Any], template: bool) -> ResourceSpec | None:
    """A resource or template; None for one without an address."""
    uri = raw.get("uriTemplate" if template else "uri")
    if not isinstance(uri, str):
        return None
    size = raw.get("size")
    return ResourceSpec(
        server=server,
        uri=uri,
        name=text_of(raw.get("name")) or uri,
        title=text_of(raw.get("title")),
        description=text_of(raw.get("description")),
        mime_type=text_of(raw.get("mimeType")),
        size=size if isinstance(size, int) else None,
        template=template,
        annotations=frozen(raw.get("annotations")),
        icons=icons(raw),
    )


def prompt_spec(server: str, raw: Mapping[str, Any]) -> PromptSpec | None:
    """A prompt; None for one without a name."""
    name, listed = raw.get("name"), raw.get("arguments")
    if not isinstance(name, str):
        return None
    arguments = tuple(
        PromptArgument(
            name=a["name"],
            title=text_of(a.get("title")),
            description=text_of(a.get("description")),
            required=bool(a.get("required")),
        )
        for a in (listed if isinstance(listed, list) else ())
        if isinstance(a, Mapping) and isinstance(a.get("name"), str)
    )
    return PromptSpec(server, name, text_of(raw.get("title")), text_of(raw.get("description")), arguments, icons(raw))


def icons(raw: Mapping[str, Any]) -> tuple[FrozenDict, ...]:
    """The icons of a tool, resource or prompt that a face may look at: `data:`, https, and http within this machine."""
    listed = raw.get("icons")
    kept = [i for i in listed if isinstance(i, Mapping)] if isinstance(listed, (list, tuple)) else []
    return tuple(
        freeze({k: i[k] for k in ("src", "mimeType", "sizes", "theme") if k in i})
        for i in kept[:ICONS]
        if isinstance(i.get("src"), str) and _PICTURED.match(i["src"]) and len(i["src"]) <= ICON
    )


def message(raw: Any) -> Message:
    """A prompt's or a sampling request's message."""
    if not isinstance(raw, Mapping):
        return Message(Role.USER, (block(raw),))
    role = Role.ASSISTANT if raw.get("role") == "assistant" else Role.USER
    return Message(role, blocks(raw.get("content")))


def wire_block(made: ContentBlock) -> dict[str, Any] | None:
    """A block as the protocol writes it; None for what has no word there (thinking)."""
    match made:
        case Text(text=text):
            return {"type": "text", "text": text}
        case Image(data=data, mime_type=mime):
            return {"type": "image", "data": data, "mimeType": mime}
        case Audio(data=data, mime_type=mime):
            return {"type": "audio", "data": data, "mimeType": mime}
        case ToolCall(id=number, wire_name=name, arguments=arguments):
            return {"type": "tool_use", "id": number, "name": name, "input": thaw(arguments)}
        case _:
            return None


def _is_object(schema: Mapping[str, Any]) -> bool:
    kind = schema.get("type")
    return kind == "object" or (isinstance(kind, list) and "object" in kind)


def _flag(hints: Mapping[str, Any], key: str) -> bool | None:
    value = hints.get(key)
    return value if isinstance(value, bool) else None


def _note(kind: str, raw: Any) -> Text:
    shown = json.dumps(raw, ensure_ascii=False, default=str)
    cut = shown if len(shown) <= NOTE_LIMIT else f"{shown[:NOTE_LIMIT]}…"
    return Text(f"[content of a kind the host does not know ({kind}): {cut}]")
