"""The window never stands still while servers answer and a model streams (a heartbeat in a process of its own)."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[1] / "bench" / "gui_stall.py"


@pytest.mark.slow
def test_the_heartbeat_keeps_its_time_while_four_servers_answer_a_megabyte_each_and_a_model_streams():
    best: dict[str, dict[str, float]] = {}
    for _attempt in range(3):  # another program's burst on the same cores is not ours: the best of three counts
        done = subprocess.run([sys.executable, str(SCRIPT)], capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, done.stderr[-2000:]
        best = json.loads(done.stdout.splitlines()[-1])
        empty, ours = best["empty"], best["ours"]
        if ours["p99"] < 16 and (ours["max"] <= 50 or ours["max"] <= 3 * empty["max"]):
            return
    pytest.fail(f"the window stood still: {best}")
