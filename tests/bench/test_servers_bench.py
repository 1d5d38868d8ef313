"""What the host's own layer costs over the bare SDK, in the same run."""

from __future__ import annotations

import asyncio
import statistics
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from tests.fakes.servers.stage import HERE, raw, script, stage, text

pytestmark = [pytest.mark.live]
CALLS = 200


async def median_ms(call: Callable[[], Awaitable[object]]) -> float:
    """Median of `CALLS` calls in a row, after a warm-up."""
    took: list[float] = []
    for n in range(CALLS + 20):
        began = time.perf_counter()
        await call()
        if n >= 20:
            took.append((time.perf_counter() - began) * 1000)
    return statistics.median(took)


async def test_a_call_through_the_host_costs_at_most_three_bare_calls(tmp_path: Path) -> None:
    from mcp import Client, StdioServerParameters
    from mcp.client.stdio import stdio_client

    parameters = StdioServerParameters(command=sys.executable, args=[str(HERE / "raw.py")])
    with (tmp_path / "stderr").open("w") as errors:
        async with Client(stdio_client(parameters, errlog=errors), mode="legacy") as client:
            await client.list_tools()
            bare = await median_ms(lambda: client.call_tool("echo", {"m": "x"}))
    async with stage(tmp_path, raw()) as s:
        spec = next(t for t in s.servers.tools("raw") if t.name == "echo")
        hosted = await median_ms(lambda: s.call("raw", spec.name, m="x"))
    assert hosted <= 3 * bare + 0.5, f"{hosted:.2f} ms through the host, {bare:.2f} ms bare"


async def test_twenty_servers_with_a_thousand_tools_start_side_by_side(tmp_path: Path) -> None:
    began = time.perf_counter()
    async with stage(tmp_path, *(script(f"s{n}", "odd.py", "n39") for n in range(20))) as s:
        took = time.perf_counter() - began
        assert len(s.servers.session_tools("s1")) == 1000
        answers = await asyncio.gather(*(s.call(f"s{n}", "quick", call_id=str(n)) for n in range(20)))
        assert all(text(a).startswith("quick") for a in answers)
    assert took < 20, f"{took:.1f} s"
