"""How many pictures a model still gets: vendors refuse a request that holds too many, and with it the whole chat.

Anthropic takes 100 images and 32 MB a request, others fewer. The oldest go first and several at once, so that what
was sent before stays the same from step to step. The person keeps seeing all of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from desktop_host.core.messages import ContentBlock, EmbeddedResource, Image, Message, Text, ToolResult

MOST, KEPT = 20, 10
"""So many pictures at most; once there are more, so many of the newest stay."""
MOST_CHARS, KEPT_CHARS = 30_000_000, 15_000_000
"""The same for their size (characters of base64), since a request may have 32 MB."""
LARGEST_CHARS = 6_700_000
"""A larger picture is described in words anyway (5 MB as base64)."""
LEFT_OUT = "[An earlier picture or file was left out, since the conversation holds many; the person still sees it.]"


def thinned(messages: Sequence[Message]) -> dict[int, Message]:
    """What is to stand in place of which messages so that no request holds too many pictures; mostly nothing.

    Pictures of the newest message stay as long as they alone are not too many.
    """
    sizes = [[len(_data(b)) for b in _pictures(m)] for m in messages]
    if not _too_many(sizes, MOST, MOST_CHARS):
        return {}
    drop = [0] * len(sizes)
    for at in range(len(sizes)):
        newest = at == len(sizes) - 1
        most, chars = (MOST, MOST_CHARS) if newest else (KEPT, KEPT_CHARS)
        while sizes[at] and _too_many(sizes, most, chars):
            del sizes[at][0]
            drop[at] += 1
    return {at: _without(messages[at], count) for at, count in enumerate(drop) if count}


def any_in(message: Message) -> bool:
    """Whether a message holds pictures that are sent."""
    return next(_pictures(message), None) is not None


def _too_many(sizes: list[list[int]], most: int, chars: int) -> bool:
    return sum(map(len, sizes)) > most or sum(map(sum, sizes)) > chars


def _is_picture(block: ContentBlock) -> bool:
    size = len(_data(block))
    paper = isinstance(block, EmbeddedResource) and block.mime_type == "application/pdf"
    return size > 0 and (paper or size <= LARGEST_CHARS)


def _data(block: ContentBlock) -> str:
    match block:
        case Image(data=data):
            return data
        case EmbeddedResource(text=None, blob=blob):
            return blob or ""
        case _:
            return ""


def _pictures(message: Message) -> Iterator[ContentBlock]:
    for block in message.blocks:
        inner = block.content if isinstance(block, ToolResult) else (block,)
        yield from (b for b in inner if _is_picture(b))


def _without(message: Message, count: int) -> Message:
    """The message without its first `count` pictures."""
    left = count

    def taken(blocks: tuple[ContentBlock, ...]) -> tuple[ContentBlock, ...]:
        nonlocal left
        out: list[ContentBlock] = []
        for block in blocks:
            if left and _is_picture(block):
                left -= 1
                block = Text(LEFT_OUT)
            elif isinstance(block, ToolResult):
                inner = taken(block.content)
                block = block if inner == block.content else replace(block, content=inner)
            out.append(block)
        return tuple(out)

    return replace(message, blocks=taken(message.blocks))
