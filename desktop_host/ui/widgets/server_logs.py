"""A server's log and its wire trace, read once a second while they are in view."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import Qt, QTimer
from PySide6.QtGui import QHideEvent, QShowEvent
from PySide6.QtWidgets import (
    QComboBox,
    QHeaderView,
    QPlainTextEdit,
    QSplitter,
    QTreeWidget,
    QTreeWidgetItem,
    QWidget,
)

from desktop_host.core.errors import HostError
from desktop_host.core.servers import LogLine, WireFrame
from desktop_host.core.values import FrozenDict
from desktop_host.engine.host import Host
from desktop_host.i18n import tr
from desktop_host.ui.bridge import Bridge
from desktop_host.ui.theme import Space, set_role
from desktop_host.ui.widgets.page import told
from desktop_host.ui.widgets.pieces import SearchField, column, copy_button, label, row
from desktop_host.ui.widgets.server_words import clock

READ_MS = 1000
SOURCES = ("all", "stderr", "stdout", "message", "host")


class _Watching(QWidget):
    """Reads now and then while it is shown, never while a read is under way."""

    def __init__(self, bridge: Bridge, name: str) -> None:
        super().__init__()
        self._bridge, self._name = bridge, name
        self._under_way = False
        self._timer = QTimer(self)
        self._timer.setInterval(READ_MS)
        self._timer.timeout.connect(self.refresh)
        self._problem = label("", "danger")
        self._problem.hide()

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self.refresh()
        self._timer.start()

    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        self._timer.stop()

    def refresh(self) -> None:
        """Read now."""
        raise NotImplementedError

    def _fail(self, error: HostError) -> None:
        self._under_way = False
        self._problem.setText(" ".join(told(error)))
        self._problem.show()


def log_text(lines: Sequence[LogLine], source: str, wanted: str) -> str:
    """The lines of a source that hold a text, one a line with their time."""
    needle = wanted.casefold()
    return "\n".join(
        f"{clock(line.t)}  {line.source}{'/' + line.level if line.level else ''}  {line.text}"
        for line in lines
        if source in ("all", line.source) and needle in line.text.casefold()
    )


class LogsTab(_Watching):
    """Standard error, protocol messages and what the host noted."""

    def __init__(self, bridge: Bridge, name: str) -> None:
        super().__init__(bridge, name)
        self._lines: tuple[LogLine, ...] = ()
        self.source = QComboBox()
        self.source.setAccessibleName(tr("log.source"))
        for one in SOURCES:
            self.source.addItem(tr(f"log.source.{one}"), one)
        self.filter = SearchField(tr("log.filter"))
        self.text = QPlainTextEdit()
        set_role(self.text, "code")
        self.text.setReadOnly(True)
        self.text.setUndoRedoEnabled(False)
        self.text.setAccessibleName(tr("server.tab.logs"))
        self.text.setPlaceholderText(tr("log.empty"))
        self.source.currentIndexChanged.connect(lambda _at: self._render())
        self.filter.textChanged.connect(lambda _text: self._render())
        inner = column(self, space=Space.S)
        inner.setContentsMargins(0, Space.M, 0, Space.L)
        tools = row(self.source, self.filter, copy_button(self.text.toPlainText))
        tools.setStretch(1, 1)
        inner.addLayout(tools)
        inner.addWidget(self._problem)
        inner.addWidget(self.text, 1)

    def refresh(self) -> None:
        if self._under_way:
            return
        self._under_way = True

        async def read(host: Host) -> tuple[LogLine, ...]:
            return host.servers.logs(self._name)

        self._bridge.then(read, self._show, self._fail, self)

    def _show(self, lines: tuple[LogLine, ...]) -> None:
        self._under_way = False
        self._problem.hide()
        if lines != self._lines:
            self._lines = lines
            self._render()

    def _render(self) -> None:
        text = log_text(self._lines, str(self.source.currentData()), self.filter.text())
        if text == self.text.toPlainText():
            return
        bar = self.text.verticalScrollBar()
        at_end = bar.value() >= bar.maximum() - 4
        before = bar.value()
        self.text.setPlainText(text)
        bar.setValue(bar.maximum() if at_end else before)


@dataclass(frozen=True, slots=True)
class Exchange:
    """A request with its answer, or a notification."""

    t: float
    outward: bool
    method: str
    sent: FrozenDict
    reply: FrozenDict | None = None
    ms: float | None = None

    @property
    def state(self) -> str:
        """`notification`, `waiting`, `error` or `ok`."""
        if "id" not in self.sent:
            return "notification"
        if self.reply is None:
            return "waiting"
        return "error" if "error" in self.reply else "ok"


def paired(frames: Sequence[WireFrame]) -> tuple[Exchange, ...]:
    """Requests with their answers, in the order they were sent. Ids count for each direction alone."""
    out: list[Exchange] = []
    waiting: dict[tuple[str, str], int] = {}
    for frame in frames:
        message = frame.message
        method, number = message.get("method"), message.get("id")
        if method is None and number is not None:
            key = ("out" if frame.direction == "in" else "in", json.dumps(number))
            at = waiting.pop(key, None)
            if at is not None:
                asked = out[at]
                out[at] = Exchange(
                    asked.t, asked.outward, asked.method, asked.sent, message, (frame.t - asked.t) * 1000
                )
                continue
        if number is not None and method is not None:
            waiting[frame.direction, json.dumps(number)] = len(out)
        out.append(Exchange(frame.t, frame.direction == "out", str(method or "?"), message))
    return tuple(out)


class TraceTab(_Watching):
    """What passed over the wire, request beside answer with its latency."""

    def __init__(self, bridge: Bridge, name: str) -> None:
        super().__init__(bridge, name)
        self._frames: tuple[WireFrame, ...] = ()
        self._exchanges: tuple[Exchange, ...] = ()
        self.tree = QTreeWidget()
        self.tree.setAccessibleName(tr("server.tab.trace"))
        self.tree.setRootIsDecorated(False)
        self.tree.setUniformRowHeights(True)
        self.tree.setHeaderLabels(
            [tr("trace.time"), tr("trace.way"), tr("trace.method"), tr("trace.ms"), tr("trace.state")]
        )
        header = self.tree.header()
        header.setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
        header.setSectionResizeMode(2, QHeaderView.ResizeMode.Stretch)
        header.setStretchLastSection(False)
        self.tree.currentItemChanged.connect(lambda *_: self._detail())
        self.text = QPlainTextEdit()
        set_role(self.text, "code")
        self.text.setReadOnly(True)
        self.text.setAccessibleName(tr("trace.message"))
        self.text.setPlaceholderText(tr("trace.choose"))
        split = QSplitter(Qt.Orientation.Vertical)
        split.addWidget(self.tree)
        split.addWidget(self.text)
        split.setStretchFactor(0, 3)
        split.setStretchFactor(1, 2)
        inner = column(self, space=Space.S)
        inner.setContentsMargins(0, Space.M, 0, Space.L)
        head = row(label(tr("trace.note"), "caption"), copy_button(self._all))
        head.setStretch(0, 1)
        inner.addLayout(head)
        inner.addWidget(self._problem)
        inner.addWidget(split, 1)

    def refresh(self) -> None:
        if self._under_way:
            return
        self._under_way = True

        async def read(host: Host) -> tuple[WireFrame, ...]:
            return host.servers.trace(self._name)

        self._bridge.then(read, self._show, self._fail, self)

    def _show(self, frames: tuple[WireFrame, ...]) -> None:
        self._under_way = False
        self._problem.hide()
        if frames == self._frames:
            return
        self._frames, new = frames, paired(frames)
        kept = self._current()
        bar = self.tree.verticalScrollBar()
        at_end = bar.value() >= bar.maximum() - 4
        self.tree.clear()
        for one in new:
            ms = "" if one.ms is None else f"{one.ms:.0f} ms"
            way = "→" if one.outward else "←"
            cells = [clock(one.t), way, one.method, ms, tr(f"trace.state.{one.state}")]
            item = QTreeWidgetItem(cells)
            item.setData(1, Qt.ItemDataRole.AccessibleTextRole, tr("trace.out" if one.outward else "trace.in"))
            self.tree.addTopLevelItem(item)
        self._exchanges = new
        if 0 <= kept < len(new):
            self.tree.setCurrentIndex(self.tree.model().index(kept, 0))
        elif at_end:
            self.tree.scrollToBottom()

    def _current(self) -> int:
        return self.tree.currentIndex().row()

    def _detail(self) -> None:
        at = self._current()
        if not 0 <= at < len(self._exchanges):
            self.text.clear()
            return
        one = self._exchanges[at]
        parts = [one.sent] if one.reply is None else [one.sent, one.reply]
        self.text.setPlainText("\n\n".join(json.dumps(p, indent=2, ensure_ascii=False)[:100_000] for p in parts))

    def _all(self) -> str:
        return "\n".join(
            json.dumps({"t": f.t, "direction": f.direction, "message": f.message}, ensure_ascii=False)
            for f in self._frames
        )
