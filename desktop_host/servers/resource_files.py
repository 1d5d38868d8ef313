"""Large and binary resources as files: what memory and chat hold of them is a link."""

from __future__ import annotations

import base64
import binascii
import errno
import hashlib
import mimetypes
import os
import re
from dataclasses import replace
from pathlib import Path
from urllib.parse import unquote, urlsplit

from desktop_host.core.errors import KnownFault, PeerFault
from desktop_host.core.exchange import ToolOutcome
from desktop_host.core.messages import ContentBlock, EmbeddedResource, ResourceLink
from desktop_host.core.server_ports import SavedResource
from desktop_host.servers import private

IN_MEMORY = 4 * 2**20
"""Longest contents, in characters as they came, that are handed on; longer ones become a file and a link to it."""
_CHUNK = 4 * 2**18
"""Base64 characters decoded at a time; a multiple of 4."""


def kept_small(outcome: ToolOutcome, folder: Path) -> ToolOutcome:
    """The outcome with a file and a link in place of contents above `IN_MEMORY`. Blocking."""
    if all(_length(block) <= IN_MEMORY for block in outcome.content):
        return outcome
    made = tuple(_linked(b, folder) if _length(b) > IN_MEMORY else b for b in outcome.content)
    return replace(outcome, content=made, raw=None)


def save(outcome: ToolOutcome, uri: str, folder: Path) -> SavedResource:
    """Write the first contents of a resource that was read to a file. Blocking.

    Raises:
        PeerFault: `protocol_error`, the server gave no contents, or no base64.
        KnownFault: `disk_full`.
    """
    found = next((b for b in outcome.content if isinstance(b, EmbeddedResource)), None)
    if found is None:
        raise PeerFault("protocol_error", f"{uri} came without contents", name=uri)
    return _written(found, folder)


def _length(block: ContentBlock) -> int:
    return len(block.blob or block.text or "") if isinstance(block, EmbeddedResource) else 0


def _linked(block: ContentBlock, folder: Path) -> ContentBlock:
    assert isinstance(block, EmbeddedResource)
    saved = _written(block, folder)
    return ResourceLink(
        uri=saved.path.as_uri(), name=block.uri, mime_type=block.mime_type, size=saved.size,
        annotations=block.annotations,
    )  # fmt: skip


def _written(block: EmbeddedResource, folder: Path) -> SavedResource:
    path = folder / file_name(block.uri, block.mime_type)
    part = path.with_name(path.name + ".part")
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with open(part, "wb", opener=private.opener) as file:
            if block.blob is not None:
                for at in range(0, len(block.blob), _CHUNK):
                    file.write(base64.b64decode(block.blob[at : at + _CHUNK], validate=True))
            else:
                text = block.text or ""
                for at in range(0, len(text), _CHUNK):
                    file.write(text[at : at + _CHUNK].encode("utf-8", "replace"))
            size = file.tell()
        os.replace(part, path)
    except binascii.Error as error:
        part.unlink(missing_ok=True)
        raise PeerFault("protocol_error", f"{block.uri} is no base64: {error}", name=block.uri) from error
    except OSError as error:
        part.unlink(missing_ok=True)
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise KnownFault("disk_full", f"no room to write {path}", file=str(path)) from error
        raise KnownFault("permission", f"{path} cannot be written: {error.strerror}", file=str(path)) from error
    return SavedResource(block.uri, path, block.mime_type, size)


def file_name(uri: str, mime_type: str | None) -> str:
    """A name that is safe on every platform, with an ending that fits the type; never a program's."""
    last = unquote(urlsplit(uri).path).replace("\\", "/").rstrip("/").rpartition("/")[2] or "resource"
    stem, dot, ending = last.rpartition(".")
    guessed = mimetypes.guess_extension((mime_type or "").partition(";")[0].strip()) or ""
    plain = f".{ending}" if dot and re.fullmatch(r"[A-Za-z0-9]{1,8}", ending) else ""
    # What the platform opens is decided by the ending: the declared type wins over the address.
    suffix = guessed or plain or ".bin"
    if suffix.lower() in _PROGRAMS:
        suffix += ".txt"
    body = re.sub(r"[^\w.-]+", "_", stem if dot else last).strip("._") or "resource"
    mark = hashlib.sha256(uri.encode()).hexdigest()[:8]
    return f"{body[:60]}-{mark}{suffix}"


_PROGRAMS = frozenset(
    {".exe", ".com", ".bat", ".cmd", ".ps1", ".vbs", ".js", ".jse", ".wsf", ".msi", ".scr", ".lnk", ".sh", ".bash"}
    | {".zsh", ".command", ".app", ".desktop", ".jar", ".py", ".pyw", ".pl", ".rb", ".reg", ".hta", ".url", ".dll"}
    | {".workflow", ".so", ".dylib"}
)
"""Endings that a platform runs instead of showing."""
