"""The skills library in the window: cards, health, drop and preview, a skill's page, shares, acts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import QMimeData, QPoint, QPointF, Qt, QUrl
from PySide6.QtGui import QDragEnterEvent, QDropEvent
from PySide6.QtWidgets import QApplication, QLabel, QMenu, QMessageBox
from pytestqt.qtbot import QtBot

from desktop_host import i18n
from desktop_host.core.errors import KnownFault
from desktop_host.core.skills import SkillProblem, SkillStatus
from desktop_host.ui.theme import theme
from desktop_host.ui.widgets.page import Empty, ErrorCard
from desktop_host.ui.widgets.skill_detail import TABS, SkillDetailPage
from desktop_host.ui.widgets.skill_files import FilesTab
from desktop_host.ui.widgets.skill_history import ChatsTab, HistoryTab
from desktop_host.ui.widgets.skill_install import InstallPage
from desktop_host.ui.widgets.skill_overview import OverviewTab
from desktop_host.ui.widgets.skill_places import PlaceCard, PlacesPage
from desktop_host.ui.widgets.skill_triggers import MatchLine, TriggersTab
from desktop_host.ui.widgets.skill_versions import VersionsTab
from desktop_host.ui.widgets.skill_words import why_text
from desktop_host.ui.widgets.skills_page import SkillsPage, dropped
from tests.fakes.shell_host import ShellHost
from tests.fakes.skill_library import parcels, stock
from tests.ui.shell_kit import Shell

LEFT = Qt.MouseButton.LeftButton
GOOD, BAD = Path("/x/release-notes.zip"), Path("/x/photo.zip")
Make = Callable[..., Shell]


@pytest.fixture
def make(qtbot: QtBot, tmp_path: Path) -> Iterator[Make]:
    made: list[Shell] = []

    def build(*, empty: bool = False, fail: bool = False) -> Shell:
        host = ShellHost()
        host.populate()
        if not empty:
            stock(host.library)
        if fail:
            host.library.fail = KnownFault("permission", "denied", path="/x")
        parcels(host.library, GOOD, BAD)
        shell = Shell(qtbot, tmp_path, host)
        made.append(shell)
        shell.workspace.skills.show()
        shell.until(lambda: not shell.workspace.skills.model.reading)
        return shell

    yield build
    for shell in made:
        shell.close()


def page(shell: Shell) -> SkillsPage:
    return shell.workspace.skills.page


def detail(shell: Shell, name: str = "travel-planner") -> SkillDetailPage:
    shell.workspace.skills.show(name)
    found = page(shell).detail
    assert found is not None
    shell.until(lambda: found.detail is not None)
    return found


def save(shell: Shell, name: str, **changed: object) -> None:
    """Somebody saves a skill's files."""

    async def act(_host: object) -> None:
        shell.host.library.save(name, **changed)

    shell.bridge.call(act).result(5)


def words(within: object) -> str:
    return "\n".join(one.text() for one in within.findChildren(QLabel))  # type: ignore[attr-defined]


def names(shell: Shell) -> list[str]:
    return [card.skill.name for card in page(shell).list.cards.values()]


# ---- the list


def test_a_card_says_name_description_version_source_and_state(make: Make) -> None:
    shell = make()
    card = next(c for c in page(shell).list.cards.values() if c.skill.name == "travel-planner")
    text = words(card)
    for part in ("Plan journeys day by day", "1.1.0", "profile", "ready", "3 versions", "1.1.0 90 %"):
        assert part in text
    assert card.title.text() == "Travel planner"
    assert "1.2.0-beta 10 %" in text


def test_the_health_of_a_card_names_file_line_cause_and_mend(make: Make) -> None:
    shell = make()
    broken = next(c for c in page(shell).list.cards.values() if c.skill.name == "broken-one")
    text = words(broken.health)
    assert "SKILL.md:1" in text
    assert "never closed" in text
    assert "To mend it: Put a line ---" in text
    assert not broken.switch.isVisible()


def test_what_is_missing_is_said_before_any_run(make: Make) -> None:
    shell = make()
    card = next(c for c in page(shell).list.cards.values() if c.skill.name == "travel-planner")
    assert "Needs the server maps" in words(card.health)


