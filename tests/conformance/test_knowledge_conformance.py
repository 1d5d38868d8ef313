"""The official suite's server side against the bundled knowledge server, each scenario in each era it applies to.

Left out is only what the server does not declare (NOT_DECLARED). What the suite asks for by name is added by
`knowledge_fixtures.py` beside the server's own tools.
"""

from __future__ import annotations

import asyncio
import os
import re
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.conformance.run import Suite, find

pytestmark = [pytest.mark.live, pytest.mark.slow, pytest.mark.timeout(900)]

ERAS = ("2025-11-25", "2026-07-28")
NOT_DECLARED = {
    "logging-set-level": "no logging capability", "tools-call-with-logging": "no logging capability",
    "json-schema-2020-12": "asks for a tool of its own whose schema is written by hand",
    "server-sse-polling": "no resumable streams", "http-custom-header-server-validation": "no x-mcp-header arguments",
}  # fmt: skip
EXTENSIONS = ("tasks-", "sep-2640-")
AT_ONCE = 2


@pytest.fixture
async def url() -> AsyncIterator[str]:
    fixtures = Path(__file__).with_name("knowledge_fixtures.py")
    process = await asyncio.create_subprocess_exec(sys.executable, str(fixtures), "0", stderr=asyncio.subprocess.PIPE)
    try:
        assert process.stderr is not None
        yield (await asyncio.wait_for(process.stderr.readline(), 60)).decode().split()[-1]
    finally:
        process.terminate()
        await process.wait()


async def told(suite: Suite, *argv: str) -> str:
    process = await asyncio.create_subprocess_exec(
        suite.node, suite.program, *argv, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    out, _ = await asyncio.wait_for(process.communicate(), 120)
    return out.decode(errors="replace")


@pytest.mark.parametrize("era", ERAS)
async def test_the_knowledge_server_passes_what_it_declares(era: str, url: str) -> None:
    suite = find()
    if suite is None:
        assert not os.environ.get("CI"), "the conformance suite is not installed"
        pytest.skip("the conformance suite is not installed (packaging/test.sh does it)")
    listed = re.findall(
        r"^  - ([a-z0-9-]+)", await told(suite, "list", "--server", "--spec-version", era), re.MULTILINE
    )
    scenarios = [s for s in listed if not s.startswith(EXTENSIONS) and s not in NOT_DECLARED]
    assert len(scenarios) >= 20
    limit = asyncio.Semaphore(AT_ONCE)

    async def run(scenario: str) -> str | None:
        async with limit:
            said = await told(suite, "server", "--url", url, "--scenario", scenario, "--spec-version", era)
        counts = re.search(r"Passed: (\d+)/(\d+), (\d+) failed", said)
        good = counts is not None and counts[1] == counts[2] != "0"
        return None if good else f"{scenario}: {said[-1500:]}"

    failed = [f for f in await asyncio.gather(*(run(s) for s in scenarios)) if f is not None]
    assert not failed, "\n\n".join(failed)
