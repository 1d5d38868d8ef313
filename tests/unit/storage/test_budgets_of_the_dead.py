"""Money and several processes: what a killed one had set aside, and what many take at once."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from desktop_host.core.budgets import Purse
from desktop_host.storage import open_storage

CHILD = Path(__file__).with_name("storage_child.py")
DAY = Purse("day", "d", usd=1.0)


@pytest.fixture(params=["sqlite", "postgresql"])
def shared(request: pytest.FixtureRequest) -> dict[str, str] | None:
    return request.getfixturevalue("postgres").params() if request.param == "postgresql" else None


def child(verb: str, folder: Path, shared: dict[str, str] | None, number: int = 0) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, str(CHILD), verb, str(folder), str(number)], env=os.environ | {"SHARED": json.dumps(shared)},
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip


def line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


async def test_what_a_killed_process_set_aside_is_booked_and_what_a_live_one_did_stays_aside(
    tmp_path: Path, shared: dict[str, str] | None
) -> None:
    async with open_storage(tmp_path, shared=shared) as storage:
        process = child("reserve", tmp_path, shared)
        assert line(process) == "held"
        held = await storage.purses.reserve((DAY,), 0.1, 0.1)
        (standing,) = await storage.purses.standing((DAY,))
        assert (standing.spent_usd, standing.reserved_usd) == (0.0, pytest.approx(0.5))
        process.kill()
        process.communicate()
        await storage.purses.settle(held, (DAY,), 0.1, 1)
        await storage.purses.reserve((DAY,), 0.1, 0.1)
        (standing,) = await storage.purses.standing((DAY,))
        assert (standing.spent_usd, standing.reserved_usd, standing.calls) == (
            pytest.approx(0.5), pytest.approx(0.1), 2,
        )  # fmt: skip


async def test_two_processes_with_eight_sessions_each_never_overspend_one_budget(
    tmp_path: Path, shared: dict[str, str] | None
) -> None:
    """On PostgreSQL they have folders of their own, as two computers do."""
    folders = [tmp_path / str(n) if shared else tmp_path for n in range(2)]
    processes = [child("spend", folder, shared, n) for n, folder in enumerate(folders)]
    told = []
    for word in ("ready", "rested"):
        for process in processes:
            assert line(process) == word
        for process in processes:
            assert process.stdin is not None
            process.stdin.write("go\n")
            process.stdin.flush()
    for process in processes:
        out, _ = process.communicate(timeout=120)
        told.append(json.loads(out))
    async with open_storage(folders[0], shared=shared) as storage:
        (day,) = await storage.purses.standing((DAY,))
    assert day.reserved_usd == 0.0 and day.spent_usd == pytest.approx(sum(spent for spent, _ in told))
    assert 0.98 < day.spent_usd <= 1.0 and all(spent for spent, _ in told) and any(refused for _, refused in told)
