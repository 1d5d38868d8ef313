"""Skills of servers on the skills page, on a real host with a real server."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QPlainTextEdit
from pytestqt.qtbot import QtBot

from desktop_host.core.servers import ServerConfig, Stdio
from desktop_host.engine.host import Host
from desktop_host.ui.widgets.skill_served import ServedCard, ServedList
from tests.ui.test_skills_real_host import Window

SKILLED = Path(__file__).parents[1] / "fakes" / "servers" / "skilled.py"
LEFT = Qt.MouseButton.LeftButton


@pytest.fixture
def shelf(tmp_path: Path) -> Path:
    folder = tmp_path / "shelf" / "notes"
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text(
        "---\nname: notes\ndescription: Writes notes our way.\n---\nBegin with the date.\n"
    )
    (folder / "style.md").write_text("Short lines.\n")
    return folder.parent


@pytest.fixture
def window(qtbot: QtBot, tmp_path: Path) -> Iterator[Window]:
    made = Window(qtbot, tmp_path / "home")
    yield made
    made.close()


def served(window: Window) -> ServedList:
    return window.workspace.skills.page.list.served


def card(window: Window) -> ServedCard:
    return served(window).cards["team--notes"]


def serve(window: Window, shelf: Path) -> None:
    """Add the server and start it."""

    async def add(host: Host) -> None:
        await host.servers.add(ServerConfig("team", Stdio(sys.executable, (str(SKILLED), str(shelf)))))
        await host.servers.start("team")

    window.bridge.call(add).result(30)
    window.until(lambda: "team--notes" in served(window).cards)


def texts(window: Window) -> str:
    """What is shown of the card's files."""
    return "\n".join(e.toPlainText() for e in card(window).findChildren(QPlainTextEdit))


def test_a_server_s_skill_is_looked_into_used_and_asks_again_when_its_files_are_others(
    window: Window, shelf: Path, qtbot: QtBot
) -> None:
    window.workspace.skills.show()
    assert not served(window).isVisible()
    serve(window, shelf)
    assert served(window).isVisible() and not card(window).use.isVisible()
    qtbot.mouseClick(card(window).look, LEFT)
    window.until(lambda: "Begin with the date." in texts(window))
    qtbot.mouseClick(card(window).files["style.md"], LEFT)
    window.until(lambda: "Begin with the date." not in texts(window))
    assert "not approved" in card(window).accessibleName()
    qtbot.mouseClick(card(window).use, LEFT)
    window.until(lambda: card(window).skill.approved and card(window).leave.isVisible())
    (shelf / "notes" / "style.md").write_text("Long lines.\n")
    window.workspace.skills.model.served.refresh()
    window.until(lambda: card(window).skill.changed)
    assert "changed since" in card(window).accessibleName()
    qtbot.mouseClick(card(window).leave, LEFT)
    window.until(lambda: not card(window).skill.changed and not card(window).leave.isVisible())
    window.bridge.call(lambda host: host.servers.stop("team")).result(30)
    window.until(lambda: not served(window).isVisible())


def test_what_is_served_otherwise_than_announced_says_so_and_cannot_be_used(
    window: Window, shelf: Path, qtbot: QtBot
) -> None:
    (shelf / "notes" / ".forged").touch()
    window.workspace.skills.show()
    serve(window, shelf)
    mine = card(window)
    qtbot.mouseClick(mine.look, LEFT)
    window.until(lambda: "is not what the server announced" in window.words())
    assert not mine.use.isVisible()
