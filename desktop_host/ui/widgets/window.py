"""The frame: sidebar, centre, notices, palette. Painted before anything of the host is loaded."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from PySide6.QtCore import QEvent, Qt, QTimer, Signal
from PySide6.QtGui import QCloseEvent, QIcon, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QHBoxLayout, QMainWindow, QStackedWidget, QWidget

from desktop_host.core.places import shipped
from desktop_host.i18n import tr
from desktop_host.ui.actions import Actions
from desktop_host.ui.theme import theme
from desktop_host.ui.widgets.pieces import label
from desktop_host.ui.widgets.sidebar import WIDTH, Sidebar
from desktop_host.ui.window_state import WindowState

if TYPE_CHECKING:
    from desktop_host.ui.widgets.palette import CommandPalette
    from desktop_host.ui.widgets.toast import Toasts

ROOM_FOR_CENTRE = 420
"""Below this (pixels at 100 %) beside it, the sidebar folds by itself."""


class MainWindow(QMainWindow):
    """The window. `Workspace` fills it once the host's types are loaded."""

    painted = Signal()
    """The first paint is on the screen."""
    closing = Signal()
    """The person closes the window; it is hidden already, the application ends when the host is closed."""
    rebuilt = Signal()
    """The frame was made anew (another language); pages must be too."""

    def __init__(self, state: WindowState, profile: str = "default") -> None:
        super().__init__()
        self.setWindowTitle(tr("app.name"))
        self.setWindowIcon(QIcon(str(shipped("resources", "icons", "app.svg"))))
        self.state = state
        self.commands = Actions(self)
        self._profile = profile
        self._first_paint = True
        self._overlays: tuple[Toasts, CommandPalette] | None = None
        self._wants_fold = state.flag("folded")
        self.commands.bind("view.sidebar", self._toggle_sidebar)
        self.commands.bind("app.quit", self.close)
        self.setMinimumSize(480, 360)
        self.resize(1180, 780)
        self.build()
        if not state.data("geometry").isEmpty():
            self.restoreGeometry(state.data("geometry"))

    def build(self) -> None:
        """Make the frame (anew) in the current language."""
        self._overlays = None
        self.commands.retranslate()
        self._middle = middle = QWidget()
        layout = QHBoxLayout(middle)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        name = tr("app.name")
        self.sidebar = Sidebar(self.commands, name if self._profile == "default" else f"{name} · {self._profile}")
        self.stack = QStackedWidget()
        starting = label(tr("window.starting"), "muted")
        starting.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.stack.addWidget(starting)
        layout.addWidget(self.sidebar)
        layout.addWidget(self.stack, 1)
        old = self.takeCentralWidget()
        self.setCentralWidget(middle)
        if old is not None:
            old.hide()
            old.deleteLater()
        self._fit_sidebar()
        self.rebuilt.emit()

    @property
    def toasts(self) -> Toasts:
        """The notices."""
        return self._over()[0]

    @property
    def palette_(self) -> CommandPalette:
        """The command palette."""
        return self._over()[1]

    def show_widget(self, widget: QWidget) -> None:
        """Put a page into the centre."""
        if self.stack.indexOf(widget) < 0:
            self.stack.addWidget(widget)
        self.stack.setCurrentWidget(widget)

    def come_forward(self) -> None:
        """Raise the window, however it was hidden."""
        self.setWindowState((self.windowState() & ~Qt.WindowState.WindowMinimized) | Qt.WindowState.WindowActive)
        self.show()
        self.raise_()
        self.activateWindow()

    def after_paint(self, act: Callable[[], None]) -> None:
        """Do something right after the first paint (at once, if that is past)."""
        if self._first_paint:
            self.painted.connect(act, Qt.ConnectionType.SingleShotConnection)
        else:
            act()

    # ---- what Qt says

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        if self._first_paint:
            self._first_paint = False
            QTimer.singleShot(0, self.painted.emit)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit_sidebar()

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() in (QEvent.Type.StyleChange, QEvent.Type.FontChange):
            self._fit_sidebar()

    def closeEvent(self, event: QCloseEvent) -> None:
        event.ignore()
        self.state.keep("geometry", self.saveGeometry())
        self.state.keep("folded", self._wants_fold)
        self.state.save()
        self.hide()
        self.closing.emit()

    # ---- inside

    def _over(self) -> tuple[Toasts, CommandPalette]:
        if self._overlays is None:
            from desktop_host.ui.widgets.palette import CommandPalette
            from desktop_host.ui.widgets.toast import Toasts

            self._overlays = (Toasts(self._middle, self.stack), CommandPalette(self._middle))
        return self._overlays

    def _toggle_sidebar(self) -> None:
        self._wants_fold = not self.sidebar.folded
        self.sidebar.fold(self._wants_fold)

    def _fit_sidebar(self) -> None:
        if not hasattr(self, "sidebar"):
            return
        narrow = self.width() < theme.px(WIDTH + ROOM_FOR_CENTRE)
        wanted = self._wants_fold or narrow
        if wanted != self.sidebar.folded:
            self.sidebar.fold(wanted)
