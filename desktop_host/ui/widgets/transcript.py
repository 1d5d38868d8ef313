"""The conversation: the newest rows as widgets, earlier ones on demand, following the stream at its end."""

from __future__ import annotations

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QHBoxLayout, QScrollArea, QVBoxLayout, QWidget

from desktop_host.core.transcript import AskEntry, AssistantEntry, Entry, NoticeEntry, ToolEntry
from desktop_host.i18n import tr, trn
from desktop_host.ui.theme import Space, set_role, theme
from desktop_host.ui.tokens import GUTTER, TEXT_WIDTH
from desktop_host.ui.viewmodels.transcript import TranscriptModel
from desktop_host.ui.widgets.ask_card import AskCard
from desktop_host.ui.widgets.fade import Fade
from desktop_host.ui.widgets.message import AssistantMessage
from desktop_host.ui.widgets.notice import NoticeLine
from desktop_host.ui.widgets.page import steady_bar
from desktop_host.ui.widgets.pieces import button
from desktop_host.ui.widgets.pulse import Pulse
from desktop_host.ui.widgets.rows import Row, make, show, wire
from desktop_host.ui.widgets.transcript_place import NEAR_END, Place, edge

WINDOW = 40
"""Rows kept as widgets. Building a widget costs about 2 ms; forty are built within a blink and scroll freely."""


class _Inner(QWidget):
    """As high as its layout at the given width. Qt's own minimum counts each wrapped label at its narrowest."""

    def minimumSizeHint(self) -> QSize:
        return QSize(1, 1)


