"""The left edge: new chat, search, conversations, and the way to the pages. Folds to icons.

Imports nothing of the core, so that the window can be painted before the host's types are loaded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QEvent, QObject, Qt, QTimer, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import (
    QBoxLayout,
    QFrame,
    QPushButton,
    QSizePolicy,
    QVBoxLayout,
    QWidget,
)

from desktop_host.i18n import tr
from desktop_host.ui.actions import Actions
from desktop_host.ui.theme import Space, set_icon, set_role, theme
from desktop_host.ui.tokens import SIDEBAR, SIDEBAR_FOLDED
from desktop_host.ui.widgets.pieces import Button, column, icon_button, label, row
from desktop_host.ui.widgets.search_field import SearchField

if TYPE_CHECKING:
    from desktop_host.ui.viewmodels.sessions import Sessions
    from desktop_host.ui.widgets.session_list import SessionList

SEARCH_MS = 180
NAV = (
    ("chats", "go.chats", "chat"),
    ("servers", "go.servers", "servers"),
    ("skills", "go.skills", "skills"),
    ("usage", "go.usage", "usage"),
    ("settings", "go.settings", "settings"),
)


class Sidebar(QFrame):
    """See the module. `attach` gives it the conversations once they can be read."""

    opened = Signal(str)
    """A conversation was chosen."""
    profile_wanted = Signal()
    """The person wants to see the profiles."""
    wanted = Signal(str, str)
    """`(act, session)` of the list's menu."""

    def __init__(self, actions: Actions, title: str) -> None:
        super().__init__()
        set_role(self, "sidebar")
        self.setAccessibleName(tr("sidebar.name"))
        self._actions = actions
        self.folded = False
        self.list: SessionList | None = None
        self._chosen = ""
        self._wide: list[QWidget] = []
        outer = column(self, space=Space.S, margin=Space.S)
        outer.addLayout(self._head(title))
        outer.addWidget(self._new_chat())
        outer.addWidget(self._search())
        middle = QWidget()
        middle.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Expanding)
        self._middle = column(middle, space=0)
        outer.addWidget(middle, 1)
        self._none = label("", "caption")
        self._none.setAlignment(Qt.AlignmentFlag.AlignHCenter | Qt.AlignmentFlag.AlignTop)
        self._none.setContentsMargins(Space.M, Space.L, Space.M, 0)
        self._none.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Expanding)
        self._middle.addWidget(self._none, 1)
        outer.addLayout(self._nav())
        for command in ("chat.new", *(command for _, command, _ in NAV)):
            actions.action(command).changed.connect(self._enable)
        self._enable()
        self._fit()
        theme.changed.connect(self._fit)

    # ---- parts

    def _head(self, title: str) -> QVBoxLayout:
        self._title = title
        self.title = Button(title)
        self.title.setToolTip(tr("profiles.switch"))
        self.title.setAccessibleName(tr("profiles.current", name=title))
        self.title.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        self.title.clicked.connect(lambda _checked=False: self.profile_wanted.emit())
        self._fold = icon_button("sidebar", self._actions.hint("view.sidebar"))
        self._fold.clicked.connect(lambda _checked=False: self._actions.run("view.sidebar"))
        line = row(self.title, self._fold)
        line.setStretch(0, 1)
        line.setContentsMargins(Space.S, 0, 0, 0)
        box = QVBoxLayout()
        box.addLayout(line)
        self._head_line = line
        return box

    def _new_chat(self) -> QWidget:
        self.new_chat = Button(tr("command.chat.new"))
        set_role(self.new_chat, "nav")
        set_icon(self.new_chat, "plus")
        self.new_chat.setToolTip(self._actions.hint("chat.new"))
        self.new_chat.setAccessibleName(tr("command.chat.new"))
        self.new_chat.clicked.connect(lambda _checked=False: self._actions.run("chat.new"))
        return self.new_chat

    def _search(self) -> QWidget:
        self.search = SearchField(tr("sidebar.search"))
        self.search.setToolTip(self._actions.hint("chat.search"))
        self.search.installEventFilter(self)
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setInterval(SEARCH_MS)
        self._timer.timeout.connect(self._do_search)
        self.search.textChanged.connect(lambda _text: self._timer.start())
        self._wide.append(self.search)
        return self.search

    def _nav(self) -> QVBoxLayout:
        box = column(space=2)
        self.nav: dict[str, QPushButton] = {}
        for name, command, mark in NAV:
            made = Button(tr(f"nav.{name}"))
            set_role(made, "nav")
            set_icon(made, mark)
            made.setCheckable(True)
            made.setAccessibleName(tr(f"nav.{name}"))
            made.setToolTip(self._actions.hint(command))
            made.clicked.connect(lambda _checked=False, c=command: self._actions.run(c))
            self.nav[name] = made
            box.addWidget(made)
        return box

    # ---- what the window says

    def attach(self, model: Sessions) -> None:
        """Show the conversations."""
        from desktop_host.ui.widgets.session_list import SessionList

        self.list = SessionList(model)
        self.list.opened.connect(self.opened)
        self.list.wanted.connect(self.wanted)
        self._middle.insertWidget(0, self.list, 1)
        self.setTabOrder(self.search, self.list)
        self.setTabOrder(self.list, self.nav[NAV[0][0]])
        model.loaded.connect(self._loaded)
        self._loaded()
        self._fit()

    def choose(self, session: str) -> None:
        """Show which conversation is open; empty: none."""
        self._chosen = session
        if self.list is not None:
            self.list.choose(session)

    def show_page(self, name: str) -> None:
        """Show which page is open."""
        for one, made in self.nav.items():
            made.setChecked(one == name)

    def fold(self, on: bool) -> None:
        """Fold to icons, or unfold."""
        self.folded = on
        self._fit()

    def begin_search(self) -> None:
        """Put the caret into the search field."""
        self.search.setFocus(Qt.FocusReason.ShortcutFocusReason)
        self.search.selectAll()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if watched is self.search and isinstance(event, QKeyEvent) and event.type() is QEvent.Type.KeyPress:
            if event.key() == Qt.Key.Key_Escape and self.search.text():
                self.search.clear()
                return True
            if event.key() == Qt.Key.Key_Down and self.list is not None:
                self._first()
                return True
            if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
                self._do_search()
                self._first()
                return True
        return False

    # ---- inside

    def _enable(self) -> None:
        """Pages cannot be opened before the host is."""
        self.new_chat.setEnabled(self._actions.action("chat.new").isEnabled())
        for name, command, _mark in NAV:
            self.nav[name].setEnabled(self._actions.action(command).isEnabled())

    def _first(self) -> None:
        assert self.list is not None
        self.list.setFocus(Qt.FocusReason.TabFocusReason)
        model = self.list.sessions
        at = next((r for r in range(model.rowCount()) if model.flags(model.index(r)) != Qt.ItemFlag.NoItemFlags), -1)
        if at >= 0:
            self.list.setCurrentIndex(model.index(at))

    def _do_search(self) -> None:
        self._timer.stop()
        if self.list is not None:
            self.list.sessions.search(self.search.text())

    def _loaded(self) -> None:
        assert self.list is not None
        model = self.list.sessions
        empty = model.rowCount() == 0 and not model.reading
        self._none.setText(tr("sidebar.no_match" if model.searching else "sidebar.empty") if empty else "")
        self._none.setVisible(empty and not self.folded)
        self.list.setVisible(not empty and not self.folded)
        if self.list.state() is not self.list.State.EditingState:
            self.list.choose(self._chosen)

    def _fit(self) -> None:
        self.setFixedWidth(theme.px(SIDEBAR_FOLDED if self.folded else SIDEBAR))
        for widget in self._wide:
            widget.setVisible(not self.folded)
        self._head_line.setContentsMargins(0 if self.folded else Space.S, 0, 0, 0)
        upright, level = QBoxLayout.Direction.TopToBottom, QBoxLayout.Direction.LeftToRight
        self._head_line.setDirection(upright if self.folded else level)
        self.title.setText("" if self.folded else self._title)
        set_role(self.title, "nav-folded" if self.folded else "name")
        set_icon(self.title, "profile", "text" if self.folded else "muted", 18 if self.folded else 16)
        middle = Qt.AlignmentFlag.AlignHCenter if self.folded else Qt.AlignmentFlag(0)
        self._head_line.setAlignment(self._fold, middle)
        self.new_chat.setText("" if self.folded else tr("command.chat.new"))
        set_icon(self.new_chat, "plus")
        set_role(self.new_chat, "nav-folded" if self.folded else "nav")
        for name, _command, mark in NAV:
            self.nav[name].setText("" if self.folded else tr(f"nav.{name}"))
            set_icon(self.nav[name], mark)
            set_role(self.nav[name], "nav-folded" if self.folded else "nav")
        if self.list is not None:
            self._loaded()
        else:
            self._none.setVisible(not self.folded)
