"""The POSIX stdio transport: a child in a process group of its own, lines in linear time, an end that leaves nobody."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import signal
import subprocess
import uuid
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any

import anyio
from mcp.shared.message import SessionMessage
from mcp_types import ErrorData, JSONRPCError, jsonrpc_message_adapter

from desktop_host.servers.descendants import MARK, end_marked
from desktop_host.servers.framing import Inbox, Lines, Outbox
from desktop_host.servers.surrogates import whole_characters

LINE_LIMIT = 64 * 2**20
"""Longest line of standard output (bytes). A longer one is dropped and its request answered by an error."""
BACKLOG_LIMIT = 16 * 2**20
"""Bytes of unread messages after which the server is made to wait."""
GRACE_S = 2.0
"""How long each step of the end (end of input, SIGTERM, SIGKILL) may take."""
DRAIN_S = 0.5
"""How long output is still read after the process has ended: a child of it may hold the pipe open."""
SHOWN_LINE = 2_000
TOO_LONG = -32013
"""Code of the error that stands for an answer over the line limit (range of implementations)."""
UNREADABLE = -32014
"""Code of the error that stands for an answer whose JSON cannot be read."""

_ANSWER = re.compile(
    rb'\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?"id"\s*:\s*(\d{1,18}|"[^"\\]{1,80}")\s*,.{0,40}?"(?:result|error)"\s*:',
    re.DOTALL,
)
_ID = re.compile(rb'"id"\s*:\s*(\d+|"[^"\\]{1,80}")')


class StdioTransport(asyncio.SubprocessProtocol):
    """Starts a server and yields its streams; leaving ends the whole process group within about 5 s.

    Args:
        argv: the resolved command and its arguments, run without a shell.
        env: the whole environment.
        on_line: told of lines of `stderr`, and of those of `stdout` that are no JSON-RPC.
        on_start: told the pid as soon as there is one.
    """

    def __init__(
        self,
        argv: tuple[str, ...],
        *,
        env: Mapping[str, str],
        cwd: str | None,
        encoding: str = "utf-8",
        errors: str = "replace",
        on_line: Callable[[str, str], None],
        on_start: Callable[[int], None],
        line_limit: int = LINE_LIMIT,
        grace_s: float = GRACE_S,
    ) -> None:
        self._argv, self._cwd, self._mark = argv, cwd, uuid.uuid4().hex
        self._env = {**env, MARK: self._mark}
        self._encoding, self._errors = encoding, errors
        self._on_line, self._on_start, self._grace = on_line, on_start, grace_s
        self._out, self._err = Lines(line_limit), Lines(65_536)
        self._limit = line_limit
        self._inbox = Inbox(self._level)
        self._outbox = Outbox(encoding)
        self._process: asyncio.SubprocessTransport | None = None
        self._reading = True
        self._exited = asyncio.Event()
        self._ending = False
        self.own_exit_code: int | None = None
        """Set if the process ended by itself; negative for a signal that was not ours."""
        self.bad_line: str | None = None
        """The first line of standard output that was no JSON-RPC."""

    @property
    def pid(self) -> int | None:
        """The process, once started."""
        return self._process.get_pid() if self._process else None

    async def __aenter__(self) -> tuple[Any, Any]:
        loop = asyncio.get_running_loop()
        process, _ = await loop.subprocess_exec(
            lambda: self, *self._argv, env=dict(self._env), cwd=self._cwd, start_new_session=True
        )
        self._process = process
        self._outbox.pipe = process.get_pipe_transport(0)  # type: ignore[assignment]  # Of stdin: one that writes.
        self._on_start(process.get_pid())
        return self._inbox, self._outbox

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        process = self._process
        if process is None:
            return
        try:
            with anyio.CancelScope(shield=True):
                await self._end()
                await asyncio.to_thread(end_marked, self._mark)
        finally:
            self._signal(signal.SIGKILL)
            self._inbox.end()
            self._outbox.close()
            process.close()
            child = process.get_extra_info("subprocess")
            if child is not None and child.returncode is None:  # The loop may close before it is told of the end.
                with contextlib.suppress(subprocess.TimeoutExpired):
                    child.wait(1)

    async def _end(self) -> None:
        # One that closed its output first is about to end by itself: its exit code is its own, however late it comes.
        if not self._inbox.ended:
            self._ending = True
        if self._outbox.pipe is not None:
            self._outbox.pipe.close()  # End of input, after what is still to be written.
        for sig in (signal.SIGTERM, signal.SIGKILL):
            if await self._gone(self._grace):
                break
            self._ending = True
            self._signal(sig)
        await self._gone(self._grace)
        # A polite server may leave children in its group (a wrapper such as npx, a browser).
        if self._signal(signal.SIGTERM):
            for _ in range(20):
                await asyncio.sleep(0.02)
                if not self._signal(0):
                    return

    async def _gone(self, seconds: float) -> bool:
        try:
            await asyncio.wait_for(self._exited.wait(), seconds)
        except TimeoutError:
            return False
        return True

    def _signal(self, sig: int) -> bool:
        """Signal the group; False if nobody is left in it."""
        pid = self.pid
        if pid is None:
            return False
        try:
            os.killpg(pid, sig)
        except (ProcessLookupError, PermissionError):
            return False
        return True

    # ---- asyncio.SubprocessProtocol
    def pipe_data_received(self, fd: int, data: bytes) -> None:
        if fd == 2:
            for line, _ in self._err.feed(data):
                self._tell("stderr", line)
            return
        for line, whole in self._out.feed(data):
            if not whole:
                self._too_long(line)
            elif line.strip():
                self._message(line)

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        if fd == 1:
            if (rest := self._out.rest()).strip():
                self._message(rest)
            self._inbox.end()
        elif fd == 2 and (rest := self._err.rest()).strip():
            self._tell("stderr", rest)

    def process_exited(self) -> None:
        if not self._ending and self._process is not None:
            self.own_exit_code = self._process.get_returncode()
        self._exited.set()
        self._outbox.close()
        asyncio.get_running_loop().call_later(DRAIN_S, self._inbox.end)

    def pause_writing(self) -> None:
        self._outbox.hold(True)

    def resume_writing(self) -> None:
        self._outbox.hold(False)

    # ---- lines
    def _message(self, raw: bytes) -> None:
        if (whole := whole_characters(raw)) is not raw:
            self._on_line("stdout", "a message held half of a surrogate pair; U+FFFD stands in its place")
            raw = whole
        try:
            message = jsonrpc_message_adapter.validate_json(raw, by_name=False)
        except ValueError:
            text = raw.decode(self._encoding, self._errors)
            try:
                message = jsonrpc_message_adapter.validate_json(text, by_name=False)
            except ValueError:
                self._noise(text)
                self._unreadable(raw)
                return
        self._inbox.put(SessionMessage(message), len(raw))

    def _noise(self, text: str) -> None:
        shown = text.strip()[:SHOWN_LINE]
        if self.bad_line is None:
            self.bad_line = shown
        self._on_line("stdout", shown)

    def _unreadable(self, raw: bytes) -> None:
        """Tell the request that a line answers, but whose JSON cannot be read, at once."""
        if found := _ANSWER.match(raw):
            self._answer(found[1], UNREADABLE, "the server's answer is not readable JSON")

    def _too_long(self, head: bytes) -> None:
        self._on_line(
            "stdout", f"a line over {self._limit} bytes was dropped: {head[:200].decode('utf-8', 'replace')}…"
        )
        if found := _ID.search(head):
            self._answer(found[1], TOO_LONG, f"the server's answer was longer than {self._limit} bytes")

    def _answer(self, raw_id: bytes, code: int, message: str) -> None:
        number = raw_id.decode("utf-8", "replace")
        given = number.strip('"') if number.startswith('"') else int(number)
        answer = JSONRPCError(jsonrpc="2.0", id=given, error=ErrorData(code=code, message=message))
        self._inbox.put(SessionMessage(answer), 100)

    def _tell(self, source: str, line: bytes) -> None:
        if line.strip():
            self._on_line(source, line.decode(self._encoding, "replace").rstrip()[:SHOWN_LINE])

    def _level(self, size: int) -> None:
        pipe = self._process.get_pipe_transport(1) if self._process else None
        if not isinstance(pipe, asyncio.ReadTransport) or pipe.is_closing():
            return
        if self._reading and size > BACKLOG_LIMIT:
            pipe.pause_reading()
            self._reading = False
        elif not self._reading and size < BACKLOG_LIMIT // 2:
            pipe.resume_reading()
            self._reading = True
