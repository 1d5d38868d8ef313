"""The model and the servers of a chat, one click away, with what they cost."""

from __future__ import annotations

from itertools import groupby

from PySide6.QtCore import QPoint, Qt, Signal
from PySide6.QtGui import QActionGroup
from PySide6.QtWidgets import QMenu, QPushButton, QWidgetAction

from desktop_host.core.models import ModelEntry
from desktop_host.i18n import current, tr, trn
from desktop_host.ui.theme import Space, redraw_icon, set_icon, set_role, theme
from desktop_host.ui.viewmodels.choices import Choices
from desktop_host.ui.widgets.pieces import Button, label


def short_model(ref: str) -> str:
    """The readable end of a REF."""
    return ref.rsplit("#", 1)[-1].rsplit("/", 1)[-1]


class ModelButton(Button):
    """Which model answers; its menu lists what there is, what is not ready says why."""

    needs_model = Signal()

    def __init__(self, choices: Choices) -> None:
        super().__init__()
        self._choices = choices
        set_role(self, "quiet")
        set_icon(self, "model", "muted", 16)
        self.words = ""
        """What it says where there is room."""
        self._menu = QMenu(self)
        self.clicked.connect(self.open_menu)
        for signal in (choices.models_changed, choices.options_changed):
            signal.connect(self.show_choice)
        self.show_choice()

    def show_choice(self) -> None:
        """Name the model that answers next."""
        entry = self._choices.model_entry
        name = entry.title if entry else short_model(self._choices.model) or tr("chat.model.none")
        metrics = self.fontMetrics()
        self.words = metrics.elidedText(name, Qt.TextElideMode.ElideMiddle, metrics.averageCharWidth() * 24)
        self.setText(self.words)
        redraw_icon(self)
        self.setToolTip(self._choices.model)
        self.setAccessibleName(tr("chat.model.name", model=name))

    def open_menu(self) -> None:
        """Show the choices above the button."""
        self._fill()
        self._menu.popup(_above(self, self._menu))

    def _fill(self) -> None:
        self._menu.clear()
        group = QActionGroup(self._menu)
        for source, entries in groupby(self._choices.models, key=lambda e: e.source):
            _caption(self._menu, _source(source))
            for entry in entries:
                action = self._menu.addAction(self._line(entry))
                action.setCheckable(True)
                action.setChecked(entry.ref == self._choices.model)
                action.setToolTip(entry.ref)
                group.addAction(action)
                if entry.ready:
                    action.triggered.connect(lambda _c=False, ref=entry.ref: self._choices.pick_model(ref))
                else:
                    action.triggered.connect(lambda _c=False: self.needs_model.emit())
        self._menu.addSeparator()
        self._menu.addAction(tr("chat.model.manage"), self.needs_model.emit)

    def _line(self, entry: ModelEntry) -> str:
        if entry.ready:
            return entry.title
        key = f"chat.model.reason.{entry.reason}"
        why = tr(key) if current().has(key) else (entry.reason or "")
        return f"{entry.title}  ({why})"


class ServersButton(Button):
    """Which servers this chat may use; shows how many tools that is and about how many tokens they cost."""

    def __init__(self, choices: Choices) -> None:
        super().__init__()
        self._choices = choices
        set_role(self, "quiet")
        set_icon(self, "tool", "muted", 16)
        self.words = ""
        """What it says where there is room."""
        self._menu = QMenu(self)
        self.clicked.connect(self.open_menu)
        choices.servers_changed.connect(self.show_choice)
        self.show_choice()

    def show_choice(self) -> None:
        """How many tools, and their cost."""
        on = [s for s in self._choices.servers if s.on]
        tools, tokens = sum(s.tools for s in on), sum(s.tokens for s in on)
        starting = not tools and any(s.state == "starting" for s in on)
        none = tr("chat.tools.starting" if starting else "chat.tools.none")
        self.words = trn("chat.tools", tools) if tools else none
        self.setText(self.words)
        redraw_icon(self)
        self.setToolTip(tr("chat.tools.cost", tokens=f"{tokens:,}"))
        self.setAccessibleName(f"{self.words}. {self.toolTip()}")

    def open_menu(self) -> None:
        """Show the choices above the button."""
        self._fill()
        self._menu.popup(_above(self, self._menu))

    def _fill(self) -> None:
        self._menu.clear()
        total = sum(s.tokens for s in self._choices.servers if s.on)
        _caption(self._menu, tr("chat.tools.cost", tokens=f"{total:,}"))
        if not self._choices.servers:
            self._menu.addAction(tr("chat.tools.no_servers")).setEnabled(False)
        for server in self._choices.servers:
            state = "" if server.state == "ready" else f"  ({tr(f'chat.server.{server.state}')})"
            action = self._menu.addAction(
                f"{server.title}  ·  {trn('chat.tools', server.tools)}  ·  {trn('chat.tokens', server.tokens)}{state}"
            )
            action.setCheckable(True)
            action.setChecked(server.on)
            action.toggled.connect(lambda on, alias=server.alias: self._switch(alias, on))

    def _switch(self, alias: str, on: bool) -> None:
        chosen = tuple(s.alias for s in self._choices.servers if (on if s.alias == alias else s.on))
        self._choices.pick_servers(chosen)


def _caption(menu: QMenu, text: str) -> None:
    """Words over a group. Not `addSection`: this style draws it as a bare line."""
    if not menu.isEmpty():
        menu.addSeparator()
    words = label(text, "caption", wrap=False)
    words.setContentsMargins(theme.px(Space.M), theme.px(Space.XS), theme.px(Space.M), theme.px(Space.XS))
    action = QWidgetAction(menu)
    action.setDefaultWidget(words)
    action.setEnabled(False)
    menu.addAction(action)


def _above(which: QPushButton, menu: QMenu) -> QPoint:
    """Where a menu stands above a button at the bottom of the window."""
    corner = which.mapToGlobal(which.rect().topLeft())
    return corner - QPoint(0, menu.sizeHint().height() + 2)


def _source(source: str) -> str:
    key = f"chat.model.source.{source}"
    return tr(key) if current().has(key) else source
