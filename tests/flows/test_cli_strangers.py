"""A stranger's text and a terminal; a limit of the profile and a server that hangs."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
import time
from pathlib import Path

import pytest

SERVER = Path(__file__).parents[1] / "fakes" / "servers" / "evil.py"
HARMFUL = ("\x1b]", "\x1b[2J", "\x07", "\x9b", "\u202e", "\u2066", "\u2069")


def _words(home: Path, *argv: str) -> list[str]:
    return [sys.executable, "-m", "desktop_host", "--home", str(home), *argv]


def _environment(folder: Path) -> dict[str, str]:
    return {
        "PATH": os.environ["PATH"], "HOME": str(folder), "LC_ALL": "C.UTF-8", "TERM": "dumb",
        "DBUS_SESSION_BUS_ADDRESS": "/dev/null",
    }  # fmt: skip


@pytest.fixture
def home(tmp_path: Path) -> Path:
    home = tmp_path / "home"
    made = _words(home, "servers", "add", "evil", "--", sys.executable, str(SERVER))
    subprocess.run(made, check=True, capture_output=True, timeout=60, env=_environment(tmp_path))
    return home


def _at_terminal(home: Path, *argv: str) -> str:
    main, slave = pty.openpty()
    process = subprocess.Popen(
        _words(home, *argv), stdin=subprocess.DEVNULL, stdout=slave, stderr=slave, env=_environment(home.parent)
    )
    os.close(slave)
    shown = b""
    try:
        while part := os.read(main, 65_536):
            shown += part
    except OSError:  # Linux's way to say that the other side is closed.
        pass
    finally:
        os.close(main)
        process.wait(timeout=60)
    return shown.decode()


@pytest.mark.parametrize(
    "argv",
    [
        ("servers", "test", "evil"),
        ("servers", "list"),
        ("tools", "list"),
        ("tools", "call", "evil", "look"),
        ("prompts", "list", "evil"),
        ("resources", "list", "evil"),
    ],
    ids=" ".join,
)
def test_no_text_of_a_server_steers_a_terminal(home: Path, argv: tuple[str, ...]) -> None:
    shown = _at_terminal(home, *argv)
    assert any(x in shown for x in ("evil", "seen", "two", "x:"))
    assert not [repr(x) for x in HARMFUL if x in shown], ascii(shown)
    assert "Usage" not in shown
    assert "--help" not in shown
    if "call" in argv:
        assert "seen\\u001b]0;owned\\u0007" in shown


def test_no_text_of_a_model_and_no_title_steers_a_terminal(home: Path) -> None:
    script = home.parent / "script.json"
    script.write_text(json.dumps([[{"text": "said\u202e\x1b[2J\x9b"}]] * 2))
    set_model = _words(home, "settings", "set", "model.default", f"script:{script}")
    subprocess.run(set_model, check=True, timeout=60, env=_environment(home.parent))
    said = _at_terminal(home, "chat", "title\u202e\x1b[2J\u2066")
    assert "said\\u202e\\u001b[2J\\u009b" in said, ascii(said)
    listed = _at_terminal(home, "sessions", "list")
    assert "title" in listed
    for shown in (said, listed):
        assert not [repr(x) for x in HARMFUL if x in shown], ascii(shown)


def test_a_call_of_a_server_without_a_limit_of_its_own_ends_by_the_setting(home: Path) -> None:
    env = _environment(home.parent)
    subprocess.run(_words(home, "settings", "set", "tools.call_timeout_s", "1"), check=True, timeout=60, env=env)
    began = time.monotonic()
    made = subprocess.run(
        _words(home, "tools", "call", "evil", "hang"), capture_output=True, text=True, timeout=100, env=env
    )
    assert made.returncode != 0
    assert time.monotonic() - began < 60
    assert "1 s" in made.stdout + made.stderr
