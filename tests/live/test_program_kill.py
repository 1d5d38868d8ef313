"""Kill -9 of the program and Stop, with real processes and a real journal."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

import pytest

from tests.live.program import config, events, run, script, start, until

LATE = """
import json, sys, time, threading
from pathlib import Path
def out(o): sys.stdout.write(json.dumps(o) + "\\n"); sys.stdout.flush()
cancelled = set()
def late(i, path):
    for _ in range(40):
        time.sleep(0.1)
        if i in cancelled: return
    Path(path).write_text("too late")
    out({"jsonrpc": "2.0", "id": i, "result": {"content": [{"type": "text", "text": "written"}]}})
Path(sys.argv[1]).write_text(str(__import__("os").getpid()))
with open(sys.argv[1] + ".starts", "a") as starts: starts.write("x")
for line in sys.stdin:
    m = json.loads(line); i, method = m.get("id"), m.get("method")
    if method == "initialize":
        out({"jsonrpc": "2.0", "id": i, "result": {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
             "serverInfo": {"name": "late", "version": "1"}}})
    elif method == "tools/list":
        out({"jsonrpc": "2.0", "id": i, "result": {"tools": [{"name": "write_late", "inputSchema": {
             "type": "object", "properties": {"path": {"type": "string"}}}}]}})
    elif method == "tools/call":
        threading.Thread(target=late, args=(i, m["params"]["arguments"]["path"]), daemon=True).start()
    elif method == "notifications/cancelled":
        cancelled.add(m["params"]["requestId"])
    elif i is not None:
        out({"jsonrpc": "2.0", "id": i, "error": {"code": -32601, "message": "no"}})
"""


@pytest.fixture
def late(tmp_path: Path):
    server = tmp_path / "late.py"
    server.write_text(LATE)
    return config(tmp_path / "mcp.json", late=[sys.executable, str(server), str(tmp_path / "pid")])


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return Path(f"/proc/{pid}/stat").read_text().split()[2] != "Z"


def test_a_kill_in_mid_stream_leaves_a_chat_that_opens_and_resumes(tmp_path):
    """Hazard J101."""
    words = [{"text": " ".join(f"w{i}" for i in range(40))}, {"delay_ms": 60_000}]
    model = script(tmp_path / "m.json", words, [{"text": "went on"}])
    process = start(tmp_path / "home", "chat", "--model", model, "--no-servers", "tell me")
    session = ""
    for event in events(process):
        session = event["session"] or session
        if event["type"] == "token_delta" and event["text"].startswith("w39"):
            break
    until_draft = time.monotonic() + 1.2  # a draft is kept about once a second
    while time.monotonic() < until_draft:
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    (row,) = run(tmp_path / "home", "sessions", "list")
    assert row["session"] == session
    shown = run(tmp_path / "home", "sessions", "show", session)
    assert "w0" in str(shown)
    resumed = run(tmp_path / "home", "sessions", "resume", session)
    assert any(e.get("type") == "turn_ended" and e["text"] == "went on" for e in resumed)


def test_a_kill_in_mid_call_marks_it_unknown_and_leaves_no_server_behind(tmp_path, late):
    """Hazards D38, J101."""
    call = {"call": {"tool": "late.write_late", "arguments": {"path": str(tmp_path / "file")}}}
    model = script(tmp_path / "m.json", [call], [{"text": "went on"}])
    process = start(
        tmp_path / "home", "chat", "--model", model, "--mcp-config", str(late), "--allow", "late.*", "go"
    )  # fmt: skip
    session = ""
    for event in events(process):
        session = event["session"] or session
        if event["type"] == "tool_started":
            break
    server = int((tmp_path / "pid").read_text())
    process.send_signal(signal.SIGKILL)
    process.communicate()
    resumed = run(tmp_path / "home", "sessions", "resume", session)
    assert any(e.get("type") == "turn_ended" and e["text"] == "went on" for e in resumed)
    shown = str(run(tmp_path / "home", "sessions", "show", session))
    assert "unknown" in shown
    until(lambda: not alive(server))


def test_stop_during_a_call_that_writes_a_file_later_keeps_it_from_writing(tmp_path, late):
    """Hazard E61."""
    target = tmp_path / "file"
    call = {"call": {"tool": "late.write_late", "arguments": {"path": str(target)}}}
    model = script(tmp_path / "m.json", [call], [{"text": "after"}])
    process = start(
        tmp_path / "home", "chat", "--model", model, "--mcp-config", str(late), "--allow", "late.*", "go"
    )  # fmt: skip
    seen = []
    for event in events(process):
        seen.append(event)
        if event["type"] == "tool_started":
            process.send_signal(signal.SIGINT)
    process.communicate(timeout=20)
    assert process.returncode == 130
    ended = next(e for e in seen if e["type"] == "turn_ended")
    assert ended["status"] == "interrupted"
    assert next(e for e in seen if e["type"] == "tool_settled")["outcome"] == "cancelled"
    server = int((tmp_path / "pid").read_text())
    until(lambda: not alive(server))
    assert not target.exists()
    assert (tmp_path / "pid.starts").read_text() == "x", "the server was started once"


def test_two_processes_cannot_have_one_chat(tmp_path):
    model = script(tmp_path / "m.json", [{"text": "a"}, {"delay_ms": 60_000}], [{"text": "b"}])
    first = start(tmp_path / "home", "chat", "--model", model, "--no-servers", "one")
    session = ""
    for event in events(first):
        session = event["session"] or session
        if event["type"] == "token_delta":
            break
    (refused,) = run(tmp_path / "home", "chat", "--session", session, "--no-servers", "two", code=1)
    assert refused["code"] == "session_busy"
    first.send_signal(signal.SIGINT)
    first.communicate(timeout=20)
    assert first.returncode == 130
