"""What server-everything does while it runs: log lines by level, progress, cancellation, tasks; in the window."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QComboBox, QLabel, QProgressBar

from desktop_host.core.messages import Outcome, Text
from desktop_host.core.sessions import TurnStatus
from desktop_host.ui.widgets.server_logs import LogsView
from desktop_host.ui.widgets.server_resources import ResourceRow, ResourcesTab
from tests.ui.window_kit import Window, call, everything_over_http, listens, npm, script

pytestmark = [pytest.mark.live, pytest.mark.slow]


@pytest.fixture
def window(real_window: Window) -> Window:
    real_window.add(npm("mcp-server-everything"), "everything")
    return real_window


def wire(window: Window, server: str = "everything") -> list[dict[str, Any]]:
    """The messages between host and server."""

    async def read(servers: Any) -> list[Any]:
        return [frame.message for frame in servers.trace(server)]

    made: list[dict[str, Any]] = window.of_host(read)
    return made


def sent(window: Window, method: str, server: str = "everything") -> list[dict[str, Any]]:
    """The parameters of all messages of a method."""
    return [m.get("params") or {} for m in wire(window, server) if m.get("method") == method]


def words(widget: Any) -> str:
    return "\n".join(one.text() for one in widget.findChildren(QLabel) if not one.isHidden())


def test_a_long_operation_shows_progress_message_and_time_left_and_stop_reaches_the_server(
    window: Window, tmp_path: Path
) -> None:
    lines = script(
        tmp_path / "script.json",
        [call("everything.trigger-long-running-operation", duration=120, steps=240)],
        [{"text": "never"}],
    )
    window.say("Take your time", lines)
    window.approve_all(lambda: bool(window.cards) and window.cards[0].entry.progress is not None)
    (card,) = window.cards
    bar = card.findChildren(QProgressBar)[0]
    window.until(lambda: bar.isVisible() and bar.maximum() == 1000 and bar.value() > 0)
    window.until(lambda: "left" in words(card))
    assert re.search(r"\d/240 · about \d+:\d\d min left", words(card)), words(card)
    assert card.state_text.startswith("Running · ")
    window.picture("long-operation")
    (token,) = {m["progressToken"] for m in sent(window, "notifications/progress")}
    window.key(Qt.Key.Key_Escape)
    window.until(lambda: window.ended)
    assert window.workspace.chat.chat.transcript.now.last_status is TurnStatus.INTERRUPTED
    window.until(lambda: card.entry.outcome is Outcome.CANCELLED)
    (cancelled,) = sent(window, "notifications/cancelled")
    (request,) = [m for m in wire(window) if m.get("method") == "tools/call"]
    assert cancelled["requestId"] == request["id"] and request["params"]["_meta"]["progressToken"] == token
    assert not bar.isVisible()
    window.picture("long-operation-stopped")


def test_a_tool_that_runs_as_a_task_tells_its_steps_and_asks_in_between(window: Window, tmp_path: Path) -> None:
    from desktop_host.ui.widgets.ask_card import FormCard

    lines = script(
        tmp_path / "script.json",
        [call("everything.simulate-research-query", topic="python", ambiguous=True)],
        [{"text": "Researched."}],
    )
    window.say("Research it", lines)
    steps = ("Gathering sources...", "Analyzing content...", "Found multiple interpretations")  # read once a second

    window.approve_all(lambda: bool(window.cards) and any(step in words(window.cards[0]) for step in steps))
    window.picture("task")
    form = window.asked(FormCard)
    choice = form.form.row("interpretation").widgets[0]
    assert isinstance(choice, QComboBox)
    window.click(form.title)
    choice.setFocus()
    window.key(Qt.Key.Key_Down)
    window.key(Qt.Key.Key_Down)
    assert choice.currentText() == "Python snake species"
    window.click(form.accept)
    window.approve_all()
    assert window.said() == "Researched."
    (report,) = window.cards[0].entry.content
    assert isinstance(report, Text) and "- **Clarification**: snake" in report.text


def test_a_stopped_task_is_cancelled_on_the_server(window: Window, tmp_path: Path) -> None:
    """Hazards E61, D62: the server hears it, and the card says so."""
    lines = script(tmp_path / "script.json", [call("everything.simulate-research-query", topic="tea")])
    window.say("Research it", lines)
    window.approve_all(lambda: bool(sent(window, "tasks/result")))
    window.click(window.workspace.chat.composer.stop_button)
    window.until(lambda: window.ended)
    ((cancelled,), (asked, *_)) = sent(window, "tasks/cancel"), sent(window, "tasks/result")
    assert cancelled == asked
    window.until(lambda: window.cards[0].entry.outcome is Outcome.CANCELLED)


def lines(logs: LogsView) -> str:
    """What is shown, without the spaces that make columns."""
    return " ".join(logs.text.toPlainText().split())


def test_a_changed_log_level_reaches_the_server_and_its_lines_are_seen(window: Window) -> None:
    """The level is changed on the settings page while the server runs; it is not started again."""
    started = window.status("everything").since
    settings = window.tab("everything", "settings")
    level: QComboBox = window.find(QComboBox, "Log level", settings)
    level.setFocus()
    window.type("d")
    assert level.currentData() == "debug"
    window.press("Save", settings)
    window.until(lambda: sent(window, "logging/setLevel")[-1:] == [{"level": "debug"}])
    logs: LogsView = window.tab("everything", "logs")
    logs.source.setFocus()
    window.type("Serv")
    assert logs.source.currentData() == "message"

    async def toggle(servers: Any) -> None:
        await servers.call_tool("everything", "toggle-simulated-logging", {})

    async def watch(servers: Any) -> None:
        await servers.subscribe("everything", "demo://resource/dynamic/text/1")

    window.of_host(toggle)
    window.of_host(watch)  # answered with a log line of its own
    window.until(lambda: "message/info Received Subscribe Resource request" in lines(logs))
    window.until(lambda: "level message" in logs.text.toPlainText() or "level-message" in logs.text.toPlainText())
    window.click(logs.filter)
    window.type("subscribe resource")
    window.until(lambda: logs.text.toPlainText().count("\n") == 0 and "Received" in logs.text.toPlainText())
    window.picture("logs")
    assert window.status("everything").since == started
    settings = window.tab("everything", "settings")
    level.setFocus()
    window.type("em")
    window.press("Save", settings)
    window.until(lambda: sent(window, "logging/setLevel")[-1:] == [{"level": "emergency"}])


def test_the_same_over_http_with_its_own_mcp_session(real_window: Window, tmp_path: Path) -> None:
    """Progress, log lines and cancellation over Streamable HTTP."""
    window = real_window
    with everything_over_http() as start:
        port = start("streamableHttp")
        window.until(lambda: listens(port))
        name = "remote"
        window.add(json.dumps({"mcpServers": {name: {"url": f"http://127.0.0.1:{port}/mcp"}}}), name)
        lines = script(
            tmp_path / "script.json",
            [
                call(f"{name}.toggle-simulated-logging"),
                call(f"{name}.trigger-long-running-operation", duration=60, steps=120),
            ],
        )
        window.say("Take your time", lines)
        window.approve_all(lambda: any(card.entry.progress is not None for card in window.cards))
        window.click(window.workspace.chat.composer.stop_button)
        window.until(lambda: window.ended)
        window.until(lambda: sent(window, "notifications/cancelled", name))
        logs: LogsView = window.tab(name, "logs")
        window.until(lambda: " - SessionId " in logs.text.toPlainText())
        resources: ResourcesTab = window.tab(name, "resources")
        window.until(lambda: len(resources.rows) == 9)
        row = next(r for r in resources.rows if isinstance(r, ResourceRow))
        window.click(row.watch)

        async def ready(servers: Any) -> bool:
            await servers.call_tool(name, "toggle-subscriber-updates", {})
            return bool(servers.subscribed(name))

        window.until(row.watch.isChecked)
        assert window.of_host(ready)
        window.until(lambda: not row.mark.isHidden())