def test_a_shadowed_skill_says_what_is_used_instead_and_has_no_page(make: Make) -> None:
    shell = make()
    card = next(c for c in page(shell).list.cards.values() if c.skill.shadowed_by)
    assert "/opt/desktop-host/skills/document-writer" in words(card)
    assert not card.title.isEnabled()
    shell.qtbot.mouseClick(card, LEFT)
    assert page(shell).detail is None


def test_search_takes_every_word_in_name_description_or_source(make: Make) -> None:
    shell = make()
    page(shell).list.search.setText("csv chart")
    shell.until(lambda: names(shell) == ["data-analyst"])
    page(shell).list.search.setText("纪要")
    shell.until(lambda: names(shell) == ["document-writer"])
    page(shell).list.search.setText("no such thing")
    shell.until(lambda: not names(shell))
    shell.press("Show all skills")
    shell.until(lambda: len(names(shell)) == 6)


def test_filters_show_what_needs_a_look_and_what_is_off(make: Make) -> None:
    shell = make()
    filters = page(shell).list.filters
    filters["troubled"].click()
    assert set(names(shell)) == {"broken-one", "changelog", "document-writer", "travel-planner"}
    filters["off"].click()
    assert names(shell) == ["data-analyst"]
    assert "1" in filters["off"].text()


def test_switching_off_keeps_focus_and_place(make: Make) -> None:
    shell = make()
    card = next(c for c in page(shell).list.cards.values() if c.skill.name == "changelog")
    card.switch.setFocus()
    shell.qtbot.keyClick(card.switch, Qt.Key.Key_Space)
    shell.until(lambda: not shell.workspace.skills.model.row("changelog").enabled)  # type: ignore[union-attr]
    made = next(c for c in page(shell).list.cards.values() if c.skill.name == "changelog")
    shell.until(lambda: page(shell).list.cards[made.skill.path].switch.hasFocus())
    assert page(shell).list.cards[made.skill.path].skill.state == "disabled"


def test_nothing_installed_and_a_library_that_cannot_be_read_are_designed_states(make: Make) -> None:
    shell = make(empty=True)
    empty = page(shell).list.findChild(Empty)
    assert empty is not None
    assert "No skills yet" in words(empty)
    assert not page(shell).list.search.isVisible()
    shell.press("Install skills…", empty)
    menu = page(shell).findChild(QMenu)
    assert menu is not None
    assert menu.isVisible()
    assert [a.text() for a in menu.actions()] == ["A folder…", "Archives (.zip, .skill)…"]
    menu.close()


def test_a_failure_to_read_offers_to_try_again(make: Make) -> None:
    shell = make(fail=True)
    assert page(shell).list.findChild(ErrorCard) is not None
    shell.host.library.fail = None
    shell.press("Try again")
    shell.until(lambda: len(names(shell)) == 6)


def test_a_thousand_skills_are_listed_in_pieces(make: Make) -> None:
    from dataclasses import replace

    shell = make()
    row = shell.host.library.rows[0]
    shell.host.library.rows += [replace(row, name=f"s{i}", path=f"/s/{i}") for i in range(1000)]
    shell.workspace.skills.model.refresh()
    shell.until(lambda: len(names(shell)) == 30)
    assert "976" in page(shell).list.more.text()


# ---- news from the disk


def test_saving_on_disk_shows_at_once_with_a_quiet_notice_and_our_own_acts_with_none(make: Make) -> None:
    shell = make()
    shell.workspace.skills.model.enable("changelog", False)
    shell.until(lambda: not shell.workspace.skills.model.row("changelog").enabled)  # type: ignore[union-attr]
    assert shell.window.toasts.texts() == ()
    save(shell, "document-writer", description="Now also minutes of meetings.")
    shell.until(lambda: "Now also minutes" in words(page(shell)))
    shell.until(lambda: any("changed on disk: document-writer" in t for t in shell.window.toasts.texts()))


