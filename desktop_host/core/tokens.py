"""How many tokens something will take, estimated offline: vendors' tokenizers are not at hand.

Bytes of UTF-8 divided by 3.5 for prose and by 2.5 for JSON and for scripts of three bytes a character; the last
real usage replaces the estimate of everything that was sent before (`engine/conversation.py`).
"""

from __future__ import annotations

from collections.abc import Iterable

from desktop_host.core.messages import (
    Audio,
    ContentBlock,
    EmbeddedResource,
    Image,
    Message,
    ResourceLink,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from desktop_host.core.tools import ToolSpec
from desktop_host.core.values import canonical

HIDDEN = 800
"""Tokens that vendors add to a request with tools without saying so; at most, as far as seen (346 to 700)."""
IMAGE = 1_600
"""Tokens of an image at the size that vendors scale it to."""
ASSUMED_WINDOW = 128_000
"""Context window where nobody says."""


def most(estimate: int) -> int:
    """The most tokens that what was estimated can turn out to be.

    No tokenizer of bytes makes more tokens than bytes, and estimates take no more than 3.5 bytes for one.
    """
    return estimate * 7 // 2 + HIDDEN


def elsewhere(most_tokens: int) -> int:
    """The most tokens where another vendor's tokenizer made the count: they differ by up to a third, as far as seen."""
    return most_tokens * 3 // 2


def of_text(text: str) -> int:
    """Tokens of a text."""
    size = len(text.encode("utf-8", "replace"))
    return -(-size * 2 // (5 if size > len(text) * 3 // 2 else 7))


def of_block(block: ContentBlock) -> int:
    """Tokens of one block."""
    match block:
        case Text(text=text) | Thinking(text=text):
            return of_text(text)
        case Image():
            return IMAGE
        case Audio(data=data):
            return len(data) // 100
        case EmbeddedResource(text=text, blob=blob):
            return of_text(text) if text is not None else IMAGE + len(blob or "") // 40
        case ResourceLink():
            return of_text(f"{block.uri}{block.name}{block.description or ''}") + 8
        case ToolCall():
            return -(-len(canonical(block.arguments).encode("utf-8", "replace")) * 2 // 5) + 16
        case ToolResult(content=content):
            return 8 + sum(of_block(b) for b in content)


def of_message(message: Message) -> int:
    """Tokens of one message."""
    return 4 + sum(of_block(b) for b in message.blocks)


def of_request(messages: Iterable[Message], system: str, tools: Iterable[ToolSpec]) -> int:
    """Tokens of a whole request."""
    return of_text(system) + sum(t.tokens for t in tools) + sum(of_message(m) for m in messages)
