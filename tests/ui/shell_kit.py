"""A whole window over a host in memory, for the tests of the shell."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from PySide6.QtCore import QCoreApplication, QEvent, Qt
from PySide6.QtWidgets import QAbstractButton, QWidget
from pytestqt.qtbot import QtBot

from desktop_host.core.servers import ServerConfig, ServerState
from desktop_host.engine.host import HostSpec
from desktop_host.ui.bridge import Bridge
from desktop_host.ui.theme import theme
from desktop_host.ui.widgets.window import MainWindow
from desktop_host.ui.widgets.workspace import Workspace
from desktop_host.ui.window_state import WindowState
from tests.fakes.fake_host import opener
from tests.fakes.shell_host import ShellHost

T = TypeVar("T", bound=QWidget)


class Shell:
    """The window, its workspace and the host behind."""

    def __init__(self, qtbot: QtBot, home: Path, host: ShellHost) -> None:
        theme.apply("light", 100)
        self.qtbot, self.host = qtbot, host
        self.bridge = Bridge(opener(host), HostSpec(home))
        self.window = MainWindow(WindowState(home, "test"))
        self.workspace = Workspace(self.window, self.bridge, self.bridge.start)
        self.window.build()
        self.window.show()
        self.bridge.start()
        w = self.workspace
        self.until(lambda: w.settings.loaded and not w.sessions.reading and not w.servers.reading and w.models.loaded)
        self.activate()

    def activate(self) -> None:
        """Make the window the active one, so that its keys work."""
        self.window.activateWindow()
        self.until(self.window.isActiveWindow)

    def until(self, holds: Callable[[], Any]) -> None:
        """Wait for a condition."""
        self.qtbot.waitUntil(lambda: bool(holds()), timeout=30_000)

    def find(self, kind: type[T], name: str, within: QWidget | None = None) -> T:
        """The visible widget of this accessible name or text."""
        for one in (within or self.window).findChildren(kind):
            text = one.text() if hasattr(one, "text") and callable(one.text) else ""
            if one.isVisible() and name in (one.accessibleName(), text):
                return one
        raise LookupError(f"no visible {kind.__name__} named {name!r}")

    def press(self, name: str, within: QWidget | None = None) -> None:
        """Click the button of this name, once it is there."""

        def there() -> bool:
            try:
                self.find(QAbstractButton, name, within)
            except LookupError:
                return False
            return True

        self.until(there)
        self.qtbot.mouseClick(self.find(QAbstractButton, name, within), Qt.MouseButton.LeftButton)

    def texts(self) -> str:
        """All text that stands in widgets of the window, hidden ones too."""
        parts = []
        for one in self.window.findChildren(QWidget):
            for read in ("text", "toPlainText", "placeholderText", "toolTip", "accessibleName", "displayText"):
                if callable(found := getattr(one, read, None)):
                    parts.append(str(found()))
        return "\n".join(parts)

    def close(self) -> None:
        """Close the host, then the window."""
        with self.qtbot.waitSignal(self.bridge.closed, timeout=30_000):
            self.bridge.close()
        self.window.hide()
        self.window.deleteLater()
        QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
        QCoreApplication.processEvents()


@contextmanager
def server_shells(qtbot: QtBot, home: Path) -> Iterator[Callable[..., Shell]]:
    """Gives what opens a window with these servers, started and ready; closes all windows afterwards."""
    made: list[Shell] = []

    def build(*configs: ServerConfig) -> Shell:
        shell = Shell(qtbot, home, ShellHost())
        shell.host.folder = home / "profile"
        made.append(shell)

        async def add(_host: object) -> None:
            for config in configs:
                await shell.host.servers.add(config)
                await shell.host.servers.start(config.name)

        shell.bridge.call(add).result(5)
        ready = ServerState.READY
        shell.until(lambda: [s.state for s in shell.workspace.servers.statuses()] == [ready] * len(configs))
        return shell

    yield build
    for shell in made:
        shell.close()
