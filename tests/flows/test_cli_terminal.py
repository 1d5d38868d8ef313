"""A conversation at a real terminal, where there is no display: typed, approved, stopped, left."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

SMALL = Path(__file__).parents[1] / "fakes" / "servers" / "small.py"


class Terminal:
    """The program at a pseudo terminal."""

    def __init__(self, folder: Path, *argv: str) -> None:
        self.folder = folder
        self._main, slave = pty.openpty()
        self.before = termios.tcgetattr(slave)
        self.slave = slave
        environment = {
            "PATH": os.environ["PATH"], "HOME": str(folder), "LC_ALL": "C.UTF-8", "TERM": "dumb", "SHELL": "/bin/sh",
            "DBUS_SESSION_BUS_ADDRESS": "/dev/null",
        }  # fmt: skip
        self.process = subprocess.Popen(
            [sys.executable, "-m", "desktop_host", "--home", str(folder / "home"), *argv],
            stdin=slave, stdout=slave, stderr=slave, cwd=folder, env=environment, start_new_session=True,
        )  # fmt: skip
        self.shown = ""
        self._read = 0

    def wait_for(self, pattern: str, seconds: float = 40) -> str:
        """What was shown since the last wait, up to and with `pattern`."""
        deadline = time.monotonic() + seconds
        while True:
            found = re.search(pattern, self.shown[self._read :])
            if found:
                seen = self.shown[self._read : self._read + found.end()]
                self._read += found.end()
                return seen
            left = deadline - time.monotonic()
            assert left > 0, f"{pattern!r} did not come: {self.shown[self._read :]!r}"
            if select.select([self._main], [], [], left)[0]:
                self.shown += os.read(self._main, 65536).decode()

    def type(self, text: str) -> None:
        os.write(self._main, text.encode())

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self._main)
        os.close(self.slave)


@pytest.fixture
def folder(tmp_path) -> Path:
    return tmp_path


@pytest.fixture
def terminal(folder) -> Iterator[Any]:
    made: list[Terminal] = []

    def start(replies: list[Any], *argv: str) -> Terminal:
        (folder / "script.json").write_text(json.dumps(replies))
        _program(folder, "settings", "set", "model.default", f"script:{folder / 'script.json'}")
        _program(folder, "servers", "add", "small", "--", sys.executable, str(SMALL), str(folder))
        made.append(Terminal(folder, *argv))
        return made[-1]

    yield start
    for one in made:
        one.close()


def _program(folder: Path, *argv: str) -> None:
    words = [sys.executable, "-m", "desktop_host", "--home", str(folder / "home"), *argv]
    subprocess.run(words, check=True, capture_output=True, timeout=60)


def _call(tool: str, **arguments: Any) -> dict[str, Any]:
    return {"call": {"tool": tool, "arguments": arguments}}


def test_a_person_talks_approves_fills_a_form_and_leaves(terminal):
    t = terminal(
        [
            [{"text": "Hello."}],
            [_call("small.echo", text="für dich")],
            [{"text": "I said ${last_result}."}],
            [_call("small.ask")],
            [{"text": "It is ${last_result}"}],
        ]
    )
    first = t.wait_for("> ")
    assert "display" in first
    t.type("hi\n")
    t.wait_for(r"Hello\.")
    t.wait_for("> ")
    t.type("say it\n")
    shown = t.wait_for(r"\[n\] no: ")
    assert "small.echo" in shown
    assert "für dich" in shown
    t.type("maybe\n")
    t.wait_for("y s t v n")
    t.type("s\n")
    t.wait_for("I said für dich")
    t.wait_for("> ")
    t.type("ask me\n")
    t.wait_for(r"\[n\] no: ")
    t.type("y\n")
    t.wait_for(r"name\*: ")
    t.type("Ada\n")
    t.wait_for('"name": "Ada"')
    t.wait_for("> ")
    t.type("/sessions\n")
    t.wait_for("hi")
    t.type("/nonsense\n")
    t.wait_for("No such command")
    t.type("/quit\n")
    assert t.process.wait(timeout=30) == 0
    assert termios.tcgetattr(t.slave) == t.before


def test_ctrl_c_stops_a_turn_and_the_chat_goes_on(terminal):
    t = terminal([[{"text": "wait"}, _call("small.slow")], [{"text": "resumed"}]])
    t.wait_for("> ")
    t.type("go\n")
    t.wait_for(r"\[n\] no: ")
    t.type("y\n")
    deadline = time.monotonic() + 30
    while not (t.folder / "started").exists():
        assert time.monotonic() < deadline
        time.sleep(0.05)
    t.process.send_signal(signal.SIGINT)
    t.wait_for("Stopped")
    t.wait_for("> ")
    t.type("/resume\n")
    t.wait_for("resumed")
    t.wait_for("> ")
    t.process.send_signal(signal.SIGINT)
    assert t.process.wait(timeout=30) == 130
    assert termios.tcgetattr(t.slave) == t.before


def test_stopping_while_a_question_is_open_takes_the_question_back(terminal):
    t = terminal([[_call("small.echo", text="x")], [{"text": "later"}]], "--lang", "en")
    t.wait_for("> ")
    t.type("go\n")
    t.wait_for(r"\[n\] no: ")
    t.process.send_signal(signal.SIGINT)
    t.wait_for("Stopped")
    t.wait_for("> ")
    t.type("/resume\n")
    t.wait_for("later")
    t.wait_for("> ")
    t.type("\x04")
    assert t.process.wait(timeout=30) == 0