def test_a_skill_that_breaks_on_disk_keeps_its_page_and_says_why(make: Make) -> None:
    shell = make()
    shown = detail(shell)
    save(shell, "travel-planner", problems=(SkillProblem("unclosed", "error", 1),))
    shell.until(lambda: "never closed" in words(shown))


# ---- dropping and installing


def mime(*paths: Path) -> QMimeData:
    data = QMimeData()
    data.setUrls([QUrl.fromLocalFile(str(p)) for p in paths])
    return data


def drop(shell: Shell, *paths: Path) -> InstallPage:
    data = mime(*paths)
    where = QPoint(20, 20)
    copy, none = Qt.DropAction.CopyAction, Qt.KeyboardModifier.NoModifier
    enter = QDragEnterEvent(where, copy, data, LEFT, none)
    QApplication.sendEvent(page(shell), enter)
    assert enter.isAccepted()
    event = QDropEvent(QPointF(where), copy, data, LEFT, none)
    QApplication.sendEvent(page(shell), event)
    found = page(shell).other
    assert isinstance(found, InstallPage)
    return found


def test_only_folders_archives_and_skill_files_can_be_dropped(tmp_path: Path) -> None:
    folder = tmp_path / "one"
    folder.mkdir()
    (folder / "SKILL.md").write_text("x")
    (tmp_path / "a.txt").write_text("x")
    data = mime(folder, folder / "SKILL.md", tmp_path / "b.skill", tmp_path / "c.ZIP", tmp_path / "a.txt")
    assert dropped(data) == (folder, tmp_path / "b.skill", tmp_path / "c.ZIP")


def test_several_dropped_archives_are_previewed_each_by_itself_and_nothing_is_copied_yet(make: Make) -> None:
    shell = make()
    shown = drop(shell, GOOD, BAD)
    shell.until(lambda: len(shown.blocks) == 2)
    text = words(shown)
    for part in ("2.0.0", "3 files", "17 KB", "1 script", "Holds scripts", "SKILL.md:6"):
        assert part in text
    assert "github.list_*" in shell.texts()
    assert "would be written outside" in text
    assert not shown.blocks[1].take.isEnabled()
    assert shell.workspace.skills.model.row("release-notes") is None


def test_install_copies_what_is_marked_and_opens_it(make: Make) -> None:
    shell = make()
    shown = drop(shell, GOOD, BAD)
    shell.until(lambda: len(shown.blocks) == 2)
    assert shown.go.text() == "Install 1 skill"
    shell.qtbot.mouseClick(shown.go, LEFT)
    shell.until(lambda: page(shell).detail is not None)
    shell.until(lambda: shell.workspace.skills.model.row("release-notes") is not None)
    assert any("Installed: release-notes" in t for t in shell.window.toasts.texts())
    assert not any("on disk" in t for t in shell.window.toasts.texts())


def test_installing_over_something_says_so_and_replaces(make: Make) -> None:
    from dataclasses import replace

    shell = make()
    offer = shell.host.library.offers[GOOD]
    assert isinstance(offer, tuple)
    shell.host.library.offers[GOOD] = (replace(offer[0], name="changelog", replaces="abcdef0123456789"),)
    shown = drop(shell, GOOD)
    shell.until(lambda: shown.blocks)
    assert "replaces what is installed now (abcdef012345" in words(shown)
    assert shown.go.text() == "Replace"
    shell.qtbot.mouseClick(shown.go, LEFT)
    shell.until(lambda: shell.workspace.skills.model.row("changelog").version == "2.0.0")  # type: ignore[union-attr]


# ---- a skill's page


def test_the_page_renders_the_text_and_shows_the_source_on_wish(make: Make) -> None:
    shell = make()
    tab = detail(shell).show_tab("overview")
    assert isinstance(tab, OverviewTab)
    rendered = "\n".join(s.toPlainText() for s in tab.text.segments if hasattr(s, "toPlainText"))
    assert "**" not in rendered
    assert "day by day" in rendered
    tab.raw.click()
    assert tab.source is not None
    assert "**day by day**" in tab.source.code
    assert tab.text.isHidden()


