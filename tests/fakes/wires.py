"""The same answer in the three vendors' own events."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tests.fakes.model_server import Reply, sse


@dataclass(frozen=True, slots=True)
class Say:
    """An answer."""

    text: str = ""
    thinking: str = ""
    calls: tuple[tuple[str, str, dict[str, Any]], ...] = ()
    """`(id, wire name, arguments)`."""
    stop: str | None = None
    """The vendor's own word; None: what fits."""
    model: str = "m-1"


def pieces(text: str, size: int = 5) -> list[str]:
    return [text[i : i + size] for i in range(0, len(text), size)]


def anthropic_events(say: Say) -> list[dict[str, Any]]:
    out: list[dict[str, Any]] = [
        {
            "type": "message_start",
            "message": {
                "id": "msg_1", "type": "message", "role": "assistant", "model": say.model, "content": [],
                "usage": {"input_tokens": 10, "cache_read_input_tokens": 3, "cache_creation_input_tokens": 2,
                          "output_tokens": 1},
            },
        },
        {"type": "ping"},
    ]  # fmt: skip
    index = 0

    def block(start: dict[str, Any], deltas: Sequence[dict[str, Any]]) -> None:
        nonlocal index
        out.append({"type": "content_block_start", "index": index, "content_block": start})
        out.extend({"type": "content_block_delta", "index": index, "delta": d} for d in deltas)
        out.append({"type": "content_block_stop", "index": index})
        index += 1

    if say.thinking:
        deltas: list[dict[str, Any]] = [{"type": "thinking_delta", "thinking": p} for p in pieces(say.thinking)]
        block(
            {"type": "thinking", "thinking": "", "signature": ""},
            [*deltas, {"type": "signature_delta", "signature": "sig=="}],
        )
    if say.text:
        block({"type": "text", "text": ""}, [{"type": "text_delta", "text": p} for p in pieces(say.text)])
    for call_id, name, arguments in say.calls:
        raw = json.dumps(arguments) if arguments else ""
        block(
            {"type": "tool_use", "id": call_id, "name": name, "input": {}},
            [{"type": "input_json_delta", "partial_json": p} for p in pieces(raw)],
        )
    stop = say.stop or ("tool_use" if say.calls else "end_turn")
    out.append(
        {
            "type": "message_delta",
            "delta": {"stop_reason": stop, "stop_sequence": None},
            "usage": {"output_tokens": 7, "output_tokens_details": {"thinking_tokens": 4}},
        }
    )
    out.append({"type": "message_stop"})
    return out


def responses_events(say: Say) -> list[dict[str, Any]]:
    out: list[dict[str, Any]] = [
        {"type": "response.created", "response": {"id": "resp_1", "model": say.model, "status": "in_progress"}}
    ]
    items: list[dict[str, Any]] = []

    def item(started: dict[str, Any], deltas: Sequence[dict[str, Any]], done: dict[str, Any]) -> None:
        place = len(items)
        out.append({"type": "response.output_item.added", "output_index": place, "item": started})
        out.extend({**d, "output_index": place} for d in deltas)
        out.append({"type": "response.output_item.done", "output_index": place, "item": done})
        items.append(done)

    if say.thinking:
        head = {"type": "reasoning", "id": "rs_1", "summary": []}
        item(
            {**head, "encrypted_content": "part"},
            [{"type": "response.reasoning_summary_text.delta", "delta": p} for p in pieces(say.thinking)],
            {**head, "summary": [{"type": "summary_text", "text": say.thinking}], "encrypted_content": "gAAA"},
        )
    if say.text:
        head = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed"}
        item(
            {**head, "content": []},
            [{"type": "response.output_text.delta", "delta": p} for p in pieces(say.text)],
            {**head, "content": [{"type": "output_text", "text": say.text, "annotations": []}]},
        )
    for place, (call_id, name, arguments) in enumerate(say.calls):
        raw = json.dumps(arguments) if arguments else ""
        head = {"type": "function_call", "id": f"fc_{place}", "call_id": call_id, "name": name}
        item(
            {**head, "arguments": "", "status": "in_progress"},
            [{"type": "response.function_call_arguments.delta", "delta": p} for p in pieces(raw)],
            {**head, "arguments": raw, "status": "completed"},
        )
    final: dict[str, Any] = {
        "id": "resp_1", "model": say.model, "status": "completed", "output": items,
        "usage": {"input_tokens": 15, "output_tokens": 7, "input_tokens_details": {"cached_tokens": 3,
                  "cache_write_tokens": 2}, "output_tokens_details": {"reasoning_tokens": 4}},
    }  # fmt: skip
    kind = "response.completed"
    if say.stop is not None:
        kind = "response.incomplete"
        final |= {"status": "incomplete", "incomplete_details": {"reason": say.stop}}
    out.append({"type": kind, "response": final})
    return out


def chunk(delta: dict[str, Any], finish: str | None = None, model: str = "m-1") -> dict[str, Any]:
    return {
        "id": "c1", "object": "chat.completion.chunk", "model": model,
        "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
    }  # fmt: skip


def chat_events(say: Say) -> list[dict[str, Any]]:
    out = [chunk({"role": "assistant", "content": ""}, model=say.model)]
    out += [chunk({"reasoning_content": p}) for p in pieces(say.thinking)]
    out += [chunk({"content": p}) for p in pieces(say.text)]
    for place, (call_id, name, arguments) in enumerate(say.calls):
        raw = json.dumps(arguments) if arguments else ""
        head = {"index": place, "id": call_id, "type": "function", "function": {"name": name, "arguments": ""}}
        out.append(chunk({"tool_calls": [head]}))
        out += [chunk({"tool_calls": [{"index": place, "function": {"arguments": p}}]}) for p in pieces(raw)]
    out.append(chunk({}, say.stop or ("tool_calls" if say.calls else "stop")))
    usage = {
        "prompt_tokens": 15, "completion_tokens": 7, "prompt_tokens_details": {"cached_tokens": 3,
        "cache_write_tokens": 2}, "completion_tokens_details": {"reasoning_tokens": 4},
    }  # fmt: skip
    out.append({"id": "c1", "model": say.model, "choices": [], "usage": usage})
    return out


WIRES = ("anthropic", "anthropic-compat", "responses", "compat")


def reply(wire: str, say: Say) -> Reply:
    """An answer over a wire."""
    if wire.startswith("anthropic"):
        return sse(anthropic_events(say))
    if wire == "responses":
        return sse(responses_events(say))
    return sse(chat_events(say), done=True)


def base_of(wire: str, url: str) -> str:
    """The base URL under which a wire is served."""
    return url if wire.startswith("anthropic") else f"{url}/v1"
