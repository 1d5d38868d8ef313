"""Content blocks as plain text, for the pages that show what a server gave to the person alone."""

from __future__ import annotations

from collections.abc import Iterable

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
from desktop_host.i18n import tr
from desktop_host.ui.widgets.server_words import size

MOST = 200_000
"""Characters shown at once; the rest is named by its size."""


def plain(blocks: Iterable[ContentBlock]) -> str:
    """All blocks, one after the other; what is no text is named with its type and size."""
    text = "\n\n".join(part for part in map(_one, blocks) if part)
    if len(text) > MOST:
        return text[:MOST] + "\n" + tr("content.cut", size=size(len(text.encode())))
    return text


def _one(block: ContentBlock) -> str:
    match block:
        case Text(text=text) | Thinking(text=text):
            return text
        case Image(data=data, mime_type=kind):
            return tr("content.image", type=kind, size=size(len(data) * 3 // 4))
        case Audio(data=data, mime_type=kind):
            return tr("content.audio", type=kind, size=size(len(data) * 3 // 4))
        case ResourceLink(uri=uri, name=name):
            return f"{name}: {uri}"
        case EmbeddedResource(text=str(text)):
            return text
        case EmbeddedResource(uri=uri, blob=blob):
            return tr("content.blob", uri=uri, size=size(len(blob or "") * 3 // 4))
        case ToolCall(wire_name=name):
            return name
        case ToolResult(content=content):
            return plain(content)
