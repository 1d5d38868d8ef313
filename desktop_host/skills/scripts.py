"""A script of a skill, run apart: its own folder and process group, no secrets, limits on time and output."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from desktop_host.core.errors import UserFault

HARD_OUTPUT = 16 * 2**20
"""Bytes after which a script that will not stop talking is killed."""
_GRACE_S = 5.0
_KEPT = (
    "PATH", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR", "TEMP", "TMP", "SystemRoot", "SYSTEMROOT", "PATHEXT",
    "COMSPEC", "USERPROFILE", "NUMBER_OF_PROCESSORS",
)  # fmt: skip
"""All that a script gets of the host's environment: no tokens, no keys, no proxies with passwords."""


@dataclass(frozen=True, slots=True)
class ScriptResult:
    """How a script ended."""

    code: int | None
    """Exit code; None where it was killed."""
    output: str
    error: str
    cut: bool
    """Whether output was left out."""
    timed_out: bool = False
    too_loud: bool = False


def environment(skill: str, folder: Path, base: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment of a script."""
    base = os.environ if base is None else base
    kept = {k: base[k] for k in _KEPT if k in base}
    return kept | {"SKILL_NAME": skill, "SKILL_DIR": str(folder), "PYTHONUTF8": "1", "PYTHONDONTWRITEBYTECODE": "1"}


def command_of(script: Path) -> list[str]:
    """How to start a script.

    Raises:
        UserFault: `bad_skill`, nothing here runs such a file.
    """
    suffix = script.suffix.lower()
    if suffix == ".py":
        return [sys.executable, str(script)]
    runners = {".sh": ("bash", "sh"), ".js": ("node",), ".mjs": ("node",), ".ps1": ("pwsh", "powershell")}
    for runner in runners.get(suffix, ()):
        found = shutil.which(runner)
        if found:
            return [found, str(script)]
    if suffix not in runners and os.name == "posix" and os.access(script, os.X_OK):
        return [str(script)]
    wanted = " or ".join(runners.get(suffix, ("an executable file",)))
    raise UserFault("bad_skill", f"{script.name} cannot be run here: it needs {wanted}", reason="no_runner",
                    file=script.name, wanted=wanted)  # fmt: skip


async def run(
    script: Path, arguments: tuple[str, ...], *, skill: str, folder: Path, stdin: str = "", timeout_s: float,
    output_limit: int,
) -> ScriptResult:  # fmt: skip
    """Run a script in the skill's folder and wait for its end; whatever it started ends with it.

    Raises:
        UserFault: `bad_skill`, it cannot be started.
    """
    command = [*command_of(script), *arguments]
    starting = asyncio.create_task(
        asyncio.create_subprocess_exec(
            *command, cwd=folder, env=environment(skill, folder), stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE, start_new_session=os.name == "posix",
        )
    )  # fmt: skip
    try:
        process = await asyncio.shield(starting)
    except asyncio.CancelledError:
        # Given up while it starts: asyncio would end the first process only, and wait for pipes that others hold.
        with contextlib.suppress(OSError, ValueError):
            await _end(await starting)
        raise
    except (OSError, ValueError) as error:
        raise UserFault("bad_skill", f"{script.name} cannot be started: {error}", reason="no_runner",
                        file=script.name) from error  # fmt: skip
    out, err = _Reader(process.stdout, output_limit), _Reader(process.stderr, output_limit // 4)
    loud = asyncio.Event()
    tasks = [asyncio.create_task(r.drain(loud)) for r in (out, err)]
    feeding = asyncio.create_task(_feed(process, stdin))
    ended = asyncio.create_task(_exited(process))
    shouting = asyncio.create_task(loud.wait())
    try:
        done, _ = await asyncio.wait({ended, shouting}, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
    finally:
        await _end(process)
        # What the script left running held the pipes; the group is gone now, so they close.
        await asyncio.wait(tasks, timeout=_GRACE_S)
        for task in (*tasks, feeding, shouting):
            task.cancel()
        await asyncio.gather(*tasks, feeding, shouting, ended, return_exceptions=True)
    whole = ended in done
    return ScriptResult(
        process.returncode if whole else None, out.text(), err.text(), out.cut or err.cut,
        timed_out=not done, too_loud=shouting in done and not whole,
    )  # fmt: skip


class _Reader:
    """Reads a pipe to its end and keeps the beginning."""

    def __init__(self, pipe: asyncio.StreamReader | None, limit: int) -> None:
        self._pipe = pipe
        self._limit = limit
        self._kept = bytearray()
        self._seen = 0

    @property
    def cut(self) -> bool:
        """Whether anything was left out."""
        return self._seen > len(self._kept)

    async def drain(self, loud: asyncio.Event) -> None:
        """Read until the pipe closes."""
        while self._pipe is not None and (chunk := await self._pipe.read(1 << 16)):
            self._seen += len(chunk)
            self._kept += chunk[: max(0, self._limit - len(self._kept))]
            if self._seen > HARD_OUTPUT:
                loud.set()

    def text(self) -> str:
        """What was kept."""
        text = self._kept.decode("utf-8", "replace")
        return text + (f"\n[… {self._seen - len(self._kept):,} bytes left out …]" if self.cut else "")


async def _feed(process: asyncio.subprocess.Process, text: str) -> None:
    if process.stdin is None:
        return
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        process.stdin.write(text.encode())
        await process.stdin.drain()
    process.stdin.close()


async def _exited(process: asyncio.subprocess.Process) -> None:
    """Wait for the script itself. asyncio's own wait also waits for the pipes, which its children may hold."""
    if os.name == "posix" and process.returncode is None:
        with contextlib.suppress(ChildProcessError):
            await asyncio.to_thread(os.waitid, os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    else:
        await process.wait()


async def _end(process: asyncio.subprocess.Process) -> None:
    """End the process and its whole group; the group also where the script itself has ended.

    By the group alone: `Popen.kill` polls first, which takes the exit code away from asyncio's own waiter.
    """
    if os.name == "posix":
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    elif process.returncode is None:
        killer = await asyncio.create_subprocess_exec("taskkill", "/F", "/T", "/PID", str(process.pid))
        await killer.wait()
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_GRACE_S):
            await process.wait()
