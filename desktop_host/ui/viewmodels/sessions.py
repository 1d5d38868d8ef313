"""The list of conversations, grouped by day, as a Qt list model."""

from __future__ import annotations

import asyncio
import datetime
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import Any

from PySide6.QtCore import (
    QAbstractListModel,
    QDate,
    QLocale,
    QModelIndex,
    QObject,
    QPersistentModelIndex,
    Qt,
    QTimer,
    Signal,
)

from desktop_host.core import events as ev
from desktop_host.core.sessions import SessionRow, SessionState
from desktop_host.engine.host import Host
from desktop_host.i18n import current, tr
from desktop_host.ui.bridge import Bridge
from desktop_host.ui.viewmodels.session_file import text_of

REFRESH_MS = 120
"""How long changes are gathered before the list is read again."""
SHOWN = 500


class Role(IntEnum):
    """What a row knows beside its text."""

    SESSION = Qt.ItemDataRole.UserRole + 1
    """Id; empty for a heading."""
    STATE = Qt.ItemDataRole.UserRole + 2
    """`idle`, `running` or `waiting` (for a person)."""
    PINNED = Qt.ItemDataRole.UserRole + 3
    SNIPPET = Qt.ItemDataRole.UserRole + 4


@dataclass(frozen=True, slots=True)
class Line:
    """A heading (no row) or a conversation."""

    text: str
    row: SessionRow | None = None


def group_of(updated: float, today: datetime.date) -> str:
    """The heading a conversation stands under, by the day of its last change (local time)."""
    day = datetime.datetime.fromtimestamp(updated).date()
    age = (today - day).days
    if age <= 0:
        return tr("sidebar.today")
    if age == 1:
        return tr("sidebar.yesterday")
    if age <= 7:
        return tr("sidebar.week")
    if age <= 30:
        return tr("sidebar.month")
    locale = QLocale("zh_CN" if current().language == "zh_CN" else "en_US")
    return locale.toString(QDate(day.year, day.month, 1), tr("sidebar.year_month"))


def until_tomorrow(now: datetime.datetime) -> int:
    """Milliseconds until what stands under "Today" belongs under "Yesterday": the next midnight and a moment."""
    midnight = datetime.datetime.combine(now.date() + datetime.timedelta(days=1), datetime.time())
    return int((midnight - now).total_seconds() * 1000) + 500


def lines(rows: tuple[SessionRow, ...], today: datetime.date) -> list[Line]:
    """Rows with headings: pinned first, then by day. Search results keep their order and have none."""
    out: list[Line] = []
    heading = ""
    for row in sorted(rows, key=lambda r: (not r.pinned, -r.updated)):
        wanted = tr("sidebar.pinned") if row.pinned else group_of(row.updated, today)
        if wanted != heading:
            heading = wanted
            out.append(Line(heading))
        out.append(Line(row.title or tr("sidebar.untitled"), row))
    return out


