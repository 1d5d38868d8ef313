"""The host's values in the protocol's words: what the gateway's clients are given."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import mcp_types as T

from desktop_host.core.exchange import SamplingReply, SamplingRequest, ToolOutcome
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
    ToolResult,
)
from desktop_host.core.servers import PromptSpec, ResourceSpec
from desktop_host.core.tools import ToolSpec, wire_name
from desktop_host.core.values import thaw
from desktop_host.servers import translate
from desktop_host.servers.gateway_names import address

MARK = "desktop-host/"
"""What a chain of hosts says of itself in `_meta` begins so."""
_TOLD = {
    Outcome.DENIED: "The call was not allowed.",
    Outcome.CANCELLED: "The call was cancelled.",
    Outcome.TIMED_OUT: "The call took too long and was cancelled.",
    Outcome.UNKNOWN: "The call may or may not have run.",
}


def tool(spec: ToolSpec) -> T.Tool:
    """A tool under its namespaced name."""
    hints = spec.hints
    return T.Tool(
        name=spec.wire_name,
        title=f"{spec.display_name} ({spec.server})",
        description=spec.description or None,
        input_schema=thaw(spec.input_schema),
        output_schema=thaw(spec.output_schema) if _publishable(spec) else None,
        annotations=T.ToolAnnotations(
            read_only_hint=hints.read_only, destructive_hint=hints.destructive,
            idempotent_hint=hints.idempotent, open_world_hint=hints.open_world,
        ),
    )  # fmt: skip


def _publishable(spec: ToolSpec) -> bool:
    """Older clients know schemas of objects only."""
    return spec.output_schema is not None and spec.output_schema.get("type") == "object"


def result(outcome: ToolOutcome, spec: ToolSpec) -> T.CallToolResult:
    """A result as the server gave it; one that the host made says why."""
    failed = outcome.outcome is not Outcome.OK
    blocks = [made for b in outcome.content if (made := block(b, spec.server)) is not None]
    if not blocks and failed:
        blocks = [T.TextContent(type="text", text=_TOLD.get(outcome.outcome, "The call failed."))]
    structured = thaw(outcome.structured) if isinstance(outcome.structured, dict) else None
    raw = outcome.raw.get("_meta") if isinstance(outcome.raw, dict) else None
    marks: Any = {k: thaw(v) for k, v in raw.items() if k.startswith(MARK)} if isinstance(raw, dict) else None
    return T.CallToolResult(content=blocks, structured_content=structured, is_error=failed, _meta=marks or None)


def block(made: ContentBlock, server: str) -> T.ContentBlock | None:
    """One block; resources get the gateway's addresses. None for what has no word in the protocol."""
    raw = getattr(made, "annotations", None)
    notes = T.Annotations.model_validate(thaw(raw), by_name=False) if raw else None
    match made:
        case Text(text=text):
            return T.TextContent(type="text", text=text, annotations=notes)
        case Image(data=data, mime_type=mime):
            return T.ImageContent(type="image", data=data, mime_type=mime, annotations=notes)
        case Audio(data=data, mime_type=mime):
            return T.AudioContent(type="audio", data=data, mime_type=mime, annotations=notes)
        case ResourceLink():
            return T.ResourceLink(
                type="resource_link", uri=address(server, made.uri), name=made.name, title=made.title,
                description=made.description, mime_type=made.mime_type, size=made.size, annotations=notes,
            )  # fmt: skip
        case EmbeddedResource():
            return T.EmbeddedResource(type="resource", resource=contents(made, server), annotations=notes)
        case _:
            return None


def contents(made: EmbeddedResource, server: str) -> T.TextResourceContents | T.BlobResourceContents:
    """The contents of a resource."""
    uri = address(server, made.uri)
    if made.blob is not None:
        return T.BlobResourceContents(uri=uri, mime_type=made.mime_type, blob=made.blob)
    return T.TextResourceContents(uri=uri, mime_type=made.mime_type, text=made.text or "")


