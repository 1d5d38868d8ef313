"""The wire: pairs, latency, filters, what can be sent again, and thousands of messages."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from pytestqt.qtbot import QtBot

from desktop_host.core.servers import ServerConfig, Stdio, WireFrame
from desktop_host.core.values import freeze
from desktop_host.ui.viewmodels.inspector import EXCHANGE, MOST, Wire, WireFilter
from desktop_host.ui.viewmodels.inspector_pairs import Exchange, Pairs, news, paired
from desktop_host.ui.widgets.inspector_trace import TraceView
from tests.ui.shell_kit import Shell, server_shells

LEFT = Qt.MouseButton.LeftButton
FILES = ServerConfig("files", Stdio("npx", ("-y", "server-filesystem", "/tmp")))


@pytest.fixture
def make(qtbot: QtBot, tmp_path: Path) -> Iterator[Callable[..., Shell]]:
    with server_shells(qtbot, tmp_path) as build:
        yield build


def trace(shell: Shell, name: str = "files") -> TraceView:
    shell.workspace.show_servers(name)
    page = shell.workspace.servers_page.detail
    assert page is not None
    view = page.show_tab("trace")
    assert isinstance(view, TraceView)
    shell.until(lambda: view.wire.rowCount() == 3)
    return view


def choose(view: TraceView, row: int) -> Exchange:
    view.table.setCurrentIndex(view.shown.index(row, 0))
    found = view.current
    assert found is not None
    return found


def test_requests_stand_beside_their_answers_with_the_time_they_took(make: Callable[..., Shell]) -> None:
    view = trace(make(FILES))
    assert view.shown.index(0, 3).data() == "30 ms"
    one = choose(view, 1)
    assert one.state == "error"
    assert one.detail == "read_file"
    assert "no such file" in view.json.toPlainText()


def test_ids_of_both_directions_are_kept_apart() -> None:
    frames = [
        WireFrame(1.0, "out", freeze({"id": 1, "method": "tools/call"})),
        WireFrame(1.1, "in", freeze({"id": 1, "method": "sampling/createMessage"})),
        WireFrame(1.3, "out", freeze({"id": 1, "result": {"model": "m"}})),
        WireFrame(1.5, "in", freeze({"id": 1, "result": {}})),
        WireFrame(1.6, "in", freeze({"id": 7, "result": {}})),
    ]
    got = paired(frames)
    assert [(x.method, x.outward, x.state, x.ms and round(x.ms)) for x in got] == [
        ("tools/call", True, "ok", 500), ("sampling/createMessage", False, "ok", 200),
        ("?", False, "notification", None),
    ]  # fmt: skip


def test_requests_of_two_connections_with_the_same_ids_are_kept_apart_and_a_dead_one_loses_its_own() -> None:
    pairs = Pairs("s")
    frames = [
        WireFrame(1.0, "out", freeze({"id": 1, "method": "tools/call", "params": {"name": "a"}}), 1),
        WireFrame(1.1, "out", freeze({"id": 1, "method": "tools/call", "params": {"name": "b"}}), 2),
        WireFrame(1.2, "out", freeze({"id": 2, "method": "tools/call", "params": {"name": "c"}}), 2),
        WireFrame(1.5, "in", freeze({"id": 1, "result": {"n": "of b"}}), 2),
    ]
    a, b, c = [one for one, new in map(pairs.take, frames) if new]
    assert (a.state, b.reply, c.state) == ("waiting", freeze({"id": 1, "result": {"n": "of b"}}), "waiting")
    assert pairs.close(frozenset({2})) == [c]
    assert (a.state, b.state, c.state) == ("waiting", "ok", "lost")


def test_a_result_that_says_it_is_an_error_counts_as_one() -> None:
    sent = WireFrame(1.0, "out", freeze({"id": 1, "method": "tools/call"}))
    back = WireFrame(1.1, "in", freeze({"id": 1, "result": {"isError": True, "content": []}}))
    assert paired([sent, back])[0].state == "error"


def test_the_wire_is_filtered_by_text_method_and_errors(make: Callable[..., Shell]) -> None:
    view = trace(make(FILES))
    view.search.setText("NO SUCH")
    assert view.shown.rowCount() == 1
    view.search.setText("")
    view.method.setCurrentIndex(view.method.findData("tools/list"))
    assert [view.shown.index(r, 0).data(EXCHANGE).method for r in range(view.shown.rowCount())] == ["tools/list"]
    view.method.setCurrentIndex(0)
    view.errors.setChecked(True)
    assert view.shown.rowCount() == 1
    assert view.count.text() == "1 of 3"


def test_what_is_listed_is_copied_as_json_lines(make: Callable[..., Shell]) -> None:
    shell = make(FILES)
    view = trace(shell)
    shell.press("Copy all", view)
    copied = QGuiApplication.clipboard().text()
    assert copied.count("\n") == 2
    assert '"direction": "in"' in copied


def test_a_request_is_changed_and_sent_again(make: Callable[..., Shell]) -> None:
    shell = make(FILES)
    view = trace(shell)
    choose(view, 1)
    shell.qtbot.mouseClick(view.resend.open_button, LEFT)
    assert '"name": "read_file"' in view.resend.params.toPlainText()
    view.resend.params.setPlainText('["not an object"]')
    shell.qtbot.mouseClick(view.resend.go, LEFT)
    assert shell.host.servers.resent == []
    view.resend.params.setPlainText('{"name": "read_file", "arguments": {"path": "/b"}}')
    shell.qtbot.mouseClick(view.resend.go, LEFT)
    shell.until(lambda: shell.host.servers.resent)
    assert shell.host.servers.resent == [
        ("files", "tools/call", freeze({"name": "read_file", "arguments": {"path": "/b"}}))
    ]
    shell.until(lambda: view.wire.rowCount() == 4)
    assert view.wire.rows[-1].state == "ok"


@pytest.mark.parametrize(
    ("message", "outward"),
    [
        ({"id": 1, "method": "initialize", "params": {}}, True),
        ({"id": 1, "method": "tools/call", "params": {"arguments": {"token": "•••"}}}, True),
        ({"id": 1, "method": "tools/call", "params": {"arguments": {"t": "aa… (9000 characters)"}}}, True),
        ({"method": "notifications/initialized"}, True),
        ({"id": 1, "method": "sampling/createMessage", "params": {}}, False),
    ],
)
def test_what_was_masked_cut_or_is_not_ours_cannot_be_sent_again(message: dict[str, object], outward: bool) -> None:
    frame = WireFrame(1.0, "out" if outward else "in", freeze(message))
    assert not paired([frame])[0].can_resend


def test_only_what_is_new_is_taken() -> None:
    frames = [WireFrame(float(n), "out", freeze({"id": n, "method": "ping"})) for n in range(5)]
    assert list(news(None, frames)) == frames
    assert list(news(frames[2], frames)) == frames[3:]
    assert list(news(WireFrame(-1.0, "in", freeze({})), frames)) == frames


def test_an_answer_that_comes_later_changes_its_row(make: Callable[..., Shell]) -> None:
    shell = make(FILES)
    view = trace(shell)
    shell.host.servers.frames["files"].append(WireFrame(time.time(), "out", freeze({"id": 9, "method": "ping"})))
    shell.until(lambda: view.wire.rowCount() == 4)
    assert view.wire.rows[3].state == "waiting"
    shell.host.servers.frames["files"].append(WireFrame(time.time(), "in", freeze({"id": 9, "result": {}})))
    shell.until(lambda: view.wire.rows[3].state == "ok")


def test_thousands_of_messages_stay_quick(qtbot: QtBot, make: Callable[..., Shell]) -> None:
    shell = make()
    wire = Wire(shell.bridge, tuple, shell.window)
    shown = WireFilter(wire, shell.window)
    body = {"arguments": {"path": "/home/ada/notes.md", "text": "x" * 300}}
    began = time.perf_counter()
    for n in range(200):
        wire.take(
            ("s", WireFrame(n + part / 100, way, freeze(m)))
            for part in range(50)
            for way, m in (
                ("out", {"id": n * 50 + part, "method": "tools/call", "params": body}),
                ("in", {"id": n * 50 + part, "result": {"n": part}}),
            )
        )
    appended = time.perf_counter() - began
    assert wire.rowCount() == 10_000
    began = time.perf_counter()
    shown.narrow("notes.md")
    first = time.perf_counter() - began
    began = time.perf_counter()
    shown.narrow('"n": 7')
    second = time.perf_counter() - began
    assert shown.rowCount() == 200
    assert appended < 3.0, "20,000 messages"
    assert first < 2.0
    assert second < 1.0


def test_the_oldest_rows_go_when_there_are_too_many(make: Callable[..., Shell]) -> None:
    shell = make()
    wire = Wire(shell.bridge, tuple, shell.window)
    ping = freeze({"method": "notifications/progress"})
    wire.take(("s", WireFrame(float(n), "in", ping)) for n in range(MOST + 1))
    assert wire.rowCount() == MOST - MOST // 10
    assert wire.rows[0].t > 0
