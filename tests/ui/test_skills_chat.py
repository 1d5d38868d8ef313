"""Skills in a chat: why they woke, what is offered, what is missing before the run, and newer versions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel, QPushButton
from pytestqt.qtbot import QtBot

from desktop_host.core import events as ev
from desktop_host.core.settings import put
from desktop_host.core.skill_admin import SessionPin
from desktop_host.core.skills import SkillPin
from desktop_host.core.values import FrozenDict
from desktop_host.ui.widgets.notice import NoticeLine
from desktop_host.ui.widgets.skill_strip import SkillStrip
from desktop_host.ui.widgets.user_message import UserMessage
from tests.fakes.fake_host import FakeHost
from tests.fakes.shell_host import ShellHost
from tests.fakes.skill_library import stock
from tests.ui.shell_kit import Shell

LEFT = Qt.MouseButton.LeftButton
Make = Callable[..., Shell]
PIN = SkillPin("travel-planner", "1.0.0", "d1", "keyword: trip; semantic 0.42: lexical")


@pytest.fixture
def make(qtbot: QtBot, tmp_path: Path) -> Iterator[Make]:
    made: list[Shell] = []

    def build(script: Callable[..., object] | None = None, *, activation: str = "auto") -> Shell:
        host = ShellHost()
        host.settings.now = put(host.settings.now, "skills.activation", activation)
        host.models.weights.add("qwen2.5-coder-0.5b")
        host.populate()
        stock(host.library)
        if script is not None:
            host.script = script  # type: ignore[assignment]
        shell = Shell(qtbot, tmp_path, host)
        made.append(shell)
        return shell

    yield build
    for shell in made:
        shell.close()


async def woken(host: FakeHost, session: str, text: str) -> None:
    host.publish(session, ev.SkillsChosen((PIN,), "body", ("data-analyst",)), turn_of(host, session))
    host.publish(session, ev.Notice("skill_needs", FrozenDict({"skill": PIN.name, "kind": "server", "name": "maps"})))
    await host.say(session, "Here is the plan.")


def turn_of(host: FakeHost, session: str) -> int:
    return host.journal[session][-1].turn


def say(shell: Shell, text: str) -> UserMessage:
    chat = shell.workspace.chat
    shell.workspace.show_chat("c1")
    shell.until(lambda: not chat.chat.busy)
    chat.chat.send(text)

    def row() -> UserMessage | None:
        rows = [r for r in chat.view.rows.values() if isinstance(r, UserMessage)]
        return rows[-1] if rows and rows[-1].skills.chips else None

    shell.until(row)
    found = row()
    assert found is not None
    return found


def strip(shell: Shell) -> SkillStrip:
    return shell.workspace.chat.skills


def words(within: object) -> str:
    return "\n".join(one.text() for one in within.findChildren(QLabel))  # type: ignore[attr-defined]


def test_a_chip_names_the_skill_and_says_why_it_woke(make: Make) -> None:
    shell = make(woken)
    row = say(shell, "Plan my trip")
    chip = row.skills.chips["travel-planner"]
    assert chip.text() == "travel-planner 1.0.0"
    assert chip.toolTip() == "keyword: trip · similarity 0.42 (lexical)"
    assert "keyword: trip" in chip.accessibleName()
    shell.qtbot.mouseClick(chip, LEFT)
    assert row.skills.why.text() == "Why: keyword: trip · similarity 0.42 (lexical)"
    shell.qtbot.mouseClick(row.skills.open, LEFT)
    assert shell.workspace.page == "skills"
    assert shell.workspace.skills.page.detail is not None


def test_an_offered_skill_is_used_by_a_click(make: Make) -> None:
    shell = make(woken)
    row = say(shell, "Plan my trip")
    shell.qtbot.mouseClick(row.skills.chips["data-analyst"], LEFT)
    assert shell.workspace.chat.composer.text == "/data-analyst Plan my trip"


def test_what_a_chosen_skill_lacks_stands_in_the_conversation(make: Make) -> None:
    shell = make(woken)
    say(shell, "Plan my trip")
    lines = lambda: [r for r in shell.workspace.chat.view.rows.values() if isinstance(r, NoticeLine)]  # noqa: E731
    shell.until(lines)
    assert "travel-planner may not do all it should" in lines()[0].accessibleName()
    assert "Needs the server maps" in lines()[0].accessibleName()


def test_while_typing_the_chat_says_what_will_wake_and_what_is_missing(make: Make) -> None:
    shell = make()
    shell.workspace.show_chat("c1")
    shell.qtbot.keyClicks(shell.workspace.chat.composer.edit, "A trip to Kyoto")
    shell.until(lambda: "travel-planner" in strip(shell).chips)
    assert strip(shell).isVisible()
    assert "Will wake:" in words(strip(shell))
    lacking = shell.find(QLabel, "maps is missing", strip(shell))
    assert "Needs the server maps, which is not configured" in lacking.toolTip()
    assert strip(shell).chips["travel-planner"].toolTip() == "keyword: trip"
    shell.workspace.chat.composer.put("")
    shell.until(lambda: not strip(shell).isVisible())


def test_where_skills_are_only_suggested_they_are_chips_to_click(make: Make) -> None:
    shell = make(activation="suggest")
    shell.workspace.show_chat(None)
    composer = shell.workspace.chat.composer
    shell.qtbot.keyClicks(composer.edit, "Write a report")
    shell.until(lambda: "document-writer" in strip(shell).chips)
    assert "Use a skill?" in words(strip(shell))
    shell.qtbot.mouseClick(strip(shell).chips["document-writer"], LEFT)
    assert composer.text == "/document-writer Write a report"
    shell.until(lambda: "Will wake:" in words(strip(shell)))


def test_an_older_version_is_kept_until_use_newest_is_pressed(make: Make) -> None:
    shell = make(woken)
    kept = SessionPin("c1", "Chat", PIN, False)
    shell.host.library.kept["travel-planner"] = [kept]
    say(shell, "Plan my trip")
    shell.until(lambda: strip(shell).model.older == (kept,))
    button = shell.find(QPushButton, "Use newest travel-planner", strip(shell))
    assert "travel-planner 1.0.0: this chat keeps it" in button.toolTip()
    shell.qtbot.mouseClick(button, LEFT)
    shell.until(lambda: strip(shell).model.older == ())
    rows = shell.workspace.chat.view.rows.values()
    shell.until(lambda: any("now uses travel-planner 1.1.0" in r.accessibleName() for r in rows))


def test_the_notice_of_an_older_version_can_be_put_away(make: Make) -> None:
    shell = make(woken)
    shell.host.library.kept["travel-planner"] = [SessionPin("c1", "Chat", PIN, False)]
    say(shell, "Plan my trip")
    shell.until(lambda: strip(shell).isVisible())
    shell.press("Keep this version of travel-planner", strip(shell))
    shell.until(lambda: not strip(shell).isVisible())
