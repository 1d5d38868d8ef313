"""The window as a face of the host: shown first, filled when the host's types are loaded, closed in order.

Only PySide6 and a few light modules of ours are imported before the first paint (see `widgets.window`); what
the frame needs follows at once, the host's types and the pages in a thread. `tests/ui/test_shell_start.py`
and `tests/bench/first_paint.py` hold this.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QEventLoop, QLibraryInfo, QObject, QPoint, QTimer, QTranslator, Signal
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QApplication

from desktop_host.ui.single_instance import SingleInstance
from desktop_host.ui.web_scheme import share_contexts
from desktop_host.ui.widgets.window import MainWindow
from desktop_host.ui.window_state import WindowState

if TYPE_CHECKING:
    from desktop_host.core.profiles import ProfilesPort
    from desktop_host.engine.host import Host, HostSpec, Opener
    from desktop_host.ui.bridge import Bridge
    from desktop_host.ui.widgets.profile_room import ProfileRoom
    from desktop_host.ui.widgets.workspace import Workspace

log = logging.getLogger(__name__)

CLOSE_BUDGET_S = 15.0
"""Longest wait for the host to close before the window's process leaves it behind."""


def has_display() -> bool:
    """Whether a window can be shown. Qt aborts the process where it cannot, with a misleading message."""
    if not sys.platform.startswith("linux"):
        return True
    if os.environ.get("QT_QPA_PLATFORM", "").split(":")[0] in ("offscreen", "minimal", "vnc", "linuxfb", "eglfs"):
        return True
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


def run_window(
    opener: Opener | Callable[[], Opener],
    spec: HostSpec | Callable[[], HostSpec],
    *,
    home: Path | None = None,
    profile: str = "default",
    arguments: Sequence[str] = (),
    lazy: bool = False,
    profiles: Callable[[], ProfilesPort] | None = None,
) -> int:
    """Show the window and run until it is closed.

    Args:
        opener: how to open the host; with `lazy` a function that gives it.
        spec: what to open; with `lazy` a function that gives it. Both are called in a thread, after the first paint.
        home: `HostSpec.home`, needed before the spec is made.
        profile: `HostSpec.profile`, likewise.
        arguments: what a running window is told if there is one already.
        profiles: gives what makes, copies and deletes profiles; None: this window cannot.
        lazy: see above; keeps the import of the host's types off the way to the first paint.

    Returns:
        The exit code: 0, or the one of the error that kept the host from opening; 2 without a display.
    """
    if not has_display():
        from desktop_host.i18n import tr

        print(tr("window.no_display"), file=sys.stderr)
        return 2
    app = QApplication.instance()
    if not isinstance(app, QApplication):
        share_contexts()
        app = QApplication([sys.argv[0]])
    app.setApplicationName("desktop-host")
    app.setDesktopFileName("desktop-host")
    app.setQuitOnLastWindowClosed(False)
    instance = SingleInstance(home, profile)
    if not instance.claim(list(arguments)):
        return 0
    try:
        face = _Face(app, opener, spec, lazy=lazy, home=home, profile=profile)
        face.profiles = profiles
        instance.raised.connect(face.receive)
        face.receive_later(list(arguments))
        return face.run(instance.listen)
    finally:
        instance.release()


