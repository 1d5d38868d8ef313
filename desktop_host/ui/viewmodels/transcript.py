"""One conversation as rows: folds the events of its session and says which rows changed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import groupby

from PySide6.QtCore import QObject, Signal

from desktop_host.core.events import Stamped, ThinkingStreamed, TokenDelta
from desktop_host.core.sessions import SessionState, TurnStatus
from desktop_host.core.transcript import Entry, Transcript, fold, fold_all


class TranscriptModel(QObject):
    """The open conversation. Rows are known by their keys; a key keeps its place."""

    reset = Signal()
    """All rows are others."""
    changed = Signal(object)
    """`tuple[Entry, ...]`: new or changed rows, in order."""
    dropped = Signal(object)
    """`tuple[str, ...]`: keys of rows that are gone."""
    grown = Signal(int)
    """So many rows have come before all others."""
    status = Signal()
    """State, queue, title, model or usage changed."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.now = Transcript()

    @property
    def running(self) -> bool:
        """Whether a turn is under way. A conversation read from the journal knows that by its open turn only."""
        return self.now.state is not SessionState.IDLE or self.now.last_status is TurnStatus.OPEN

    def load(self, transcript: Transcript, later: Iterable[Stamped] = ()) -> None:
        """Show a conversation; `later` are events that came while it was read."""
        self.now = fold_all(transcript, later)
        self.reset.emit()
        self.status.emit()

    def complete(self, whole: Transcript, later: Iterable[Stamped]) -> None:
        """Put what was said before in front of what is shown; `later` are events that came while it was read."""
        before, now = self.now.entries, fold_all(whole, later)
        more = len(now.entries) - len(before)
        self.now = now
        if more < 0 or any(a.key != b.key for a, b in zip(before, now.entries[more:], strict=True)):
            self.reset.emit()
        else:
            self.grown.emit(more)
            fresh = tuple(b for a, b in zip(before, now.entries[more:], strict=True) if a != b)
            if fresh:
                self.changed.emit(fresh)
        self.status.emit()

    def take(self, events: Iterable[Stamped]) -> None:
        """Fold what happened in this session."""
        before = self.now
        now = before
        for stamped in merged(events):
            now = fold(now, stamped)
        if now is before:
            return
        self.now = now
        if now.entries is not before.entries:
            gone = tuple(key for key in before.index if key not in now.index)
            if gone:
                self.dropped.emit(gone)
            fresh = _changed(before, now)
            if fresh:
                self.changed.emit(fresh)
        if _status(before) != _status(now):
            self.status.emit()


def merged(events: Iterable[Stamped]) -> list[Stamped]:
    """The same events with neighbouring pieces of text joined, so that a batch folds each block once."""
    out: list[Stamped] = []
    for _kind, run in groupby(events, key=lambda s: (s.session, s.turn, type(s.event))):
        group = list(run)
        last = group[-1]
        if len(group) > 1 and isinstance(last.event, TokenDelta | ThinkingStreamed):
            text = "".join(s.event.text for s in group if isinstance(s.event, TokenDelta | ThinkingStreamed))
            out.append(replace(last, event=replace(last.event, text=text)))
        else:
            out += group
    return out


def _changed(before: Transcript, now: Transcript) -> tuple[Entry, ...]:
    old, start = before.entries, 0
    if len(old) <= len(now.entries):
        # Nearly all rows are the same objects; skip the finished front quickly.
        while start < len(old) and old[start] is now.entries[start]:
            start += 1
    fresh: list[Entry] = []
    for entry in now.entries[start:]:
        at = before.index.get(entry.key)
        if at is None or old[at] is not entry:
            fresh.append(entry)
    return tuple(fresh)


def _status(t: Transcript) -> tuple[object, ...]:
    return (t.state, t.queued, t.title, t.model, t.last_status, t.last_stop, t.input_tokens, t.output_tokens)
