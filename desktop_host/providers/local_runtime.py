"""The embedded model as a process of its own: started on first use, unloaded when idle, gone with its parent."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import os
import re
import secrets
import signal
import subprocess
import sys
from collections import deque
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from desktop_host.core.errors import ModelFault

START_S = 180.0
"""A model that is not loaded by then will not be."""
STOP_S = 3.0
IDLE_S = 600.0
LOG_LINES = 40

_KEPT = re.compile(
    r"PATH|HOME|USER|LOGNAME|LANG|LC_.*|TZ|TMPDIR|TEMP|TMP|SYSTEMROOT|WINDIR|APPDATA|LOCALAPPDATA|USERPROFILE"
    r"|LD_LIBRARY_PATH|DYLD_.*|PYTHON.*|VIRTUAL_ENV",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where the running model listens, and the key that keeps other users of the machine out."""

    address: str
    key: str

    def __repr__(self) -> str:
        return f"Endpoint({self.address!r})"


def physical_cores() -> int:
    """Cores that this process may use, without their hyper-threads."""
    try:
        usable = len(os.sched_getaffinity(0))
    except AttributeError:
        usable = os.cpu_count() or 1
    seen: set[tuple[str, str]] = set()
    with suppress(OSError):
        package = ""
        for line in Path("/proc/cpuinfo").read_text("utf-8").splitlines():
            name, _, value = line.partition(":")
            if name.strip() == "physical id":
                package = value.strip()
            elif name.strip() == "core id":
                seen.add((package, value.strip()))
    return max(1, min(usable, len(seen) or usable))


class LocalRuntime:
    """One model's process. Belongs to the event loop it is used on.

    Args:
        path: the verified weights.
        context: tokens of context.
        threads: None: one less than the physical cores, since workers that wait for a busy core spin.
        idle_s: seconds without a request after which the process is stopped.
        command: what to run instead of the bundled child; for tests.
    """

    def __init__(
        self,
        path: Path,
        context: int,
        *,
        threads: int | None = None,
        idle_s: float = IDLE_S,
        environ: Mapping[str, str] | None = None,
        command: tuple[str, ...] | None = None,
    ) -> None:
        self._path, self._context = path, context
        self._threads = threads or max(1, physical_cores() - 1)
        self._idle_s = idle_s
        self._environ = dict(os.environ if environ is None else environ)
        self._command = command or (sys.executable, "-P", str(Path(__file__).with_name("local_server.py")))
        self._bundled = command is None
        self._lock = asyncio.Lock()
        self._process: asyncio.subprocess.Process | None = None
        self._endpoint: Endpoint | None = None
        self._log: deque[str] = deque(maxlen=LOG_LINES)
        self._drain: asyncio.Task[None] | None = None
        self._users = 0
        self._unload: asyncio.Task[None] | None = None

    @property
    def pid(self) -> int | None:
        """The process while it lives."""
        return self._process.pid if self.alive and self._process else None

    @property
    def alive(self) -> bool:
        """Whether the model is loaded."""
        return self._process is not None and self._process.returncode is None and self._endpoint is not None

    def log(self) -> tuple[str, ...]:
        """The last lines the process wrote."""
        return tuple(self._log)

    @asynccontextmanager
    async def use(self) -> AsyncIterator[Endpoint]:
        """Have the model loaded for the time of the block.

        Raises:
            ModelFault: `model_missing` with a `reason`: `no_runtime`, `start_failed`.
        """
        self._users += 1
        self._keep_loaded()
        try:
            async with self._lock:
                if not self.alive:
                    await self._halt()
                    await self._start()
            assert self._endpoint is not None
            yield self._endpoint
        finally:
            self._users -= 1
            if self._users == 0 and self.alive:
                self._unload = asyncio.create_task(self._unload_later())

    async def stop(self) -> None:
        """End the process. The next use starts it again."""
        self._keep_loaded()
        async with self._lock:
            await self._halt()

    def crashed(self, visible: bool) -> ModelFault:
        """The fault of a process that died while it answered."""
        code = self._process.returncode if self._process else None
        return ModelFault(
            "model_missing", f"the local model's process ended (exit code {code})", retryable=not visible,
            visible=visible, reason="crashed", exit_code=code, detail="\n".join(list(self._log)[-5:]),
        )  # fmt: skip

    async def gone(self, grace_s: float = 1.0) -> bool:
        """Whether the process has ended, waiting a moment for an end that is on its way."""
        process = self._process
        if process is None:
            return True
        with suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), grace_s)
        return process.returncode is not None

    def _keep_loaded(self) -> None:
        if self._unload is not None:
            self._unload.cancel()
            self._unload = None

    async def _unload_later(self) -> None:
        await asyncio.sleep(self._idle_s)
        async with self._lock:
            if self._users == 0:
                await self._halt()

    async def _start(self) -> None:
        if self._bundled and importlib.util.find_spec("xllamacpp") is None:
            raise ModelFault("model_missing", "the local runtime (extra [local]) is not installed", reason="no_runtime")
        self._log.clear()
        key = secrets.token_urlsafe(24)
        flags = 0
        if sys.platform == "win32":
            flags = subprocess.CREATE_NEW_PROCESS_GROUP | subprocess.BELOW_NORMAL_PRIORITY_CLASS
        self._process = process = await asyncio.create_subprocess_exec(
            *self._command, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE, env={k: v for k, v in self._environ.items() if _KEPT.fullmatch(k)},
            start_new_session=sys.platform != "win32", creationflags=flags,
        )  # fmt: skip
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        self._drain = asyncio.create_task(self._read_log(process.stderr))
        order = {"model": str(self._path), "context": self._context, "threads": self._threads, "key": key}
        try:
            with suppress(ConnectionError):
                process.stdin.write(json.dumps(order).encode() + b"\n")
                await process.stdin.drain()
            line = await asyncio.wait_for(process.stdout.readline(), START_S)
            try:
                said = json.loads(line)
                self._endpoint = Endpoint(said["address"], key)
            except (ValueError, KeyError, TypeError):
                await self._halt()  # first, so that the last words of the log are in
                raise self._failed_start(line) from None
        except TimeoutError:
            await self._halt()
            raise ModelFault(
                "model_missing", f"the local model was not loaded after {START_S:.0f} s", reason="start_failed",
                detail="\n".join(list(self._log)[-5:]),
            ) from None  # fmt: skip
        except BaseException:
            await self._halt()
            raise

    def _failed_start(self, line: bytes) -> ModelFault:
        try:
            said = json.loads(line)
            detail, reason = str(said["error"]), str(said["kind"])
        except (ValueError, KeyError, TypeError):
            detail, reason = "\n".join(list(self._log)[-5:]), "start_failed"
        return ModelFault(
            "model_missing", f"the local model did not start: {detail}", reason=reason, detail=detail
        )  # fmt: skip

    async def _halt(self) -> None:
        process, self._process, self._endpoint = self._process, None, None
        if process is None:
            return
        if process.stdin is not None:
            process.stdin.close()
        try:
            await asyncio.wait_for(process.wait(), STOP_S)
        except TimeoutError:
            with suppress(ProcessLookupError):
                if sys.platform == "win32":
                    process.kill()
                else:
                    os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
        if self._drain is not None:
            await self._drain
            self._drain = None

    async def _read_log(self, stream: asyncio.StreamReader) -> None:
        while True:
            try:
                line = await stream.readline()
            except ValueError:
                continue  # a line longer than the reader's limit; its buffer was dropped
            if not line:
                return
            self._log.append(line.decode("utf-8", "replace").rstrip()[:500])
