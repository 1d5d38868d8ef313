from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from desktop_host.servers.environment import PidFile
from desktop_host.servers.orphans import started, started_by_ps

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows, not run: a job object ends the children")


@pytest.fixture
def spawn() -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    children: list[subprocess.Popen[bytes]] = []

    def start(*command: str) -> subprocess.Popen[bytes]:
        child = subprocess.Popen(command, start_new_session=True, stdout=subprocess.PIPE)
        children.append(child)
        return child

    yield start
    for child in children:
        if child.poll() is None:
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()
        assert child.stdout is not None
        child.stdout.close()


def until(holds: Callable[[], bool], seconds: float = 5) -> bool:
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def orphaned(folder: Path, pid: int) -> None:
    """Make the record of `pid` look as if its host had been killed."""
    file = folder / f"server-{pid}.json"
    record = json.loads(file.read_text())
    file.write_text(json.dumps(record | {"host": 2**22 - 7, "host_started": "long ago"}))


def test_a_server_of_a_dead_host_is_ended_with_its_grandchildren(
    tmp_path: Path, spawn: Callable[..., subprocess.Popen[bytes]]
) -> None:
    """Hazard D38."""
    child = spawn("/bin/sh", "-c", "sleep 300 & echo $!; wait")
    assert child.stdout is not None
    grandchild = int(child.stdout.readline())
    PidFile(tmp_path).add(child.pid, "npx-thing")
    orphaned(tmp_path, child.pid)
    assert PidFile(tmp_path).sweep() == [(child.pid, "npx-thing")]
    assert until(lambda: started(child.pid) is None)
    assert until(lambda: started(grandchild) is None)
    assert list(tmp_path.iterdir()) == []
    assert PidFile(tmp_path).sweep() == []


def test_a_server_that_ignores_the_polite_signal_is_ended_too(
    tmp_path: Path, spawn: Callable[..., subprocess.Popen[bytes]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Hazards D38, D43."""
    monkeypatch.setattr("desktop_host.servers.orphans.GRACE_S", 0.2)
    child = spawn("/bin/sh", "-c", "trap '' TERM; echo ready; while :; do sleep 1; done")
    assert child.stdout is not None
    child.stdout.readline()
    PidFile(tmp_path).add(child.pid, "stubborn")
    orphaned(tmp_path, child.pid)
    assert PidFile(tmp_path).sweep() == [(child.pid, "stubborn")]
    assert child.wait(5) == -signal.SIGKILL


def test_servers_of_a_living_host_and_strangers_with_an_old_pid_are_left_alone(
    tmp_path: Path, spawn: Callable[..., subprocess.Popen[bytes]]
) -> None:
    """Hazards B25, D38: start time decides, not pid or port."""
    mine, stranger = spawn("sleep", "300"), spawn("sleep", "300")
    pids = PidFile(tmp_path)
    pids.add(mine.pid, "mine")
    pids.add(stranger.pid, "was-ours-once")
    orphaned(tmp_path, stranger.pid)
    file = tmp_path / f"server-{stranger.pid}.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"started": "another boot/1"}))
    assert pids.sweep() == []
    assert mine.poll() is None
    assert stranger.poll() is None
    assert [p.name for p in tmp_path.iterdir()] == [f"server-{mine.pid}.json"]
    pids.remove(mine.pid)
    pids.remove(mine.pid)
    assert list(tmp_path.iterdir()) == []


def test_a_host_that_was_killed_leaves_records_that_the_next_one_sweeps(tmp_path: Path) -> None:
    """Hazard D38."""
    host = subprocess.Popen(
        [sys.executable, "-c", "import subprocess, sys, pathlib\n"
         "from desktop_host.servers.orphans import PidFile\n"
         "child = subprocess.Popen(['sleep', '300'], start_new_session=True)\n"
         "PidFile(pathlib.Path(sys.argv[1])).add(child.pid, 'left')\n"
         "print(child.pid, flush=True); sys.stdin.read()", str(tmp_path)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    assert host.stdout is not None
    assert host.stdin is not None
    with host.stdout, host.stdin:
        pid = int(host.stdout.readline())
        assert PidFile(tmp_path).sweep() == []
        host.kill()
        host.wait()
    assert started(pid) is not None
    assert PidFile(tmp_path).sweep() == [(pid, "left")]
    assert until(lambda: started(pid) is None)


def test_a_damaged_record_is_dropped_and_a_missing_folder_is_fine(tmp_path: Path) -> None:
    assert PidFile(tmp_path / "none").sweep() == []
    (tmp_path / "server-1.json").write_text("{")
    (tmp_path / "server-2.json").write_text(
        '{"pid": 1, "started": "x", "name": "init", "host": 0, "host_started": null}'
    )
    assert PidFile(tmp_path).sweep() == []
    assert list(tmp_path.iterdir()) == []


def test_a_process_that_has_ended_already_is_not_recorded(
    tmp_path: Path, spawn: Callable[..., subprocess.Popen[bytes]]
) -> None:
    child = spawn("true")
    child.wait()
    PidFile(tmp_path).add(child.pid, "gone")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not Path("/bin/ps").exists(), reason="needs ps")
def test_where_there_is_no_proc_the_start_time_comes_from_ps(spawn: Callable[..., subprocess.Popen[bytes]]) -> None:
    child = spawn("sleep", "300")
    first = started_by_ps(child.pid)
    assert first is not None
    assert str(time.localtime().tm_year) in first
    assert started_by_ps(child.pid) == first
    child.kill()
    child.wait()
    assert started_by_ps(child.pid) is None
