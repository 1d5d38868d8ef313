"""A person's files to blocks for the model."""

from __future__ import annotations

import base64

from desktop_host.core.errors import UserFault
from desktop_host.core.events import Attachment, UserSaid
from desktop_host.core.messages import Audio, ContentBlock, EmbeddedResource, Image
from desktop_host.engine.tickets import InputFile, UserInput

MAX_BYTES = 20 * 2**20
_IMAGES = ((b"\x89PNG\r\n\x1a\n", "image/png"), (b"\xff\xd8\xff", "image/jpeg"), (b"GIF8", "image/gif"))


def user_said(
    said: UserInput, attachments: tuple[Attachment, ...] = (), blocks: tuple[ContentBlock, ...] = ()
) -> UserSaid:
    """The event of a message with its files, and what else was attached.

    Raises:
        UserFault: `usage`, nothing to say, or a file over 20 MiB.
    """
    if not said.text.strip() and not said.files and not attachments:
        raise UserFault("usage", "the message is empty", reason="empty_message")
    for file in said.files:
        if len(file.data) > MAX_BYTES:
            raise UserFault(
                "usage", f"{file.name} has {len(file.data):,} bytes; {MAX_BYTES:,} is the limit",
                reason="file_too_large", name=file.name, size=len(file.data), limit=MAX_BYTES,
            )  # fmt: skip
    return UserSaid(
        said.text,
        (*(Attachment(f.name, f.mime_type, len(f.data)) for f in said.files), *attachments),
        (*(_block(f) for f in said.files), *blocks),
        said.fresh,
    )


def resource_block(block: ContentBlock) -> ContentBlock:
    """A resource as a model can see it: a picture as a picture, a sound as a sound, the rest as it came."""
    if not isinstance(block, EmbeddedResource) or block.blob is None:
        return block
    mime = (block.mime_type or "").partition(";")[0].strip().lower()
    if mime in ("image/png", "image/jpeg", "image/gif", "image/webp"):
        return Image(block.blob, mime, block.annotations)
    if mime.startswith("audio/"):
        return Audio(block.blob, mime, block.annotations)
    return block


def _block(file: InputFile) -> ContentBlock:
    sniffed = next((mime for mark, mime in _IMAGES if file.data.startswith(mark)), None)
    if sniffed is None and file.data[:4] == b"RIFF" and file.data[8:12] == b"WEBP":
        sniffed = "image/webp"
    uri = f"attachment:///{file.name}"
    if sniffed:
        return Image(base64.b64encode(file.data).decode(), sniffed)
    if file.mime_type.startswith("audio/"):
        return Audio(base64.b64encode(file.data).decode(), file.mime_type)
    try:
        return EmbeddedResource(uri, file.mime_type, text=file.data.decode("utf-8-sig"))
    except UnicodeDecodeError:
        return EmbeddedResource(uri, file.mime_type, blob=base64.b64encode(file.data).decode())
