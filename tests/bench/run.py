"""All figures, each held against a base measured in the same run; writes `tests/bench/results.json`.

python tests/bench/run.py
"""

from __future__ import annotations

import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results.json"
CALLS = 200


def figure(
    name: str, ours: float, unit: str, *, bare: float | None, limit: float | None = None, target: float
) -> dict[str, Any]:
    """One row; `ratio` is ours to bare, met where it (or, without a base, ours) is within the target."""
    ratio = round(ours / bare, 3) if bare else None
    met = (ratio if ratio is not None else ours) <= target
    return {
        "figure": name, "ours": round(ours, 3), "unit": unit, "limit": limit,
        "bare": None if bare is None else round(bare, 3), "peers": {}, "ratio": ratio, "target": target, "met": met,
    }  # fmt: skip


def script(name: str, *words: str) -> Any:
    """The last line of a bench script, read as JSON."""
    env = os.environ | {"QT_QPA_PLATFORM": "offscreen", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, str(HERE / name), *words], capture_output=True, text=True, env=env, check=False
    )
    if not done.stdout.strip():
        raise SystemExit(f"{name} printed nothing: {done.stderr[-2000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def skills() -> list[dict[str, Any]]:
    """A library of a thousand skills; its script says what each figure is."""
    with tempfile.TemporaryDirectory(prefix="bench-skills-") as folder:
        path = Path(folder) / "skills.json"
        env = os.environ | {"PYTHONPATH": str(ROOT)}
        subprocess.run([sys.executable, str(HERE / "skills_bench.py"), "--json", str(path)], env=env, check=False)
        if not path.is_file():
            raise SystemExit("skills_bench.py wrote no figures")
        rows: list[dict[str, Any]] = json.loads(path.read_text("utf-8"))
        return rows


async def median_ms(call: Callable[[], Awaitable[object]]) -> float:
    """Median of `CALLS` calls in a row, after a warm-up."""
    took: list[float] = []
    for n in range(CALLS + 20):
        began = time.perf_counter()
        await call()
        if n >= 20:
            took.append((time.perf_counter() - began) * 1000)
    return statistics.median(took)


async def calls() -> list[dict[str, Any]]:
    """One call over stdio: through the host, and through the bare SDK."""
    from mcp import Client, StdioServerParameters
    from mcp.client.stdio import stdio_client

    from tests.fakes.servers.stage import HERE as SERVERS
    from tests.fakes.servers.stage import raw, stage

    folder = Path(tempfile.mkdtemp(prefix="bench-"))
    parameters = StdioServerParameters(command=sys.executable, args=[str(SERVERS / "raw.py")])
    with (folder / "stderr").open("w") as errors:
        async with Client(stdio_client(parameters, errlog=errors), mode="legacy") as client:
            await client.list_tools()
            bare = await median_ms(lambda: client.call_tool("echo", {"m": "x"}))
    async with stage(folder, raw()) as s:
        hosted = await median_ms(lambda: s.call("raw", "echo", m="x"))
    return [figure("one tool call over stdio", hosted, "ms", bare=bare, target=3.0)]


def stores() -> list[dict[str, Any]]:
    """What a commit costs in PostgreSQL; SQLite beside it, which syncs at no commit."""
    kept = script("append_bench.py")
    if "postgresql" not in kept:
        return []
    shared, own = kept["postgresql"], kept["sqlite"]
    rows = []
    for kind in ("event", "message"):
        row = figure(f"one {kind} kept in PostgreSQL", shared[kind], "ms", bare=shared["bare"], target=8.0)
        rows.append(row | {"peers": {"SQLite": own[kind]}})
    return rows


def main() -> int:
    """Measure, print, write."""
    rows: list[dict[str, Any]] = []
    paint = script("first_paint.py", "--rounds", "5")
    rows.append(figure("exec to first paint", paint["ours_ms"], "ms", bare=paint["empty_ms"], target=1.6))
    stall = script("gui_stall.py")
    rows.append(figure("window's p99 gap under load", stall["ours"]["p99"], "ms", bare=None, limit=5.0, target=16.0))
    rows.append(
        figure("window's longest gap under load", stall["ours"]["max"], "ms", bare=None, limit=5.0, target=50.0)
    )
    rows += asyncio.run(calls())
    rows += skills()
    rows += stores()
    RESULTS.write_text(json.dumps(rows, indent=1) + "\n", "utf-8")
    for row in rows:
        mark = "ok " if row["met"] else "MISS"
        base = f" (bare {row['bare']}, ratio {row['ratio']})" if row["bare"] is not None else ""
        print(f"{mark} {row['figure']}: {row['ours']} {row['unit']}{base}, target {row['target']}")
    return 0 if all(row["met"] for row in rows) else 1


if __name__ == "__main__":
    raise SystemExit(main())
