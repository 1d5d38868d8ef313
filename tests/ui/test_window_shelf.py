"""The server of both eras in the real window: each feature as its era has it, the same to the person."""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QCheckBox, QLabel

from desktop_host.core.messages import Outcome, Text
from desktop_host.core.servers import Protocol, ServerState
from desktop_host.core.values import freeze
from desktop_host.ui.widgets.ask_card import FormCard
from desktop_host.ui.widgets.pieces import CodeBox
from desktop_host.ui.widgets.sampling_card import ReplyCard, SamplingCard
from desktop_host.ui.widgets.server_resources import ResourceRow, ResourcesTab
from tests.fakes.servers.stage import HERE
from tests.ui.window_kit import Window, call, script

pytestmark = [pytest.mark.live, pytest.mark.slow]
ERAS = pytest.mark.parametrize("era", ["2026-07-28", "2025-11-25"])


def shelf(window: Window, era: str) -> None:
    """Add the server, speaking this era."""
    entry: dict[str, Any] = {"command": sys.executable, "args": [str(HERE / "dual.py")]}
    if era != "2026-07-28":
        entry["desktopHost"] = {"protocol": Protocol.LEGACY.value}
    window.add(json.dumps({"mcpServers": {"shelf": entry}}), "shelf")
    assert window.status("shelf").era == era


def texts(window: Window, tool: str) -> str:
    return "\n".join(block.text for block in window.card(tool).entry.content if isinstance(block, Text))


@ERAS
def test_tools_samples_forms_and_progress_look_alike_in_both_eras(
    real_window: Window, tmp_path: Path, era: str
) -> None:
    """What a modern server needs comes as rounds of the same call."""
    window = real_window
    shelf(window, era)
    lines = script(
        tmp_path / "script.json",
        [call("shelf.find", word="rye")],
        [call("shelf.shorten", name="tea")],
        [call("shelf.drop", name="rye")],
        [call("shelf.sort")],
        [{"text": "Tidy."}],
        sampling=[[{"text": "Three minutes."}]],
    )
    window.say("Tidy the shelf", lines)
    sampling = window.asked(SamplingCard)
    assert sampling.edit is not None and sampling.edit.toPlainText() == "In short: Steep for three minutes."
    window.click(sampling.send)
    window.click(window.asked(ReplyCard).send)
    form = window.asked(FormCard)
    assert any(one.text() == "Throw rye away?" for one in form.findChildren(QLabel))
    (sure,) = form.form.rows[0].widgets
    assert isinstance(sure, QCheckBox)
    window.until(sure.hasFocus)
    window.key(Qt.Key.Key_Space)
    window.click(form.accept)
    window.approve_all()
    assert window.said() == "Tidy."
    assert {card.entry.tool: card.entry.outcome for card in window.cards} == dict.fromkeys(
        ("find", "shorten", "drop", "sort"), Outcome.OK
    )
    assert window.card("find").entry.structured == freeze({"names": ["rye"]})
    assert texts(window, "shorten").endswith(": Three minutes.")
    assert (texts(window, "drop"), texts(window, "sort")) == ("dropped rye", "sorted")
    window.picture(f"shelf-{era}")


@ERAS
def test_a_resource_is_watched_again_after_its_server_was_lost(real_window: Window, tmp_path: Path, era: str) -> None:
    """There is no replay, so one update stands for the gap and the resource is read anew."""
    window = real_window
    shelf(window, era)
    tab: ResourcesTab = window.tab("shelf", "resources")
    window.until(lambda: len(tab.rows) == 2)
    row, template = (r for r in tab.rows if isinstance(r, ResourceRow))
    window.click(row.watch)

    def shown() -> str:
        return "\n".join(box.toPlainText() for box in row.findChildren(CodeBox))

    window.until(lambda: shown() == "rye\ntea")
    assert row.mark.isHidden()

    async def watched(servers: Any) -> tuple[str, ...]:
        found: tuple[str, ...] = servers.subscribed("shelf")
        return found

    window.until(lambda: window.of_host(watched) == ("shelf://all",))

    def keep(name: str) -> None:
        async def act(servers: Any) -> None:
            await servers.call_tool("shelf", "keep", {"name": name, "text": "…"})

        window.of_host(act)

    keep("nut")
    window.until(lambda: shown() == "nut\nrye\ntea")
    assert not row.mark.isHidden()

    pid = window.status("shelf").pid
    os.kill(pid, signal.SIGKILL)
    window.until(lambda: window.status("shelf").state is ServerState.READY and window.status("shelf").pid != pid)
    window.until(lambda: shown() == "rye\ntea")  # a new process has never heard of the nut
    assert window.of_host(watched) == ("shelf://all",) and row.watch.isChecked()
    keep("fig")
    window.until(lambda: shown() == "fig\nrye\ntea")

    window.click(template.arguments.fields["name"])
    window.type("t")
    window.until(lambda: template.arguments.proposals("name") == ("tea",))
    window.key(Qt.Key.Key_Down)
    window.key(Qt.Key.Key_Return)
    window.click(template.read)
    window.until(lambda: [box.toPlainText() for box in template.findChildren(CodeBox)] == ["Steep for three minutes."])
    window.picture(f"shelf-resources-{era}")
