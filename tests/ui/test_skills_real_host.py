"""The skills page on a real host: files on disk, saved, broken, mended, installed, in the real library."""

from __future__ import annotations

import json
import os
import statistics
import time
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel, QPushButton, QWidget
from pytestqt.qtbot import QtBot

from desktop_host.app.compose import open_host
from desktop_host.engine.host import Host, HostSpec
from desktop_host.ui.bridge import Bridge
from desktop_host.ui.theme import theme
from desktop_host.ui.widgets.notice import NoticeLine
from desktop_host.ui.widgets.skill_code import Listing
from desktop_host.ui.widgets.skill_detail import SkillDetailPage
from desktop_host.ui.widgets.skill_install import InstallPage, PreviewCard
from desktop_host.ui.widgets.skill_overview import OverviewTab
from desktop_host.ui.widgets.user_message import UserMessage
from desktop_host.ui.widgets.window import MainWindow
from desktop_host.ui.widgets.workspace import Workspace
from desktop_host.ui.window_state import WindowState

TEXT = """---
name: meeting-notes
description: Write the minutes of a meeting from rough notes.
metadata:
  desktop-host-keywords: minutes; meeting notes; 会议纪要
---
# Meeting notes

Begin with **who was there**.
"""


class Window:
    """The window on a real host of one home."""

    def __init__(self, qtbot: QtBot, home: Path) -> None:
        theme.apply("light", 100)
        self.qtbot, self.home = qtbot, home
        self.bridge = Bridge(open_host, HostSpec(home))
        self.window = MainWindow(WindowState(home, "test"))
        self.workspace = Workspace(self.window, self.bridge, self.bridge.start)
        self.window.build()
        self.window.show()
        self.bridge.start()
        self.until(lambda: self.workspace.settings.loaded and not self.workspace.skills.model.reading, 30_000)
        folder = self.bridge.call(self._folder).result(10)
        self.skills = folder / "skills"

    async def _folder(self, host: Host) -> Path:
        return host.folder

    def until(self, holds: Callable[[], Any], timeout: int = 10_000) -> None:
        self.qtbot.waitUntil(lambda: bool(holds()), timeout=timeout)

    def words(self) -> str:
        page = self.workspace.skills.page
        labels = "\n".join(one.text() for one in page.findChildren(QLabel))
        tabs = [s for t in page.findChildren(OverviewTab) for s in t.text.segments]
        return labels + "\n".join(s.toPlainText() for s in tabs if hasattr(s, "toPlainText"))

    def close(self) -> None:
        with self.qtbot.waitSignal(self.bridge.closed, timeout=15_000):
            self.bridge.close()
        self.window.hide()
        self.window.deleteLater()


@pytest.fixture
def window(qtbot: QtBot, tmp_path: Path) -> Iterator[Window]:
    home = tmp_path / "home"
    made = Window(qtbot, home)
    yield made
    made.close()


def test_a_saved_file_is_on_the_page_within_a_second_and_a_broken_one_says_why(window: Window) -> None:
    folder = window.skills / "meeting-notes"
    folder.mkdir(parents=True)
    file = folder / "SKILL.md"
    file.write_text(TEXT, "utf-8")
    window.workspace.skills.show()
    window.until(lambda: "Write the minutes" in window.words())
    window.workspace.skills.show("meeting-notes")
    detail = window.workspace.skills.page.detail
    assert isinstance(detail, SkillDetailPage)
    window.until(lambda: "who was there" in window.words())
    file.write_text(TEXT.replace("who was there", "the decisions"), "utf-8")
    window.until(lambda: "the decisions" in window.words())
    window.until(lambda: any("meeting-notes" in t for t in window.window.toasts.texts()))
    file.write_text("---\nname: meeting-notes\ndescription: never closed\n", "utf-8")
    window.until(lambda: "never closed" in window.words() and "SKILL.md:1" in window.words())
    file.write_text(TEXT, "utf-8")
    window.until(lambda: "SKILL.md:1" not in window.words())


