"""Standard input, line by line and never in the way: a daemon thread reads, so that quitting waits for nobody."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any, TypeVar

from desktop_host.core.errors import UserFault

T = TypeVar("T")


def _raw_lines(fd: int) -> Iterator[str | UserFault]:
    """Lines of UTF-8 text; a byte order mark and line ends are taken off. What is no text is a fault in its place.

    `os.read` and not `sys.stdin`: a thread that is blocked in the latter aborts the interpreter at exit.
    """
    pending = b""
    first = True
    while chunk := os.read(fd, 65536):
        pending += chunk
        *whole, pending = pending.split(b"\n")
        for line in whole:
            yield _text(line, first)
            first = False
    if pending:
        yield _text(pending, first)


def _text(line: bytes, first: bool) -> str | UserFault:
    try:
        return line.decode("utf-8-sig" if first else "utf-8").removesuffix("\r")
    except UnicodeDecodeError as error:
        return _not_text(error)


def _not_text(error: UnicodeDecodeError) -> UserFault:
    return UserFault("usage", f"standard input is not UTF-8 text (byte {error.start})", reason="stdin_not_utf8",
                     byte=error.start)  # fmt: skip


class Stdin:
    """The standard input of this run."""

    def __init__(self, fd: int = 0) -> None:
        self._fd = fd
        self._lines: asyncio.Queue[str | UserFault | None] | None = None

    @property
    def is_terminal(self) -> bool:
        """Whether a person types."""
        try:
            return os.isatty(self._fd)
        except OSError:
            return False

    async def line(self) -> str | None:
        """The next line without its end; None after the last.

        Raises:
            UserFault: `usage`, it is not UTF-8 text.
        """
        if self._lines is None:
            self._lines = asyncio.Queue()
            _start(_feed, asyncio.get_running_loop(), self._lines, self._fd)
        line = await self._lines.get()
        if line is None:
            self._lines.put_nowait(None)
        if isinstance(line, UserFault):
            raise line
        return line

    async def lines(self) -> AsyncIterator[str]:
        """All lines to come."""
        while (line := await self.line()) is not None:
            yield line

    async def whole(self) -> str:
        """All text up to the end, without the last line's end.

        Raises:
            UserFault: `usage`, it is not UTF-8 text.
        """
        if self._lines is not None:
            return "\n".join([line async for line in self.lines()])
        try:
            text = (await self.data()).decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise _not_text(error) from None
        return text.removesuffix("\n").removesuffix("\r")

    async def data(self) -> bytes:
        """All bytes up to the end, as they come; for where nothing reads lines before."""
        return await _in_daemon(lambda: b"".join(iter(lambda: os.read(self._fd, 1 << 16), b""))) or b""

    async def secret(self, name: str) -> str:
        """One secret: asked for without echo on a terminal, else the next line.

        Raises:
            UserFault: `usage`, nothing came.
        """
        value = await (_no_echo(name) if self.is_terminal else self.line())
        if not value:
            raise UserFault("usage", f"no value for {name} came on standard input", reason="no_value", name=name)
        return value


def _start(target: Any, *args: Any) -> None:
    threading.Thread(target=target, args=args, daemon=True, name="stdin").start()


def _feed(loop: asyncio.AbstractEventLoop, lines: asyncio.Queue[str | UserFault | None], fd: int) -> None:
    # The loop is closed where the run ended first; then nobody wants the line.
    with contextlib.suppress(RuntimeError):
        try:
            for line in _raw_lines(fd):
                loop.call_soon_threadsafe(lines.put_nowait, line)
        except OSError:
            pass  # a standard input that was never opened reads as empty
        loop.call_soon_threadsafe(lines.put_nowait, None)


class Typist:
    """A person at the terminal, with its line editing. One read at a time: what nobody waited for comes next."""

    def __init__(self) -> None:
        self._reading: asyncio.Task[str | None] | None = None

    async def line(self, prompt: str) -> str | None:
        """The next line; None at the end of input."""
        if self._reading is None:
            with contextlib.suppress(ImportError):
                import readline  # noqa: F401  # its import alone gives `input` editing and history
            self._reading = asyncio.create_task(_in_daemon(lambda: input(prompt)))
        else:
            print(prompt, end="", flush=True)
        line = await asyncio.shield(self._reading)
        self._reading = None
        return line

    async def close(self) -> None:
        """Give the terminal back."""
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.gather(self._reading, return_exceptions=True)


async def _no_echo(name: str) -> str | None:
    import getpass

    return await _in_daemon(lambda: getpass.getpass(f"{name}: ", stream=sys.stderr))


async def _in_daemon(ask: Callable[[], T]) -> T | None:
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[T | None] = loop.create_future()

    def settle(value: T | None) -> None:
        if not answer.done():
            answer.set_result(value)

    def run() -> None:
        try:
            value: T | None = ask()
        except (EOFError, OSError):
            value = None
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(settle, value)

    with _terminal_kept():
        _start(run)
        return await answer


@contextlib.contextmanager
def _terminal_kept() -> Iterator[None]:
    """Give the terminal back as it was, though the reading thread may still be in the middle of a line."""
    if sys.platform == "win32" or not os.isatty(0):
        yield
        return
    import termios

    before = termios.tcgetattr(0)
    try:
        yield
    finally:
        termios.tcsetattr(0, termios.TCSADRAIN, before)
