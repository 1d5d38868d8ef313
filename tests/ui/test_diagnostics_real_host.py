"""Diagnostics in a window on the real host: a real fault is found, mended by its button, and reported."""

from __future__ import annotations

import stat
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import QCoreApplication, QEvent, Qt
from PySide6.QtWidgets import QAbstractButton
from pytestqt.qtbot import QtBot

from desktop_host.app.compose import open_host
from desktop_host.engine.host import HostSpec
from desktop_host.ui.bridge import Bridge
from desktop_host.ui.theme import theme
from desktop_host.ui.widgets.diagnostics_tab import DiagnosticsTab
from desktop_host.ui.widgets.window import MainWindow
from desktop_host.ui.widgets.workspace import Workspace
from desktop_host.ui.window_state import WindowState

LONG = 60_000
SETTINGS = """[general]
onboarded = true
font_scale = 9000
[network]
proxy = "http://ada:hidden-value@127.0.0.1:9"
"""


@pytest.fixture
def workspace(qtbot: QtBot, tmp_path: Path) -> Iterator[Workspace]:
    folder = tmp_path / "profiles" / "default"
    folder.mkdir(parents=True)
    (folder / "settings.toml").write_text(SETTINGS)
    theme.apply("light", 100)
    bridge = Bridge(open_host, HostSpec(tmp_path))
    window = MainWindow(WindowState(tmp_path, "test"))
    made = Workspace(window, bridge, bridge.start)
    window.build()
    window.resize(1100, 900)
    window.show()
    with qtbot.waitSignal(bridge.ready, timeout=LONG):
        bridge.start()
    qtbot.waitUntil(lambda: made.settings.loaded, timeout=LONG)
    yield made
    with qtbot.waitSignal(bridge.closed, timeout=LONG):
        bridge.close()
    window.hide()
    window.deleteLater()
    QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
    QCoreApplication.processEvents()


def press(qtbot: QtBot, tab: DiagnosticsTab, words: str) -> None:
    """Click the button of these words, once it is shown."""

    def found() -> list[QAbstractButton]:
        return [b for b in tab.findChildren(QAbstractButton) if b.isVisible() and b.text() == words]

    qtbot.waitUntil(lambda: bool(found()), timeout=LONG)
    qtbot.mouseClick(found()[0], Qt.MouseButton.LeftButton)


def test_real_faults_are_found_one_is_mended_and_the_report_keeps_the_secret(
    qtbot: QtBot, workspace: Workspace, tmp_path: Path
) -> None:
    folder = tmp_path / "profiles" / "default"
    folder.chmod(0o755)
    model = workspace.diagnostics.model
    workspace.window.commands.run("go.diagnostics")
    qtbot.waitUntil(lambda: bool(model.found) and not model.all_running, timeout=LONG)
    tab = workspace.settings_page.tabs.currentWidget()
    assert isinstance(tab, DiagnosticsTab)
    ill = {found.check for found in model.ill}
    assert {"home", "settings", "proxy"} <= ill and "database" not in ill
    assert "general.font_scale" in tab.rows["settings"].accessibleName()
    assert "hidden-value" not in tab.rows["proxy"].accessibleName()
    press(qtbot, tab, "Make it private")
    qtbot.waitUntil(lambda: "home" not in {found.check for found in model.ill}, timeout=LONG)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    press(qtbot, tab, "Report to send…")
    qtbot.waitUntil(lambda: tab.report is not None, timeout=LONG)
    target = tmp_path / "report.zip"
    tab.save_report(target)
    qtbot.waitUntil(lambda: tab.report is None, timeout=LONG)
    with zipfile.ZipFile(target) as bundle:
        texts = {name: bundle.read(name).decode() for name in bundle.namelist()}
    assert {"about.json", "checks.json", "settings.toml", "logs/host.log"} <= set(texts)
    assert "hidden-value" not in "".join(texts.values())
