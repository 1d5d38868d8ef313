"""The official suite's server side: a fixtures program that serves, and scenarios run against it."""

from __future__ import annotations

import asyncio
import os
import re
import sys
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.conformance.run import ROOT, Suite, find

ERAS = ("2025-11-25", "2026-07-28")
EXTENSIONS = ("tasks-", "sep-2640-")
AT_ONCE = 2


def suite_or_skip() -> Suite:
    """The suite; where it is missing the test is skipped, in CI it fails."""
    suite = find()
    if suite is None:
        assert not os.environ.get("CI"), "the conformance suite is not installed"
        pytest.skip("the conformance suite is not installed (packaging/test.sh does it)")
    return suite


@asynccontextmanager
async def serving(script: str, *argv: str) -> AsyncIterator[str]:
    """A fixtures program of this folder; yields the address that it tells on stderr."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, str(Path(__file__).with_name(script)), *argv, stderr=asyncio.subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(ROOT), "DBUS_SESSION_BUS_ADDRESS": "/dev/null"},
    )  # fmt: skip
    assert process.stderr is not None
    try:
        line = (await asyncio.wait_for(process.stderr.readline(), 60)).decode()
        assert "serving http" in line, f"{script} did not start: {line}{(await process.stderr.read()).decode()}"
        yield line.split()[-1]
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()


async def _told(suite: Suite, *argv: str) -> str:
    process = await asyncio.create_subprocess_exec(
        suite.node, suite.program, *argv, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    out, _ = await asyncio.wait_for(process.communicate(), 120)
    return re.sub(r"\x1b\[[0-9;]*m", "", out.decode(errors="replace"))


async def scenarios(suite: Suite, era: str) -> list[str]:
    """The suite's scenarios for servers of an era, those of extensions left out."""
    listed = await _told(suite, "list", "--server", "--spec-version", era)
    return [s for s in re.findall(r"^  - ([a-z0-9-]+)", listed, re.MULTILINE) if not s.startswith(EXTENSIONS)]


async def failing(suite: Suite, url: str, era: str, wanted: Iterable[str]) -> dict[str, tuple[frozenset[str], str]]:
    """Scenarios that did not pass whole: the checks that failed, and what the suite said."""
    limit = asyncio.Semaphore(AT_ONCE)

    async def run(scenario: str) -> tuple[str, frozenset[str], str] | None:
        async with limit:
            said = await _told(suite, "server", "--url", url, "--scenario", scenario, "--spec-version", era)
        counts = re.search(r"Passed: (\d+)/(\d+), (\d+) failed", said)
        if counts is not None and counts[1] == counts[2] != "0":
            return None
        return scenario, frozenset(re.findall(r"\[([\w-]+) *\] FAILURE", said)), said[-1500:]

    found = await asyncio.gather(*(run(s) for s in wanted))
    return {one[0]: one[1:] for one in found if one is not None}