class _Face(QObject):
    """One run of the window."""

    _loaded = Signal(object)

    def __init__(
        self, app: QApplication, opener: Any, spec: Any, *, lazy: bool, home: Path | None, profile: str
    ) -> None:
        super().__init__()
        self._app, self._opener, self._spec, self._lazy = app, opener, spec, lazy
        self._code = 0
        self._loop: Any = None
        self._bridge: Bridge | None = None
        self._workspace: Workspace | None = None
        self._room_type: type[ProfileRoom]
        self._workspace_type: type[Workspace]
        self._early: list[list[str]] = []
        self._closing = False
        self._over = False
        self._translator = QTranslator(self)
        self.profiles: Callable[[], ProfilesPort] | None = None
        self._profile, self._home = profile, home
        self.window = MainWindow(WindowState(home, profile), profile)
        self.window.closing.connect(self._window_closed)
        self._more: list[MainWindow] = []
        """Further windows on the same host."""
        self._loaded.connect(self._fill)

    def run(self, painted_first: Callable[[], None]) -> int:
        """Show, paint, then `painted_first`, load, run."""
        self.window.show()
        painted = QEventLoop()
        self.window.after_paint(painted.quit)
        QTimer.singleShot(2000, painted.quit)  # a window that starts minimised is not painted
        painted.exec()
        threading.Thread(target=self._load, name="warm-up", daemon=True).start()
        self._dress()
        painted_first()
        import asyncio

        import qasync

        from desktop_host.ui.signals import QuitSignals

        signals = QuitSignals(self._quit, self)

        self._loop = qasync.QEventLoop(self._app, already_running=False)
        asyncio.set_event_loop(self._loop)
        try:
            with self._loop:
                if not self._over:
                    self._loop.run_forever()
        finally:
            asyncio.set_event_loop(None)
            signals.restore()
            for window in (self.window, *self._more):
                window.hide()
                window.deleteLater()
            self._app.sendPostedEvents(None, 0)
        return self._code

    def _dress(self) -> None:
        """Language, looks and the frame, as the window remembers them."""
        from desktop_host import i18n
        from desktop_host.ui.theme import theme

        state = self.window.state
        language = i18n.spoken(state.text("language", "system"))
        i18n.install(language)
        self._speak(language)
        theme.apply(state.text("theme", "system"), state.number("scale", 100))
        self.window.build()

    def receive_later(self, arguments: list[str]) -> None:
        """What this start itself was asked to open; shown once the host is open."""
        if arguments:
            self._early.append(arguments)

    def receive(self, arguments: list[str]) -> None:
        """Another start hands over."""
        self.window.come_forward()
        if self._workspace is None:
            self._early.append(arguments)
        else:
            self._workspace.receive(arguments)

    # ---- inside

    def _load(self) -> None:
        """In a thread: import the host's types and the pages."""
        try:
            from desktop_host.ui.bridge import Bridge
            from desktop_host.ui.widgets import profile_room
            from desktop_host.ui.widgets.workspace import Workspace

            self._room_type = profile_room.ProfileRoom
            opener = self._opener() if self._lazy else self._opener
            spec = self._spec() if self._lazy else self._spec
            self._loaded.emit((Bridge, Workspace, opener, spec))
        except BaseException as cause:
            self._loaded.emit(cause)

    def _fill(self, got: Any) -> None:
        if isinstance(got, BaseException):
            self._code = 1
            self._stop()
            raise got
        if self._closing:
            self._stop()
            return
        bridge_type, workspace_type, opener, spec = got
        bridge = bridge_type(opener, spec, self)
        bridge.failed.connect(self._host_failed)
        bridge.ready.connect(lambda _host: setattr(self, "_code", 0))
        bridge.closed.connect(self._stop)
        self._bridge = bridge
        self._workspace_type = workspace_type
        self._workspace = self._furnish(self.window, "")
        bridge.start()
        bridge.ready.connect(self._open_early)

    def _open_early(self, _host: object) -> None:
        """Once: what was asked for before the host was open."""
        early, self._early = self._early, []
        for arguments in early:
            if self._workspace is not None:
                self._workspace.receive(arguments)

    def _furnish(self, window: MainWindow, first: str) -> Workspace:
        """Fill a window with the profile."""
        assert self._bridge is not None
        made = self._workspace_type(window, self._bridge, self._bridge.start, first)
        made.language_changed.connect(self._speak)
        made.acts.elsewhere.connect(lambda act, session: self.show_again(session) if act == "window" else None)
        window.commands.bind("app.quit", self._quit)
        if self.profiles is not None:
            self._room_type(made, self.profiles(), self._profile)
        return made

    def show_again(self, session: str) -> MainWindow:
        """Another window on the same host, at a conversation: both follow it live, and either may answer."""
        assert self._bridge is not None
        window = MainWindow(WindowState(self._home, self._profile), self._profile)
        window.move(self.window.pos() + QPoint(40, 40))
        window.closing.connect(self._window_closed)
        window.build()
        self._more.append(window)
        self._furnish(window, session)
        window.show()
        # The host is open already: what waits for it hears so now.
        self._bridge.then(_itself, self._bridge.ready.emit, owner=window)
        return window

    def _window_closed(self) -> None:
        if any(window.isVisible() for window in (self.window, *self._more)):
            for window in [w for w in self._more if not w.isVisible()]:
                self._more.remove(window)
                window.deleteLater()
        else:
            self._close()

    def _quit(self) -> None:
        for window in (self.window, *self._more):
            window.hide()
        self.window.close()

    def _host_failed(self, error: Any) -> None:
        self._code = int(error.exit_code)

    def _close(self) -> None:
        if self._closing:
            return
        self._closing = True
        if self._bridge is None:
            self._stop()
            return
        QTimer.singleShot(int(CLOSE_BUDGET_S * 1000), self, self._give_up)
        self._bridge.close()

    def _give_up(self) -> None:
        log.warning("the host did not close within %s s", CLOSE_BUDGET_S)
        self._code = 1
        self._stop()

    def _stop(self) -> None:
        self._over = True
        if self._loop is not None and self._loop.is_running():
            self._loop.stop()

    def _speak(self, language: str) -> None:
        """Qt's own texts (dialogs, menus of text fields) in the language of the window."""
        from desktop_host import i18n

        self._app.removeTranslator(self._translator)
        if i18n.pick_language(language) == "zh_CN":
            folder = QLibraryInfo.path(QLibraryInfo.LibraryPath.TranslationsPath)
            if self._translator.load("qtbase_zh_CN", folder):
                self._app.installTranslator(self._translator)
        QGuiApplication.setApplicationDisplayName(i18n.tr("app.name"))


async def _itself(host: Host) -> Host:
    return host
