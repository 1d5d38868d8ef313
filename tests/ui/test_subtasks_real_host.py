"""Sub-tasks in the real window: each part a line with its state, its question above, a way in and back."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel, QPushButton
from pytestqt.qtbot import QtBot

from desktop_host.core.entries import SubtaskEntry
from desktop_host.core.events import SubtaskChanged
from desktop_host.core.servers import ServerConfig, Stdio
from desktop_host.engine.host import Host
from desktop_host.ui.widgets.ask_card import AskCard
from desktop_host.ui.widgets.subtask_rows import LOOKS, SubtaskRow
from desktop_host.ui.widgets.tool_card import ToolCard
from desktop_host.ui.widgets.user_message import UserMessage
from tests.ui.test_skills_real_host import Window

RAW = Path(__file__).parents[1] / "fakes" / "servers" / "raw.py"
LONG = 20_000


@pytest.fixture
def window(qtbot: QtBot, tmp_path: Path) -> Iterator[Window]:
    made = Window(qtbot, tmp_path / "home")
    yield made
    made.close()


def skill(window: Window, name: str, *replies: object) -> None:
    folder = window.skills / name
    folder.mkdir(parents=True)
    script = window.home / f"{name}.json"
    script.write_text(json.dumps([r if isinstance(r, list) else [r] for r in replies]), "utf-8")
    (folder / "SKILL.md").write_text(
        f"---\nname: {name}\ndescription: About {name}.\nmetadata:\n"
        f"  desktop-host-route: script:{script}\n---\nDo it.\n"
    )


def grab(window: Window, name: str) -> None:
    """For whoever wants to look: `SHOTS=DIR`."""
    if folder := os.environ.get("SHOTS"):
        window.window.grab().save(f"{folder}/{name}.png")


def test_parts_are_lines_of_their_call_with_questions_above_and_ways_in_and_back(
    window: Window, tmp_path: Path
) -> None:
    skill(window, "flights", {"call": {"tool": "raw.echo", "arguments": {"m": "SHA to CTU"}}}, {"text": "09:40, 3 h."})
    skill(window, "hotels", [{"delay_ms": 1500}, {"text": "A room by the park, **88** a night."}])
    skill(window, "trains", {"error": {"code": "server_failed"}})
    tasks = [
        {"name": "Flights to Chengdu", "task": "Find a flight on Friday.", "skill": "flights"},
        {"name": "A quiet hotel", "task": "Find a hotel.", "skill": "hotels"},
        {"name": "Trains to the mountains", "task": "Find a train.", "skill": "trains"},
    ]
    call = {"call": {"tool": "host.run_subtasks", "arguments": {"tasks": tasks}}}
    script = tmp_path / "script.json"
    script.write_text(json.dumps([[{"text": "I look for all three at once."}, call], [{"text": "Here is the plan."}]]))

    async def prepare(host: Host) -> None:
        await host.servers.add(ServerConfig("raw", Stdio(sys.executable, (str(RAW),))))
        await host.skills.rescan()

    window.bridge.call(prepare).result(20)
    w = window.workspace
    w.show_chat(None)
    page = w.chat
    page.chat.choices.pick_model(f"script:{script}")
    page.chat.send("Plan my trip")

    def cards(kind: type) -> list:
        return [r for r in page.view.rows.values() if isinstance(r, kind)]

    def asked() -> bool:
        return any(not r.done for r in cards(AskCard))

    window.until(asked, LONG)
    above = page.chat.session
    ask = next(r for r in cards(AskCard) if not r.done)
    assert ask.ask.part == "Flights to Chengdu"
    assert any("Flights to Chengdu" in one.text() for one in ask.findChildren(QLabel))
    parts = cards(ToolCard)[0].subtasks
    assert parts is not None
    window.until(lambda: parts.rows.keys() == {1, 2, 3} and parts.rows[3].part.last.state == "failed", LONG)
    assert parts.rows[1].part.last.state == "running"
    grab(window, "subtasks-running")
    window.qtbot.keyClick(ask, Qt.Key.Key_1)
    window.until(lambda: page.chat.transcript.now.last_stop is not None, LONG)
    assert [parts.rows[n].part.last.state for n in (1, 2, 3)] == ["done", "done", "failed"]
    assert "Done" in parts.rows[1].state_text and "Failed" in parts.rows[3].state_text
    assert "3 of 3" in cards(ToolCard)[0]._line.text()
    grab(window, "subtasks-done")
    child = parts.rows[1].part.last.child
    window.qtbot.mouseClick(parts.rows[1].open_button, Qt.MouseButton.LeftButton)
    window.until(lambda: page.chat.session == child and cards(UserMessage) and cards(ToolCard), LONG)
    back = next(b for m in cards(UserMessage) for b in m.findChildren(QPushButton) if "part of another" in b.text())
    grab(window, "subtasks-part")
    window.qtbot.mouseClick(back, Qt.MouseButton.LeftButton)
    window.until(lambda: page.chat.session == above, LONG)


@pytest.mark.parametrize("state", [*LOOKS])
def test_every_state_of_a_part_has_a_look_and_a_word(qtbot: QtBot, state: str) -> None:
    row = SubtaskRow(SubtaskEntry(SubtaskChanged("c", 1, "Part", state), 0.0, 2.0))
    qtbot.addWidget(row)
    assert row.state_text and "chat.part" not in row.state_text
    assert row.open_button.isHidden(), "there is no session to open"
