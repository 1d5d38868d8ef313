"""One event appended to the journal, in SQLite and in PostgreSQL; the last line printed is JSON.

Both servers on this machine, both durable as they are by default: the server syncs at each commit, SQLite in WAL
with `synchronous=NORMAL` does not.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from desktop_host.core.events import Stamped, ToolStarted, UserSaid  # noqa: E402
from desktop_host.core.sessions import SessionOptions  # noqa: E402
from desktop_host.storage import open_storage  # noqa: E402
from tests.fakes.postgres_server import running  # noqa: E402

ROUNDS = 200
TEXT = "Where is the lighthouse, and who keeps it at night? 灯塔在哪里？" * 20


async def appended(shared: dict[str, str] | None) -> dict[str, float]:
    """Medians in milliseconds: an event without text, a message of 1,200 characters, the search that finds it."""
    took: dict[str, list[float]] = {"event": [], "message": [], "search": []}
    async with open_storage(Path(tempfile.mkdtemp(prefix="bench-")), shared=shared) as storage:
        history = storage.history
        await history.create("s", "", SessionOptions())
        await history.lease("s")
        for n in range(ROUNDS + 20):
            for kind, event in (("event", ToolStarted(f"c{n}")), ("message", UserSaid(f"{n} {TEXT}"))):
                seq = 2 * n + 1 + (kind == "message")
                began = time.perf_counter()
                await history.append([Stamped(seq, float(n), "s", 1, event)])
                took[kind].append((time.perf_counter() - began) * 1000)
        for word in ("灯塔", "lighthouse keeps", "在哪") * 10:
            began = time.perf_counter()
            assert len(await history.search(word)) == 1
            took["search"].append((time.perf_counter() - began) * 1000)
    return {kind: statistics.median(values[20:] if kind != "search" else values) for kind, values in took.items()}


def bare(params: dict[str, str]) -> float:
    """Median milliseconds of the least that keeps a row: one INSERT by the driver, committed by itself."""
    import psycopg

    took = []
    with psycopg.connect(**params, autocommit=True) as db:
        db.execute("CREATE TABLE bare (body text)")
        for n in range(ROUNDS):
            began = time.perf_counter()
            db.execute("INSERT INTO bare VALUES (%s)", (f"{n} {TEXT}",))
            took.append((time.perf_counter() - began) * 1000)
    return statistics.median(took[20:])


def main() -> None:
    """Measure both."""
    found = {"sqlite": asyncio.run(appended(None))}
    try:
        with running(fsync=True) as server:
            params = server.params()
            found["postgresql"] = asyncio.run(appended(params)) | {"bare": bare(params)}
    except LookupError as missing:
        print(missing, file=sys.stderr)
    print(json.dumps({store: {k: round(v, 3) for k, v in kinds.items()} for store, kinds in found.items()}))


if __name__ == "__main__":
    main()
