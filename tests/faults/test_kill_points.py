from __future__ import annotations

import os

import pytest

from tests.faults.kill_points import run

POINTS = 200 if os.environ.get("DESKTOP_HOST_FULL") else 20


@pytest.mark.slow
@pytest.mark.timeout(60 + 30 * POINTS)
def test_nothing_acknowledged_is_lost_and_nothing_runs_twice_wherever_the_program_is_killed():
    """Hazard J101; 20 points in CI, 200 in full."""
    report = run(POINTS, seed=1130)
    assert (report.lost, report.orphans, report.secrets_found) == (0, 0, 0), report.notes
    assert report.survived == report.injected == POINTS, report.notes
