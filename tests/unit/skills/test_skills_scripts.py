"""Scripts of skills: apart from the host, without its secrets, and never longer or louder than allowed."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from desktop_host.core.errors import UserFault
from desktop_host.skills.scripts import environment, run


def script(folder: Path, name: str, text: str, mode: int = 0o644) -> Path:
    path = folder / name
    path.write_text(text)
    path.chmod(mode)
    return path


async def go(path: Path, *arguments: str, timeout_s: float = 20, output_limit: int = 64 * 1024, stdin: str = ""):
    return await run(path, arguments, skill="demo", folder=path.parent, stdin=stdin, timeout_s=timeout_s,
                     output_limit=output_limit)  # fmt: skip


async def test_a_script_gets_arguments_input_and_its_folder(tmp_path):
    path = script(
        tmp_path,
        "a.py",
        "import sys,os\nprint(sys.argv[1:], sys.stdin.read(), os.getcwd(), os.environ['SKILL_NAME'])\n",
    )
    result = await go(path, "x", "y z", stdin="hello")
    assert result.code == 0 and result.output.split() == ["['x',", "'y", "z']", "hello", str(tmp_path), "demo"]


async def test_a_failing_script_is_told_with_its_code_and_words(tmp_path):
    result = await go(script(tmp_path, "a.sh", "echo no >&2; exit 3\n"))
    assert (result.code, result.output, result.error) == (3, "", "no\n")


async def test_no_secret_reaches_a_script(tmp_path, monkeypatch):
    for name in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "AWS_SECRET_ACCESS_KEY", "HTTPS_PROXY", "MY_TOKEN"):
        monkeypatch.setenv(name, "hunter2")
    result = await go(script(tmp_path, "a.sh", "env\n"))
    assert "hunter2" not in result.output and "PATH=" in result.output
    assert "hunter2" not in str(environment("demo", tmp_path, {"PATH": "/bin", "X_KEY": "hunter2"}))


async def test_a_script_that_never_ends_is_stopped_with_its_children(tmp_path):
    """Issue: a script that never ends."""
    path = script(tmp_path, "a.sh", "sleep 300 & echo $! > child; echo started; wait\n")
    started = time.monotonic()
    result = await go(path, timeout_s=1)
    assert result.timed_out and result.code is None and result.output == "started\n"
    assert time.monotonic() - started < 10
    await _gone(int((tmp_path / "child").read_text()))


async def test_what_a_script_leaves_running_ends_with_it(tmp_path):
    path = script(tmp_path, "a.sh", "sleep 300 & echo $! > child; echo done\n")
    started = time.monotonic()
    result = await go(path)
    assert result.code == 0 and result.output == "done\n" and time.monotonic() - started < 10
    await _gone(int((tmp_path / "child").read_text()))


def _lives(pid: int) -> bool:
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().split()[2]
    except OSError:
        return False


async def _until(true: Callable[[], bool]) -> None:
    """Look again and again, for ten seconds at most."""
    deadline = time.monotonic() + 10
    while not true():
        assert time.monotonic() < deadline
        await asyncio.sleep(0.01)


async def _gone(pid: int) -> None:
    await _until(lambda: not _lives(pid))


async def test_a_hundred_megabytes_of_output_are_cut_and_stopped(tmp_path):
    """Issue: a script that prints 100 MB."""
    path = script(tmp_path, "a.py", "import sys\nfor _ in range(1600): sys.stdout.write('x' * 65536)\n")
    result = await go(path, output_limit=10_000)
    assert result.too_loud and result.cut and result.code is None
    assert len(result.output) < 10_200 and "left out" in result.output


async def test_a_loud_script_below_the_hard_limit_ends_by_itself(tmp_path):
    path = script(tmp_path, "a.py", "print('x' * 1_000_000)\n")
    result = await go(path, output_limit=10_000)
    assert result.code == 0 and result.cut and not result.too_loud


async def test_cancelling_ends_the_script(tmp_path):
    path = script(tmp_path, "a.sh", "echo $$ > me; sleep 300\n")
    task = asyncio.create_task(go(path))
    me = tmp_path / "me"
    await _until(lambda: me.exists() and bool(me.read_text().strip()))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await _gone(int((tmp_path / "me").read_text()))


async def test_cancelling_at_the_very_start_leaves_nothing_running(tmp_path):
    path = script(tmp_path, "a.sh", "echo $$ >> me; sleep 300\n")
    for turns in range(12):
        task = asyncio.create_task(go(path))
        for _ in range(turns):
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(task, 20)
    me = tmp_path / "me"
    for pid in me.read_text().split() if me.exists() else ():
        await _gone(int(pid))


async def test_bytes_that_are_no_text_are_replaced(tmp_path):
    result = await go(script(tmp_path, "a.py", "import sys\nsys.stdout.buffer.write(b'\\xff\\xfe ok')\n"))
    assert result.output == "\ufffd\ufffd ok"


async def test_a_file_that_nothing_here_runs_is_refused_with_what_it_needs(tmp_path):
    with pytest.raises(UserFault) as caught:
        await go(script(tmp_path, "a.xyz", "?"))
    assert (caught.value.code, caught.value.params["reason"]) == ("bad_skill", "no_runner")


@pytest.mark.skipif(os.name != "posix", reason="executables by mode are of POSIX")
async def test_an_executable_runs_by_its_first_line(tmp_path):
    result = await go(script(tmp_path, "tool", "#!/bin/sh\necho direct\n", 0o755))
    assert result.output == "direct\n"