def resource(spec: ResourceSpec) -> T.Resource:
    """A resource under the gateway's address."""
    return T.Resource(
        uri=address(spec.server, spec.uri), name=f"{spec.server}: {spec.name}", title=spec.title,
        description=spec.description, mime_type=spec.mime_type, size=spec.size,
    )  # fmt: skip


def template(spec: ResourceSpec) -> T.ResourceTemplate:
    """A template under the gateway's address."""
    return T.ResourceTemplate(
        uri_template=address(spec.server, spec.uri), name=f"{spec.server}: {spec.name}", title=spec.title,
        description=spec.description, mime_type=spec.mime_type,
    )  # fmt: skip


def prompt(spec: PromptSpec) -> T.Prompt:
    """A prompt under its namespaced name."""
    return T.Prompt(
        name=wire_name(spec.server, spec.name), title=spec.title, description=spec.description,
        arguments=[T.PromptArgument(name=a.name, title=a.title, description=a.description, required=a.required)
                   for a in spec.arguments],
    )  # fmt: skip


def prompt_messages(messages: Iterable[Message], server: str) -> list[T.PromptMessage]:
    """A filled prompt: one message for each block, as the protocol wants it."""
    made: list[Any] = []
    for message in messages:
        role: Any = "assistant" if message.role is Role.ASSISTANT else "user"
        made += [T.PromptMessage(role=role, content=b) for x in message.blocks if (b := block(x, server)) is not None]
    return made


# ---- questions of servers on their way to the gateway's client
def asked_by(server: str, tool: str, message: str) -> str:
    """The message, and before it whose question it is."""
    return f"[{server}{f'.{tool}' if tool else ''}] {message}"


def sampling_params(request: SamplingRequest, server: str, tool: str) -> T.CreateMessageRequestParams:
    """A sampling request under the name of the server that asks; other servers' context is not asked for."""
    whose = f"the server {server!r}{f' during its tool {tool!r}' if tool else ''}"
    system = f"(Asked by {whose}, passed on by Desktop Host.)\n{request.system or ''}".strip()
    preferences = {
        "hints": [{"name": hint} for hint in request.hints] or None, "costPriority": request.cost_priority,
        "speedPriority": request.speed_priority, "intelligencePriority": request.intelligence_priority,
    }  # fmt: skip
    body: dict[str, Any] = {
        "messages": [_sampling_message(m) for m in request.messages], "maxTokens": request.max_tokens,
        "systemPrompt": system, "temperature": request.temperature, "stopSequences": list(request.stop) or None,
        "modelPreferences": preferences if any(v is not None for v in preferences.values()) else None,
    }  # fmt: skip
    if request.tools:
        body["tools"] = [
            {"name": t.name, "description": t.description or None, "inputSchema": thaw(t.input_schema)}
            for t in request.tools
        ]
        body["toolChoice"] = {"mode": request.tool_choice}
    return T.CreateMessageRequestParams.model_validate({k: v for k, v in body.items() if v is not None}, by_name=False)


def _sampling_message(message: Message) -> dict[str, Any]:
    made: list[Any] = []
    for one in message.blocks:
        if isinstance(one, ToolResult):
            inner = [w for b in one.content if (w := translate.wire_block(b)) is not None]
            made.append({"type": "tool_result", "toolUseId": one.call_id, "content": inner,
                         "isError": one.outcome is not Outcome.OK})  # fmt: skip
        elif (block := translate.wire_block(one)) is not None:
            made.append(block)
    role = "assistant" if message.role is Role.ASSISTANT else "user"
    return {"role": role, "content": made[0] if len(made) == 1 else made}


def sampling_reply(result: T.CreateMessageResult | T.CreateMessageResultWithTools) -> SamplingReply:
    """The client's answer in the host's words."""
    raw = result.model_dump(by_alias=True, mode="json", exclude_none=True)
    return SamplingReply(translate.blocks(raw.get("content")), result.model, result.stop_reason or "endTurn")
