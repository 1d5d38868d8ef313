"""A process that works on a database until somebody stops it: `storage_child.py VERB FOLDER [NUMBER]`."""

from __future__ import annotations

import asyncio
import itertools
import resource
import sys
from pathlib import Path

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


async def main() -> None:
    verb, folder, number = sys.argv[1], Path(sys.argv[2]), int((*sys.argv, "0")[3])
    async with open_storage(folder) as storage:
        await {"append": append, "hold": hold, "fill": fill, "crowd": crowd}[verb](storage, number)


if __name__ == "__main__":
    asyncio.run(main())
