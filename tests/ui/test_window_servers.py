"""The main job in the real window with public servers: each is pasted in, started, and a tool of it is called."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from pytestqt.qtbot import QtBot

from desktop_host.core.messages import Audio, EmbeddedResource, Image, Outcome, ResourceLink, Text
from desktop_host.core.sessions import TurnStatus
from tests.ui.window_kit import Window, call, everything_over_http, listens, npm, pypi, script

pytestmark = [pytest.mark.live, pytest.mark.slow]


def test_a_tool_of_each_public_server_is_called_and_its_content_is_shown(real_window: Window, tmp_path: Path) -> None:
    """Hazard D49: lists are read, and every server stays connected."""
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "hello.txt").write_text("hello from a file")
    subprocess.run(["git", "init", "-q", str(tmp_path / "repo")], check=True)
    with everything_over_http() as start:
        http, sse = start("streamableHttp"), start("sse")
        real_window.until(lambda: listens(http) and listens(sse))
        call_each(real_window, tmp_path, http, sse)


def call_each(window: Window, tmp_path: Path, http: int, sse: int) -> None:
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
