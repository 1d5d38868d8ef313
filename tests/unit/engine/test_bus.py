from __future__ import annotations

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from desktop_host.core import events as ev
from desktop_host.core.delivery import Delivery
from desktop_host.core.messages import Outcome
from desktop_host.core.sessions import SessionState
from desktop_host.engine import bus as bus_module
from desktop_host.engine.bus import Bus

KINDS = [
    ev.TokenDelta("x"),
    ev.ThinkingStreamed("t"),
    ev.ToolProgress("c", 1),
    ev.ToolSettled("c", Outcome.OK),
    ev.StateChanged(SessionState.RUNNING),
    ev.Notice("n"),
]


def stamped(seq, event):
    return ev.Stamped(seq, 0.0, "s", 1, event)


@given(st.lists(st.sampled_from(KINDS), min_size=1, max_size=300), st.integers(1, 16), st.integers(1, 20))
@settings(deadline=None, max_examples=60)
def test_a_slow_reader_keeps_order_all_text_and_all_that_must_be_kept(kinds, capacity, every):
    async def scenario():
        bus = Bus()
        reader = bus.subscribe(capacity=capacity)
        got = []

        async def read():
            async for batch in reader:
                assert len(batch) <= capacity
                got.extend(batch)
                for _ in range(every):
                    await asyncio.sleep(0)

        task = asyncio.create_task(read())
        for seq, event in enumerate(kinds, 1):
            await bus.publish(stamped(seq, event))
        bus.close()
        await task
        return got

    got = asyncio.run(scenario())
    seqs = [s.seq for s in got]
    assert seqs == sorted(set(seqs))
    text = "".join(s.event.text for s in got if isinstance(s.event, ev.TokenDelta))
    assert text == "x" * sum(isinstance(k, ev.TokenDelta) for k in kinds)
    for kind in (ev.ToolSettled, ev.Notice):
        assert sum(isinstance(s.event, kind) for s in got) == sum(isinstance(k, kind) for k in kinds)
    states = [i for i, k in enumerate(kinds, 1) if isinstance(k, ev.StateChanged)]
    if states:
        assert states[-1] in seqs


async def test_when_full_thinking_goes_first():
    bus = Bus()
    reader = bus.subscribe(capacity=3)
    for seq, event in enumerate([KINDS[1], KINDS[1], KINDS[3], KINDS[3], KINDS[3]], 1):
        await bus.publish(stamped(seq, event))
    assert [s.seq for s in await anext(reader)] == [3, 4, 5]


async def test_of_what_only_the_newest_counts_an_older_one_gives_way_although_there_is_room():
    bus = Bus()
    reader = bus.subscribe(capacity=10)
    retry = ev.RetryScheduled(1, 1.0, "overloaded", "x", 5.0)
    for seq, event in enumerate([retry, KINDS[0], KINDS[4], retry, KINDS[4]], 1):
        await bus.publish(stamped(seq, event))
    kept = [s.seq for s in await anext(reader)]
    latest = [e for e in (retry, KINDS[4]) if e.delivery is Delivery.LATEST]
    assert latest, "no event of this kind is left to test with"
    assert kept == [n for n, e in enumerate([retry, KINDS[0], KINDS[4], retry, KINDS[4]], 1)
                    if e not in latest or n > 3]  # fmt: skip


async def test_a_full_queue_merges_text_in_its_middle_before_the_writer_has_to_wait():
    bus = Bus()
    reader = bus.subscribe(capacity=4)
    events = [ev.TokenDelta("a"), ev.TokenDelta("b"), KINDS[3], KINDS[5], KINDS[3]]
    for seq, event in enumerate(events, 1):
        async with asyncio.timeout(0.5):
            await bus.publish(stamped(seq, event))
    got = await anext(reader)
    assert [s.seq for s in got] == [2, 3, 4, 5]
    assert got[0].event == ev.TokenDelta("ab")
    assert reader.lagged_seq is None


async def test_a_reader_holds_a_hundred_events_unless_told_otherwise():
    bus = Bus()
    reader = bus.subscribe()
    for seq in range(1, 101):
        async with asyncio.timeout(0.5):
            await bus.publish(stamped(seq, KINDS[5]))
    late = asyncio.create_task(bus.publish(stamped(101, KINDS[5])))
    for _ in range(5):
        await asyncio.sleep(0)
    assert not late.done()
    assert len(await anext(reader)) == 100
    await late
    assert [s.seq for s in await anext(reader)] == [101]


async def test_a_reader_that_takes_nothing_is_detached_and_told_where_it_stood(monkeypatch):
    monkeypatch.setattr(bus_module, "PATIENCE_S", 0.05)
    bus = Bus()
    slow, quick = bus.subscribe(capacity=2), bus.subscribe(capacity=100)
    await bus.publish(stamped(1, KINDS[3]))
    assert (await anext(slow))[-1].seq == 1
    for seq in range(2, 6):
        await bus.publish(stamped(seq, KINDS[3]))
    assert slow.lagged_seq == 1
    with pytest.raises(StopAsyncIteration):
        await anext(slow)
    assert [s.seq for s in await anext(quick)] == [1, 2, 3, 4, 5]


async def test_a_stuck_reader_holds_up_the_model_for_a_second_and_no_longer():
    bus = Bus()
    stuck = bus.subscribe(capacity=1)
    loop = asyncio.get_running_loop()
    await bus.publish(stamped(1, KINDS[3]))
    began = loop.time()
    await bus.publish(stamped(2, KINDS[3]))
    assert 0.9 < loop.time() - began < 3
    began = loop.time()
    await bus.publish(stamped(3, KINDS[3]))
    assert loop.time() - began < 0.5
    assert stuck.lagged_seq == 0


async def test_the_command_lines_own_reader_loses_nothing_and_makes_the_writer_wait():
    bus = Bus()
    reader = bus.subscribe(capacity=4, lossless=True)
    writing = asyncio.create_task(_publish(bus, [KINDS[i % len(KINDS)] for i in range(60)]))
    for _ in range(20):
        await asyncio.sleep(0)
    assert not writing.done()
    got = []
    while len(got) < 60:
        got.extend(await anext(reader))
    await writing
    assert [s.seq for s in got] == list(range(1, 61))


async def _publish(bus, kinds):
    for seq, event in enumerate(kinds, 1):
        await bus.publish(stamped(seq, event))


async def test_a_reader_of_one_session_sees_that_and_what_belongs_to_none():
    bus = Bus()
    reader = bus.subscribe("s")
    await bus.publish(ev.Stamped(1, 0.0, "other", 1, KINDS[5]))
    await bus.publish(ev.Stamped(2, 0.0, "", 0, ev.LibraryChanged()))
    await bus.publish(stamped(3, KINDS[5]))
    assert [s.seq for s in await anext(reader)] == [2, 3]


def test_every_event_says_what_a_full_reader_may_lose():
    for kind in ev.Event.__args__:
        assert isinstance(kind.delivery, Delivery) and isinstance(kind.journaled, bool) and kind.type
