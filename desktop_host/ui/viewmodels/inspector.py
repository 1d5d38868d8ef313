"""The wire of servers as a Qt table: each request beside its answer with its latency, filtered, live.

Thousands of messages stay quick: rows are values, nothing is drawn that is not in view, and each reading
takes only what is new.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

from PySide6.QtCore import (
    QAbstractTableModel,
    QModelIndex,
    QObject,
    QPersistentModelIndex,
    QSortFilterProxyModel,
    Qt,
    QTimer,
    Signal,
)

from desktop_host.core.errors import HostError
from desktop_host.core.servers import WireFrame
from desktop_host.engine.host import Host
from desktop_host.i18n import tr
from desktop_host.ui.bridge import Bridge
from desktop_host.ui.viewmodels.inspector_pairs import Exchange, Pairs, news

READ_MS = 400
"""Between two readings of the wire while it is in view."""
MOST = 20_000
"""Rows kept; the oldest go first, a tenth at a time."""
EXCHANGE = int(Qt.ItemDataRole.UserRole) + 1
"""Role of the `Exchange` of a row."""
COLUMNS = ("time", "way", "method", "ms", "state")

Heard: TypeAlias = tuple[tuple[WireFrame, ...], frozenset[int]]
"""The messages of a server, and which of its connections are over."""
_Index = QModelIndex | QPersistentModelIndex
_ROOT = QModelIndex()


class Wire(QAbstractTableModel):
    """The exchanges of some servers. Reads while `watch(True)`."""

    failed = Signal(object)
    methods_changed = Signal()
    came = Signal()
    """Something was appended or answered."""

    def __init__(
        self, bridge: Bridge, servers: Callable[[], Iterable[str]], parent: QObject | None = None,
        session: Callable[[], str | None] = lambda: None,
    ) -> None:  # fmt: skip
        super().__init__(parent)
        self._bridge, self._servers, self._session = bridge, servers, session
        self.rows: list[Exchange] = []
        self.methods: set[str] = set()
        self._places: dict[int, int] = {}
        """Place of an unanswered exchange by its identity."""
        self._pairs: dict[str, Pairs] = {}
        self._last: dict[str, WireFrame] = {}
        self._under_way = False
        self._timer = QTimer(self)
        self._timer.setInterval(READ_MS)
        self._timer.timeout.connect(self.read)

    # ---- for Qt

    def rowCount(self, parent: _Index = _ROOT) -> int:
        return 0 if parent.isValid() else len(self.rows)

    def columnCount(self, parent: _Index = _ROOT) -> int:
        return 0 if parent.isValid() else len(COLUMNS)

    def headerData(
        self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole
    ) -> str | None:
        if orientation is not Qt.Orientation.Horizontal or role != Qt.ItemDataRole.DisplayRole:
            return None
        return tr(f"trace.{COLUMNS[section]}")

    def data(self, index: _Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if not index.isValid() or index.row() >= len(self.rows):
            return None
        one, column = self.rows[index.row()], COLUMNS[index.column()]
        if role == EXCHANGE:
            return one
        if role == Qt.ItemDataRole.DisplayRole:
            return self._text(one, column)
        if role == Qt.ItemDataRole.ToolTipRole and column == "method":
            return f"{one.server}  {one.method}  {one.detail}".strip()
        if role == Qt.ItemDataRole.AccessibleTextRole and column == "way":
            return tr("trace.out" if one.outward else "trace.in")
        if role == Qt.ItemDataRole.TextAlignmentRole and column == "ms":
            return int(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        return None

    def _text(self, one: Exchange, column: str) -> str:
        match column:
            case "time":
                return _clock(one.t)
            case "way":
                return "→" if one.outward else "←"
            case "method":
                server = f"{one.server} · " if len(self._pairs) > 1 else ""
                return f"{server}{one.method}" + (f"  {one.detail}" if one.detail else "")
            case "ms":
                return "" if one.ms is None else f"{one.ms:.0f} ms"
            case _:
                return tr(f"trace.state.{one.state}")

    # ---- reading

    def watch(self, on: bool) -> None:
        """Read now and from time to time, or stop."""
        if on:
            self.read()
            self._timer.start()
        else:
            self._timer.stop()

    def read(self) -> None:
        """Take what is new."""
        names = tuple(self._servers())
        if self._under_way or not names:
            return
        self._under_way = True

        session = self._session()

        async def read(host: Host) -> dict[str, Heard]:
            known = {c.name for c in host.servers.configs()}
            return {name: heard(host, name, session) for name in names if name in known}

        self._bridge.then(read, self._took, self._fail, self)

    def clear(self) -> None:
        """Forget what is shown; what comes from now on is shown."""
        self.beginResetModel()
        self.rows, self._places, self._pairs = [], {}, {}
        self.endResetModel()

    def begin(self) -> None:
        """Other servers: show all that is kept of them."""
        self.clear()
        self._last = {}
        self.read()

    def _took(self, got: dict[str, Heard]) -> None:
        self._under_way = False
        fresh = [(name, frame) for name, (frames, _) in got.items() for frame in news(self._last.get(name), frames)]
        self._last |= {name: frames[-1] for name, (frames, _) in got.items() if frames}
        if fresh:
            fresh.sort(key=lambda pair: pair[1].t)
            self.take(fresh)
        for name, (_, closed) in got.items():
            if name in self._pairs and (lost := self._pairs[name].close(closed)):
                self._changed(self._places.pop(id(one), -1) for one in lost)

    def _changed(self, places: Iterable[int]) -> None:
        known = [at for at in places if 0 <= at < len(self.rows)]
        if known:
            self.dataChanged.emit(self.index(min(known), 0), self.index(max(known), len(COLUMNS) - 1))
            self.came.emit()

    def take(self, fresh: Iterable[tuple[str, WireFrame]]) -> None:
        """Append messages and put answers beside their requests."""
        added: list[Exchange] = []
        answered: list[int] = []
        methods = len(self.methods)
        for name, frame in fresh:
            one, new = self._pairs.setdefault(name, Pairs(name)).take(frame)
            if new:
                self._places[id(one)] = len(self.rows) + len(added)
                added.append(one)
                self.methods.add(one.method)
            elif (at := self._places.pop(id(one), -1)) >= 0 and at < len(self.rows):
                answered.append(at)
        if added:
            self.beginInsertRows(_ROOT, len(self.rows), len(self.rows) + len(added) - 1)
            self.rows += added
            self.endInsertRows()
        if answered:
            self.dataChanged.emit(self.index(min(answered), 0), self.index(max(answered), len(COLUMNS) - 1))
        if len(self.rows) > MOST:
            self._drop(MOST // 10 + len(self.rows) - MOST)
        if len(self.methods) != methods:
            self.methods_changed.emit()
        self.came.emit()

    def _drop(self, count: int) -> None:
        self.beginRemoveRows(_ROOT, 0, count - 1)
        del self.rows[:count]
        self._places = {key: at - count for key, at in self._places.items() if at >= count}
        self.endRemoveRows()

    def _fail(self, error: HostError) -> None:
        self._under_way = False
        self.failed.emit(error)


class WireFilter(QSortFilterProxyModel):
    """The rows of a `Wire` that fit a text, a method, and maybe only what went wrong."""

    def __init__(self, wire: Wire, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._needle, self._method, self._errors = "", "", False
        self.setSourceModel(wire)

    def narrow(self, text: str = "", method: str = "", errors: bool = False) -> None:
        """Show only what fits; empty: all."""
        wanted = (text.strip().casefold(), method, errors)
        if wanted != (self._needle, self._method, self._errors):
            self.beginFilterChange()
            self._needle, self._method, self._errors = wanted
            self.endFilterChange()

    def filterAcceptsRow(self, row: int, parent: _Index) -> bool:
        wire = self.sourceModel()
        assert isinstance(wire, Wire)
        one = wire.rows[row]
        if self._method and one.method != self._method:
            return False
        if self._errors and one.state not in ("error", "lost"):
            return False
        return not self._needle or one.holds(self._needle)


def heard(host: Host, name: str, session: str | None) -> Heard:
    """What is kept of a server's wire; of connections that belong to one conversation each, only those of `session`."""
    frames = host.servers.trace(name)
    if session is not None:
        frames = tuple(f for f in frames if f.session in (None, session))
    return frames, host.servers.closed(name)


def _clock(t: float) -> str:
    return time.strftime("%H:%M:%S", time.localtime(t)) + f".{int(t * 1000) % 1000:03}"