def test_tools_are_allowed_and_taken_back_by_a_switch(make: Make) -> None:
    shell = make()
    tab = detail(shell).show_tab("overview")
    assert isinstance(tab, OverviewTab)
    shell.until(lambda: tab.grant() is not None)
    grant = tab.grant()
    assert grant is not None
    assert "maps.search_*" in words(grant)
    shell.qtbot.mouseClick(grant.switch, LEFT)
    shell.until(lambda: shell.workspace.skills.model.row("travel-planner").granted)  # type: ignore[union-attr]
    shell.until(lambda: tab.grant() is not None and tab.grant().switch.isChecked())  # type: ignore[union-attr]


def test_files_open_below_the_list(make: Make) -> None:
    shell = make()
    tab = detail(shell).show_tab("files")
    assert isinstance(tab, FilesTab)
    shell.until(lambda: tab.tree.topLevelItemCount() == 3)
    tab.choose("scripts/budget.py")
    shell.until(lambda: "argparse" in getattr(tab.shown, "code", ""))
    tab.choose("references/visas.md")
    shell.until(lambda: hasattr(tab.shown, "segments"))


def test_the_tester_says_which_skills_wake_and_why_and_why_not(make: Make) -> None:
    shell = make()
    tab = detail(shell).show_tab("triggers")
    assert isinstance(tab, TriggersTab)
    tab.tester.put("帮我规划去成都的旅行")
    shell.until(lambda: len(tab.tester.findChildren(MatchLine)) == 4)
    lines = [one.accessibleName() for one in tab.tester.findChildren(MatchLine)]
    assert "travel-planner: wakes. keyword: 旅行" in lines
    assert any(one.startswith("data-analyst: stays asleep. switched off") for one in lines)
    assert any("similarity 0.00, needs 0.62" in one for one in lines)
    tab.tester.put("What is the weather on my trip?")
    shell.until(lambda: any("excluded by: weather" in w.accessibleName() for w in tab.tester.findChildren(MatchLine)))


def test_an_example_is_tried_by_a_click(make: Make) -> None:
    shell = make()
    tab = detail(shell).show_tab("triggers")
    assert isinstance(tab, TriggersTab)
    shell.press("Plan five days in Kyoto", tab)
    assert tab.tester.field.text() == "Plan five days in Kyoto"


def test_the_library_has_a_tester_of_its_own(make: Make) -> None:
    shell = make()
    shell.press("Try a sentence")
    tester = page(shell).list.tester
    assert tester is not None
    assert tester.field.hasFocus()
    shell.qtbot.keyClicks(tester.field, "Write a report")
    shell.until(lambda: any(m.name == "document-writer" and m.chosen for m in tester.matches))


def test_sliders_always_sum_to_a_hundred_and_nothing_is_kept_before_save(make: Make) -> None:
    shell = make()
    tab = detail(shell).show_tab("versions")
    assert isinstance(tab, VersionsTab)
    shell.until(lambda: tab.shares.rows)
    tab.shares.rows["1.2.0-beta"].slider.setValue(40)
    assert tab.shares.shares == {"1.0.0": 0, "1.1.0": 60, "1.2.0-beta": 40}
    assert shell.host.library.rows[-1].versions[2].weight == 0.1
    assert tab.shares.save.isEnabled()
    shell.qtbot.mouseClick(tab.shares.undo, LEFT)
    assert tab.shares.shares["1.2.0-beta"] == 10
    tab.shares.rows["1.2.0-beta"].slider.setValue(25)
    shell.qtbot.mouseClick(tab.shares.save, LEFT)
    kept = lambda: {v.version: v.weight for v in shell.host.library._row("travel-planner").versions}  # noqa: E731
    shell.until(lambda: kept() == {"1.0.0": 0.0, "1.1.0": 0.75, "1.2.0-beta": 0.25})
    shell.until(lambda: not tab.shares.dirty)


