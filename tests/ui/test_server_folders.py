"""The folders of the bundled knowledge server, by clicks and keys in the real window over the real server."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication, QLabel

from desktop_host.core.places import shipped
from desktop_host.core.servers import Http, ServerConfig, Stdio
from desktop_host.core.values import FrozenDict
from desktop_host.ui.viewmodels.folders import keeps_folders
from desktop_host.ui.widgets.ask_card import FormCard
from desktop_host.ui.widgets.server_folders import FoldersTab
from tests.ui.window_kit import Window

pytestmark = pytest.mark.live


def shown(tab: FoldersTab) -> str:
    return "\n".join(one.text() for one in tab.findChildren(QLabel) if one.isVisible())


def asked() -> list[FormCard]:
    """Questions of no chat stand in windows of their own."""
    return [c for c in QApplication.allWidgets() if isinstance(c, FormCard) and c.isVisible() and not c.done]


def test_a_folder_is_taken_in_asked_and_taken_out_without_a_terminal(real_window: Window, tmp_path: Path) -> None:
    tea, more = tmp_path / "tea", tmp_path / "more"
    for folder, count, text in ((tea, 1, "Steep green tea for two minutes."), (more, 120, "Grind coffee beans.")):
        folder.mkdir()
        for n in range(count):
            (folder / f"{n:03}.md").write_text(f"# Note {n}\n\n{text}\n")
    args = [str(shipped("resources", "servers", "knowledge")), "serve", "--folder", str(tea), "--cache",
            str(tmp_path / "cache")]  # fmt: skip
    real_window.add(json.dumps({"mcpServers": {"papers": {"command": sys.executable, "args": args}}}), "papers")
    tab = real_window.tab("papers", "folders")
    assert isinstance(tab, FoldersTab)
    real_window.until(lambda: tab.summary.text().startswith("1 document,") and list(tab.removers) == [str(tea)])
    real_window.until(lambda: "Note 0" in shown(tab))

    tab.take_in(str(more))  # What the folder dialog of the platform hands over.
    real_window.until(lambda: list(tab.removers) == [str(tea), str(more)])
    real_window.until(lambda: tab.summary.text().startswith("121 documents,") and not tab.bar.isVisible())

    real_window.click(tab.query)
    real_window.type("how long does green tea steep")
    real_window.key(Qt.Key.Key_Return)
    real_window.until(lambda: "Steep green tea" in shown(tab) and "000.md:" in shown(tab))
    real_window.picture("folders")
    real_window.click(tab.query)
    tab.query.selectAll()
    real_window.type("zebra")
    real_window.press("Search", tab)
    real_window.until(lambda: "Nothing fits" in shown(tab))

    (tea / "new.md").write_text("# Fresh\n\nOolong.\n")  # Seen without a press of anything.
    real_window.until(lambda: tab.summary.text().startswith("122 documents,"))

    real_window.click(tab.removers[str(more)])
    real_window.until(asked)
    (card,) = asked()
    assert str(more) in "\n".join(one.text() for one in card.findChildren(QLabel))
    real_window.click(card.accept)
    real_window.until(lambda: list(tab.removers) == [str(tea)] and tab.summary.text().startswith("2 documents,"))

    tab.take_in(str(tmp_path / "nowhere"))
    real_window.until(lambda: "nowhere" in shown(tab))
    assert list(tab.removers) == [str(tea)]
    real_window.workspace.servers.stop("papers")
    real_window.until(lambda: not tab.add_folder.isEnabled() and tab.summary.text().startswith("Start the server"))


def test_only_the_knowledge_server_has_folders() -> None:
    own = Stdio(sys.executable, (str(shipped("resources", "servers", "knowledge")), "serve"), FrozenDict({}))
    assert keeps_folders(ServerConfig("a", own))
    assert keeps_folders(ServerConfig("b", Stdio("desktop-host", ("knowledge", "serve"))))
    assert not keeps_folders(ServerConfig("c", Stdio("npx", ("-y", "knowledge-graph"))))
    assert not keeps_folders(ServerConfig("d", Http("https://example.com/knowledge")))
    assert not keeps_folders(None)
