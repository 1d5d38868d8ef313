"""The real program in a process of its own, driven by its command line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]


def environment(**more: str) -> dict[str, str]:
    """An environment without a display, a keyring or anybody's keys."""
    env = {k: v for k, v in os.environ.items() if k in ("PATH", "HOME", "LANG", "DESKTOP_HOST_MODELS")}
    return env | {"QT_QPA_PLATFORM": "offscreen", "DBUS_SESSION_BUS_ADDRESS": "disabled:"} | more


def start(home: Path, *words: str, **more: str) -> subprocess.Popen[str]:
    """Start the program with `--json`; its output is read line by line."""
    return subprocess.Popen(
        [sys.executable, "-m", "desktop_host", "--home", str(home), "--json", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env=environment(**more),
    )


def run(home: Path, *words: str, code: int | None = 0, given: str | None = None, **more: str) -> list[dict[str, Any]]:
    """Run the program to its end; its lines of JSON."""
    done = subprocess.run(
        [sys.executable, "-m", "desktop_host", "--home", str(home), "--json", *words],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=environment(**more),
        input=given,
        timeout=120,
        check=False,
    )
    assert code is None or done.returncode == code, (done.returncode, done.stdout, done.stderr)
    return [json.loads(line) for line in done.stdout.splitlines()]


def events(process: subprocess.Popen[str]) -> Iterator[dict[str, Any]]:
    """The lines of a running program."""
    assert process.stdout is not None
    for line in process.stdout:
        yield json.loads(line)


def until(found: Callable[[], object], limit_s: float = 20.0) -> None:
    """Wait until a condition of the outer world holds."""
    deadline = time.monotonic() + limit_s
    while not found():
        assert time.monotonic() < deadline, "waited too long"
        time.sleep(0.02)


def script(path: Path, *replies: list[dict[str, Any]], **more: Any) -> str:
    """Write a scripted model; returns its REF."""
    path.write_text(json.dumps({"replies": list(replies), **more}), "utf-8")
    return f"script:{path}"


def config(path: Path, **servers: list[str]) -> Path:
    """Write an `mcpServers` file of commands."""
    entries = {name: {"command": words[0], "args": words[1:]} for name, words in servers.items()}
    path.write_text(json.dumps({"mcpServers": entries}), "utf-8")
    return path
