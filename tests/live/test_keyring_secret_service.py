from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

CHILD = Path(__file__).with_name("keyring_child.py")
needs_daemon = pytest.mark.skipif(
    not (shutil.which("gnome-keyring-daemon") and shutil.which("dbus-run-session")),
    reason="gnome-keyring and dbus are not installed",
)
pytestmark = pytest.mark.live

UNLOCKED = """
printf 'test\\n' | gnome-keyring-daemon --unlock --components=secrets >/dev/null 2>&1
# Asking the service itself would make the bus start a second, locked daemon.
for _ in $(seq 400); do
    dbus-send --session --print-reply --dest=org.freedesktop.DBus / org.freedesktop.DBus.NameHasOwner \
        string:org.freedesktop.secrets 2>/dev/null | grep -q 'boolean true' && break
    sleep 0.05
done
export KEYRING_PID=$(dbus-send --session --print-reply --dest=org.freedesktop.DBus / \
    org.freedesktop.DBus.GetConnectionUnixProcessID string:org.freedesktop.secrets | awk 'END {print $2}')
"$@"
status=$?
kill -CONT "$KEYRING_PID" 2>/dev/null; kill "$KEYRING_PID" 2>/dev/null
exit $status
"""
NEVER_SET_UP = '"$@"'


def environment(folder: Path) -> dict[str, str]:
    hidden = ("DISPLAY", "WAYLAND_DISPLAY", "DBUS_SESSION_BUS_ADDRESS", "PYTHON_KEYRING_BACKEND")
    kept = {k: v for k, v in os.environ.items() if k not in hidden and not k.startswith("XDG_")}
    rooms = {"HOME": "home", "XDG_RUNTIME_DIR": "run", "XDG_DATA_HOME": "data", "XDG_CONFIG_HOME": "config"}
    for name in rooms.values():
        (folder / name).mkdir(mode=0o700)
    return kept | {key: str(folder / name) for key, name in rooms.items()}


def in_session(script: str, verb: str, folder: Path) -> dict[str, Any]:
    (folder / "profile").mkdir()
    command = ["dbus-run-session", "--", "bash", "-c", script, "bash", sys.executable, str(CHILD), verb]
    done = subprocess.run(
        [*command, str(folder / "profile")], capture_output=True, text=True, timeout=90, env=environment(folder)
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


@needs_daemon
def test_secrets_go_to_the_real_secret_service_and_back(tmp_path: Path) -> None:
    """Hazards O134, O139."""
    answer = in_session(UNLOCKED, "roundtrip", tmp_path)
    assert answer["probe"]["ok"] is True
    assert (answer["probe"]["store"], answer["described"]["store"]) == ("keyring", "keyring")
    assert "SecretService" in answer["described"]["detail"]
    assert answer["names"] == ["openai", "tokens"]
    assert (answer["key"], answer["big"]) == ("sk-真-key", 1_000_000)
    assert (answer["left"], answer["after"]) == ([], [None, None])
    kept = b"".join(p.read_bytes() for p in (tmp_path / "profile").iterdir())
    assert b"sk-" not in kept
    assert not (tmp_path / "profile" / "vault.enc").exists()


@needs_daemon
def test_a_locked_secret_service_is_told_with_its_remedy(tmp_path: Path) -> None:
    """Hazard O134."""
    answer = in_session(UNLOCKED, "locked", tmp_path)
    assert (answer["get"], answer["put"]) == ("vault_locked/locked", "vault_locked/locked")
    assert answer["names"] == ["openai"]
    assert (answer["probe"]["ok"], answer["probe"]["remedy"]) == (False, "remedy.vault_locked.locked")
    assert "locked" in answer["doctor"][1] and answer["doctor"][2].startswith("Unlock the system's keyring")


@needs_daemon
def test_a_stopped_secret_service_costs_the_limit_and_later_works_again(tmp_path: Path) -> None:
    answer = in_session(UNLOCKED, "stopped", tmp_path)
    assert (answer["first"], answer["second"]) == ("vault_locked/timeout", "vault_locked/timeout")
    assert 0.9 < answer["took"] < 5
    assert (answer["later"], answer["value"]) == ("fine", "sk-secret")


@needs_daemon
def test_a_stopped_secret_service_holds_no_program_back(tmp_path: Path) -> None:
    assert in_session(UNLOCKED, "hang", tmp_path)["get"] == "vault_locked/timeout"


@needs_daemon
def test_a_bus_without_any_keyring_is_told(tmp_path: Path) -> None:
    """Hazard O134: gnome-keyring is installed, but nobody ever made a keyring and there is no display."""
    answer = in_session(NEVER_SET_UP, "none", tmp_path)
    assert answer["get"] is None
    assert answer["put"].startswith("vault_")
    assert answer["probe"]["remedy"]


def test_no_bus_at_all_is_told_with_the_remedy(tmp_path: Path) -> None:
    """Hazard O134."""
    (tmp_path / "profile").mkdir()
    done = subprocess.run(
        [sys.executable, str(CHILD), "none", str(tmp_path / "profile")], capture_output=True, text=True, timeout=60,
        env=environment(tmp_path) | {"DBUS_SESSION_BUS_ADDRESS": "/dev/null"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert (answer["get"], answer["put"]) == (None, "vault_unavailable/no_keyring")
    assert answer["probe"]["remedy"] == "remedy.vault_unavailable.no_keyring"
