from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from desktop_host.core.errors import KnownFault, UserFault
from desktop_host.core.events import UserSaid
from desktop_host.core.sessions import SessionOptions
from desktop_host.i18n import Translator
from desktop_host.storage import open_storage
from desktop_host.storage.lease import place, started

CHILD = Path(__file__).with_name("storage_child.py")


def child(*words: object, shared: dict[str, str] | None = None) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, str(CHILD), *map(str, words)], env=os.environ | {"SHARED": json.dumps(shared)},
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def line(process: subprocess.Popen[str]) -> str:
    assert process.stdout
    return process.stdout.readline().strip()


def end(process: subprocess.Popen[str]) -> None:
    process.communicate(timeout=30)


@pytest.fixture
def shared(request: pytest.FixtureRequest) -> dict[str, str] | None:
    """Where the record is, if not below the folder."""
    return request.getfixturevalue("postgres").params() if request.param == "postgresql" else None


both = pytest.mark.parametrize("shared", ["sqlite", "postgresql"], indirect=True)


@both
@pytest.mark.parametrize("kill_after", [1, 7, 25])
async def test_a_kill_in_mid_append_loses_nothing_that_was_acknowledged(
    tmp_path: Path, kill_after: int, shared: dict[str, str] | None
) -> None:
    """Hazard J101."""
    process = child("append", tmp_path, shared=shared)
    seen = [int(line(process)) for _ in range(kill_after)]
    process.send_signal(signal.SIGKILL)
    assert process.stdout
    seen += [int(rest) for rest in process.stdout.read().split("\n") if rest.strip()]
    end(process)
    async with open_storage(tmp_path, shared=shared) as storage:
        assert await storage.problem() is None
        events = await storage.history.read("s")
        seqs = [s.seq for s in events]
        assert seqs == list(range(1, len(seqs) + 1))
        assert len(seqs) - seen[-1] in (0, 1), "at most the one that was under way is there beyond the acknowledged"
        assert all(isinstance(s.event, UserSaid) and s.event.text.startswith(f"event {s.seq} ") for s in events[1:])
        assert await storage.history.open_turns() == ("s",)
        draft = await storage.history.draft("s")
        assert draft is not None
        assert int(draft[1].split()[1]) >= seen[-1]
        await storage.history.lease("s")


@both
async def test_a_living_process_keeps_its_session_and_a_dead_one_loses_it(
    tmp_path: Path, shared: dict[str, str] | None
) -> None:
    """Hazard J101, decision 19."""
    async with open_storage(tmp_path, shared=shared) as storage:
        await storage.history.create("s", "", SessionOptions())
        process = child("hold", tmp_path, shared=shared)
        assert line(process) == "held"
        with pytest.raises(UserFault) as caught:
            await storage.history.lease("s")
        assert caught.value.params["pid"] == process.pid
        process.send_signal(signal.SIGKILL)
        end(process)
        await storage.history.lease("s")


async def test_a_stopped_process_still_holds_its_session(tmp_path: Path) -> None:
    async with open_storage(tmp_path) as storage:
        await storage.history.create("s", "", SessionOptions())
        process = child("hold", tmp_path)
        assert line(process) == "held"
        process.send_signal(signal.SIGSTOP)
        with pytest.raises(UserFault):
            await storage.history.lease("s")
        process.send_signal(signal.SIGCONT)
        end(process)
        await storage.history.lease("s")


async def test_a_number_given_to_another_program_is_not_the_holder(tmp_path: Path) -> None:
    """Hazard D38 (who lives is told by start time, not by number alone)."""
    async with open_storage(tmp_path) as storage:
        await storage.history.create("s", "", SessionOptions())
        put = "INSERT OR REPLACE INTO leases VALUES (1, 'x', ?, ?, ?, ?)"
        mine = os.getpid()
        await storage.database.write(lambda db: db.execute(put, (place(), mine, "long ago", 0)))
        await storage.history.lease("s")
        await storage.database.write(lambda db: db.execute(put, (place(), mine, started(mine), 0)))
        with pytest.raises(UserFault):
            await storage.history.lease("s")


