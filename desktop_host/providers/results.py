"""Content for a model: what a tool gave or a person attached, as parts that every vendor can be sent.

Rules (facts: providers 3.3): an image is an image only if its bytes say so; base64 never goes into a text
field; structured data is sent only where there is no content, because servers send the same twice; a sound
or a link is named, never fetched; an error result is text alone.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

from desktop_host.core.messages import (
    Audio,
    ContentBlock,
    EmbeddedResource,
    Image,
    Outcome,
    ResourceLink,
    Text,
    ToolResult,
)
from desktop_host.core.values import FrozenDict, Json

MAX_IMAGE_BYTES = 5_000_000
"""Largest image that every vendor takes."""
NO_OUTPUT = "(no output)"
_IMAGES = ((b"\x89PNG\r\n\x1a\n", "image/png"), (b"\xff\xd8\xff", "image/jpeg"), (b"GIF8", "image/gif"))
_BASE64_RUN = 2_000


@dataclass(frozen=True, slots=True)
class TextPart:
    """Text."""

    text: str


@dataclass(frozen=True, slots=True)
class ImagePart:
    """An image whose bytes were looked at."""

    data: str
    mime_type: str

    @property
    def url(self) -> str:
        """As a data URL."""
        return f"data:{self.mime_type};base64,{self.data}"


@dataclass(frozen=True, slots=True)
class FilePart:
    """A PDF."""

    data: str
    name: str

    @property
    def url(self) -> str:
        """As a data URL."""
        return f"data:application/pdf;base64,{self.data}"


Part: TypeAlias = TextPart | ImagePart | FilePart


def sniff(data: str) -> str | None:
    """The type of base64 data by its first bytes: an image type, `application/pdf`, or None."""
    try:
        head = base64.b64decode(data[:32], validate=True)
    except (binascii.Error, ValueError):
        return None
    for mark, mime in _IMAGES:
        if head.startswith(mark):
            return mime
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return "image/webp"
    return "application/pdf" if head.startswith(b"%PDF-") else None


def size_of(data: str) -> int:
    """How many bytes base64 text stands for."""
    return len(data) * 3 // 4 - data[-2:].count("=")


def parts_of(blocks: Iterable[ContentBlock], structured: Json = None) -> list[Part]:
    """The parts of some content. Thinking, calls and results are no content and are left out."""
    out: list[Part] = []
    for block in blocks:
        match block:
            case Text(text=text):
                if text.strip():
                    out.append(TextPart(text))
            case Image(data=data, mime_type=mime):
                out.append(_binary(data, mime, "image"))
            case Audio(data=data, mime_type=mime):
                out.append(TextPart(f"[audio {mime}, {size_of(data)} bytes: played to the person, not sent]"))
            case ResourceLink():
                out.append(TextPart(_link(block)))
            case EmbeddedResource(uri=uri, text=text, blob=blob, mime_type=mime):
                if text:
                    out.append(TextPart(f'<resource uri="{uri}">\n{text}\n</resource>'))
                elif blob:
                    out.append(_binary(blob, mime, uri))
                else:
                    out.append(TextPart(f"[empty resource {uri}]"))
            case _:
                pass
    if not out and structured is not None:
        out.append(TextPart(json.dumps(without_base64(structured), ensure_ascii=False, separators=(",", ":"))))
    return out


def result_parts(result: ToolResult) -> list[Part]:
    """The parts of a tool's result; never empty. An error holds text alone."""
    parts = parts_of(result.content, result.structured)
    if result.outcome is not Outcome.OK:
        parts = [part for part in parts if isinstance(part, TextPart)]
        if not parts:
            parts = [TextPart(f"({result.outcome.value}, no details)")]
    return parts or [TextPart(NO_OUTPUT)]


def is_error(result: ToolResult) -> bool:
    """Whether the model should take the result as a failure."""
    return result.outcome is not Outcome.OK


def text_of(parts: Iterable[Part]) -> str:
    """The text parts, a line each."""
    return "\n".join(part.text for part in parts if isinstance(part, TextPart))


def without_base64(value: Json) -> Json:
    """Structured data with long base64 strings named instead of shown."""
    if isinstance(value, str) and len(value) > _BASE64_RUN and _looks_base64(value):
        return f"[{size_of(value)} bytes of binary data, not sent]"
    if isinstance(value, dict):
        return FrozenDict({k: without_base64(v) for k, v in value.items()})
    if isinstance(value, (tuple, list)):
        return tuple(without_base64(v) for v in value)
    return value


def _looks_base64(text: str) -> bool:
    sample = text.removeprefix("data:").split("base64,", 1)[-1]
    head = sample[:_BASE64_RUN]
    return " " not in head and "\n" not in head[:60] and all(c.isalnum() or c in "+/=-_\n\r" for c in head)


def _binary(data: str, mime: str | None, name: str) -> Part:
    found = sniff(data)
    size = size_of(data)
    if found and found.startswith("image/"):
        if size <= MAX_IMAGE_BYTES:
            return ImagePart(data, found)
        return TextPart(f"[{found}, {size} bytes: too large to send, shown to the person]")
    if found == "application/pdf":
        return FilePart(data, name.rsplit("/", 1)[-1] or "file.pdf")
    if (mime or "").startswith("text/") or mime in ("application/json", "application/xml", "image/svg+xml"):
        try:
            text = base64.b64decode(data, validate=True).decode()
        except (binascii.Error, ValueError):
            text = ""
        if text.strip():
            return TextPart(f'<resource uri="{name}">\n{text}\n</resource>')
    return TextPart(f"[{mime or 'binary data'} {name}, {size} bytes: shown to the person, not sent]")


def _link(link: ResourceLink) -> str:
    said = f"[resource link] {link.title or link.name} <{link.uri}>"
    if link.mime_type:
        said += f" ({link.mime_type})"
    return said + (f": {link.description}" if link.description else "")
