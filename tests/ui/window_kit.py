"""The real window over a real host, driven by clicks and keys, with public servers behind it."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any, TypeVar

import pytest
from PySide6.QtCore import QObject, Qt, QUrl, Slot
from PySide6.QtGui import QDesktopServices, QGuiApplication, QWindow
from PySide6.QtWidgets import QAbstractButton, QApplication, QWidget
from pytestqt.qtbot import QtBot

from desktop_host.app.compose import open_host
from desktop_host.core.servers import ServerState
from desktop_host.core.transcript import AssistantEntry
from desktop_host.engine.host import HostSpec
from desktop_host.ui.bridge import Bridge
from desktop_host.ui.theme import theme
from desktop_host.ui.widgets.ask_card import ApproveCard, AskCard
from desktop_host.ui.widgets.tool_card import ToolCard
from desktop_host.ui.widgets.window import MainWindow
from desktop_host.ui.widgets.workspace import Workspace
from desktop_host.ui.window_state import WindowState

LONG = int(os.environ.get("DESKTOP_HOST_TEST_WAIT_MS", "90000"))
"""How long (ms) a condition may take on a busy computer."""
C = TypeVar("C", bound=AskCard)
W = TypeVar("W", bound=QWidget)


def program(variable: str, name: str) -> str:
    """A public server's program; missing in CI is a failure, elsewhere a visible skip."""
    folder = os.environ.get(variable)
    found = shutil.which(name, path=folder) if folder else None
    found = found or shutil.which(name) or shutil.which(name, path=str(Path(sys.executable).parent))
    if found is None:
        (pytest.fail if os.environ.get("CI") else pytest.skip)(f"{name} is not installed (see packaging/test.sh)")
    return found


def npm(name: str) -> str:
    return program("DESKTOP_HOST_TEST_NODE_BIN", name)


def pypi(name: str) -> str:
    return program("DESKTOP_HOST_TEST_PYTHON_BIN", name)


class Strays:
    """Parts of the window that were shown before they had their place: such a one flashes and takes the keys."""

    def __init__(self) -> None:
        self.found: list[str] = []
        app = QGuiApplication.instance()
        assert isinstance(app, QGuiApplication)
        app.focusWindowChanged.connect(self._look)
        self._app = app

    def _look(self, window: QWindow | None) -> None:
        if window is not None and window.type() == Qt.WindowType.Window:
            name = window.objectName()
            if not name.startswith("MainWindow"):
                self.found.append(name)

    def close(self) -> None:
        """Fail where there was one."""
        self._app.focusWindowChanged.disconnect(self._look)
        assert self.found == []


