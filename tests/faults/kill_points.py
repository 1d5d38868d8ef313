"""Kill -9 the program at random points of a conversation with tools; reopen it each time and look for what is missing.

    python tests/faults/kill_points.py [--points 20] [--seed 1]

The last line printed is `{"injected","survived","lost","orphans","secrets_found"}`: kill points; those after which
the chat opened again, went on and ended in order; acknowledged events that the journal lacks, and calls that ran
twice; servers left behind; files that hold the planted secret.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from desktop_host.core.events import Stamped, ToolSettled, ToolStarted, TurnEnded, TurnStarted  # noqa: E402
from desktop_host.storage import open_storage  # noqa: E402

SECRET = "planted-9f3b7c21d4"
PASSING = ("token_delta", "thinking_delta", "tool_progress", "state_changed", "server_changed", "library_changed")
ROUNDS = 5
SERVER = """
import json, os, sys, time
pids, ledger = sys.argv[1:]
with open(pids, "a") as file: file.write(f"{os.getpid()}\\n")
def out(o): sys.stdout.write(json.dumps(o) + "\\n"); sys.stdout.flush()
for line in sys.stdin:
    m = json.loads(line); i, method = m.get("id"), m.get("method")
    if method == "initialize":
        out({"jsonrpc": "2.0", "id": i, "result": {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
             "serverInfo": {"name": "count", "version": "1"}}})
    elif method == "tools/list":
        out({"jsonrpc": "2.0", "id": i, "result": {"tools": [{"name": "add", "inputSchema": {
             "type": "object", "properties": {"n": {"type": "integer"}}}}]}})
    elif method == "tools/call":
        with open(ledger, "a") as file: file.write(f"{m['params']['arguments']['n']}\\n")
        time.sleep(0.02)
        out({"jsonrpc": "2.0", "id": i, "result": {"content": [{"type": "text", "text": "counted " + "x" * 20000}]}})
    elif i is not None:
        out({"jsonrpc": "2.0", "id": i, "error": {"code": -32601, "message": "no"}})
