"""A profile that does not open, as its window tells."""

from __future__ import annotations

from contextlib import asynccontextmanager
from pathlib import Path

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel, QLineEdit
from pytestqt.qtbot import QtBot

from desktop_host.core.errors import KnownFault
from desktop_host.engine.host import HostSpec
from desktop_host.ui.bridge import Bridge
from desktop_host.ui.widgets.not_open import Unlock
from desktop_host.ui.widgets.window import MainWindow
from desktop_host.ui.widgets.workspace import Workspace
from desktop_host.ui.window_state import WindowState
from tests.fakes.shell_host import ShellHost


def test_a_window_asks_for_the_passphrase_that_the_profile_needs_before_it_opens(qtbot: QtBot, tmp_path: Path) -> None:
    host = ShellHost()

    @asynccontextmanager
    async def open_host(spec):  # type: ignore[no-untyped-def]
        if spec.passphrase != "open sesame":
            reason = "wrong_passphrase" if spec.passphrase else "no_passphrase"
            raise KnownFault("vault_locked", "locked", reason=reason, path="/p/secrets.bin", backend="encrypted_file")
        yield host

    bridge = Bridge(open_host, HostSpec(tmp_path))
    window = MainWindow(WindowState(tmp_path, "test"))
    workspace = Workspace(window, bridge, bridge.start)
    window.show()
    bridge.start()

    def card() -> Unlock | None:
        return next((u for u in window.findChildren(Unlock) if u.isVisible()), None)

    for words in ("wrong", "open sesame"):
        qtbot.waitUntil(lambda: card() is not None and card().field.hasFocus() and not bridge.running)  # type: ignore[union-attr]
        found = card()
        assert found is not None and found.field.echoMode() is QLineEdit.EchoMode.Password
        assert not found.open.isEnabled()
        if words != "wrong":
            assert any("does not open /p/secrets.bin" in w.text() for w in found.findChildren(QLabel))
        qtbot.keyClicks(found.field, words)
        qtbot.keyClick(found.field, Qt.Key.Key_Return)
        assert found.field.text() == ""
        found.hide()
    qtbot.waitUntil(lambda: workspace.settings.loaded, timeout=30_000)
    assert "open sesame" not in repr(bridge._spec)
    with qtbot.waitSignal(bridge.closed, timeout=30_000):
        bridge.close()
    window.hide()
    window.deleteLater()
