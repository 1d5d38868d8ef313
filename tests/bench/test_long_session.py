from __future__ import annotations

import asyncio
import os

import pytest

from tests.bench.long_session import measure

TURNS = 500 if os.environ.get("DESKTOP_HOST_FULL") else 150


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_time_and_memory_of_a_turn_stay_flat_in_a_long_session():
    """150 turns in CI, 500 in full; half as much again is allowed for the noise of a shared machine."""
    figures = asyncio.run(measure(TURNS))
    assert figures["summaries"] >= 3
    assert figures["turn_ms_late"] <= 1.5 * figures["turn_ms_early"], figures
    assert figures["memory_mib_late"] <= 1.5 * figures["memory_mib_early"] + 1, figures