class Window:
    """The window on a real host of one home."""

    def __init__(self, qtbot: QtBot, home: Path) -> None:
        theme.apply("light", 100)
        self.qtbot, self.home = qtbot, home
        self.strays = Strays()
        self.bridge = Bridge(open_host, HostSpec(home))
        self.window = MainWindow(WindowState(home, "default"))
        qtbot.addWidget(self.window)
        self.workspace = Workspace(self.window, self.bridge, self.bridge.start)
        self.window.resize(1280, 900)
        self.window.show()
        with qtbot.waitSignal(self.bridge.ready, timeout=LONG):
            self.bridge.start()
        self.until(lambda: self.workspace.settings.loaded and not self.workspace.servers.reading)
        self.window.activateWindow()
        self.until(self.window.isActiveWindow)

    def until(self, holds: Callable[[], Any]) -> None:
        self.qtbot.waitUntil(lambda: bool(holds()), timeout=LONG)

    # ---- hands

    def click(self, widget: QWidget) -> None:
        """Scroll to a widget and click it, as a person must."""
        self.until(lambda: widget.isVisible() and widget.isEnabled())
        self.reveal(widget)
        self.qtbot.mouseClick(widget, Qt.MouseButton.LeftButton)

    def reveal(self, widget: QWidget) -> None:
        """Bring a widget into view in whatever scrolls around it."""
        area: Any = widget.parentWidget()
        while area is not None:
            if hasattr(area, "ensureWidgetVisible"):
                area.ensureWidgetVisible(widget)
            area = area.parentWidget()

    def press(self, name: str, within: QWidget | None = None) -> None:
        """Click the button of this name or text, once it is there."""
        self.click(self.find(QAbstractButton, name, within))

    def find(self, kind: type[W], name: str, within: QWidget | None = None) -> W:
        """The visible widget of this accessible name or text, once it is there."""
        found: list[W] = []

        def there() -> bool:
            for one in (within or self.window).findChildren(kind):
                text = one.text() if callable(getattr(one, "text", None)) else ""  # type: ignore[attr-defined]
                if one.isVisible() and name in (one.accessibleName(), text.replace("&", "")):
                    found.append(one)
                    return True
            return False

        self.until(there)
        return found[0]

    def type(self, text: str) -> None:
        """Type into whatever has the focus."""
        self.qtbot.keyClicks(self.focus, text)

    def key(self, key: Qt.Key, modifier: Qt.KeyboardModifier = Qt.KeyboardModifier.NoModifier) -> None:
        """Press a key where the focus is."""
        self.qtbot.keyClick(self.focus, key, modifier)

    @property
    def focus(self) -> QWidget:
        """What the keys go to."""
        widget = QApplication.activePopupWidget() or QApplication.focusWidget()
        assert widget is not None, "nothing has the focus"
        return widget

    # ---- servers

    def add(self, text: str, name: str) -> None:
        """Paste a server on its page, look at the preview, press Add, wait until it is ready."""
        self.workspace.add_server()
        panel = self.workspace.servers_page.adding.panel
        panel.paste.setPlainText(text)
        self.until(lambda: panel.cards and panel.go.isEnabled())
        self.qtbot.mouseClick(panel.go, Qt.MouseButton.LeftButton)
        self.until(lambda: any(s.name == name for s in self.workspace.servers.statuses()))
        self.until(lambda: self.status(name).state in (ServerState.READY, ServerState.FAILED))
        assert self.status(name).state is ServerState.READY, self.status(name).error

    def status(self, name: str) -> Any:
        return next(s for s in self.workspace.servers.statuses() if s.name == name)

    def tab(self, server: str, name: str) -> Any:
        """A tab of a server's page, opened by a click on its name."""
        self.workspace.show_servers(server)
        detail = self.workspace.servers_page.detail
        assert detail is not None
        return detail.show_tab(name)

    def of_host(self, ask: Callable[[Any], Any]) -> Any:
        """What the host's servers say, asked on its own loop."""

        async def read(host: Any) -> Any:
            return await ask(host.servers)

        return self.bridge.call(read).result(LONG / 1000)

    # ---- the conversation

    def say(self, text: str, script: Path) -> None:
        """Say something in a new chat whose model plays a script."""
        self.workspace.show_chat(None)
        chat = self.workspace.chat
        chat.chat.choices.pick_model(f"script:{script}")
        self.click(chat.composer.edit)
        self.qtbot.keyClicks(chat.composer.edit, text)
        self.qtbot.keyClick(chat.composer.edit, Qt.Key.Key_Return)

    @property
    def ended(self) -> bool:
        """Whether the turn is over."""
        model = self.workspace.chat.chat.transcript
        return model.now.last_stop is not None and not model.running

    def approve_all(self, until: Callable[[], bool] | None = None) -> None:
        """Allow whatever is asked, by the button a person would press, until the turn ends (or another thing)."""

        def step() -> bool:
            for row in list(self.workspace.chat.view.rows.values()):
                if isinstance(row, ApproveCard) and not row.done and row.isVisible():
                    self.qtbot.mouseClick(row.buttons[0], Qt.MouseButton.LeftButton)
            return until() if until is not None else self.ended

        self.qtbot.waitUntil(step, timeout=LONG)

    def asked(self, kind: type[C]) -> C:
        """The open question of a kind, once it is there and laid out; calls are allowed until then."""
        found: list[C] = []

        def there() -> bool:
            rows = self.workspace.chat.view.rows.values()
            found[:] = [r for r in rows if isinstance(r, kind) and not r.done and r.isVisible()]
            return bool(found) and found[0].height() > 40

        self.approve_all(there)
        return found[0]

    @property
    def cards(self) -> list[ToolCard]:
        return [r for r in self.workspace.chat.view.rows.values() if isinstance(r, ToolCard)]

    def card(self, tool: str) -> ToolCard:
        """The newest card of a tool."""
        return next(c for c in reversed(self.cards) if c.entry.tool == tool)

    def said(self) -> str:
        """The model's words."""
        entries = self.workspace.chat.chat.transcript.now.entries
        return "\n".join(e.text for e in entries if isinstance(e, AssistantEntry))

    # ---- the rest

    def picture(self, name: str) -> None:
        """Keep a picture where somebody wants to look at it (`DESKTOP_HOST_SHOTS`)."""
        if folder := os.environ.get("DESKTOP_HOST_SHOTS"):
            Path(folder).mkdir(parents=True, exist_ok=True)
            self.qtbot.wait(400)  # for the picture alone: layouts settle, toasts fade
            assert self.window.grab().save(str(Path(folder) / f"{name}.png"))

    def close(self) -> None:
        if self.bridge.running:
            with self.qtbot.waitSignal(self.bridge.closed, timeout=LONG):
                self.bridge.close()
            self.strays.close()


class Opened(QObject):
    """What the platform was asked to open: Qt hands addresses to this instead of a browser or another program."""

    def __init__(self) -> None:
        super().__init__()
        self.urls: list[str] = []

    @Slot(QUrl)
    def take(self, url: QUrl) -> None:
        self.urls.append(bytes(url.toEncoded().data()).decode())


@contextmanager
def browser(*schemes: str) -> Iterator[Opened]:
    """Stand in for the platform's opener of these schemes."""
    opened = Opened()
    with ExitStack() as stack:
        for scheme in schemes:
            QDesktopServices.setUrlHandler(scheme, opened, "take")
            stack.callback(QDesktopServices.unsetUrlHandler, scheme)
        yield opened


def script(path: Path, *replies: list[dict[str, Any]], sampling: list[list[dict[str, Any]]] | None = None) -> Path:
    """Write a model's lines."""
    whole: Any = list(replies) if sampling is None else {"replies": list(replies), "sampling": sampling}
    path.write_text(json.dumps(whole), "utf-8")
    return path


def call(tool: str, **arguments: Any) -> dict[str, Any]:
    return {"call": {"tool": tool, "arguments": arguments}}


def free_port() -> int:
    with closing(socket.socket()) as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


def listens(port: int) -> bool:
    with closing(socket.socket()) as sock:
        return sock.connect_ex(("127.0.0.1", port)) == 0


@contextmanager
def everything_over_http() -> Iterator[Callable[[str], int]]:
    """Start server-everything over HTTP in processes of their own; gives the port of each."""
    running: list[subprocess.Popen[bytes]] = []

    def start(kind: str) -> int:
        port = free_port()
        quiet = subprocess.DEVNULL
        command = [npm("mcp-server-everything"), kind]
        running.append(
            subprocess.Popen(command, env=os.environ | {"PORT": str(port)}, stdout=quiet, stderr=quiet)
        )  # fmt: skip
        return port

    try:
        yield start
    finally:
        for process in running:
            process.kill()
            process.wait()
