"""Server-sent events from bytes, however they are cut."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from desktop_host.core.errors import ModelFault
from desktop_host.providers import sse


async def read(*chunks: bytes) -> list[tuple[str, str]]:
    async def source() -> AsyncIterator[bytes]:
        for chunk in chunks:
            yield chunk

    return [event async for event in sse.events(source())]


STREAM = 'event: a\ndata: {"x": "ü"}\n\n: comment\nid: 7\ndata: one\ndata: two\n\n'.encode()
WANTED = [("a", '{"x": "ü"}'), ("", "one\ntwo")]


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
async def test_events_do_not_depend_on_how_the_bytes_are_cut(size):
    assert await read(*(STREAM[i : i + size] for i in range(0, len(STREAM), size))) == WANTED


@pytest.mark.parametrize("end", [b"\r\n", b"\r"])
@pytest.mark.parametrize("size", [1, 2, 1000])
async def test_all_three_line_ends_are_known(end, size):
    stream = STREAM.replace(b"\n", end)
    assert await read(*(stream[i : i + size] for i in range(0, len(stream), size))) == WANTED


async def test_a_byte_order_mark_and_a_missing_blank_are_accepted():
    assert await read(b"\xef\xbb\xbfdata:x\n\n") == [("", "x")]


async def test_a_last_event_without_its_blank_line_is_delivered():
    assert await read(b"data: x\n\ndata: y") == [("", "x"), ("", "y")]
    assert await read(b"data: x\n\ndata: y\n") == [("", "x"), ("", "y")]


async def test_events_without_data_are_no_events():
    assert await read(b"event: ping\n\n: hello\n\nretry: 5\n\ndata: x\n\n") == [("", "x")]


async def test_a_line_without_end_is_refused(monkeypatch):
    monkeypatch.setattr(sse, "MAX_EVENT_BYTES", 100)
    with pytest.raises(ModelFault, match="without end"):
        await read(*([b"x" * 60] * 3))
