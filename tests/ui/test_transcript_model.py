"""The transcript's view-model: folds batches, tells what changed, and needs no widgets."""

from __future__ import annotations

import subprocess
import sys

from pytestqt.qtbot import QtBot

from desktop_host.core import events as ev
from desktop_host.core.messages import Outcome, Text, assistant
from desktop_host.core.permissions import Effect
from desktop_host.core.sessions import TurnStatus, TurnStop
from desktop_host.core.transcript import AssistantEntry, Transcript, fold
from desktop_host.core.values import EMPTY
from desktop_host.ui.viewmodels.transcript import TranscriptModel, merged


def stamp(*events: ev.Event, start: int = 1) -> list[ev.Stamped]:
    return [ev.Stamped(n, 0.0, "s", 1, e) for n, e in enumerate(events, start)]


def turn() -> list[ev.Stamped]:
    return stamp(
        ev.UserSaid("hi"),
        ev.TurnStarted(),
        ev.ThinkingStreamed("hm "),
        ev.ThinkingStreamed("yes"),
        *(ev.TokenDelta(c) for c in "Hello there"),
        ev.AssistantSaid(assistant("Hello there"), "m"),
        ev.ToolRequested("c1", "files", "read", "files__read", EMPTY, Effect.ALLOW),
        ev.ToolStarted("c1"),
        ev.ToolSettled("c1", Outcome.OK, (Text("x"),)),
        *(ev.TokenDelta(c) for c in "Done"),
        ev.AssistantSaid(assistant("Done"), "m"),
        ev.TurnEnded(TurnStatus.DONE, TurnStop.END),
    )


def test_joining_neighbouring_text_folds_to_the_same_transcript() -> None:
    plain = Transcript("s")
    for s in turn():
        plain = fold(plain, s)
    joined = Transcript("s")
    events = merged(turn())
    for s in events:
        joined = fold(joined, s)
    assert [type(s.event).__name__ for s in events].count("TokenDelta") == 2
    texts = [(e.text, e.thinking) for e in plain.entries if isinstance(e, AssistantEntry)]
    assert [(e.text, e.thinking) for e in joined.entries if isinstance(e, AssistantEntry)] == texts
    assert joined.last_seq == plain.last_seq


def test_a_batch_says_which_rows_are_new_or_changed(qtbot: QtBot) -> None:
    model = TranscriptModel()
    seen: list[list[str]] = []
    model.changed.connect(lambda entries: seen.append([e.key for e in entries]))
    events = turn()
    model.take(events[:6])
    assert [k.split(":")[0] for k in seen[-1]] == ["user", "reply"]
    model.take(events[6:8])
    assert [k.split(":")[0] for k in seen[-1]] == ["reply"]
    model.take(events[8:])
    assert [k.split(":")[0] for k in seen[-1]] == ["reply", "tool", "reply"]


def test_a_settled_retry_row_is_dropped(qtbot: QtBot) -> None:
    model = TranscriptModel()
    gone: list[str] = []
    model.dropped.connect(gone.extend)
    model.take(stamp(ev.UserSaid("hi"), ev.TurnStarted(), ev.RetryScheduled(1, 2.0, "overloaded", "529", 5.0)))
    model.take(stamp(ev.TokenDelta("now"), start=4))
    assert gone == ["retry:1"]


def test_events_that_came_while_the_journal_was_read_are_not_lost_or_doubled(qtbot: QtBot) -> None:
    events = turn()
    read = Transcript("s")
    for s in events[:7]:
        read = fold(read, s)
    model = TranscriptModel()
    model.load(read, events[3:])
    assert [e.text for e in model.now.entries if isinstance(e, AssistantEntry)] == ["Hello there", "Done"]


def test_view_models_of_the_chat_load_no_widgets() -> None:
    code = (
        "import sys; import desktop_host.ui.viewmodels.chat, desktop_host.ui.viewmodels.forms, "
        "desktop_host.ui.viewmodels.asks; "
        "names = ('PySide6.QtWidgets', 'PySide6.QtGui', 'mcp', 'pygments', 'jsonschema'); "
        "bad = [m for m in names if m in sys.modules]; "
        "sys.exit(repr(bad) if bad else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_turn_that_was_open_when_the_journal_was_read_is_running(qtbot: QtBot) -> None:
    events = turn()
    read = Transcript("s")
    for s in events[:8]:
        read = fold(read, s)
    model = TranscriptModel()
    model.load(read)
    assert model.running
    model.take(events[8:])
    assert not model.running
