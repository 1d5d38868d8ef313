"""Standard input."""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from desktop_host.cli.reading import Stdin
from desktop_host.core.errors import UserFault


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    ends = os.pipe()
    yield ends
    for end in ends:
        with contextlib.suppress(OSError):
            os.close(end)


async def test_lines_come_as_they_are_written_without_marks_and_ends(pipe):
    """Hazard A1."""
    read, write = pipe
    stdin = Stdin(read)
    os.write(write, b"\xef\xbb\xbfone\r\ntw")
    assert await stdin.line() == "one"
    os.write(write, "ö\n\nlast".encode())
    assert await stdin.line() == "twö"
    assert await stdin.line() == ""
    os.close(write)
    assert await stdin.line() == "last"
    assert await stdin.line() is None
    assert await stdin.line() is None


async def test_the_whole_input_loses_its_last_line_end_only(pipe):
    read, write = pipe
    os.write(write, b"-----BEGIN\nabc\n-----END\n")
    os.close(write)
    assert await Stdin(read).whole() == "-----BEGIN\nabc\n-----END"


async def test_secrets_come_one_a_line_in_order(pipe):
    read, write = pipe
    os.write(write, b"first\nsecond\n")
    os.close(write)
    stdin = Stdin(read)
    assert [await stdin.secret("A"), await stdin.secret("B")] == ["first", "second"]
    with pytest.raises(UserFault) as caught:
        await stdin.secret("C")
    assert (caught.value.code, caught.value.params["name"]) == ("usage", "C")


def test_a_reader_that_still_waits_does_not_hold_up_the_end_of_the_process():
    code = """
import asyncio
from desktop_host.cli.reading import Stdin
async def main():
    waiting = asyncio.ensure_future(Stdin().line())
    await asyncio.wait({waiting}, timeout=0.2)
    waiting.cancel()
asyncio.run(main())
print("done")
"""
    read, write = os.pipe()
    try:
        ended = subprocess.run([sys.executable, "-c", code], stdin=read, capture_output=True, timeout=20, check=False)
    finally:
        os.close(read)
        os.close(write)
    assert (ended.returncode, ended.stdout.strip(), ended.stderr) == (0, b"done", b"")


async def test_a_closed_input_reads_as_empty():
    read, write = os.pipe()
    os.close(write)
    os.close(read)
    async with asyncio.timeout(5):
        assert await Stdin(read).line() is None