"""


@dataclass
class Report:
    """What came of all points."""

    injected: int = 0
    survived: int = 0
    lost: int = 0
    orphans: int = 0
    secrets_found: int = 0
    notes: list[str] = field(default_factory=list)

    def line(self) -> str:
        """The one line of JSON."""
        names = ("injected", "survived", "lost", "orphans", "secrets_found")
        return json.dumps({name: getattr(self, name) for name in names})


class Stage:
    """One home with a scripted model and a counting server."""

    def __init__(self, folder: Path) -> None:
        self.home = folder / "home"
        self.pids, self.ledger = folder / "pids", folder / "ledger"
        server = folder / "count.py"
        server.write_text(SERVER)
        entry = {
            "command": sys.executable, "args": [str(server), str(self.pids), str(self.ledger)],
            "env": {"COUNT_TOKEN": SECRET},
        }  # fmt: skip
        self.config = folder / "mcp.json"
        self.config.write_text(json.dumps({"mcpServers": {"count": entry}}))
        replies: list[Any] = []
        for n in range(ROUNDS):
            calls = [{"call": {"tool": "count.add", "arguments": {"n": 10 * n + k}}} for k in range(1 + n % 2)]
            replies.append([{"text": f"round {n} " + "word " * 20}, {"delay_ms": 5}, *calls])
        replies += [[{"text": "all done"}]] * 20
        self.model = folder / "model.json"
        self.model.write_text(json.dumps(replies))
        self.options = ("--mcp-config", str(self.config), "--allow", "count.*")

    def start(self, *words: str) -> subprocess.Popen[str]:
        """Start the program."""
        env = {k: v for k, v in os.environ.items() if k in ("PATH", "HOME", "LANG")}
        return subprocess.Popen(
            [sys.executable, "-m", "desktop_host", "--home", str(self.home), "--json", *words],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT,
            env=env | {"QT_QPA_PLATFORM": "offscreen", "DBUS_SESSION_BUS_ADDRESS": "disabled:"},
        )  # fmt: skip

    def chat(self, lines: int | None, delay_s: float = 0.0) -> tuple[list[dict[str, Any]], int]:
        """A chat that is killed a moment after so many lines (None: never); what it told, and how often it spoke."""
        process = self.start("chat", "--model", f"script:{self.model}", *self.options, "count for me")
        told: list[dict[str, Any]] = []
        assert process.stdout is not None
        count = 0
        for line in process.stdout:
            count += 1
            if line.endswith("\n"):
                told.append(json.loads(line))
            if lines is not None and count == lines:
                time.sleep(delay_s)
                process.send_signal(signal.SIGKILL)
        process.communicate()
        return told, count

    def resume(self, session: str) -> list[dict[str, Any]]:
        """Go on with a session."""
        process = self.start("sessions", "resume", session, *self.options)
        out, _ = process.communicate(timeout=120)
        return [json.loads(line) for line in out.splitlines()]

    def journal(self, session: str | None = None) -> tuple[str, tuple[Stamped, ...]]:
        """The session and its events, as a new process finds them."""

        async def read() -> tuple[str, tuple[Stamped, ...]]:
            async with open_storage(self.home / "profiles" / "default") as storage:
                rows = await storage.history.rows()
                if not rows:
                    return "", ()
                name = session or rows[0].session
                problem = await storage.problem()
                if problem:
                    raise RuntimeError(problem)
                return name, await storage.history.read(name)

        return asyncio.run(read())


def alive(pid: int) -> bool:
    """Whether a process runs."""
    try:
        os.kill(pid, 0)
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (ProcessLookupError, FileNotFoundError):
        return False


def point(stage: Stage, lines: int, delay_s: float, report: Report) -> None:
    """One kill and what comes after it."""
    report.injected += 1
    told, _ = stage.chat(lines, delay_s)
    session, before = stage.journal()
    kept = {s.seq for s in before}
    gone = [e for e in told if e.get("seq") and e["type"] not in PASSING and e["seq"] not in kept]
    if gone:
        report.lost += len(gone)
        report.notes.append(f"killed after line {lines}: lost {[e['type'] for e in gone]}")
    done = any(isinstance(s.event, TurnEnded) and s.event.status.value == "done" for s in before)
    said = any(isinstance(s.event, TurnStarted) for s in before)
    if said and not done:
        went_on = stage.resume(session)
        done = any(e.get("type") == "turn_ended" and e["status"] == "done" for e in went_on)
        if not done:
            report.notes.append(f"killed after line {lines}: {went_on[-1:]}")
    _, after = stage.journal(session or None)
    whole = [s.event for s in after[: len(before)]] == [s.event for s in before]
    started = [s.event.call_id for s in after if isinstance(s.event, ToolStarted)]
    settled = [s.event.call_id for s in after if isinstance(s.event, ToolSettled)]
    counted = stage.ledger.read_text().split() if stage.ledger.exists() else []
    twice = len(counted) - len(set(counted)) + len(started) - len(set(started))
    report.lost += twice
    if twice:
        report.notes.append(f"killed after line {lines}: ran twice {counted}")
    if (done or not said) and whole and len(settled) == len(set(settled)) and set(started) <= set(settled):
        report.survived += 1
    deadline = time.monotonic() + 10
    pids = [int(p) for p in stage.pids.read_text().split()] if stage.pids.exists() else []
    while any(alive(pid) for pid in pids) and time.monotonic() < deadline:
        time.sleep(0.05)
    report.orphans += sum(alive(pid) for pid in pids)
    report.secrets_found += sum(SECRET.encode() in p.read_bytes() for p in stage.home.rglob("*") if p.is_file())


def run(points: int, seed: int, told: bool = False) -> Report:
    """Kill the program at so many random points."""
    report, chance = Report(), random.Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        events, length = Stage(Path(folder)).chat(None)
        if events[-1]["type"] not in ("turn_ended", "state_changed"):
            raise RuntimeError(f"the conversation does not run: {events[-1]}")
    for number in range(points):
        lines = 1 + (number * length // points + chance.randrange(max(1, length // points))) % length
        with tempfile.TemporaryDirectory() as folder:
            point(Stage(Path(folder)), lines, chance.random() * 0.03, report)
        if told:
            print(f"{number + 1}/{points} after line {lines} of {length}: {report.line()}", flush=True)
    return report


def main() -> int:
    """Run and judge."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--points", type=int, default=200 if os.environ.get("DESKTOP_HOST_FULL") else 20)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 30))
    ns = parser.parse_args()
    print(f"seed {ns.seed}", flush=True)
    report = run(ns.points, ns.seed, told=True)
    for note in report.notes:
        print(note)
    print(report.line())
    return int(bool(report.survived < report.injected or report.lost or report.orphans or report.secrets_found))


if __name__ == "__main__":
    raise SystemExit(main())
