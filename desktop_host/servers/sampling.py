"""`sampling/createMessage` in the host's words and back. A server's sampling tools are its own: none is ever run here.

Source: MCP revisions 2025-11-25 and 2026-07-28, "Sampling".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import mcp_types as T

from desktop_host.core.errors import PeerFault, UserFault
from desktop_host.core.exchange import SamplingReply, SamplingRequest
from desktop_host.core.messages import ContentBlock, Message, Role, Text, ToolCall, ToolResult
from desktop_host.core.tools import wire_name
from desktop_host.servers import translate


def sampling_request(server: str, params: T.CreateMessageRequestParams) -> SamplingRequest:
    """The request in the host's words. What it says of other servers' context is not granted.

    Tools are told to the model by their wire names, as all tools are.

    Raises:
        UserFault: `usage`, the messages break the protocol: a call without its result, a result without its call,
            results mixed with other content, or two tools of one name.
    """
    raw = params.model_dump(by_alias=True, mode="json", exclude_none=True)
    wanted = raw.get("modelPreferences") or {}
    tools = tuple(translate.tool_spec(server, t) for t in raw.get("tools") or ())
    if double := [name for name, count in Counter(t.name for t in tools).items() if count > 1]:
        raise _wrong(server, f"two tools are named {double[0]!r}")
    messages = tuple(_renamed(translate.message(m), lambda name: wire_name(server, name)) for m in raw["messages"])
    _check(server, messages)
    return SamplingRequest(
        messages=messages,
        max_tokens=params.max_tokens,
        system=params.system_prompt,
        temperature=params.temperature,
        stop=tuple(params.stop_sequences or ()),
        hints=tuple(h["name"] for h in wanted.get("hints") or () if h.get("name")),
        cost_priority=wanted.get("costPriority"),
        speed_priority=wanted.get("speedPriority"),
        intelligence_priority=wanted.get("intelligencePriority"),
        tools=tools,
        tool_choice=(raw.get("toolChoice") or {}).get("mode") or "auto",
        context=raw.get("includeContext") or "none",
    )


def sampling_result(
    request: SamplingRequest, reply: SamplingReply
) -> T.CreateMessageResult | T.CreateMessageResultWithTools:
    """The reply in the protocol's words: one block where that is enough, a list where tools are called.

    Raises:
        PeerFault: `protocol_error`, the model called a tool that the server did not offer.
    """
    own = {t.wire_name: t.name for t in request.tools}
    shown: tuple[ContentBlock, ...] = reply.blocks
    body: dict[str, Any] = {"role": "assistant", "model": reply.model, "stopReason": reply.stop}
    if not any(isinstance(b, ToolCall) for b in shown):
        texts = [b.text for b in shown if isinstance(b, Text)]
        other = [b for b in shown if not isinstance(b, Text)]
        only = translate.wire_block(other[0]) if other and not texts else None
        body["content"] = only or {"type": "text", "text": "\n\n".join(texts)}
        return T.CreateMessageResult.model_validate(body, by_name=False)
    called = [b.wire_name for b in shown if isinstance(b, ToolCall) and b.wire_name not in own]
    if called:
        raise PeerFault("protocol_error", f"the model called {called[0]!r}, which the server did not offer")
    shown = _renamed(Message(Role.ASSISTANT, shown), lambda name: own[name]).blocks
    listed = [w for b in shown if (w := translate.wire_block(b)) is not None]
    return T.CreateMessageResultWithTools.model_validate({**body, "content": listed}, by_name=False)


def _renamed(message: Message, name: Callable[[str], str]) -> Message:
    if not any(isinstance(b, ToolCall) for b in message.blocks):
        return message
    blocks = tuple(replace(b, wire_name=name(b.wire_name)) if isinstance(b, ToolCall) else b for b in message.blocks)
    return Message(message.role, blocks)


def _check(server: str, messages: tuple[Message, ...]) -> None:
    """What the protocol asks of tool calls and results ("Tool Use and Result Balance")."""
    open_: set[str] = set()
    for message in messages:
        results: list[Any] = [b for b in message.blocks if isinstance(b, ToolResult)]
        if results and len(results) != len(message.blocks):
            raise _wrong(server, "a message mixes results of tools with other content")
        given = {r.call_id for r in results}
        if given != open_:
            missing, extra = sorted(open_ - given), sorted(given - open_)
            raise _wrong(server, f"no result for the call {missing[0]!r}" if missing
                         else f"a result for {extra[0]!r}, which is no call of the message before")  # fmt: skip
        open_ = {b.id for b in message.blocks if isinstance(b, ToolCall)}
    if open_:
        raise _wrong(server, f"no result for the call {sorted(open_)[0]!r}")


def _wrong(server: str, what: str) -> UserFault:
    return UserFault("usage", f"the sampling request of {server} breaks the protocol: {what}", server=server)