def test_every_way_to_save_is_painted_within_a_second(window: Window) -> None:
    """From the save to the picture: in place, by an editor that replaces the file, a renamed and a moved folder."""
    folder = window.skills / "meeting-notes"
    folder.mkdir(parents=True)
    file = folder / "SKILL.md"
    file.write_text(TEXT, "utf-8")
    window.workspace.skills.show("meeting-notes")
    window.until(lambda: "who was there" in window.words())
    page = window.workspace.skills.page

    def painted(change: Callable[[], object], holds: Callable[[], Any]) -> float:
        began = time.monotonic()
        change()
        window.until(holds)
        page.repaint()
        return time.monotonic() - began

    def saved(words: str) -> None:
        file.write_text(TEXT.replace("who was there", words), "utf-8")

    def replaced(words: str) -> None:
        draft = folder / ".SKILL.md.swp"
        draft.write_text(TEXT.replace("who was there", words), "utf-8")
        draft.replace(file)

    took = [
        painted(
            lambda: file.write_text(TEXT.replace("who was there", "the first")), lambda: "the first" in window.words()
        ),
        painted(lambda: replaced("the second"), lambda: "the second" in window.words()),
        painted(
            lambda: file.write_text(TEXT.replace("who was there", "the third")), lambda: "the third" in window.words()
        ),
        painted(lambda: replaced("the fourth"), lambda: "the fourth" in window.words()),
    ]
    window.workspace.skills.show()
    away, back = window.home / "elsewhere", window.skills / "meeting-notes"
    took += [
        painted(lambda: folder.rename(away), lambda: "Write the minutes" not in window.words()),
        painted(lambda: away.rename(back), lambda: "Write the minutes" in window.words()),
        painted(lambda: back.rename(window.skills / "renamed"), lambda: "renamed" in window.words()),
    ]
    # The middle of the seven: one that a busy machine holds up says nothing of the watcher.
    assert statistics.median(took) < 1, took
    assert max(took) < 3, took


def test_what_an_archive_holds_can_be_read_before_it_is_installed(window: Window, tmp_path: Path) -> None:
    archive = tmp_path / "meeting-notes.zip"
    with zipfile.ZipFile(archive, "w") as made:
        made.writestr("meeting-notes/SKILL.md", TEXT)
        made.writestr("meeting-notes/scripts/count.py", "import sys\n\n\nprint(len(sys.argv))\n")
        made.writestr("meeting-notes/assets/model.bin", bytes(range(256)) * 64)
    window.workspace.skills.install((archive,))
    shown = window.workspace.skills.page.other
    assert isinstance(shown, InstallPage)
    window.until(lambda: shown.blocks)
    card = next(iter(shown.findChildren(PreviewCard)))
    card.fold.click()
    window.until(lambda: isinstance(card.files.shown, Listing))
    assert "Begin with" in card.files.shown.source  # type: ignore[union-attr]
    card.files.choose("scripts/count.py")
    window.until(lambda: isinstance(card.files.shown, Listing) and "sys.argv" in (card.files.shown.source or ""))
    if folder := os.environ.get("SHOTS"):
        window.window.grab().save(f"{folder}/preview-files.png")
    card.files.choose("assets/model.bin")
    window.until(lambda: isinstance(card.files.shown, QLabel))
    assert "16" in card.files.shown.text()  # type: ignore[union-attr]
    assert not (window.skills / "meeting-notes").exists(), "nothing is installed by looking"


def test_a_dropped_archive_is_previewed_and_installed(window: Window, tmp_path: Path) -> None:
    archive = tmp_path / "meeting-notes.skill"
    with zipfile.ZipFile(archive, "w") as made:
        made.writestr("meeting-notes/SKILL.md", TEXT)
        made.writestr("meeting-notes/scripts/count.py", "print(1)\n")
    evil = tmp_path / "evil.zip"
    with zipfile.ZipFile(evil, "w") as made:
        made.writestr("evil/SKILL.md", TEXT)
        made.writestr("../../outside.txt", "x")
    window.workspace.skills.install((archive, evil))
    page = window.workspace.skills.page
    shown = page.other
    assert isinstance(shown, InstallPage)
    window.until(lambda: len(shown.blocks) == 2)
    assert shown.blocks[1].offer.error is not None
    assert shown.blocks[0].offer.found[0].scripts == ("scripts/count.py",)
    shown.go.click()
    window.until(lambda: page.detail is not None)
    assert (window.skills / "meeting-notes" / "SKILL.md").is_file()
    assert not (tmp_path / "outside.txt").exists()
    page.show_skill("meeting-notes", "triggers")
    tab = page.detail.show_tab("triggers")  # type: ignore[union-attr]
    tab.tester.put("Please write the minutes")  # type: ignore[attr-defined]
    window.until(lambda: any(m.chosen for m in tab.tester.matches if m.name == "meeting-notes"))  # type: ignore[attr-defined]
    for name in ("files", "versions", "chats", "history"):
        page.detail.show_tab(name)  # type: ignore[union-attr]
    window.until(lambda: "installed" in window.words())