class TranscriptView(QScrollArea):
    """Shows a `TranscriptModel`."""

    answered = Signal(str, object)
    acted = Signal(str)
    """What the button of a notice wants."""
    at_end = Signal(bool)
    """Whether the reader sees the newest row."""
    message_acted = Signal(str, str)
    """`(verb, key)`: what the person wants to do with a message."""
    link_wanted = Signal(str, str, bool)
    """`(server, uri, keep)`: a resource that a result links to is to be opened, or a copy kept."""
    card_made = Signal(object)
    asked = Signal(object)
    """The `AskCard` of a question that has just been raised."""

    def __init__(self, model: TranscriptModel, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._model = model
        self._rows: dict[str, Row] = {}
        self._first = 0
        """Position of the oldest row that has a widget."""
        self._following = True
        self._place = Place(self)
        self._place.follows.connect(self._follow)
        self.setWidgetResizable(True)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setAccessibleName(tr("chat.transcript"))
        inner = _Inner()
        set_role(inner, "page")
        inner.setAutoFillBackground(False)
        self.viewport().setAutoFillBackground(False)
        outer = QHBoxLayout(inner)
        self._outer = outer
        self._room = _Inner()
        outer.addStretch(1)
        outer.addWidget(self._room, 1000)
        outer.addStretch(1)
        self._column = QVBoxLayout(self._room)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.setSpacing(theme.px(Space.M))
        self._earlier = button("", self.load_earlier, role="quiet", icon="chevron-up")
        self._earlier.hide()
        self._column.addWidget(self._earlier, 0, Qt.AlignmentFlag.AlignHCenter)
        self._pulse = Pulse()
        self._column.addWidget(self._pulse)
        self._column.addStretch(1)
        self.setWidget(inner)
        self._fade = Fade(self)
        steady_bar(self)
        bar = self.verticalScrollBar()
        bar.rangeChanged.connect(self._on_range)
        bar.valueChanged.connect(self._on_scroll)
        model.reset.connect(self._rebuild)
        model.changed.connect(self._take)
        model.dropped.connect(self._drop)
        model.grown.connect(self._grow)
        theme.changed.connect(self._restyle)
        self._fit_width()

    # ---- what others need

    @property
    def rows(self) -> dict[str, Row]:
        """The widgets there are, by key, oldest first."""
        return self._rows

    @property
    def hidden(self) -> int:
        """Earlier rows without a widget."""
        return self._first

    @property
    def following(self) -> bool:
        """Whether the view keeps the newest row in sight."""
        return self._following

    def open_card(self) -> AskCard | None:
        """The oldest question that waits."""
        return next((r for r in self._rows.values() if isinstance(r, AskCard) and not r.done), None)

    def to_end(self) -> None:
        """Go to the newest row and follow from here."""
        self._follow(True)
        bar = self.verticalScrollBar()
        bar.setValue(bar.maximum())

    def reveal(self, card: AskCard) -> None:
        """Bring a question into sight: whole where it fits, else from its top."""
        self._place.reveal(card)

    def load_earlier(self) -> None:
        """Give earlier rows widgets; what is read stays where it is."""
        if self._first == 0:
            return
        start = max(0, self._first - WINDOW)
        entries = self._model.now.entries[start : self._first]
        self._first = start
        if self._rows:
            self._place.hold(next(iter(self._rows.values())))
        self._follow(False)
        made = {e.key: self._make(e) for e in entries}
        for at, widget in enumerate(made.values()):
            self._column.insertWidget(1 + at, widget)
        self._rows = {**made, **self._rows}
        self._show_earlier()

    # ---- rows

    def _rebuild(self) -> None:
        self.setUpdatesEnabled(False)
        for key in list(self._rows):
            self._remove(key)
        entries = self._model.now.entries
        self._first = max(0, len(entries) - WINDOW)
        for entry in entries[self._first :]:
            self._append(entry)
        self._show_earlier()
        self.mark_last()
        self.setUpdatesEnabled(True)
        self.to_end()

    def _take(self, entries: tuple[Entry, ...]) -> None:
        index = self._model.now.index
        self._place.let_row_go()
        for entry in entries:
            row = self._rows.get(entry.key)
            if row is not None:
                self._update(row, entry)
            elif index[entry.key] >= self._first + len(self._rows):
                self._append(entry)
                if isinstance(row := self._rows[entry.key], AskCard):
                    self.asked.emit(row)
        self._trim()
        self.mark_last()

    def _update(self, row: Row, entry: Entry) -> None:
        if show(row, entry):
            return
        at = self._column.indexOf(row)
        focus = self.focusWidget()
        had_focus = focus is not None and row.isAncestorOf(focus)
        self._discard(row)
        made = self._make(entry)
        self._rows[entry.key] = made
        self._column.insertWidget(at, made)
        if had_focus:
            self.setFocus()

    def _append(self, entry: Entry) -> None:
        row = self._make(entry)
        self._rows[entry.key] = row
        self._column.insertWidget(self._column.count() - 2, row)

    def _make(self, entry: Entry) -> Row:
        row = make(entry)
        wire(row, self)
        return row

    def _drop(self, keys: tuple[str, ...]) -> None:
        for key in keys:
            if key in self._rows:
                self._remove(key)
            elif self._first:
                self._first -= 1
        self.mark_last()

    def _remove(self, key: str) -> None:
        self._discard(self._rows.pop(key))

    def _discard(self, row: Row) -> None:
        self._column.removeWidget(row)
        row.hide()
        row.deleteLater()

    def _trim(self) -> None:
        """Give up the oldest widgets while the reader is at the end."""
        if not self._following:
            return
        while len(self._rows) > WINDOW:
            oldest, row = next(iter(self._rows.items()))
            if isinstance(row, AskCard) and not row.done:
                return
            self._remove(oldest)
            self._first += 1
        self._show_earlier()

    def mark_last(self) -> None:
        """Say which rows are the last of their turn, and whether anything moves; also when the state changed."""
        last = next(reversed(self._rows), None)
        idle = not self._model.running
        worked: set[int] = set()
        for key, row in reversed(self._rows.items()):
            entry = self._model.now.entry(key)
            if isinstance(row, NoticeLine):
                row.set_last(key == last and idle)
            elif isinstance(row, AssistantMessage) and entry is not None:
                row.set_last(entry.turn not in worked, newest=idle and not worked)
            if entry is not None and isinstance(entry, ToolEntry | AssistantEntry):
                worked.add(entry.turn)
        self._pulse.show_working(not idle and self._nothing_moves())

    def _nothing_moves(self) -> bool:
        """Whether nothing in sight says that work goes on."""
        entries = self._model.now.entries
        if any(isinstance(e, ToolEntry) and e.started and e.outcome is None for e in entries[-WINDOW:]):
            return False  # its card counts
        last = entries[-1] if entries else None
        match last:
            case AssistantEntry():
                return not last.streaming
            case ToolEntry():
                return last.outcome is not None
            case AskEntry():
                return last.action is not None
            case NoticeEntry():
                return last.code != "retry_scheduled"
        return True

    def _grow(self, more: int) -> None:
        self._first += more
        self._show_earlier()

    def _show_earlier(self) -> None:
        self._earlier.setVisible(self._first > 0)
        self._earlier.setText(trn("chat.earlier", min(WINDOW, self._first)) if self._first else "")

    # ---- scrolling

    def _on_range(self, _low: int, high: int) -> None:
        if self._place.held:
            self._place.grown(high)
        elif self._following:
            self.verticalScrollBar().setValue(high)

    def _on_scroll(self, value: int) -> None:
        if self._place.moving:
            return
        self._place.let_go()
        bar = self.verticalScrollBar()
        self._follow(bar.maximum() - value <= NEAR_END)
        if value == 0 and self._first and bar.maximum() > 0 and not self._following:
            self.load_earlier()

    def _follow(self, on: bool) -> None:
        if on != self._following:
            self._following = on
            self.at_end.emit(on)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Keep the readable width."""
        super().resizeEvent(event)
        self._fit_width()

    def _fit_width(self) -> None:
        self._room.setMaximumWidth(theme.px(TEXT_WIDTH))
        side = edge(self.width())
        self._outer.setContentsMargins(side + theme.px(GUTTER), theme.px(Space.L), side, theme.px(Space.XL))

    def _restyle(self) -> None:
        self._fit_width()
        for row in self._rows.values():
            row.restyle()
