"""The inspector over real servers: every exchange paired, filtered, copied, sent again; logs; nothing secret shown."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication, QComboBox
from pytestqt.qtbot import QtBot

from desktop_host.ui.widgets.inspector_trace import TraceView
from desktop_host.ui.widgets.server_logs import LogsView
from tests.fakes.servers.stage import HERE
from tests.ui.window_kit import Window, call, everything_over_http, listens, npm, script

pytestmark = [pytest.mark.live, pytest.mark.slow]
SECRET = "hunter2-hunter2-hunter2"
LEFT = Qt.MouseButton.LeftButton


@pytest.fixture
def window(qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Window]:
    """The window over a home whose secrets are kept in the encrypted file."""
    (tmp_path / "passphrase").write_text("correct horse battery staple\n")
    monkeypatch.setenv("DESKTOP_HOST_PASSPHRASE_FILE", str(tmp_path / "passphrase"))
    opened = Window(qtbot, tmp_path / "home")
    yield opened
    opened.close()


def methods(trace: TraceView) -> list[str]:
    return [trace.shown.index(at, 0).data(257).method for at in range(trace.shown.rowCount())]


def choose(window: Window, trace: TraceView, method: str) -> None:
    """Click the newest row of a method."""
    at = max(n for n, name in enumerate(methods(trace)) if name == method)
    index = trace.shown.index(at, 2)
    trace.table.scrollTo(index)
    window.qtbot.mouseClick(trace.table.viewport(), LEFT, pos=trace.table.visualRect(index).center())
    window.until(lambda: trace.current is not None and trace.current.method == method)


def test_the_wire_of_a_chat_over_two_transports_is_searched_copied_and_sent_again(
    window: Window, tmp_path: Path
) -> None:
    entry = {"command": npm("mcp-server-everything"), "env": {"API_TOKEN": SECRET}}
    window.add(json.dumps({"mcpServers": {"near": entry}}), "near")
    with everything_over_http() as start:
        port = start("streamableHttp")
        window.until(lambda: listens(port))
        window.add(json.dumps({"mcpServers": {"far": {"url": f"http://127.0.0.1:{port}/mcp"}}}), "far")
        lines = script(
            tmp_path / "lines.json",
            [call("near.echo", message="one"), call("far.get-sum", a=2, b=3), call("near.get-env")],
            [{"text": "done"}],
        )
        window.say("go", lines)
        window.approve_all()
        window.key(Qt.Key.Key_I, Qt.KeyboardModifier.ControlModifier | Qt.KeyboardModifier.ShiftModifier)
        panel = window.workspace.inspector.panel
        assert panel is not None
        panel.tabs.setCurrentWidget(panel.trace)
        trace = panel.trace
        window.until(lambda: methods(trace).count("tools/call") == 3)
        window.picture("inspector-chat")
        rows = [x for x in trace.wire.rows if x.method == "tools/call"]
        assert {x.server for x in rows} == {"near", "far"} and all(x.state == "ok" and x.ms is not None for x in rows)
        assert SECRET not in trace.all_text(), "the server told its environment; the trace does not"
        assert "•••" in next(x.pretty() for x in rows if x.detail == "get-env")

        window.click(trace.search)
        window.type("get-sum")
        window.until(lambda: set(methods(trace)) == {"tools/call", "tools/list"} or methods(trace) == ["tools/call"])
        choose(window, trace, "tools/call")
        window.press("Copy", trace)
        copied = QApplication.clipboard().text()
        assert '"a": 2' in copied and '"result"' in copied
        window.click(trace.resend.open_button)
        window.picture("inspector-resend")
        trace.resend.params.setPlainText(trace.resend.params.toPlainText().replace('"b": 3', '"b": 40'))
        window.click(trace.resend.go)
        window.until(lambda: len([x for x in trace.wire.rows if x.detail == "get-sum" and x.reply]) == 2)
        again = [x for x in trace.wire.rows if x.detail == "get-sum"][-1]
        assert "42" in again.pretty() and again.state == "ok"
        window.until(lambda: trace.current is again)
        assert "42" in trace.json.toPlainText() and trace.json.isVisible(), "its answer stands below"
        trace.search.clear()

        logs = window.tab("far", "logs")
        assert isinstance(logs, LogsView)
        kinds = logs.findChild(QComboBox)
        assert kinds is not None
        kinds.setCurrentIndex(kinds.findData("network"))
        window.until(lambda: "POST http://127.0.0.1" in logs.text.toPlainText())
        window.picture("inspector-network")
        whole = window.tab("near", "trace")
        window.until(lambda: "initialize" in methods(whole))
        choose(window, whole, "initialize")
        assert not whole.resend.open_button.isEnabled(), "what opens a connection is not sent again"
        window.picture("inspector-server")


def test_a_server_that_crashes_leaves_its_last_words_and_an_unanswered_request(window: Window, tmp_path: Path) -> None:
    entry = {"command": sys.executable, "args": [str(HERE / "raw.py")]}
    window.add(json.dumps({"mcpServers": {"frail": entry}}), "frail")
    window.say("go", script(tmp_path / "lines.json", [call("frail.crash")], [{"text": "sorry"}]))
    window.approve_all()
    trace: Any = window.tab("frail", "trace")
    window.until(lambda: "tools/call" in methods(trace))
    window.click(trace.errors)
    window.until(lambda: methods(trace).count("tools/call") >= 1)
    choose(window, trace, "tools/call")
    window.until(lambda: trace.current.state == "lost")
    window.picture("inspector-crash")
    logs: Any = window.tab("frail", "logs")
    window.until(lambda: "the connection ended (exit code 7)" in logs.text.toPlainText())
    window.picture("inspector-crash-logs")