def test_a_chat_keeps_its_version_of_a_skill_and_says_why_it_woke(window: Window, tmp_path: Path) -> None:
    folder = window.skills / "meeting-notes"
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text(TEXT, "utf-8")
    script = tmp_path / "script.json"
    script.write_text(json.dumps({"replies": [[{"text": "Present: Ada."}], [{"text": "Decided: tea."}]]}), "utf-8")
    w = window.workspace
    w.show_chat(None)
    chat = w.chat
    chat.chat.choices.pick_model(f"script:{script}")
    window.until(lambda: w.skills.model.row("meeting-notes") is not None)
    chat.composer.put("Please write the minutes of today")
    window.until(lambda: "meeting-notes" in chat.skills.chips)
    assert "minutes" in chat.skills.chips["meeting-notes"].toolTip()
    chat.chat.send("Please write the minutes of today")
    chat.composer.put("")

    def rows() -> list[UserMessage]:
        return [r for r in chat.view.rows.values() if isinstance(r, UserMessage)]

    window.until(lambda: rows() and "meeting-notes" in rows()[0].skills.chips)
    assert "keyword: minutes" in rows()[0].skills.chips["meeting-notes"].toolTip()
    window.until(lambda: not chat.chat.transcript.running)
    (folder / "SKILL.md").write_text(TEXT.replace("who was there", "the decisions"), "utf-8")
    window.until(lambda: [p.pin.name for p in chat.skills.model.older] == ["meeting-notes"])
    chat.skills.model.use_newest("meeting-notes")
    window.until(lambda: chat.skills.model.older == ())

    def told() -> bool:
        notices = [r for r in chat.view.rows.values() if isinstance(r, NoticeLine)]
        return any("now uses meeting-notes" in r.accessibleName() for r in notices)

    window.until(told)


def test_a_chat_in_a_folder_with_skills_asks_before_they_count(window: Window, tmp_path: Path) -> None:
    project = tmp_path / "shop"
    for name in ("stock-take", "price-list"):
        folder = project / ".agents" / "skills" / name
        folder.mkdir(parents=True)
        (folder / "SKILL.md").write_text(f"---\nname: {name}\ndescription: About {name}.\n---\nDo it.\n", "utf-8")
    w = window.workspace
    w.show_chat(None)
    strip = w.chat.skills
    w.chat.chat.choices.pick_roots((str(project),))

    def question() -> QWidget | None:
        found = [c for c in strip.findChildren(QWidget, "projectQuestion") if not c.isHidden()]
        return found[0] if found else None

    window.until(question)
    assert "price-list, stock-take" in question().accessibleName()  # type: ignore[union-attr]
    window.until(lambda: question().height() > 60)  # type: ignore[union-attr]
    if folder := os.environ.get("SHOTS"):
        window.window.grab().save(f"{folder}/project-question.png")
    buttons = {b.text(): b for b in question().findChildren(QPushButton)}  # type: ignore[union-attr]
    window.qtbot.mouseClick(buttons["Not now"], Qt.MouseButton.LeftButton)
    window.until(lambda: question() is None)
    assert w.skills.model.row("stock-take") is None, "what nobody trusts does not count"
    strip._dismissed.clear()
    strip.show_state()
    buttons = {b.text(): b for b in question().findChildren(QPushButton)}  # type: ignore[union-attr]
    window.qtbot.mouseClick(buttons["Trust this folder"], Qt.MouseButton.LeftButton)
    window.until(lambda: question() is None and w.skills.model.row("stock-take") is not None)
