"""A token costs the same in the first line of an answer and in the last; finished blocks are left alone."""

from __future__ import annotations

import time
from statistics import median

from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from desktop_host.core import events as ev
from desktop_host.core.messages import assistant
from desktop_host.ui.theme import theme
from desktop_host.ui.viewmodels.transcript import TranscriptModel
from desktop_host.ui.widgets.code import CodeFrame
from desktop_host.ui.widgets.message import AssistantMessage, MarkdownView
from desktop_host.ui.widgets.prose import Prose
from desktop_host.ui.widgets.transcript import WINDOW, TranscriptView

PIECE = """## Section

A paragraph of plain prose that goes on for a while, with **bold**, `code` and a [link](https://example.org) in it.

- first item of a list
- second item of a list

| a | b |
|---|---|
| 1 | 2 |

```python
def f(x: int) -> int:
    return x + 1
```

"""


def test_streaming_five_thousand_tokens_into_forty_messages_does_not_slow_down(qtbot: QtBot) -> None:
    theme.apply("light")
    model = TranscriptModel()
    view = TranscriptView(model)
    qtbot.addWidget(view)
    view.resize(800, 900)
    view.show()
    qtbot.waitExposed(view)
    seq = 0

    def happen(*events: ev.Event) -> None:
        nonlocal seq
        stamped = []
        for event in events:
            seq += 1
            stamped.append(ev.Stamped(seq, 0.0, "s", 1, event))
        model.take(stamped)

    happen(*(ev.AssistantSaid(assistant(PIECE), "m") for _ in range(WINDOW)))
    QApplication.processEvents()
    text = PIECE * 70
    tokens = [text[at : at + 4] for at in range(0, 20_000, 4)]
    costs: list[float] = []
    for at in range(0, len(tokens), 5):  # five tokens a frame: 300 tokens a second
        began = time.process_time()
        happen(*(ev.TokenDelta(t) for t in tokens[at : at + 5]))
        QApplication.processEvents()
        costs.append(time.process_time() - began)
    tenth = len(costs) // 10
    first, last = sum(costs[:tenth]), sum(costs[-tenth:])
    assert last < 2 * first, f"first tenth {first * 1000:.0f} ms, last tenth {last * 1000:.0f} ms"
    assert median(costs) < 0.016
    assert len(view.rows) == WINDOW
    shown = list(view.rows.values())[-1]
    assert isinstance(shown, AssistantMessage)
    assert len(shown.text.segments) > 50


def test_finished_blocks_are_never_rendered_again(qtbot: QtBot) -> None:
    view = MarkdownView()
    qtbot.addWidget(view)
    view.show()
    text = PIECE * 3
    view.show_text(text, finished=False)
    settled = view.segments[:-1]
    revisions = [s.document().revision() if isinstance(s, Prose) else s.text.document().revision() for s in settled]
    for n in range(1, 6):
        view.show_text(text + "More and more words. " * n, finished=False)
    assert view.segments[: len(settled)] == settled
    after = [s.document().revision() if isinstance(s, Prose) else s.text.document().revision() for s in settled]
    assert after == revisions


def test_what_streams_and_what_comes_whole_look_the_same(qtbot: QtBot) -> None:
    streamed, whole = MarkdownView(), MarkdownView()
    for view in (streamed, whole):
        qtbot.addWidget(view)
        view.show()
    text = PIECE * 4 + "> quote\n\n1. one\n2. two\n\n---\n\nend"
    for at in range(0, len(text) + 7, 7):
        streamed.show_text(text[:at], finished=False)
    streamed.show_text(text, finished=True)
    whole.show_text(text, finished=True)

    def content(view: MarkdownView) -> list[str]:
        return [s.code if isinstance(s, CodeFrame) else s.toHtml() for s in view.segments]

    assert content(streamed) == content(whole)


def test_undo_is_off_so_that_nothing_is_kept_twice(qtbot: QtBot) -> None:
    view = MarkdownView()
    qtbot.addWidget(view)
    view.show_text(PIECE, finished=True)
    for segment in view.segments:
        document = segment.document() if isinstance(segment, Prose) else segment.text.document()
        assert not document.isUndoRedoEnabled()


def test_an_answer_that_was_replaced_is_drawn_anew(qtbot: QtBot) -> None:
    view = MarkdownView()
    qtbot.addWidget(view)
    view.show_text("one two", finished=False)
    view.show_text("other", finished=True)
    assert [s.toPlainText() for s in view.segments if isinstance(s, Prose)] == ["other"]


def test_a_long_open_block_is_drawn_in_the_end_even_if_drawing_is_slowed_down(qtbot: QtBot) -> None:
    view = MarkdownView()
    qtbot.addWidget(view)
    text = "word " * 1000
    view.show_text(text, finished=False)
    qtbot.waitUntil(lambda: bool(view.segments) and "word" in view.segments[0].toPlainText(), timeout=30_000)
    view.show_text(text + "end", finished=True)
    assert view.segments[0].toPlainText().endswith("end")
