"""Starting and ending: what is imported, one window only, signals, an orderly quit."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import QCoreApplication, QDir, QSettings
from PySide6.QtNetwork import QLocalSocket
from pytestqt.qtbot import QtBot

from desktop_host.ui import single_instance
from desktop_host.ui.face import has_display
from desktop_host.ui.single_instance import SingleInstance, instance_name
from desktop_host.ui.window_state import WindowState

ROOT = Path(__file__).resolve().parents[2]
HEAVY = ("mcp", "anthropic", "openai", "keyring", "httpx2", "watchdog", "jsonschema")

WINDOW = textwrap.dedent(
    """
    import sys
    from pathlib import Path
    sys.path.insert(0, sys.argv[1])
    from desktop_host.ui.face import run_window

    def opener():
        from tests.fakes.fake_host import opener
        from tests.fakes.shell_host import ShellHost
        from PySide6.QtWidgets import QApplication
        host = ShellHost()
        host.populate()
        made = opener(host)
        def noted(spec):
            print("opening", flush=True)
            return made(spec)
        return noted

    def spec():
        from desktop_host.engine.host import HostSpec
        return HostSpec(Path(sys.argv[2]))

    code = run_window(opener, spec, home=Path(sys.argv[2]), arguments=sys.argv[3:], lazy=True)
    print("exit", code, flush=True)
    sys.exit(code)
    """
)


class Process:
    """A window in a process of its own."""

    def __init__(self, tmp: Path, *arguments: str) -> None:
        script = tmp / "window.py"
        script.write_text(WINDOW, "utf-8")
        environment = {**os.environ, "QT_QPA_PLATFORM": "offscreen", "TMPDIR": str(tmp)}
        self.child = subprocess.Popen(
            [sys.executable, "-W", "error", str(script), str(ROOT), str(tmp / "home"), *arguments],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment,
        )  # fmt: skip

    def read_until(self, word: str) -> str:
        assert self.child.stdout is not None
        seen = ""
        for line in self.child.stdout:
            seen += line
            if word in line:
                return seen
        raise AssertionError(f"no {word!r} in {seen!r}")

    def end(self) -> tuple[int, str]:
        out, _ = self.child.communicate(timeout=120)
        return self.child.returncode, out


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Process]:
    (tmp_path / "home").mkdir()
    process = Process(tmp_path)
    process.read_until("opening")
    yield process
    if process.child.poll() is None:
        process.child.kill()
        process.child.wait()
    if process.child.stdout is not None:
        process.child.stdout.close()


def imported(code: str) -> list[str]:
    script = f"import sys\n{code}\nimport json\nprint(json.dumps(sorted(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=ROOT,
        env={**os.environ, "QT_QPA_PLATFORM": "offscreen"},
    )  # fmt: skip
    return list(json.loads(done.stdout.splitlines()[-1]))


def test_importing_the_face_imports_no_vendor_and_not_the_hosts_types() -> None:
    modules = imported("import desktop_host.ui.face")
    assert [m for m in modules if m.split(".")[0] in (*HEAVY, "asyncio", "qasync", "yaml", "pydantic")] == []
    assert "desktop_host.engine.host" not in modules
    assert "desktop_host.core.events" not in modules


def test_importing_all_pages_imports_no_vendor() -> None:
    modules = imported("import desktop_host.ui.widgets.workspace")
    assert [m for m in modules if m.split(".")[0] in HEAVY] == []


def test_a_second_start_hands_its_arguments_to_the_first_and_leaves(running: Process, tmp_path: Path) -> None:
    code, out = Process(tmp_path, "--session", "c4").end()
    assert code == 0
    assert "opening" not in out
    assert running.child.poll() is None
    running.child.send_signal(signal.SIGTERM)
    assert running.end()[0] == 0


def test_another_profile_is_another_window(qtbot: QtBot, tmp_path: Path) -> None:
    one, other = SingleInstance(tmp_path, "a"), SingleInstance(tmp_path, "b")
    assert one.claim([])
    assert other.claim([])
    one.release()
    other.release()
    assert instance_name(tmp_path, "a") != instance_name(tmp_path, "b")
    assert instance_name(None, "a") != instance_name(tmp_path, "a")


def test_the_arguments_arrive_whole(running: Process, tmp_path: Path, qtbot: QtBot) -> None:
    running.child.send_signal(signal.SIGTERM)
    running.child.wait(120)
    seat = SingleInstance(tmp_path, "p")
    assert seat.claim([])
    seat.listen()
    got: list[object] = []
    seat.raised.connect(got.append)
    message = json.dumps({"arguments": ["--session", "日本 語\n"]}).encode() + b"\n"
    socket = QLocalSocket()
    socket.connectToServer(seat.name)
    qtbot.waitUntil(lambda: socket.state() == QLocalSocket.LocalSocketState.ConnectedState, timeout=30_000)
    socket.write(message[:10])
    socket.flush()
    QCoreApplication.processEvents()
    socket.write(message[10:])
    socket.flush()
    qtbot.waitUntil(lambda: got == [["--session", "日本 語\n"]], timeout=30_000)
    seat.release()


def test_nonsense_on_the_socket_is_refused_and_the_seat_stays(qtbot: QtBot, tmp_path: Path) -> None:
    seat = SingleInstance(tmp_path, "p")
    assert seat.claim([])
    seat.listen()
    got: list[object] = []
    seat.raised.connect(got.append)
    socket = QLocalSocket()
    socket.connectToServer(seat.name)
    qtbot.waitUntil(lambda: socket.state() == QLocalSocket.LocalSocketState.ConnectedState, timeout=30_000)
    socket.write(b"{]\n")
    socket.flush()
    qtbot.waitUntil(lambda: socket.state() == QLocalSocket.LocalSocketState.UnconnectedState, timeout=30_000)
    assert got == []
    seat.release()


@pytest.mark.parametrize(
    "left", [b"", b"garbage\xff", b"4711\npython\nthe-old-name-of-this-computer\n"], ids=["empty", "cut", "renamed"]
)
def test_a_lock_that_names_nobody_gives_way_and_the_seat_is_one_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, left: bytes
) -> None:
    monkeypatch.setattr(single_instance, "HANDOVER_S", 0.2)
    seat = SingleInstance(tmp_path, "p")
    lock = Path(QDir.temp().filePath(f"{seat.name}.lock"))
    lock.write_bytes(left)
    try:
        assert seat.claim([])
        seat.listen()
        other = QLocalSocket()
        other.connectToServer(seat.name)
        assert other.waitForConnected(5_000), "later starts find this window"
    finally:
        seat.release()
    assert not lock.exists()


def test_a_killed_window_leaves_the_seat_free(running: Process, tmp_path: Path) -> None:
    running.child.kill()
    running.child.wait()
    again = Process(tmp_path)
    again.read_until("opening")
    again.child.send_signal(signal.SIGINT)
    code, out = again.end()
    assert code == 0
    assert "exit 0" in out


@pytest.mark.parametrize("which", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_window_in_order(running: Process, which: signal.Signals) -> None:
    asked = time.monotonic()
    running.child.send_signal(which)
    code, out = running.end()
    assert code == 0
    assert "exit 0" in out
    assert "Traceback" not in out
    assert time.monotonic() - asked < 10


def test_without_a_display_a_sentence_is_said_and_nothing_aborts(tmp_path: Path) -> None:
    script = "from desktop_host.ui.face import run_window\nimport sys\nsys.exit(run_window(None, None, lazy=True))"
    quiet = {k: v for k, v in os.environ.items() if k not in ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM")}
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        env={**quiet, "LANG": "en"},
    )
    assert done.returncode == 2
    assert "DISPLAY" in done.stderr


def test_a_display_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM"):
        monkeypatch.delenv(name, raising=False)
    assert has_display() is not sys.platform.startswith("linux")
    monkeypatch.setenv("WAYLAND_DISPLAY", "wayland-0")
    assert has_display()


def test_the_window_remembers_its_place_and_nothing_secret(tmp_path: Path) -> None:
    state = WindowState(tmp_path, "p")
    state.keep("folded", True)
    state.keep("scale", 120)
    state.save()
    again = WindowState(tmp_path, "p")
    assert again.flag("folded")
    assert again.number("scale", 100) == 120
    keys = QSettings(str(tmp_path / "window-p.ini"), QSettings.Format.IniFormat).allKeys()
    assert set(keys) == {"folded", "scale"}


def test_a_broken_memory_of_the_window_gives_the_defaults(tmp_path: Path) -> None:
    (tmp_path / "window-p.ini").write_text("[General]\nscale=huge\nfolded=\x00\n", "latin-1")
    state = WindowState(tmp_path, "p")
    assert state.number("scale", 100) == 100
    assert not state.flag("folded")
