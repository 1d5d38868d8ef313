"""A process that works on a database until somebody stops it: `storage_child.py VERB FOLDER [NUMBER]`.

The environment variable `SHARED` holds the parameters of a PostgreSQL database as JSON.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import resource
import sys
from pathlib import Path

from desktop_host.core.budgets import Purse
from desktop_host.core.errors import HostError
from desktop_host.core.events import Stamped, TurnStarted, UserSaid
from desktop_host.core.sessions import SessionOptions
from desktop_host.storage import Storage, open_storage


def say(text: object) -> None:
    print(text, flush=True)


async def append(storage: Storage, _number: int) -> None:
    """Append for ever; each line printed is a seq that was acknowledged."""
    history = storage.history
    await history.create("s", "", SessionOptions())
    await history.lease("s")
    await history.append([Stamped(1, 1.0, "s", 1, TurnStarted())])
    for seq in itertools.count(2):
        text = f"event {seq} " + ("big text " * 3000 if seq % 3 == 0 else "")
        await history.append([Stamped(seq, float(seq), "s", 1, UserSaid(text))])
        await history.save_draft("s", 1, f"draft {seq}", "")
        say(seq)


async def hold(storage: Storage, _number: int) -> None:
    """Hold the lease of session `s` until standard input ends."""
    await storage.history.lease("s")
    say("held")
    await asyncio.to_thread(sys.stdin.read)


async def fill(storage: Storage, number: int) -> None:
    """Write until the disk (or a file-size limit of `number` bytes) refuses; then read all and go on."""
    history = storage.history
    if number:
        resource.setrlimit(resource.RLIMIT_FSIZE, (number, resource.RLIM_INFINITY))
    await history.create("s", "", SessionOptions())
    seq = 0
    try:
        for seq in itertools.count(1):
            await history.append([Stamped(seq, 1.0, "s", 1, UserSaid(f"{seq} " + "some words " * 1200))])
    except HostError as error:
        say(error.code)
    kept = await history.read("s")
    say("whole" if [s.seq for s in kept] == list(range(1, seq)) else "torn")
    try:
        await history.append([Stamped(seq, 1.0, "s", 1, UserSaid("y " * 200_000))])
        say("room")
    except HostError as error:
        say(error.code)
    if number:
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        await history.append([Stamped(seq, 1.0, "s", 1, UserSaid("y " * 200_000))])
    say(await storage.problem())


async def crowd(storage: Storage, number: int) -> None:
    """Append 100 events to a session of our own while others do the same."""
    name = f"s{number}"
    await storage.history.create(name, "", SessionOptions())
    await storage.history.lease(name)
    for seq in range(1, 101):
        await storage.history.append([Stamped(seq, float(seq), name, 1, UserSaid("the same big text " * 1000))])
        if seq % 10 == 0:
            await storage.history.rows()
    for extra in range(5):
        await storage.history.create(f"{name}-{extra}", "", SessionOptions())
        await storage.history.append([Stamped(1, 1.0, f"{name}-{extra}", 1, UserSaid("the same big text " * 1000))])
        await storage.history.delete(f"{name}-{extra}")


async def spend(storage: Storage, number: int) -> None:
    """Eight sessions at once that share one budget with others; tells what they spent and what they were refused.

    They rest after two turns each, so that a quick process leaves something for the others.
    """
    day = Purse("day", "d", usd=1.0)
    spent, refused = 0.0, 0
    say("ready")
    await asyncio.to_thread(sys.stdin.readline)

    async def session(name: str, turns: range) -> None:
        nonlocal spent, refused
        own = Purse("session", name)
        for turn in turns:
            try:
                held = await storage.purses.reserve((day, own), 0.03, 0.01)
            except HostError as error:
                if error.code != "budget_spent":
                    raise
                refused += 1
                continue
            cost = held.usd if turn % 3 else held.usd / 2
            spent += cost
            await storage.purses.settle(held, (day, own), cost, 1)

    await asyncio.gather(*(session(f"{number}-{n}", range(2)) for n in range(8)))
    say("rested")
    await asyncio.to_thread(sys.stdin.readline)
    await asyncio.gather(*(session(f"{number}-{n}", range(2, 12)) for n in range(8)))
    say(json.dumps([spent, refused]))


async def reserve(storage: Storage, _number: int) -> None:
    """Set money aside and wait."""
    await storage.purses.reserve((Purse("day", "d", usd=1.0),), 0.4, 0.1)
    say("held")
    await asyncio.to_thread(sys.stdin.read)


VERBS = {"append": append, "hold": hold, "fill": fill, "crowd": crowd, "spend": spend, "reserve": reserve}


async def main() -> None:
    shared = json.loads(os.environ.get("SHARED", "null"))
    verb, folder, number = sys.argv[1], Path(sys.argv[2]), int((*sys.argv, "0")[3])
    async with open_storage(folder, shared=shared) as storage:
        await VERBS[verb](storage, number)


if __name__ == "__main__":
    asyncio.run(main())
