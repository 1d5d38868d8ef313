"""Run the official conformance suite against the host, scenario by scenario: `python -m tests.conformance.run`.

`--suite` of the suite itself would run all at once and ignore the client's exit code; so each scenario is a run of
its own, `JOBS` at a time. What fails must stand in `baseline.yml`, and what stands there must fail.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import re
import shutil
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import yaml

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
JOBS = max(2, min(4, os.cpu_count() or 2))
LIMIT_S = 60
"""Time limit of one client, seconds; the suite's own 30 are few on a busy machine."""


@dataclass(frozen=True)
class Suite:
    """Where the suite is: Node 22 or later, and the suite's program."""

    node: str
    program: str


@dataclass(frozen=True)
class Result:
    """How a scenario went."""

    scenario: str
    passed: bool
    seconds: float
    told: str

    @property
    def checks(self) -> str:
        """`passed/total`, as the suite counted."""
        found = re.findall(r"(\d+)/(\d+)", self.told)
        return "/".join(found[-1]) if found else "-"


def find() -> Suite | None:
    """The suite below `.tools`, or in the folder of `DESKTOP_HOST_TEST_NODE_BIN`; None: not installed."""
    for place in filter(None, (os.environ.get("DESKTOP_HOST_TEST_NODE_BIN"), str(ROOT / ".tools/node_modules/.bin"))):
        node, program = shutil.which("node", path=place), Path(place, "conformance")
        if node and program.exists():
            return Suite(node, str(program.resolve()))
    return None


async def scenarios(suite: Suite, version: str | None = None) -> list[str]:
    """All client scenarios, or those of one revision of the specification."""
    chosen = ["--spec-version", version] if version else []
    _, told = await _output(suite.node, suite.program, "list", "--client", *chosen)
    return re.findall(r"^\s+- (\S+)", told, re.MULTILINE)


def expected_failures() -> frozenset[str]:
    """The scenarios of `baseline.yml`."""
    return frozenset(yaml.safe_load((HERE / "baseline.yml").read_text(encoding="utf-8"))["client"])


async def run(suite: Suite, scenario: str, version: str | None = None) -> Result:
    """Run one scenario."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        status, told = await _output(
            suite.node, suite.program, "client", "--command", f"{sys.executable} -m tests.conformance.client",
            "--scenario", scenario, "--timeout", str(LIMIT_S * 1000), "-o", folder,
            *(["--spec-version", version] if version else []),
        )  # fmt: skip
    seen = re.search(r"Passed: [1-9]\d*/", told) is not None  # With nothing to judge the suite is content.
    return Result(scenario, status == 0 and seen, time.monotonic() - began, told)


async def run_all(suite: Suite, names: list[str], version: str | None = None, jobs: int = JOBS) -> list[Result]:
    """Run many, a few at a time, in order."""
    gate = asyncio.Semaphore(jobs)

    async def one(name: str) -> Result:
        async with gate:
            result = await run(suite, name, version)
        print(f"{'ok  ' if result.passed else 'FAIL'} {result.seconds:5.1f} s  {result.checks:>6}  {name}", flush=True)
        return result

    return list(await asyncio.gather(*(one(name) for name in names)))


async def _output(*command: str) -> tuple[int, str]:
    process = await asyncio.create_subprocess_exec(
        *command,
        cwd=ROOT,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        stdin=asyncio.subprocess.DEVNULL,
    )
    told, _ = await process.communicate()
    return process.returncode or 0, told.decode(errors="replace")


async def main() -> int:
    """The command line; 0 if all went as `baseline.yml` says."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("scenario", nargs="*")
    options.add_argument("--spec-version")
    options.add_argument("--jobs", type=int, default=JOBS)
    options.add_argument("--verbose", action="store_true")
    ns = options.parse_args()
    suite = find()
    if suite is None:
        print("the suite is not installed: run packaging/test.sh, or set DESKTOP_HOST_TEST_NODE_BIN", file=sys.stderr)
        return 2
    began = time.monotonic()
    results = await run_all(suite, ns.scenario or await scenarios(suite, ns.spec_version), ns.spec_version, ns.jobs)
    bad = {r.scenario for r in results if not r.passed}
    for result in results:
        if ns.verbose or result.scenario in bad - expected_failures():
            print(f"\n--- {result.scenario}\n{result.told}")
    wrong = bad ^ (expected_failures() & {r.scenario for r in results})
    print(f"\n{len(results) - len(bad)} of {len(results)} passed in {time.monotonic() - began:.0f} s")
    print(f"not as in the baseline: {', '.join(sorted(wrong)) or 'none'}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
