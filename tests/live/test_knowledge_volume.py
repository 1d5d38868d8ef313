"""500 real documents (Python's own library and this machine's documentation); 10,000 in `make full`."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.bench.knowledge_bench import QUESTIONS, fetch

pytestmark = pytest.mark.live

BENCH = Path(__file__).resolve().parents[1] / "bench" / "knowledge_bench.py"


def measured(*argv: str) -> dict[str, Any]:
    """The figures of a process of its own, so that the memory is the index's; printed for `make full`."""
    run = subprocess.run([sys.executable, str(BENCH), *argv], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr[-2000:]
    print(run.stdout.strip())
    made: dict[str, Any] = json.loads(run.stdout)
    return made


def test_five_hundred_documents_are_indexed_and_asked_at_once() -> None:
    made = measured("--documents", "500")
    assert made["indexed"] == made["documents"] == 500
    assert made["build_s"] < 120
    assert made["query_p95_ms"] < 500
    assert made["one_change_s"] < 5


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.skipif("DESKTOP_HOST_FULL" not in os.environ, reason="make full: 10,000 documents, 110 MB to fetch")
def test_ten_thousand_documents_answer_written_questions(capsys: pytest.CaptureFixture[str]) -> None:
    """Twenty times the documents: the work per megabyte stays, a query costs less than twenty times, memory stays."""
    docs = Path(os.environ.get("DESKTOP_HOST_TEST_DOCS") or Path(__file__).resolve().parents[2] / ".tools" / "docs")
    if shutil.which("apt-get") is None and not docs.is_dir():
        pytest.skip("Debian's documentation packages are fetched with apt-get, which is not here")
    fetch(docs)
    with capsys.disabled():
        print()
        few = measured("--documents", "500", "--docs", str(docs))
        many = measured("--documents", "10000", "--docs", str(docs))
    assert many["indexed"] > 9_900
    assert many["build_cpu_s"] / many["megabytes"] < 3 * few["build_cpu_s"] / few["megabytes"]
    assert many["query_cpu_p50_ms"] < 20 * few["query_cpu_p50_ms"]
    assert many["query_cpu_p95_ms"] < 20 * few["query_cpu_p95_ms"]
    assert many["memory_mb"] < 3 * few["memory_mb"]
    assert many["one_change_cpu_s"] < 5
    assert many["right_first"] >= 0.6 * len(QUESTIONS), many["missed"]
    assert many["right_in_five"] >= 0.9 * len(QUESTIONS), many["missed"]