class Sessions(QAbstractListModel):
    """Conversations of the profile; follows the stream of events."""

    failed = Signal(object)
    """`HostError` of something asked for here."""
    deleted = Signal(str)
    loaded = Signal()
    """The list was read (again)."""

    def __init__(self, bridge: Bridge, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._bridge = bridge
        self._lines: list[Line] = []
        self._states: dict[str, SessionState] = {}
        self._asks: dict[str, str] = {}
        self._query = ""
        self.reading = True
        """The first read is not done yet."""
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setInterval(REFRESH_MS)
        self._timer.timeout.connect(self.refresh)
        self._midnight = QTimer(self)
        self._midnight.setSingleShot(True)
        self._midnight.timeout.connect(self.refresh)
        bridge.batch.connect(self._on_batch)
        bridge.lagged.connect(self.refresh)

    # ---- what Qt asks

    def rowCount(self, parent: QModelIndex | QPersistentModelIndex = QModelIndex()) -> int:  # noqa: B008
        return 0 if parent.isValid() else len(self._lines)

    def data(self, index: QModelIndex | QPersistentModelIndex, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if not index.isValid() or index.row() >= len(self._lines):
            return None
        line = self._lines[index.row()]
        match role:
            case Qt.ItemDataRole.DisplayRole | Qt.ItemDataRole.EditRole | Qt.ItemDataRole.ToolTipRole:
                return line.text
            case Qt.ItemDataRole.AccessibleTextRole:
                state = self.state(line.row.session) if line.row else "idle"
                return line.text if state == "idle" else f"{line.text}, {tr('sidebar.state.' + state)}"
            case Role.SESSION:
                return line.row.session if line.row else ""
            case Role.STATE:
                return self.state(line.row.session) if line.row else "idle"
            case Role.PINNED:
                return bool(line.row and line.row.pinned)
            case Role.SNIPPET:
                return (line.row.snippet or "") if line.row else ""
        return None

    def flags(self, index: QModelIndex | QPersistentModelIndex) -> Qt.ItemFlag:
        if not index.isValid() or self._lines[index.row()].row is None:
            return Qt.ItemFlag.NoItemFlags
        return Qt.ItemFlag.ItemIsEnabled | Qt.ItemFlag.ItemIsSelectable | Qt.ItemFlag.ItemIsEditable

    def setData(
        self, index: QModelIndex | QPersistentModelIndex, value: Any, role: int = Qt.ItemDataRole.EditRole
    ) -> bool:
        line = self._lines[index.row()] if index.isValid() else None
        text = str(value).strip()
        if line is None or line.row is None or not text or text == line.text:
            return False
        self.rename(line.row.session, text)
        return True

    # ---- what a person does

    def refresh(self) -> None:
        """Read the list again."""
        query = self._query

        async def read(host: Host) -> tuple[tuple[SessionRow, ...], dict[str, str]]:
            rows = await (host.history.search(query) if query else host.history.rows(limit=SHOWN))
            return rows, {a.ask_id: a.session or "" for a in host.asks()}

        self._bridge.then(read, lambda got: self._show(query, *got), self.failed.emit, self)

    def search(self, text: str) -> None:
        """Show what matches; an empty text shows all."""
        if text.strip() != self._query:
            self._query = text.strip()
            self.refresh()

    @property
    def searching(self) -> bool:
        """Whether a search narrows the list."""
        return bool(self._query)

    def rename(self, session: str, title: str) -> None:
        """Give a conversation another title."""
        self._do(lambda host: host.rename(session, title))

    def pin(self, session: str, on: bool) -> None:
        """Keep a conversation on top, or no longer."""
        self._do(lambda host: host.history.pin(session, on))

    def delete(self, session: str) -> None:
        """Delete a conversation for good."""

        def gone(_: None) -> None:
            self.deleted.emit(session)
            self.refresh()

        self._bridge.then(lambda host: host.delete(session), gone, self.failed.emit, self)

    def summarise(self, session: str, done: Callable[[bool], None]) -> None:
        """Summarise a conversation for its model; `done` is told whether there was enough to summarise."""
        self._bridge.then(lambda host: host.compact(session), done, self.failed.emit, self)

    def export(self, session: str, form: str, done: Callable[[str], None]) -> None:
        """Hand the conversation as `md`, `html` or `json` to `done`."""
        self._bridge.then(lambda host: host.export(session, form), done, self.failed.emit, self)

    def take_in(self, path: Path, done: Callable[[str], None]) -> None:
        """Make a conversation of an exported file; `done` is told its id."""

        async def take(host: Host) -> str:
            return await host.import_bundle(await asyncio.to_thread(text_of, path))

        def taken(session: str) -> None:
            self.refresh()
            done(session)

        self._bridge.then(take, taken, self.failed.emit, self)

    # ---- what a view asks

    def row_of(self, session: str) -> int:
        """The row of a conversation, -1 where it is not shown."""
        return next((i for i, line in enumerate(self._lines) if line.row and line.row.session == session), -1)

    def found(self, session: str) -> SessionRow | None:
        """The conversation's row of the history, if shown."""
        at = self.row_of(session)
        return self._lines[at].row if at >= 0 else None

    def state(self, session: str) -> str:
        """`waiting` for a person, `running`, or `idle`."""
        if session in self._asks.values():
            return "waiting"
        return "idle" if self._states.get(session, SessionState.IDLE) is SessionState.IDLE else "running"

    def titles(self) -> tuple[tuple[str, str], ...]:
        """`(session, title)` of what is shown, for the command palette."""
        return tuple((line.row.session, line.text) for line in self._lines if line.row)

    # ---- inside

    def _do(self, make: Callable[[Host], Awaitable[None]]) -> None:
        self._bridge.then(make, lambda _: self.refresh(), self.failed.emit, self)

    def _show(self, query: str, rows: tuple[SessionRow, ...], asks: dict[str, str]) -> None:
        if query != self._query:
            return
        self._asks = asks
        for row in rows:
            self._states.setdefault(row.session, row.state)
        if query:
            new = [Line(row.title or tr("sidebar.untitled"), row) for row in rows]
        else:
            new = lines(rows, datetime.date.today())
        if [self._key(line) for line in new] == [self._key(line) for line in self._lines]:
            self._lines = new
            self._touch()
        else:
            self.beginResetModel()
            self._lines = new
            self.endResetModel()
        self._midnight.start(until_tomorrow(datetime.datetime.now()))
        self.reading = False
        self.loaded.emit()

    @staticmethod
    def _key(line: Line) -> tuple[str, str]:
        return (line.row.session, "") if line.row else ("", line.text)

    def _touch(self) -> None:
        if self._lines:
            self.dataChanged.emit(self.index(0), self.index(len(self._lines) - 1))

    def _on_batch(self, batch: tuple[ev.Stamped, ...]) -> None:
        stale = moved = False
        for stamped in batch:
            match stamped.event:
                case ev.StateChanged(state=state):
                    self._states[stamped.session] = state
                    moved = True
                case ev.AskRaised(ask=ask):
                    self._asks[ask.ask_id] = stamped.session
                    moved = True
                case ev.AskSettled(ask_id=ask_id):
                    self._asks.pop(ask_id, None)
                    moved = True
                case ev.TurnEnded():
                    self._states[stamped.session] = SessionState.IDLE
                    stale = moved = True
                case ev.SessionOpened() | ev.SessionRenamed() | ev.UserSaid():
                    stale = True
        if moved:
            self._touch()
        if stale and not self._timer.isActive():
            self._timer.start()
