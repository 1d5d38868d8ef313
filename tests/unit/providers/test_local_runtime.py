from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from pathlib import Path

import pytest

from desktop_host.core.errors import ModelFault
from desktop_host.providers.local_runtime import Endpoint, LocalRuntime, physical_cores

CHILD = """
import json, os, sys
order = json.loads(sys.stdin.readline())
with open({seen!r}, "a") as file:
    file.write(json.dumps([order, sys.argv[1:], dict(os.environ), os.getpid(), os.getpgid(0)]) + "\\n")
print("loading", file=sys.stderr, flush=True)
{body}
"""
GOOD = 'print(json.dumps({"address": "http://127.0.0.1:1"}), flush=True)\nsys.stdin.read()'


class Child:
    """A runtime whose process is a script of the test."""

    def __init__(self, folder: Path, body: str = GOOD, idle_s: float = 60.0) -> None:
        self.notes = folder / "seen.jsonl"
        (folder / "child.py").write_text(CHILD.format(seen=str(self.notes), body=body))
        self.runtime = LocalRuntime(
            folder / "m.gguf", 4096, threads=2, idle_s=idle_s,
            environ={**os.environ, "OPENAI_API_KEY": "sk-secret", "SOME_TOKEN": "t"},
            command=(sys.executable, str(folder / "child.py")),
        )  # fmt: skip

    def starts(self) -> list[tuple[dict[str, object], list[str], dict[str, str], int, int]]:
        return [tuple(json.loads(line)) for line in self.notes.read_text().splitlines()]


async def ended(pid: int) -> None:
    async with asyncio.timeout(10):
        while os.path.exists(f"/proc/{pid}"):  # noqa: ASYNC110, ASYNC240 - another process ends
            await asyncio.sleep(0.01)


async def test_the_model_is_loaded_at_first_use_and_shared_after_that(tmp_path: Path) -> None:
    child = Child(tmp_path)
    assert not child.notes.exists()

    async def use() -> Endpoint:
        async with child.runtime.use() as endpoint:
            return endpoint

    one, two = await asyncio.gather(use(), use())
    assert one == two == await use()
    ((order, argv, _, _, _),) = child.starts()
    assert {k: order[k] for k in ("model", "context", "threads")} == {
        "model": str(tmp_path / "m.gguf"), "context": 4096, "threads": 2,
    }  # fmt: skip
    assert one.key == order["key"]
    assert argv == []
    assert one.key not in repr(one)
    await child.runtime.stop()


async def test_the_process_has_a_group_of_its_own_and_no_secret_of_the_host(tmp_path: Path) -> None:
    """Hazards D38 and O136."""
    child = Child(tmp_path)
    async with child.runtime.use():
        pass
    ((order, _, env, pid, group),) = child.starts()
    assert pid == group == child.runtime.pid
    assert not {"OPENAI_API_KEY", "SOME_TOKEN"} & set(env)
    assert str(order["key"]) not in str(env)
    await child.runtime.stop()
    await ended(pid)
    assert child.runtime.pid is None


async def test_each_start_has_another_key(tmp_path: Path) -> None:
    child = Child(tmp_path)
    for _ in range(2):
        async with child.runtime.use():
            pass
        await child.runtime.stop()
    assert len({order["key"] for order, *_ in child.starts()}) == 2


async def test_an_idle_model_is_unloaded_and_comes_back(tmp_path: Path) -> None:
    child = Child(tmp_path, idle_s=0.05)
    async with child.runtime.use():
        first = child.runtime.pid
        assert first is not None
    await ended(first)
    async with child.runtime.use():
        assert child.runtime.pid != first
    await child.runtime.stop()


async def test_a_killed_model_is_noticed_and_started_again_at_the_next_use(tmp_path: Path) -> None:
    child = Child(tmp_path)
    async with child.runtime.use():
        pid = child.runtime.pid
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        assert await child.runtime.gone(5.0)
        fault = child.runtime.crashed(False)
    assert (fault.code, fault.params["reason"], fault.params["exit_code"]) == ("model_missing", "crashed", -9)
    assert fault.retryable
    assert not child.runtime.crashed(True).retryable
    async with child.runtime.use():
        assert child.runtime.pid not in (None, pid)
    await child.runtime.stop()


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ('print(json.dumps({"error": "bad magic", "kind": "start_failed"}))', "start_failed"),
        ('print(json.dumps({"error": "No module", "kind": "no_runtime"}))', "no_runtime"),
        ('print("bad magic", file=sys.stderr); sys.exit(3)', "start_failed"),
        ('print("not json")', "start_failed"),
    ],
)
async def test_a_model_that_does_not_start_says_why(tmp_path: Path, body: str, reason: str) -> None:
    """Hazard B31."""
    child = Child(tmp_path, body)
    with pytest.raises(ModelFault) as caught:
        async with child.runtime.use():
            pass
    assert (caught.value.code, caught.value.params["reason"]) == ("model_missing", reason)
    assert caught.value.params["detail"]
    assert not child.runtime.alive


async def test_a_model_that_will_not_end_is_killed(tmp_path: Path) -> None:
    """Hazard D43."""
    body = (
        'import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n'
        'print(json.dumps({"address": "http://127.0.0.1:1"}), flush=True)\ntime.sleep(3600)'
    )  # fmt: skip
    child = Child(tmp_path, body)
    async with child.runtime.use():
        pid = child.runtime.pid
    assert pid is not None
    await asyncio.wait_for(child.runtime.stop(), 10)
    await ended(pid)


async def test_a_flood_of_log_lines_is_read_and_bounded(tmp_path: Path) -> None:
    body = 'sys.stderr.write("x" * 300_000 + "\\n" + "line\\n" * 20_000); sys.stderr.flush()\n' + GOOD
    child = Child(tmp_path, body)
    async with child.runtime.use():
        pass
    await child.runtime.stop()
    assert len(child.runtime.log()) <= 40
    assert child.runtime.log()[-1] == "line"


async def test_a_cancelled_start_leaves_no_process(tmp_path: Path) -> None:
    child = Child(tmp_path, "import time\ntime.sleep(3600)")

    async def use() -> None:
        async with child.runtime.use():
            pass

    task = asyncio.create_task(use())
    async with asyncio.timeout(10):
        while not child.notes.exists() or not child.notes.read_text().endswith("\n"):  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(task, 10)
    await ended(child.starts()[0][3])


def test_one_core_at_least_is_counted() -> None:
    assert 1 <= physical_cores() <= (os.cpu_count() or 1)