async def test_a_holder_elsewhere_is_judged_by_its_heartbeat(tmp_path: Path) -> None:
    now = 1000.0
    async with open_storage(tmp_path, now=lambda: now) as storage:
        await storage.history.create("s", "", SessionOptions())
        put = "INSERT INTO leases VALUES (1, 'x', 'another machine', 1, '1', 990)"
        await storage.database.write(lambda db: db.execute(put))
        with pytest.raises(UserFault):
            await storage.history.lease("s")
        now = 1100.0
        await storage.history.lease("s")


def test_a_process_that_does_not_run_has_no_start() -> None:
    process = subprocess.Popen([sys.executable, "-c", ""])
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert started(process.pid) is None, "a zombie does not run"
    process.wait()
    assert started(process.pid) is None
    assert started(os.getpid()) == started(os.getpid()) is not None


def test_a_file_that_may_not_grow_is_a_full_disk_and_the_journal_stays_whole(tmp_path: Path) -> None:
    process = child("fill", tmp_path, 3_000_000)
    out, err = process.communicate(timeout=60)
    assert out.split() == ["disk_full", "whole", "disk_full", "None"], err


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = shutil.which("mount")
    if (
        not mount
        or subprocess.run([mount, "-t", "tmpfs", "-o", "size=2m", "tmpfs", folder], capture_output=True).returncode
    ):
        pytest.skip("this machine lets nobody mount a small disk")
    yield folder
    subprocess.run(["umount", folder], check=True)


async def test_a_full_disk_is_told_in_one_sentence_with_what_to_do_and_what_is_kept(small_disk: Path) -> None:
    (small_disk / "filling").write_bytes(b"")
    with contextlib.suppress(OSError), (small_disk / "filling").open("wb", buffering=0) as filling:
        while True:
            filling.write(b"x" * 4096)
    with pytest.raises(KnownFault) as caught:
        async with open_storage(small_disk / "profile"):
            pass
    fault = caught.value
    where = str(small_disk / "profile")
    expected = {
        "en": f"There is no room left on the disk for {fault.params['path']}.",
        "zh_CN": f"磁盘空间不足（{fault.params['path']}）。",
    }
    assert (fault.code, fault.exit_code) == ("disk_full", 5) and fault.params["path"].startswith(where)
    for language, words in expected.items():
        told, remedy = Translator(language).error(fault.code, fault.params, fault.message)
        assert told == words and remedy
    need = Translator("en").error("disk_full", {"path": "/models", "need_bytes": 9, "free_bytes": 4}, "no")[0]
    assert need == "There is no room left on the disk for /models (9 bytes are needed, 4 are free)."
    assert Translator("en").error("disk_full", {}, "no picture")[0] == "There is no room left on the disk: no picture."


def test_a_full_disk_is_named_and_the_journal_stays_whole(small_disk: Path) -> None:
    process = child("fill", small_disk)
    out, err = process.communicate(timeout=60)
    assert out.split()[:2] == ["disk_full", "whole"], err
    assert out.split()[2] == "disk_full", err


@both
async def test_several_processes_write_at_once_and_nothing_is_lost(
    tmp_path: Path, shared: dict[str, str] | None
) -> None:
    """Decision 19. All write the same big text, so the deletions of one must not take the files of another."""
    crowd = [child("crowd", tmp_path, n, shared=shared) for n in range(3)]
    for process in crowd:
        _, err = process.communicate(timeout=120)
        assert process.returncode == 0, err
    async with open_storage(tmp_path, shared=shared) as storage:
        for n in range(3):
            assert len(await storage.history.read(f"s{n}")) == 100
        assert len(await storage.history.rows()) == 3
        assert await storage.problem() is None
