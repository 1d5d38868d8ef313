from __future__ import annotations

import asyncio
import os
import stat
import subprocess
import sys
from pathlib import Path

from desktop_host.diagnostics import CrashReports, Redactor
from desktop_host.diagnostics.crash import KEPT

ROOT = Path(__file__).parents[3]
CHILD = """
import sys, threading, pathlib
from desktop_host.diagnostics import CrashReports, Redactor
redactor = Redactor()
redactor.add("known-secret-0123456789")
reports = CrashReports(pathlib.Path(sys.argv[1]), redactor)
reports.install()
def bug():
    local = "sk-never-in-a-report-123"
    raise RuntimeError("it was known-secret-0123456789 in " + sys.argv[2])
if sys.argv[2] == "thread":
    t = threading.Thread(target=bug); t.start(); t.join()
elif sys.argv[2] == "main":
    bug()
elif sys.argv[2] == "interrupt":
    raise KeyboardInterrupt
elif sys.argv[2] == "signal":
    import faulthandler; faulthandler._sigabrt()
reports.remove()
"""


def child(folder: Path, kind: str) -> tuple[subprocess.CompletedProcess[str], list[Path]]:
    done = subprocess.run(
        [sys.executable, "-c", CHILD, str(folder), kind], capture_output=True, text=True, cwd=ROOT
    )  # fmt: skip
    return done, sorted((folder / "logs").iterdir())


def test_a_bug_on_any_thread_leaves_a_private_report_without_secrets(tmp_path: Path) -> None:
    """Hazard O137."""
    for kind in ("main", "thread"):
        folder = tmp_path / kind
        done, files = child(folder, kind)
        (report,) = [f for f in files if f.name.startswith("crash-")]
        text = report.read_text("utf-8")
        assert f"it was [secret] in {kind}" in text
        assert "Traceback" in text
        assert stat.S_IMODE(report.stat().st_mode) == 0o600
        for leak in ("known-secret", "sk-never"):
            assert leak not in text + done.stderr + done.stdout
    assert "report: " in child(tmp_path / "again", "main")[0].stderr


def test_an_interruption_is_no_bug(tmp_path: Path) -> None:
    _, files = child(tmp_path, "interrupt")
    assert [f for f in files if f.name.startswith("crash-")] == []


def test_a_hard_crash_leaves_its_stacks(tmp_path: Path) -> None:
    _, files = child(tmp_path, "signal")
    (fault,) = files
    assert "Fatal Python error" in fault.read_text()


async def test_what_nobody_awaited_on_the_loop_is_reported(tmp_path: Path) -> None:
    told: list[Path] = []
    reports = CrashReports(tmp_path, Redactor(), told.append)
    reports.install()
    hooks = (sys.excepthook, sys.unraisablehook)
    try:
        loop = asyncio.get_running_loop()
        reports.on_loop(loop, {"message": "odd", "exception": RuntimeError("token=abcdefgh")})
        reports.on_loop(loop, {"message": "no exception"})
    finally:
        reports.remove()
    assert sys.excepthook is not hooks[0]
    (path,) = told
    assert "token=[secret]" in path.read_text()


def test_old_reports_go(tmp_path: Path) -> None:
    reports = CrashReports(tmp_path, Redactor())
    (tmp_path / "logs").mkdir()
    for n in range(KEPT + 5):
        (tmp_path / "logs" / f"crash-2000-{n:03}.txt").write_text("old")
    assert reports.write(RuntimeError("new"), "in a test")
    assert len(list((tmp_path / "logs").iterdir())) == KEPT


def test_a_report_that_cannot_be_written_is_no_second_crash(tmp_path: Path) -> None:
    assert CrashReports(tmp_path / "nowhere", Redactor()).write(RuntimeError("x"), "in a test") is None
    assert os.listdir(tmp_path) == []
