"""A list of what a server offers, filtered while typing; long ones are built as far as they are wanted."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from PySide6.QtWidgets import QWidget
from shiboken6 import isValid

from desktop_host.core.errors import HostError
from desktop_host.core.servers import ServerState
from desktop_host.i18n import tr, trn
from desktop_host.ui.bridge import Bridge
from desktop_host.ui.viewmodels.servers import Servers
from desktop_host.ui.widgets.page import Empty, ErrorCard, Page
from desktop_host.ui.widgets.pieces import button, clear, column
from desktop_host.ui.widgets.search_field import SearchField

AT_ONCE = 50
"""Rows built at a time."""
ON_ITS_WAY = (ServerState.WAITING, ServerState.STARTING)
FILTER_FROM = 6
"""Fewer rows need no filter."""

Made = tuple[str, Callable[[], QWidget], object]
"""What typing is compared with, how the row is built, and what it shows: a row of the same is kept as it is."""


class ListTab(Page):
    """A list that is read when the server is ready, and again when it says that it changed."""

    kind = ""

    def __init__(self, bridge: Bridge, servers: Servers, name: str) -> None:
        super().__init__(inside=True)
        self._bridge, self._servers, self._name = bridge, servers, name
        self.filter = SearchField(tr("list.filter"))
        self.filter.textChanged.connect(lambda _text: self._build())
        self.filter.hide()
        self._list = column()
        self.more = button("", self._more, role="link")
        self.more.hide()
        self.rows: list[QWidget] = []
        self._all: Sequence[Made] = ()
        self._fitting: list[Made] = []
        self._kept: dict[object, QWidget] = {}
        self._state: ServerState | None = None
        self.add(self.filter, self._list, self.more)
        servers.changed.connect(self._changed)
        servers.lists_changed.connect(self._lists_changed)
        self._changed(name)

    def refresh(self) -> None:
        """Read the list again."""
        raise NotImplementedError

    def put(self, rows: Sequence[Made]) -> None:
        """Show these, as far as the filter lets them and until the person wants more."""
        same = bool(self.rows) and [one[2] for one in rows] == [one[2] for one in self._all]
        self._all = rows
        self.filter.setVisible(len(rows) >= FILTER_FROM)
        if same:
            return
        focus = self.focusWidget()
        self._build()
        if focus is not None and isValid(focus) and focus.isVisible():
            focus.setFocus()

    # ---- inside

    def _build(self) -> None:
        for row in self._kept.values():
            row.hide()
            self._list.removeWidget(row)
        clear(self._list)
        there = {one[2] for one in self._all}
        for key in self._kept.keys() - there:
            self._kept.pop(key).deleteLater()
        self.rows = []
        wanted = self.filter.text().casefold()
        self._fitting = [one for one in self._all if wanted in one[0].casefold()]
        self._more()

    def _more(self) -> None:
        for _words, make, key in self._fitting[len(self.rows) : len(self.rows) + AT_ONCE]:
            row = self._kept[key] if key in self._kept else self._kept.setdefault(key, make())
            self.rows.append(row)
            self._list.addWidget(row)
            row.show()
        left = len(self._fitting) - len(self.rows)
        self.more.setVisible(left > 0)
        self.more.setText(trn("list.more", left))

    def _changed(self, name: str) -> None:
        status = self._servers.status(self._name) if name == self._name else None
        if status is None or status.state is self._state:
            return
        self._state = status.state
        if status.state is ServerState.READY:
            self.refresh()
        elif self.rows and status.state in ON_ITS_WAY:
            return  # What was read stays in sight meanwhile.
        else:
            self.put(())
            start = (tr("action.start"), lambda: self._servers.start(self._name))
            self._list.addWidget(Empty("servers", tr("server.not_running"), tr("server.not_running.text"), start))

    def _lists_changed(self, name: str, lists: tuple[str, ...]) -> None:
        if name == self._name and self.kind in lists and self._state is ServerState.READY:
            self.refresh()

    def _fail(self, error: HostError) -> None:
        self.put(())
        self._list.addWidget(ErrorCard(error, self.refresh))
