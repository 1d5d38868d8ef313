"""The frame: sidebar, centre, notices, palette.

The first paint shows the frame's grounds alone: building the sidebar loads Qt's enumerations and fonts, which
takes a third of the start of an empty window. So nothing of `theme`, `actions` or `pieces` is imported before
`build`, which the face calls right after that paint. (`Qt` itself costs 40 ms at its first use.)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from PySide6.QtCore import QSize, QTimer, Signal
from PySide6.QtGui import QColor, QGuiApplication, QPainter
from PySide6.QtWidgets import QMainWindow, QWidget

from desktop_host.ui.tokens import ASIDE, COLORS, ROOM_FOR_CENTRE, SIDEBAR, SIDEBAR_FOLDED, Scheme
from desktop_host.ui.window_state import WindowState

if TYPE_CHECKING:
    from PySide6.QtCore import QEvent
    from PySide6.QtGui import QCloseEvent, QPaintEvent, QResizeEvent

    from desktop_host.ui.widgets.palette import CommandPalette
    from desktop_host.ui.widgets.toast import Toasts


class MainWindow(QMainWindow):
    """The window. `build` makes the frame, `Workspace` fills it once the host's types are loaded."""

    painted = Signal()
    """The first paint is on the screen."""
    closing = Signal()
    """The person closes the window; it is hidden already, the application ends when the host is closed."""
    rebuilt = Signal()
    """The frame was made anew (another language); pages must be too."""

    def __init__(self, state: WindowState, profile: str = "default") -> None:
        self.built = False  # before all: Qt reports changes while it makes the window
        super().__init__()
        self.setWindowTitle("Desktop Host")
        self.state = state
        self._profile = profile
        self._first_paint = True
        self._overlays: tuple[Toasts, CommandPalette] | None = None
        self._wants_fold = state.flag("folded")
        self.setMinimumSize(480, 360)
        self.resize(QSize(1180, 780).boundedTo(self.screen().availableSize()))
        if not state.data("geometry").isEmpty():
            self.restoreGeometry(state.data("geometry"))

    def build(self) -> None:
        """Make the frame (anew) in the current language."""
        from PySide6.QtCore import Qt
        from PySide6.QtGui import QIcon
        from PySide6.QtWidgets import QHBoxLayout, QSplitter, QStackedWidget

        from desktop_host.core.places import shipped
        from desktop_host.i18n import tr
        from desktop_host.ui.actions import Actions
        from desktop_host.ui.widgets.pieces import label
        from desktop_host.ui.widgets.sidebar import Sidebar

        if not self.built:
            self.commands = Actions(self)
            self.commands.bind("view.sidebar", self._toggle_sidebar)
            self.commands.bind("app.quit", self.close)
            self.setWindowIcon(QIcon(str(shipped("resources", "icons", "app.svg"))))
        self._overlays = None
        self.commands.retranslate()
        self._middle = middle = QWidget()
        layout = QHBoxLayout(middle)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        name = tr("app.name")
        self.setWindowTitle(name)
        self.sidebar = Sidebar(self.commands, name if self._profile == "default" else f"{name} · {self._profile}")
        self.stack = QStackedWidget()
        starting = label(tr("window.starting"), "muted")
        starting.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.stack.addWidget(starting)
        self._split = QSplitter(Qt.Orientation.Horizontal)
        self._split.setChildrenCollapsible(False)
        self._split.setHandleWidth(1)
        self._split.addWidget(self.stack)
        self._aside: QWidget | None = None
        layout.addWidget(self.sidebar)
        layout.addWidget(self._split, 1)
        old = self.takeCentralWidget()
        self.setCentralWidget(middle)
        if old is not None:
            old.hide()
            old.deleteLater()
        again, self.built = self.built, True
        self._fit_sidebar()
        if again:
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

    def put_aside(self, widget: QWidget | None) -> None:
        """Show a panel right of the centre, or (None) hide it. Where both have no room, the panel has it all."""
        if self._aside is not None and self._aside is not widget:
            self._aside.hide()
        if widget is not None and self._split.indexOf(widget) < 0:
            self._split.addWidget(widget)
            self._split.setStretchFactor(0, 1)
            self._split.setStretchFactor(1, 0)
        self._aside = widget
        if widget is not None:
            widget.show()
        self._fit_aside()

    def come_forward(self) -> None:
        """Raise the window, however it was hidden."""
        from PySide6.QtCore import Qt

        self.setWindowState((self.windowState() & ~Qt.WindowState.WindowMinimized) | Qt.WindowState.WindowActive)
        self.show()
        self.raise_()
        self.activateWindow()

    def after_paint(self, act: Callable[[], None]) -> None:
        """Do something once the window was painted (at once, if that is past)."""
        if self._first_paint:
            self.painted.connect(act)
        else:
            act()

    # ---- what Qt says

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        if not self.built:
            self._paint_grounds()
        if self._first_paint:
            self._first_paint = False
            QTimer.singleShot(0, self.painted.emit)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if self.built:
            self._fit_sidebar()
            self._fit_aside()

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if self.built and event.type() in (event.Type.StyleChange, event.Type.FontChange):
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

    def _folded(self, scale: int) -> bool:
        return self._wants_fold or self.width() * 100 < (SIDEBAR + ROOM_FOR_CENTRE) * scale

    def _fit_sidebar(self) -> None:
        from desktop_host.ui.theme import theme

        wanted = self._folded(theme.scale)
        if wanted != self.sidebar.folded:
            self.sidebar.fold(wanted)

    def _fit_aside(self) -> None:
        if self._aside is None:
            self.stack.show()
            return
        from desktop_host.ui.theme import theme

        wide, room = theme.px(ASIDE), self.width() - self.sidebar.width()
        crowded = room < wide + theme.px(ROOM_FOR_CENTRE)
        if self.stack.isVisibleTo(self._split) == crowded:
            self.stack.setVisible(not crowded)
        if not crowded and self._aside.width() < wide:
            self._split.setSizes([room - wide, wide])

    def _paint_grounds(self) -> None:
        """What the frame looks like while its parts are made."""
        wanted, scale = self.state.text("theme", "system"), self.state.number("scale", 100)
        if wanted in COLORS:
            colors = COLORS[Scheme(wanted)]
        else:
            dark = QGuiApplication.palette().window().color().lightness() < 128
            colors = COLORS[Scheme.DARK if dark else Scheme.LIGHT]
        wide = (SIDEBAR_FOLDED if self._folded(scale) else SIDEBAR) * scale // 100
        painter = QPainter(self)
        painter.fillRect(self.rect(), QColor(colors.window))
        painter.fillRect(0, 0, wide, self.height(), QColor(colors.sidebar))
        painter.fillRect(wide - 1, 0, 1, self.height(), QColor(colors.border))
        painter.end()
