"""Half of a surrogate pair in an answer must not cost the answer."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator

import pytest

from desktop_host.servers.http import whole_lines
from desktop_host.servers.surrogates import whole_characters


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        (rb'"x\ud83d"', rb'"x\ufffd"'),
        (rb'"\uDE00y"', rb'"\ufffdy"'),
        (rb'"\ud83d\ud83d\ude00"', rb'"\ufffd\ud83d\ude00"'),
        (rb'"\ud83d\n"', rb'"\ufffd\n"'),
        (rb'"\ud83d\ude00"', rb'"\ud83d\ude00"'),
        (rb'"a\\ud83d"', rb'"a\\ud83d"'),
        (rb'"a\\\ud83d"', rb'"a\\\ufffd"'),
    ],
)
def test_only_a_half_that_stands_alone_is_replaced(given: bytes, wanted: bytes) -> None:
    assert whole_characters(given) == wanted
    json.loads(whole_characters(given)).encode()


async def test_a_stream_cut_anywhere_is_repaired_and_loses_nothing() -> None:
    text = b'event: message\r\ndata: {"a":"\\ud83d","b":"\\ud83d\\ude00"}\r\n\r\ndata: rest'

    for size in (1, 3, 7, 1000):

        async def parts(size: int = size) -> AsyncIterator[bytes]:
            for start in range(0, len(text), size):
                yield text[start : start + size]

        made = b"".join([x async for x in whole_lines(parts())])
        assert made == text.replace(b'"\\ud83d"', b'"\\ufffd"')
