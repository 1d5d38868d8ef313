"""Every kind of row can be made, updated and thrown away, and none flashes up as a window of its own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from PySide6.QtCore import QEvent, QObject
from PySide6.QtWidgets import QApplication, QWidget
from pytestqt.qtbot import QtBot

from desktop_host.core import events as ev
from desktop_host.core.asks import ApproveTool, FillForm, OpenUrl, ReviewReply, ReviewSampling
from desktop_host.core.exchange import SamplingRequest
from desktop_host.core.messages import Audio, EmbeddedResource, Image, Outcome, ResourceLink, Text, assistant, user
from desktop_host.core.permissions import Effect
from desktop_host.core.sessions import TurnStatus, TurnStop
from desktop_host.core.transcript import Transcript, fold
from desktop_host.core.values import EMPTY, freeze
from desktop_host.ui.theme import theme
from desktop_host.ui.viewmodels.transcript import TranscriptModel
from desktop_host.ui.widgets.transcript import TranscriptView

FORM = freeze(
    {"properties": {"a": {"type": "string", "minLength": 2}, "b": {"type": "boolean"}, "c": {"type": "object"}}}
)
ASKS = (
    ApproveTool("a1", "s", "c1", "x", "y", EMPTY),
    ApproveTool("a2", "s", "c1", "x", "y", freeze({"p": 1}), changed=True, previous_description="old"),
    FillForm("a3", "s", "c1", "x", "fill", FORM),
    OpenUrl("a4", "s", "c1", "x", "open", "https://a.b"),
    ReviewSampling("a5", "s", "c1", "x", SamplingRequest((user("q"), assistant("a")), 10), "m"),
    ReviewReply("a6", "s", "c1", "x", (Text("r"),), "m"),
)
CONTENT = (
    Text("short"), Text("long\n" * 100), Text('{"a": [1]}'), Image("AAAA", "image/png"), Audio("AAAA", "audio/wav"),
    ResourceLink("https://a.b", "n"), EmbeddedResource("a://b", "text/plain", text="t"),
)  # fmt: skip


def story() -> Iterator[ev.Stamped]:
    events: list[ev.Event] = [
        ev.UserSaid("hi\n" * 60, (ev.Attachment("f.txt", "text/plain", 3),)),
        ev.TurnStarted(),
        ev.RetryScheduled(1, 2.0, "overloaded", "529", 0.0),
        ev.ThinkingStreamed("hm"),
        ev.TokenDelta("# A\n\nb `c`\n\n```py\nx\n```\n"),
        ev.AssistantSaid(assistant("# A\n\nb `c`\n\n```py\nx\n```\n"), "m"),
        *(ev.AskRaised(ask) for ask in ASKS),
        *(ev.AskSettled(ask.ask_id, "allow", "person") for ask in ASKS),
    ]
    for n, outcome in enumerate(Outcome):
        events += [
            ev.ToolRequested(f"c{n}", "x", "y", "x__y", freeze({"p": n}), Effect.ALLOW),
            ev.ToolStarted(f"c{n}"),
            ev.ToolProgress(f"c{n}", 1, 2, "half"),
            ev.ToolSettled(f"c{n}", outcome, CONTENT, freeze({"rows": [{"a": 1}, {"a": 2}]}), 5),
        ]
    events += [
        ev.RouteChanged("a", "b", "overloaded"),
        ev.ToolsChanged(("x.y",), ("x.z",), ("x.w",)),
        ev.Notice("tool_quarantined", freeze({"tool": "t"})),
        ev.Notice("something_new", freeze({"k": "v"})),
        *(ev.TurnEnded(TurnStatus.DONE, stop) for stop in TurnStop),
    ]
    for n, event in enumerate(events, 1):
        yield ev.Stamped(n, 0.0, "s", 1, event)


class Windows(QObject):
    """Remembers every widget that is shown as a window of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() is QEvent.Type.Show and isinstance(watched, QWidget) and watched.isWindow():
            self.seen.append(type(watched).__name__)
        return False


@pytest.fixture
def view(qtbot: QtBot) -> Iterator[tuple[TranscriptModel, TranscriptView]]:
    theme.apply("light")
    model = TranscriptModel()
    made = TranscriptView(model)
    qtbot.addWidget(made)
    made.resize(800, 600)
    made.show()
    qtbot.waitExposed(made)
    windows = Windows()
    app = QApplication.instance()
    assert app is not None
    app.installEventFilter(windows)
    yield model, made
    app.removeEventFilter(windows)
    assert windows.seen == []


def test_a_whole_story_row_by_row(qtbot: QtBot, view: tuple[TranscriptModel, TranscriptView]) -> None:
    model, shown = view
    for stamped in story():
        model.take([stamped])
        QApplication.processEvents()
    assert list(shown.rows) == [e.key for e in model.now.entries]
    for row in shown.rows.values():
        assert "chat." not in row.accessibleName()


def test_the_same_story_from_the_journal_has_the_same_rows(
    qtbot: QtBot, view: tuple[TranscriptModel, TranscriptView]
) -> None:
    model, shown = view
    for stamped in story():
        model.take([stamped])
    live = [type(r) for r in shown.rows.values()]
    transcript = Transcript("s")
    for stamped in story():
        transcript = fold(transcript, stamped)
    model.load(transcript)
    QApplication.processEvents()
    assert [type(r) for r in shown.rows.values()] == live


def test_colours_can_change_with_every_kind_of_row_in_sight(
    qtbot: QtBot, view: tuple[TranscriptModel, TranscriptView]
) -> None:
    model, shown = view
    for stamped in story():
        model.take([stamped])
    for look in ("dark", "high_contrast", "light"):
        theme.apply(look)
        QApplication.processEvents()
    theme.apply("light", 150)
    QApplication.processEvents()
    theme.apply("light", 100)
    assert len(shown.rows) == len(model.now.entries)
