"""The log of one or more servers, read once a second while it is in view."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from PySide6.QtCore import QTimer
from PySide6.QtGui import QHideEvent, QShowEvent
from PySide6.QtWidgets import QComboBox, QPlainTextEdit, QWidget

from desktop_host.core.errors import HostError
from desktop_host.core.servers import LogLine
from desktop_host.engine.host import Host
from desktop_host.i18n import tr
from desktop_host.ui.bridge import Bridge
from desktop_host.ui.theme import Space, set_role
from desktop_host.ui.widgets.page import told
from desktop_host.ui.widgets.pieces import column, copy_button, label, row
from desktop_host.ui.widgets.search_field import SearchField
from desktop_host.ui.widgets.server_words import clock

READ_MS = 1000
SOURCES = ("all", "stderr", "network", "stdout", "message", "host")


def log_text(lines: Sequence[LogLine], source: str, wanted: str) -> str:
    """The lines of a source that hold a text, one a line with their time."""
    needle = wanted.casefold()
    kept = [x for x in lines if source in ("all", x.source) and needle in x.text.casefold()]
    kinds = [f"{x.source}{'/' + x.level if x.level else ''}" for x in kept]
    wide = max(map(len, kinds), default=0)
    return "\n".join(f"{clock(x.t)}  {kind.ljust(wide)}  {x.text}" for x, kind in zip(kept, kinds, strict=True))


class LogsView(QWidget):
    """Standard error, network, protocol messages and what the host noted."""

    def __init__(self, bridge: Bridge, servers: Callable[[], Iterable[str]]) -> None:
        super().__init__()
        self._bridge, self._servers = bridge, servers
        self._under_way = False
        self._timer = QTimer(self)
        self._timer.setInterval(READ_MS)
        self._timer.timeout.connect(self.refresh)
        self._problem = label("", "danger")
        self._problem.hide()
        self._lines: tuple[tuple[str, LogLine], ...] = ()
        self.source = QComboBox()
        self.source.setAccessibleName(tr("log.source"))
        for one in SOURCES:
            self.source.addItem(tr(f"log.source.{one}"), one)
        self.filter = SearchField(tr("log.filter"))
        self.text = QPlainTextEdit()
        set_role(self.text, "code")
        self.text.setReadOnly(True)
        self.text.setUndoRedoEnabled(False)
        self.text.setTabChangesFocus(True)
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

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self.refresh()
        self._timer.start()

    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        self._timer.stop()

    def refresh(self) -> None:
        """Read now, unless a read is under way."""
        names = tuple(self._servers())
        if self._under_way:
            return
        self._under_way = True

        async def read(host: Host) -> tuple[tuple[str, LogLine], ...]:
            known = {c.name for c in host.servers.configs()}
            lines = [(name, line) for name in names if name in known for line in host.servers.logs(name)]
            return tuple(sorted(lines, key=lambda pair: pair[1].t)) if len(names) > 1 else tuple(lines)

        self._bridge.then(read, self._show, self._fail, self)

    def _show(self, lines: tuple[tuple[str, LogLine], ...]) -> None:
        self._under_way = False
        self._problem.hide()
        if lines != self._lines:
            self._lines = lines
            self._render()

    def _render(self) -> None:
        several = len({name for name, _ in self._lines}) > 1
        text = log_text(
            [replace(line, text=f"{name}: {line.text}") if several else line for name, line in self._lines],
            str(self.source.currentData()), self.filter.text(),
        )  # fmt: skip
        if text == self.text.toPlainText():
            return
        bar = self.text.verticalScrollBar()
        at_end = bar.value() >= bar.maximum() - 4
        before = bar.value()
        self.text.setPlainText(text)
        bar.setValue(bar.maximum() if at_end else before)

    def _fail(self, error: HostError) -> None:
        self._under_way = False
        self._problem.setText(" ".join(told(error)))
        self._problem.show()
