"""Server-sent events, undecoded: bytes of a response body to `(event, data)` pairs.

Written afresh because the SDKs build a model per event, which costs ten times the parsing. The rules are
those of the HTML standard (BOM, comments, several data lines, all three line ends), except that a last
event without its blank line is still delivered: some compatible servers end that way.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator

from desktop_host.core.errors import ModelFault

MAX_EVENT_BYTES = 64 * 1024 * 1024
"""A line longer than this is no model's answer; it would only fill the memory."""


async def events(chunks: AsyncIterator[bytes]) -> AsyncGenerator[tuple[str, str], None]:
    """Yield the events of a stream as they are complete; `event` is empty where it was not named.

    Raises:
        ModelFault: `protocol_error`, a line without end.
    """
    rest = b""
    held_cr = False
    first = True
    name = ""
    data: list[str] = []
    async for chunk in chunks:
        if held_cr:
            chunk = b"\r" + chunk
            held_cr = False
        if b"\r" in chunk:
            if chunk.endswith(b"\r"):
                held_cr = True
                chunk = chunk[:-1]
            chunk = chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        rest += chunk
        if first and rest:
            rest = rest.removeprefix(b"\xef\xbb\xbf")
            first = False
        if b"\n" not in chunk:
            if len(rest) > MAX_EVENT_BYTES:
                raise ModelFault("protocol_error", "the stream holds a line without end", reason="endless_line")
            continue
        *lines, rest = rest.split(b"\n")
        for line in lines:
            if not line:
                if data:
                    yield name, "\n".join(data)
                    data = []
                name = ""
                continue
            field, _, value = line.partition(b":")
            if field == b"data":
                data.append(value.removeprefix(b" ").decode("utf-8", "replace"))
            elif field == b"event":
                name = value.removeprefix(b" ").decode("utf-8", "replace")
    if rest.startswith(b"data:"):
        data.append(rest[5:].removeprefix(b" ").decode("utf-8", "replace"))
    if data:
        yield name, "\n".join(data)
