"""Make any history acceptable to every model: a pure function that runs before each request.

The rules are what vendors refuse with a 400: each call has exactly one
result, in the next message, results first and in call order; no id of a call stands twice; no empty text; the
first message is the user's; no two messages of one role in a row.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from desktop_host.core.messages import (
    ContentBlock,
    Message,
    Outcome,
    Role,
    Text,
    ToolCall,
    ToolResult,
)

NOT_RUN = "Cancelled: this call has no result. It may not have run."
CONTINUE = "Continue from where you stopped."
START = "(The conversation starts here.)"


def repair(messages: Sequence[Message]) -> tuple[Message, ...]:
    """The same conversation, well formed. A message that needs no repair is passed on as the same object."""
    out: list[Message] = []
    waiting: tuple[str, ...] = ()
    renamed: Mapping[str, str] = {}
    seen: set[str] = set()
    for message in messages:
        if message.role is Role.ASSISTANT:
            if waiting:
                out.append(Message(Role.USER, _results(waiting, ())))
            fixed = _assistant(message)
            if fixed is not None:
                fixed, renamed = with_own_ids(fixed, seen)
                seen.update(c.id for c in fixed.calls)
            if fixed is None:
                waiting = ()
                continue
            if out and out[-1].role is Role.ASSISTANT:
                out.append(Message(Role.USER, (Text(CONTINUE),)))
            elif not out:
                out.append(Message(Role.USER, (Text(START),)))
            out.append(fixed)
            waiting = tuple(c.id for c in fixed.calls)
            continue
        fixed = _user(message, waiting, renamed)
        waiting, renamed = (), {}
        if fixed is None:
            continue
        if out and out[-1].role is Role.USER:
            out[-1] = Message(Role.USER, (*out[-1].blocks, *fixed.blocks))
        else:
            out.append(fixed)
    if waiting:
        out.append(Message(Role.USER, _results(waiting, ())))
    return tuple(out)


def _assistant(message: Message) -> Message | None:
    seen: set[str] = set()
    blocks: list[ContentBlock] = []
    for block in message.blocks:
        if isinstance(block, Text) and not block.text.strip():
            continue
        if isinstance(block, ToolResult):
            continue
        call_id = getattr(block, "id", None)
        if call_id is not None:
            if call_id in seen:
                continue
            seen.add(call_id)
        blocks.append(block)
    if not blocks and message.native is None:
        return None
    return message if len(blocks) == len(message.blocks) else Message(message.role, tuple(blocks), message.native)


def with_own_ids(message: Message, taken: Collection[str]) -> tuple[Message, Mapping[str, str]]:
    """The message with ids of calls that are not `taken`, and what was renamed; some servers begin anew every turn.

    Of two calls with one id the second is renamed too.
    """
    seen, renamed = set(taken), dict[str, str]()
    blocks: list[ContentBlock] = []
    for block in message.blocks:
        if isinstance(block, ToolCall):
            fresh, n = block.id, 2
            while fresh in seen:
                fresh, n = f"{block.id}_{n}", n + 1
            seen.add(fresh)
            if fresh != block.id:
                renamed[block.id] = fresh
                block = replace(block, id=fresh)
        blocks.append(block)
    return (replace(message, blocks=tuple(blocks)), renamed) if renamed else (message, renamed)


def _user(message: Message, waiting: tuple[str, ...], renamed: Mapping[str, str]) -> Message | None:
    results = [
        replace(b, call_id=renamed[b.call_id]) if b.call_id in renamed else b
        for b in message.blocks
        if isinstance(b, ToolResult)
    ]
    others = tuple(
        b for b in message.blocks if not isinstance(b, ToolResult) and not (isinstance(b, Text) and not b.text.strip())
    )
    blocks = (*_results(waiting, results), *others)
    if not blocks:
        return None
    return message if blocks == message.blocks else Message(Role.USER, blocks)


def _results(waiting: tuple[str, ...], given: Iterable[ToolResult]) -> tuple[ToolResult, ...]:
    by_id: dict[str, ToolResult] = {}
    for result in given:
        by_id.setdefault(result.call_id, result)
    return tuple(by_id.get(i) or ToolResult(i, (Text(NOT_RUN),), Outcome.CANCELLED) for i in waiting)
