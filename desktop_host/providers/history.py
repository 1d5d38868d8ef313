"""A conversation made fit for sending, neutral of vendor (facts: turn invariants of every chat API).

Each call has exactly one result, in the next message, results first and in the order of the calls; nothing
blank; a user speaks first; roles alternate. A history that already holds comes back as the same objects, so
that its wire form need not be made again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from desktop_host.core.messages import ContentBlock, Message, Outcome, Role, Text, Thinking, ToolResult

LOST = "No result was kept for this call: it was cancelled, or the program ended while it ran."
CONTINUE = "(continued)"


def repaired(messages: Sequence[Message]) -> tuple[Message, ...]:
    """The messages, with what would make a vendor refuse them put right."""
    out: list[Message] = []
    waiting: tuple[str, ...] = ()
    for message in messages:
        if message.role is Role.ASSISTANT:
            if waiting:
                out.append(Message(Role.USER, _answers(waiting, {})))
                waiting = ()
            said = message if message.native is not None else _without_blank(message)
            if said.native is None and all(isinstance(block, Thinking) for block in said.blocks):
                continue
            if out and out[-1].role is Role.ASSISTANT and out[-1].native is None and said.native is None:
                out[-1] = Message(Role.ASSISTANT, out[-1].blocks + said.blocks)
            else:
                out.append(said)
            waiting = tuple(dict.fromkeys(call.id for call in out[-1].calls))
            continue
        said = _user(message, waiting)
        waiting = ()
        if not said.blocks:
            continue
        if out and out[-1].role is Role.USER:
            out[-1] = replace(out[-1], blocks=out[-1].blocks + said.blocks)
        else:
            out.append(said)
    if waiting:
        out.append(Message(Role.USER, _answers(waiting, {})))
    if out and out[0].role is Role.ASSISTANT:
        out.insert(0, Message(Role.USER, (Text(CONTINUE),)))
    return tuple(out)


def _user(message: Message, waiting: tuple[str, ...]) -> Message:
    """A user message with exactly the results that are waited for, first and in order."""
    given: dict[str, ToolResult] = {}
    rest: list[ContentBlock] = []
    for block in message.blocks:
        if isinstance(block, ToolResult):
            given.setdefault(block.call_id, block)
        elif not (isinstance(block, Text) and not block.text.strip()):
            rest.append(block)
    blocks = _answers(waiting, given) + tuple(rest)
    return message if blocks == message.blocks else replace(message, blocks=blocks)


def _answers(waiting: tuple[str, ...], given: dict[str, ToolResult]) -> tuple[ContentBlock, ...]:
    return tuple(given.get(call) or ToolResult(call, (Text(LOST),), Outcome.CANCELLED) for call in waiting)


def _without_blank(message: Message) -> Message:
    blocks = tuple(b for b in message.blocks if not (isinstance(b, Text) and not b.text.strip()))
    return message if len(blocks) == len(message.blocks) else replace(message, blocks=blocks)
