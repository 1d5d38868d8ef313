"""The main job in the real window with public servers: each is pasted in, started, and a tool of it is called."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import Qt
from pytestqt.qtbot import QtBot

from desktop_host.app.compose import open_host
from desktop_host.core.messages import Audio, EmbeddedResource, Image, Outcome, ResourceLink, Text
from desktop_host.core.servers import ServerState
from desktop_host.core.sessions import TurnStatus
from desktop_host.engine.host import HostSpec
from desktop_host.ui.bridge import Bridge
from desktop_host.ui.theme import theme
from desktop_host.ui.widgets.ask_card import ApproveCard
from desktop_host.ui.widgets.tool_card import ToolCard
from desktop_host.ui.widgets.window import MainWindow
from desktop_host.ui.widgets.workspace import Workspace
from desktop_host.ui.window_state import WindowState

pytestmark = [pytest.mark.live, pytest.mark.slow]
LONG = 90_000


def program(variable: str, name: str) -> str:
    """A public server's program; missing in CI is a failure, elsewhere a visible skip."""
    folder = os.environ.get(variable)
    found = shutil.which(name, path=folder) if folder else None
    found = found or shutil.which(name) or shutil.which(name, path=str(Path(sys.executable).parent))
    if found is None:
        (pytest.fail if os.environ.get("CI") else pytest.skip)(f"{name} is not installed (see packaging/test.sh)")
    return found


def npm(name: str) -> str:
    return program("DESKTOP_HOST_TEST_NODE_BIN", name)


def pypi(name: str) -> str:
    return program("DESKTOP_HOST_TEST_PYTHON_BIN", name)


class Window:
    """The window on a real host of one home."""

    def __init__(self, qtbot: QtBot, home: Path) -> None:
        theme.apply("light", 100)
        self.qtbot, self.home = qtbot, home
        self.bridge = Bridge(open_host, HostSpec(home))
        self.window = MainWindow(WindowState(home, "default"))
        qtbot.addWidget(self.window)
        self.workspace = Workspace(self.window, self.bridge, self.bridge.start)
        self.window.resize(1280, 900)
        self.window.show()
        with qtbot.waitSignal(self.bridge.ready, timeout=LONG):
            self.bridge.start()
        self.until(lambda: self.workspace.settings.loaded and not self.workspace.servers.reading)

    def until(self, holds: Callable[[], Any]) -> None:
        self.qtbot.waitUntil(lambda: bool(holds()), timeout=LONG)

    def add(self, text: str, name: str) -> None:
        """Paste a server on its page, look at the preview, press Add, wait until it is ready."""
        self.workspace.add_server()
        panel = self.workspace.servers_page.adding.panel
        panel.paste.setPlainText(text)
        self.until(lambda: panel.cards and panel.go.isEnabled())
        self.qtbot.mouseClick(panel.go, Qt.MouseButton.LeftButton)
        self.until(lambda: any(s.name == name for s in self.workspace.servers.statuses()))
        self.until(lambda: self.status(name).state in (ServerState.READY, ServerState.FAILED))
        assert self.status(name).state is ServerState.READY, self.status(name).error

    def status(self, name: str) -> Any:
        return next(s for s in self.workspace.servers.statuses() if s.name == name)

    def say(self, text: str, script: Path) -> None:
        self.workspace.show_chat(None)
        chat = self.workspace.chat
        chat.chat.choices.pick_model(f"script:{script}")
        chat.focus_composer()
        self.qtbot.keyClicks(chat.composer.edit, text)
        self.qtbot.keyClick(chat.composer.edit, Qt.Key.Key_Return)

    def approve_all(self) -> None:
        """Allow whatever is asked, by the button a person would press, until the turn ends."""
        view, model = self.workspace.chat.view, self.workspace.chat.chat.transcript

        def step() -> bool:
            for row in list(view.rows.values()):
                if isinstance(row, ApproveCard) and not row.done and row.isVisible():
                    self.qtbot.mouseClick(row.buttons[0], Qt.MouseButton.LeftButton)
            return model.now.last_stop is not None and not model.running

        self.qtbot.waitUntil(step, timeout=LONG)

    @property
    def cards(self) -> list[ToolCard]:
        return [r for r in self.workspace.chat.view.rows.values() if isinstance(r, ToolCard)]

    def picture(self, name: str) -> None:
        """Keep a picture where somebody wants to look at it (`DESKTOP_HOST_SHOTS`)."""
        if folder := os.environ.get("DESKTOP_HOST_SHOTS"):
            Path(folder).mkdir(parents=True, exist_ok=True)
            self.qtbot.wait(400)  # for the picture alone: layouts settle, toasts fade
            assert self.window.grab().save(str(Path(folder) / f"{name}.png"))

    def close(self) -> None:
        if self.bridge.running:
            with self.qtbot.waitSignal(self.bridge.closed, timeout=LONG):
                self.bridge.close()


@pytest.fixture
def window(qtbot: QtBot, tmp_path: Path) -> Iterator[Window]:
    opened = Window(qtbot, tmp_path / "home")
    yield opened
    opened.close()


def script(path: Path, *replies: list[dict[str, Any]]) -> Path:
    path.write_text(json.dumps(list(replies)), "utf-8")
    return path


def call(tool: str, **arguments: Any) -> dict[str, Any]:
    return {"call": {"tool": tool, "arguments": arguments}}


def free_port() -> int:
    with closing(socket.socket()) as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