def test_a_status_is_changed_with_the_shares(make: Make) -> None:
    shell = make()
    tab = detail(shell).show_tab("versions")
    assert isinstance(tab, VersionsTab)
    shell.until(lambda: tab.shares.rows)
    tab.shares.rows["1.2.0-beta"].status.setCurrentIndex(0)
    shell.qtbot.mouseClick(tab.shares.save, LEFT)
    row = lambda: shell.host.library._row("travel-planner").versions[2]  # noqa: E731
    shell.until(lambda: row().status is SkillStatus.STABLE)


def test_results_stand_side_by_side_and_a_version_is_promoted_with_a_way_back(make: Make) -> None:
    shell = make()
    tab = detail(shell).show_tab("versions")
    assert isinstance(tab, VersionsTab)
    shell.until(lambda: ("promote", "1.2.0-beta") in tab.results.buttons)
    text = words(tab.results)
    for part in ("590", "+61 / −4", "$4.4021", "7 (12%)"):
        assert part in text
    tab.shares.rows["1.1.0"].slider.setValue(20)
    tab.results.buttons["promote", "1.2.0-beta"].click()  # type: ignore[attr-defined]
    weights = lambda: [v.weight for v in shell.host.library._row("travel-planner").versions]  # noqa: E731
    shell.until(lambda: weights() == [0, 0, 1])
    shell.until(lambda: tab.shares.shares == {"1.0.0": 0, "1.1.0": 0, "1.2.0-beta": 100})
    shell.press("Undo", shell.window.toasts)
    shell.until(lambda: weights() == [0, 0.9, 0.1])


def test_rolling_back_gives_the_share_to_the_stable_version(make: Make) -> None:
    shell = make()
    tab = detail(shell).show_tab("versions")
    assert isinstance(tab, VersionsTab)
    shell.until(lambda: ("roll_back", "1.2.0-beta") in tab.results.buttons)
    tab.results.buttons["roll_back", "1.2.0-beta"].click()  # type: ignore[attr-defined]
    weights = lambda: [v.weight for v in shell.host.library._row("travel-planner").versions]  # noqa: E731
    shell.until(lambda: weights() == [0, 1, 0])


def test_two_versions_are_compared_file_by_file(make: Make) -> None:
    shell = make()
    tab = detail(shell).show_tab("versions")
    assert isinstance(tab, VersionsTab)
    shell.until(lambda: len(tab.diff.files) == 2)
    assert [f.accessibleName() for f in tab.diff.files] == ["SKILL.md: changed", "references/paces.md: added"]
    assert tab.diff.files[0].frame is not None
    assert "+- Offer two paces" in tab.diff.files[0].frame.code
    tab.diff.old.setCurrentIndex(2)
    shell.until(lambda: tab.diff.count.text() == "The two hold the same files.")


def test_chats_keep_their_version_until_the_person_says_otherwise(make: Make) -> None:
    shell = make()
    tab = detail(shell).show_tab("chats")
    assert isinstance(tab, ChatsTab)
    shell.until(lambda: len(tab.cards) == 2)
    assert "keyword: trip · similarity 0.71 (lexical)" in words(tab.cards[0])
    shell.press("Use the newest version in Plan a week in Lisbon with the calendar server", tab)
    shell.until(lambda: all(p.newest for p in shell.host.library.kept["travel-planner"]))
    shell.until(lambda: tab.cards and all(c.use is None for c in tab.cards))
    card = next(c for c in tab.cards if c.title.text() == "Reading list")
    shell.qtbot.mouseClick(card.title, LEFT)
    assert shell.workspace.session == "c5"
    assert shell.workspace.page == "chats"


def test_the_history_says_what_happened(make: Make) -> None:
    shell = make()
    tab = detail(shell).show_tab("history")
    assert isinstance(tab, HistoryTab)
    shell.until(lambda: len(tab.cards) == 3)
    assert "shares changed" in words(tab.cards[0])
    shell.workspace.skills.model.grant("travel-planner", True)
    shell.until(lambda: "tools allowed" in words(tab))


