"""What a server gave to the person, as parts of a message: text and files."""

from __future__ import annotations

import base64
from collections.abc import Iterable

from desktop_host.core.messages import Audio, ContentBlock, EmbeddedResource, Image, Message, ResourceLink, Role, Text
from desktop_host.engine.host import InputFile


def files_of(blocks: Iterable[ContentBlock], title: str) -> tuple[InputFile, ...]:
    """Contents as files of a message; a link goes as the address it holds."""
    found = []
    for block in blocks:
        match block:
            case Text(text=text):
                found.append(InputFile(title or "text.txt", "text/plain", text.encode()))
            case Image(data=data, mime_type=mime) | Audio(data=data, mime_type=mime):
                found.append(InputFile(title or f"file.{mime.rpartition('/')[2]}", mime, base64.b64decode(data)))
            case EmbeddedResource(uri=uri, text=str(text)):
                found.append(InputFile(_name(uri, title), block.mime_type or "text/plain", text.encode()))
            case EmbeddedResource(uri=uri):
                blob = base64.b64decode(block.blob or "")
                found.append(InputFile(_name(uri, title), block.mime_type or "application/octet-stream", blob))
            case ResourceLink(uri=uri):
                found.append(InputFile(title or block.name, "text/uri-list", uri.encode()))
    return tuple(found)


def prompt_parts(messages: Iterable[Message]) -> tuple[str, tuple[InputFile, ...]]:
    """A filled prompt as one text and files. Where several roles speak, each is named."""
    listed = tuple(messages)
    several = any(m.role is Role.ASSISTANT for m in listed)
    texts: list[str] = []
    files: list[InputFile] = []
    for message in listed:
        who = "Assistant: " if message.role is Role.ASSISTANT else "User: "
        texts += [f"{who}{b.text}" if several else b.text for b in message.blocks if isinstance(b, Text)]
        files += files_of([b for b in message.blocks if not isinstance(b, Text)], "")
    return "\n\n".join(texts), tuple(files)


def _name(uri: str, title: str) -> str:
    return uri.rstrip("/").rpartition("/")[2] or title or uri