@pytest.fixture
def http_everything() -> Iterator[Callable[[str], int]]:
    """Start server-everything over HTTP in a process of its own; gives its port once it listens."""
    running: list[subprocess.Popen[bytes]] = []

    def start(kind: str) -> int:
        port = free_port()
        env = os.environ | {"PORT": str(port)}
        running.append(
            subprocess.Popen(
                [npm("mcp-server-everything"), kind], env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
            )
        )
        return port

    yield start
    for process in running:
        process.kill()
        process.wait()


def listens(port: int) -> bool:
    with closing(socket.socket()) as sock:
        return sock.connect_ex(("127.0.0.1", port)) == 0


def test_a_tool_of_each_public_server_is_called_and_its_content_is_shown(
    window: Window, tmp_path: Path, http_everything: Callable[[str], int]
) -> None:
    """Hazard D49: lists are read, and every server stays connected."""
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "hello.txt").write_text("hello from a file")
    subprocess.run(["git", "init", "-q", str(tmp_path / "repo")], check=True)
    http, sse = http_everything("streamableHttp"), http_everything("sse")
    window.until(lambda: listens(http) and listens(sse))

    window.add(npm("mcp-server-everything"), "everything")
    window.add(json.dumps({"mcpServers": {"remote": {"url": f"http://127.0.0.1:{http}/mcp"}}}), "remote")
    window.add(json.dumps({"mcpServers": {"old": {"url": f"http://127.0.0.1:{sse}/sse", "type": "sse"}}}), "old")
    files = {"command": npm("mcp-server-filesystem"), "args": [str(tmp_path / "docs")]}
    memory = {"command": npm("mcp-server-memory"), "env": {"MEMORY_FILE_PATH": str(tmp_path / "memory.json")}}
    window.add(json.dumps({"mcpServers": {"files": files}}), "files")
    window.add(json.dumps({"mcpServers": {"memory": memory}}), "memory")
    window.add(json.dumps({"mcpServers": {"fetch": {"command": pypi("mcp-server-fetch")}}}), "fetch")
    git = {"command": pypi("mcp-server-git"), "args": ["--repository", str(tmp_path / "repo")]}
    window.add(json.dumps({"mcpServers": {"git": git}}), "git")
    clock = {"command": pypi("mcp-server-time"), "args": ["--local-timezone=UTC"]}
    window.add(json.dumps({"mcpServers": {"time": clock}}), "time")
    window.workspace.show_servers()
    window.picture("servers")

    replies = script(
        tmp_path / "script.json",
        [
            {"text": "Let me try each of them."},
            call("everything.echo", message="over stdio"),
            call("everything.get-tiny-image"),
            call("everything.get-annotated-message", messageType="error", includeImage=True),
            call("everything.get-structured-content", location="New York"),
            call("everything.get-resource-links", count=2),
            call("everything.get-resource-reference", resourceType="Text", resourceId=1),
        ],
        [
            call("remote.echo", message="over http"),
            call("old.echo", message="over sse"),
            call("files.read_text_file", path=str(tmp_path / "docs" / "hello.txt")),
            call("memory.read_graph"),
            call("git.git_status", repo_path=str(tmp_path / "repo")),
            call("time.get_current_time", timezone="UTC"),
            call("fetch.fetch", url="http://127.0.0.1:9/"),
        ],
        [{"text": "Every server answered."}],
    )
    window.say("Try a tool of each server", replies)
    window.approve_all()
    window.picture("chat")
    entries = {f"{c.entry.server}.{c.entry.tool}": c.entry for c in window.cards}
    assert len(entries) == 13
    failed = {name: e.content for name, e in entries.items() if e.outcome is not Outcome.OK}
    assert failed.keys() == {"fetch.fetch"}, "the fetch server refuses loopback; its error is shown"
    kinds = {type(b) for e in entries.values() for b in e.content}
    assert kinds == {Text, Image, ResourceLink, EmbeddedResource}
    assert entries["everything.get-structured-content"].structured
    assert "over http" in str(entries["remote.echo"].content) and "over sse" in str(entries["old.echo"].content)
    for card in window.cards:
        card.setFocus()
        window.qtbot.keyClick(card, Qt.Key.Key_Return)
    window.picture("results")
    assert Audio not in kinds, "server-everything has no audio; the chat's own tests show it"


def test_closing_in_mid_turn_asks_nothing_and_the_turn_resumes_on_demand(qtbot: QtBot, tmp_path: Path) -> None:
    first = Window(qtbot, tmp_path / "home")
    replies = script(
        tmp_path / "script.json", [{"text": "half of it "}, {"delay_ms": 60_000}], [{"text": "the other half"}]
    )
    first.say("tell me", replies)
    model = first.workspace.chat.chat.transcript
    first.until(lambda: any("half of it" in getattr(e, "text", "") for e in model.now.entries))
    session = first.workspace.chat.chat.session
    first.close()
    second = Window(qtbot, tmp_path / "home")
    try:
        second.workspace.show_chat(session)
        again = second.workspace.chat.chat.transcript
        second.until(lambda: again.now.last_status is TurnStatus.INTERRUPTED)
        assert any("half of it" in getattr(e, "text", "") for e in again.now.entries)
        second.bridge.call(lambda host: host.resume(session)).result(20)
        second.until(lambda: any("the other half" in getattr(e, "text", "") for e in again.now.entries))
        second.until(lambda: again.now.last_status is TurnStatus.DONE)
    finally:
        second.close()