def test_uninstalling_asks_first_and_leaves_the_page(make: Make) -> None:
    shell = make()
    shown = detail(shell)
    shell.qtbot.mouseClick(shown.gone, LEFT)
    box = shell.window.findChild(QMessageBox)
    assert box is not None
    assert "Chats that use it keep their copy" in box.informativeText()
    shell.press("Cancel", box)
    assert shell.workspace.skills.model.row("travel-planner") is not None
    shell.qtbot.mouseClick(shown.gone, LEFT)
    box = shell.window.findChildren(QMessageBox)[-1]
    shell.press("Uninstall", box)
    shell.until(lambda: shell.workspace.skills.model.row("travel-planner") is None)
    shell.until(lambda: page(shell).detail is None)


def test_a_bundled_skill_cannot_be_uninstalled_but_exported(make: Make, tmp_path: Path) -> None:
    shell = make()
    shown = detail(shell, "document-writer")
    shell.until(lambda: shown.title.text() == "Document writer")
    assert not shown.gone.isEnabled()
    said: list[Path] = []
    shell.workspace.skills.model.export("document-writer", tmp_path / "d.zip", said.append)
    shell.until(lambda: said)
    assert shell.host.library.exported == [("document-writer", tmp_path / "d.zip")]


# ---- folders


def test_folders_stand_in_their_order_and_those_of_other_hosts_are_used_on_request(make: Make) -> None:
    shell = make()
    shell.press("Folders")
    shown = page(shell).other
    assert isinstance(shown, PlacesPage)
    shell.until(lambda: len(shown.findChildren(PlaceCard)) == 3)
    shell.press("Use these skills: /home/ada/.claude/skills", shown)
    shell.until(lambda: any(p.path.endswith(".claude/skills") for p in shell.host.library.folders))
    shell.press("Stop using: /home/ada/.claude/skills", shown)
    shell.until(lambda: not any(p.path.endswith(".claude/skills") for p in shell.host.library.folders))


# ---- keys, languages, looks


def test_keys_and_the_palette_lead_to_skills(make: Make) -> None:
    shell = make()
    shell.workspace.show_settings()
    shell.qtbot.keyClick(shell.window, Qt.Key.Key_3, Qt.KeyboardModifier.ControlModifier)
    assert shell.workspace.page == "skills"
    from desktop_host.ui.widgets.bindings import palette_entries

    entries = [e for e in palette_entries(shell.workspace) if e.text == "travel-planner"]
    assert len(entries) == 1
    entries[0].act()
    assert page(shell).detail is not None


@pytest.mark.parametrize("language", ["en", "zh_CN"])
def test_every_text_of_the_skills_has_a_place_in_both_languages(make: Make, language: str) -> None:
    shell = make()
    i18n.install(language)
    shell.window.build()
    shell.workspace.skills.show()
    shown = detail(shell)
    for tab in TABS:
        shown.show_tab(tab)
    triggers = shown.show_tab("triggers")
    assert isinstance(triggers, TriggersTab)
    triggers.tester.put("trip")
    shell.until(lambda: triggers.tester.matches)
    shell.workspace.skills.install((GOOD, BAD))
    shell.until(lambda: isinstance(page(shell).other, InstallPage) and page(shell).other.blocks)  # type: ignore[union-attr]
    page(shell).show_places()
    shell.until(lambda: page(shell).findChildren(PlaceCard))
    text = shell.texts()
    assert not [line for line in text.splitlines() if line.startswith(("skills.", "skill.", "command.", "nav."))]


def test_nothing_of_a_page_is_wider_than_the_narrow_window_at_double_type(make: Make) -> None:
    shell = make()
    shell.window.resize(720, 800)
    theme.apply("high_contrast", 200)
    try:
        shown = detail(shell)
        for tab in TABS:
            made = shown.show_tab(tab)
            shell.until(lambda made=made: made.horizontalScrollBar().maximum() == 0)  # type: ignore[attr-defined]
    finally:
        theme.apply("light", 100)


def test_a_kept_reason_is_told_in_the_persons_language() -> None:
    i18n.install("zh_CN")
    assert why_text("keyword: 旅行; semantic 0.42: lexical") == "关键词: 旅行 · 相似度 0.42（lexical）"
    i18n.install("en")
    assert why_text("chosen") == "chosen by its triggers"
    assert why_text("someone's own words") == "someone's own words"
