"""Money that a killed process had set aside."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from desktop_host.core.budgets import Purse
from desktop_host.storage import open_storage

CHILD = """
import asyncio, sys
from pathlib import Path
from desktop_host.core.budgets import Purse
from desktop_host.storage import open_storage
async def main():
    async with open_storage(Path(sys.argv[1])) as storage:
        await storage.purses.reserve((Purse("day", "d", usd=1.0),), 0.4, 0.1)
        print("held", flush=True)
        await asyncio.to_thread(sys.stdin.read)
asyncio.run(main())
"""


async def test_what_a_killed_process_set_aside_is_booked_and_what_a_live_one_did_stays_aside(tmp_path: Path) -> None:
    day = Purse("day", "d", usd=1.0)
    async with open_storage(tmp_path) as storage:
        child = subprocess.Popen(  # noqa: ASYNC220
            [sys.executable, "-c", CHILD, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert child.stdout is not None and child.stdout.readline() == "held\n"
        held = await storage.purses.reserve((day,), 0.1, 0.1)
        (standing,) = await storage.purses.standing((day,))
        assert (standing.spent_usd, standing.reserved_usd) == (0.0, pytest.approx(0.5))
        child.kill()
        child.communicate()
        await storage.purses.settle(held, (day,), 0.1, 1)
        await storage.purses.reserve((day,), 0.1, 0.1)
        (standing,) = await storage.purses.standing((day,))
        assert (standing.spent_usd, standing.reserved_usd, standing.calls) == (
            pytest.approx(0.5), pytest.approx(0.1), 2,
        )  # fmt: skip
