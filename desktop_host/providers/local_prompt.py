"""What a small model reads: rules, tool list, and as much of the conversation as its context holds."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

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
from desktop_host.core.models import ModelRequest
from desktop_host.core.tools import ToolSpec
from desktop_host.providers.actions import REPLY, as_call, short_names, signature
from desktop_host.providers.local_tools import is_question, is_search, pick_tools
from desktop_host.providers.weights import ModelCard

HISTORY_TOKENS = 3000
"""Older turns are left out beyond this: a slow machine reads about 50 tokens a second."""
SYSTEM_TOKENS = 600
"""How much of the host's own system text a small model gets."""

RULES = """You are an assistant that can use tools. Answer with one JSON object.
To use a tool: {"tool": "<name>", "arguments": {...}}. \
When no tool fits (greeting, thanks, joke, general knowledge): {"tool": "reply", "arguments": {"text": "..."}}.
Tools:
"""
REPLY_LINE = "- reply(text: string) - Talk to the user without a tool."
NUDGE = "\nUse these facts to answer with reply: "
"""Ends every result, before what the person asked: a small model has forgotten it by then."""
SEARCH_TOKENS = 160
"""How much of a search result a model reads that confuses passages: searches put the best one first."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """One request, ready to be sent."""

    messages: tuple[dict[str, str], ...]
    tools: tuple[ToolSpec, ...]
    """Those the model may call now; none: it must talk."""
    names: dict[str, str]
    """Wire name to the name the model reads, for all tools of the conversation."""
    plain: bool
    """Plain text is asked for, no action."""
    said: str = ""
    """The beginning of what the person said last."""
    must_call: bool = False
    """A reply is no choice yet: a call is required, or the question is to be looked up first."""
    calls: tuple[ToolCall, ...] = ()
    """Calls already made in this turn."""
    last_result: tuple[str, str] | None = None
    """Tool and text of the newest result of this turn."""

    def wire(self, name: str) -> str:
        """The wire name behind a name the model wrote; the name itself if there is none such."""
        return next((wire for wire, short in self.names.items() if short == name), name)


def build(request: ModelRequest, card: ModelCard, *, plain: bool) -> Prompt:
    """The prompt of a request. Same conversation, same bytes: what was sent before stays its beginning."""
    names = short_names(request.tools)
    turns = _turns(request.messages)
    last = turns[-1] if turns else []
    calls = tuple(c for m in last for c in m.calls)
    shown: list[ToolSpec] = []
    said: list[str] = []
    if not plain:
        said = [next((b.text for b in turn[0].blocks if isinstance(b, Text)), "")[:600] for turn in turns]
        used = frozenset(c.wire_name for turn in turns[:-1] for m in turn for c in m.calls)
        shown = pick_tools(request.tools, said, used, card.tool_cap)
    system = cut(request.system, SYSTEM_TOKENS)
    if shown:
        lines = [signature(t, names[t.wire_name]) for t in shown]
        system = "\n\n".join(p for p in (system, RULES + "\n".join([*lines, REPLY_LINE])) if p)
    limits = {
        t.wire_name: min(SEARCH_TOKENS, card.result_tokens) for t in request.tools if card.invents and is_search(t)
    }
    rendered = [_render(turn, names, limits, card.result_tokens, plain=not shown) for turn in turns]
    kept = rendered[_first_kept(rendered) :]
    head = [{"role": "system", "content": system}] if system else []
    may_call = request.tool_choice != "none" and len(calls) < card.calls_per_turn
    result = next((b for m in reversed(last) for b in reversed(m.blocks) if isinstance(b, ToolResult)), None)
    look_up = card.invents and any(map(is_search, shown)) and bool(said) and is_question(said[-1])
    return Prompt(
        messages=(*head, *(m for turn in kept for m in turn)),
        tools=tuple(shown) if may_call else (),
        names=names,
        plain=not shown,
        said=said[-1] if said else "",
        must_call=may_call and bool(shown) and not calls and (look_up or request.tool_choice == "required"),
        calls=calls,
        last_result=None if result is None else (_name_of(result, calls, names), _body(result)),
    )


def tokens(text: str) -> int:
    """A cautious estimate: three characters a token, one where the script has no spaces."""
    wide = (len(text.encode("utf-8", "replace")) - len(text)) // 2
    return wide + -(-max(0, len(text) - wide) // 3)


def cut(text: str, limit: int) -> str:
    """At most about `limit` tokens of a text: its head and, where it is long enough for both, a little of its end."""
    if tokens(text) <= limit:
        return text
    keep = max(20, len(text) * limit // tokens(text))
    tail = keep // 5 if limit > SEARCH_TOKENS else 0
    return f"{text[: keep - tail].rstrip()}\n[…]\n{text[len(text) - tail :].lstrip()}".rstrip()


def result_text(blocks: Iterable[ContentBlock]) -> str:
    """What a text model can know of a result."""
    parts: list[str] = []
    for block in blocks:
        match block:
            case Text(text=text):
                parts.append(text)
            case Image(mime_type=mime) | Audio(mime_type=mime):
                parts.append(f"[{mime}: shown to the user, not readable for you]")
            case ResourceLink():
                parts.append(f"[resource {block.title or block.name}: {block.uri}]")
            case EmbeddedResource():
                parts.append(block.text or f"[resource {block.uri}]")
            case _:
                continue
    return "\n".join(p for p in parts if p)


def _turns(messages: Iterable[Message]) -> list[list[Message]]:
    """Messages by turn: each begins with what the person said. A call and its result are never parted."""
    turns: list[list[Message]] = []
    for message in messages:
        results = any(isinstance(b, ToolResult) for b in message.blocks)
        if not turns or (message.role is Role.USER and not results):
            turns.append([])
        turns[-1].append(message)
    return turns


def _first_kept(turns: list[list[dict[str, str]]]) -> int:
    """The first turn that is still sent. Moves seldom and by much, so that the cached beginning lasts."""
    sizes = [sum(tokens(m["content"]) + 5 for m in turn) for turn in turns]
    start = 0
    for end in range(1, len(turns) + 1):
        if sum(sizes[start:end]) > HISTORY_TOKENS:
            while start < end - 1 and sum(sizes[start:end]) > HISTORY_TOKENS * 6 // 10:
                start += 1
    return start


def _render(
    turn: list[Message], names: Mapping[str, str], limits: Mapping[str, int], limit: int, *, plain: bool
) -> list[dict[str, str]]:
    out: list[dict[str, str]] = []
    question = next((b.text for b in turn[0].blocks if isinstance(b, Text)), "").strip()[:200]
    results = {b.call_id: b for m in turn for b in m.blocks if isinstance(b, ToolResult)}
    calls = tuple(c for m in turn for c in m.calls)
    for message in turn:
        if message.role is Role.ASSISTANT:
            if message.text and not message.calls:
                said = message.text if plain else as_call(REPLY, {"text": message.text})
                out.append({"role": "assistant", "content": said})
            for call in message.calls:
                name = names.get(call.wire_name, call.wire_name)
                out.append({"role": "assistant", "content": as_call(name, call.arguments)})
                if call.id in results:
                    said = _result_line(results[call.id], name, limits.get(call.wire_name, limit))
                    out.append({"role": "user", "content": said if plain else said + NUDGE + question})
        else:
            texts = [b for b in message.blocks if not isinstance(b, ToolResult)]
            known = {c.id for c in calls}
            strays = [
                _result_line(b, b.call_id, limit)
                for b in message.blocks
                if isinstance(b, ToolResult) and b.call_id not in known
            ]
            said = "\n\n".join(p for p in (*strays, result_text(texts)) if p)
            if said:
                out.append({"role": "user", "content": said})
    return out


def _result_line(result: ToolResult, name: str, limit: int) -> str:
    text = cut(_body(result), limit)
    match result.outcome:
        case Outcome.OK:
            return f"Tool result of {name}: {text or 'done'}"
        case Outcome.DENIED:
            return f"The user did not allow {name}. {text}".rstrip()
        case _:
            return f"Tool {name} failed: {text or result.outcome.value}"


def _body(result: ToolResult) -> str:
    text = result_text(result.content)
    if not text and result.structured is not None:
        return json.dumps(result.structured, ensure_ascii=False)
    return text


def _name_of(result: ToolResult, calls: tuple[ToolCall, ...], names: Mapping[str, str]) -> str:
    wire = next((c.wire_name for c in calls if c.id == result.call_id), "")
    return names.get(wire, wire)
