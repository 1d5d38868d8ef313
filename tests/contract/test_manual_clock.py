from __future__ import annotations

import asyncio

from tests.fakes.manual_clock import ManualClock


async def test_sleepers_wake_in_the_order_of_their_alarms_and_see_their_own_time() -> None:
    clock = ManualClock(100.0)
    woken: list[tuple[str, float]] = []

    async def sleeper(name: str, seconds: float) -> None:
        await clock.sleep(seconds)
        woken.append((name, clock.now()))

    async with asyncio.TaskGroup() as group:
        for name, seconds in (("late", 5.0), ("soon", 1.0), ("now", 0.0)):
            group.create_task(sleeper(name, seconds))
        await clock.wait_for_sleepers(2)
        await clock.advance(1.0)
        assert woken == [("now", 100.0), ("soon", 101.0)]
        await clock.advance(10.0)
    assert woken[-1] == ("late", 105.0)
    assert (clock.now(), clock.sleepers) == (111.0, 0)


async def test_a_cancelled_sleeper_disturbs_nobody() -> None:
    clock = ManualClock()
    task = asyncio.create_task(clock.sleep(1))
    await clock.wait_for_sleepers()
    task.cancel()
    before = clock.monotonic()
    await clock.advance(2)
    assert (task.cancelled(), clock.monotonic() - before) == (True, 2)
