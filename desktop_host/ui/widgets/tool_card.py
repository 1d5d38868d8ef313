"""A tool call as a card: who, what, how it stands; arguments and result one click away."""

from __future__ import annotations

import json
import time
from functools import partial

from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtGui import QKeyEvent, QMouseEvent, QResizeEvent
from PySide6.QtWidgets import QFrame, QLabel, QProgressBar, QPushButton, QVBoxLayout, QWidget

from desktop_host.core.codec import block_to_mcp
from desktop_host.core.messages import Outcome, Text
from desktop_host.core.permissions import Effect
from desktop_host.core.transcript import ToolEntry
from desktop_host.core.values import thaw
from desktop_host.i18n import tr
from desktop_host.ui.theme import Space, set_icon, set_role, theme
from desktop_host.ui.viewmodels.asks import pretty
from desktop_host.ui.widgets.annotated import annotated
from desktop_host.ui.widgets.code import CodeFrame
from desktop_host.ui.widgets.content_views import LinkRow, structured_view
from desktop_host.ui.widgets.pieces import Elided, clear, column, icon_button, icon_label, label, pill, row
from desktop_host.ui.widgets.server_art import art
from desktop_host.ui.widgets.server_words import problem_text
from desktop_host.ui.widgets.subtask_rows import SubtaskRows, duration, summary
from desktop_host.ui.widgets.tool_words import cut, json_frame, short

TICK_MS = 200
BUILT_IN = "host"
"""The alias of the host's own tools."""
_LOOKS = {
    Outcome.OK: ("check", "success"),
    Outcome.ERROR: ("error", "danger"),
    Outcome.DENIED: ("shield", "muted"),
    Outcome.CANCELLED: ("stop", "muted"),
    Outcome.TIMED_OUT: ("clock", "warning"),
    Outcome.UNKNOWN: ("warning", "warning"),
}
NARROW = 320
"""Pixels at 100 % below which a card says how it stands in its second line."""


class ToolCard(QFrame):
    """One call. Its body is made when it is first opened."""

    link_wanted = Signal(str, str, bool)
    """`(server, uri, keep)`: open a resource that the result links to, or keep a copy."""
    began = Signal()  # The call runs now, or it was so quick that it has ended well.
    settled = Signal(object)  # The `ToolEntry` of a call that has just ended.

    def __init__(self, entry: ToolEntry, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        set_role(self, "card")
        self.entry = entry
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        outer = column(self, space=0)
        self._head = QWidget()
        head = row(owner=self._head)
        head.setContentsMargins(theme.px(Space.M), theme.px(Space.S), theme.px(Space.S), theme.px(Space.S))
        self._mark = icon_label("tool")
        head.addWidget(self._mark)
        self._picture, self._pictured = QLabel(), ("", "")
        self._picture.hide()
        head.addWidget(self._picture)
        names = column(space=0)
        self._name = Elided("", "strong")
        self._line = Elided("", "caption")
        names.addWidget(self._name)
        names.addWidget(self._line)
        head.addLayout(names, 1)
        if entry.page:
            head.addWidget(pill(tr("chat.tool.by_page"), "info"))
        self._state = label("", "caption", wrap=False)
        head.addWidget(self._state)
        self.raw_button = icon_button("trace", tr("chat.tool.raw"), self._swap_raw)
        self.raw_button.setCheckable(True)
        self.raw_button.hide()
        head.addWidget(self.raw_button)
        self.fold_button = QPushButton()
        self.fold_button.setCheckable(True)
        set_role(self.fold_button, "quiet")
        set_icon(self.fold_button, "chevron-right", "muted", 16)
        self.fold_button.toggled.connect(self._toggle)
        head.addWidget(self.fold_button)
        outer.addWidget(self._head)
        self._bar = QProgressBar()
        self._bar.setTextVisible(False)
        self._bar.setFixedHeight(theme.px(4))
        self._bar.hide()
        outer.addWidget(self._bar)
        self.subtasks = SubtaskRows()
        outer.addWidget(self.subtasks)
        self._narrow = False
        self._body: QWidget | None = None
        self._shown: ToolEntry | None = None
        self._raw = False
        self._due: float | None = None
        """When the call will be done by its own reports (monotonic, seconds)."""
        self._tick = QTimer(self)
        self._tick.setInterval(TICK_MS)
        self._tick.timeout.connect(self._show_state)
        self.show_entry(entry)

    def show_entry(self, entry: ToolEntry) -> None:
        """Show the call as it now is. Results that are to be seen, and failures, open by themselves."""
        began_before = self.entry.started
        settled_now = entry.outcome is not None and (self.entry.outcome is None or self._shown is None)
        if entry.left_s != self.entry.left_s or self._shown is None:
            self._due = None if entry.left_s is None else time.monotonic() + entry.left_s
        self.entry = entry
        name = entry.title or entry.tool
        where = tr("chat.tool.builtin") if entry.server == BUILT_IN else entry.server
        if entry.server not in ("", BUILT_IN) and self._pictured != (entry.server, entry.tool):
            self._pictured = (entry.server, entry.tool)
            art().put(self._picture, entry.server, "tool", entry.tool)
        self._name.put(f"{where} · {name}" if where else name)
        self.subtasks.show_parts(entry.subtasks)
        self._show_state()
        running = entry.started and entry.outcome is None
        if running != self._tick.isActive():
            self._tick.start() if running else self._tick.stop()
        visual = any(not isinstance(b, Text) for b in entry.content) or entry.outcome is Outcome.ERROR
        if settled_now and visual and not self.fold_button.isChecked():
            self.fold_button.setChecked(True)
        elif self.fold_button.isChecked() and self._shown is not entry:
            self._fill()
        if self._shown is None:
            self._shown = entry
        elif settled_now:
            self.settled.emit(entry)
        if not began_before and (entry.outcome is Outcome.OK if settled_now else entry.started):
            self.began.emit()

    def restyle(self) -> None:
        """Colours anew after a change of theme."""
        if self._body is not None:
            for view in self._body.findChildren(CodeFrame):
                view.restyle()

    @property
    def state_text(self) -> str:
        """How the call stands, in a word or two."""
        entry = self.entry
        if entry.outcome is not None:
            word = tr(f"chat.outcome.{entry.outcome.value}")
            return f"{word} · {duration(entry.duration_ms / 1000)}" if entry.duration_ms else word
        if entry.started:
            if entry.started_at is None:
                return tr("chat.tool.running")
            return f"{tr('chat.tool.running')} · {duration(max(0.0, time.time() - entry.started_at))}"
        return tr("chat.tool.asking") if entry.verdict is Effect.ASK else tr("chat.tool.waiting")

    def _show_state(self) -> None:
        entry = self.entry
        self.subtasks.tick()
        icon, role = ("clock", "muted") if not entry.started else ("tool", "accent")
        if entry.outcome is not None:
            icon, role = _LOOKS[entry.outcome]
        set_icon(self._mark, icon, role)
        self._state.setText(self.state_text)
        self._state.setVisible(not self._narrow)
        excerpt = self._excerpt()
        self._line.put(" · ".join(filter(None, (self.state_text, excerpt))) if self._narrow else excerpt)
        self._line.setVisible(bool(self._line.text()) and not self._open())
        if entry.outcome is None and entry.progress is not None:
            self._bar.setRange(0, 1000 if entry.total else 0)
            if entry.total:
                self._bar.setValue(max(0, min(1000, int(1000 * entry.progress / entry.total))))
            self._bar.show()
        else:
            self._bar.hide()
        if self._body is not None:
            side = theme.px(Space.M)
            self._inside.setContentsMargins(side, 0 if self._bar.isHidden() else theme.px(Space.S), side, side)
        words = f"{self._name.text()}: {self._state.text()}"
        if self.accessibleName() != words:
            self.setAccessibleName(words)
            self.fold_button.setAccessibleName(tr("chat.tool.details", call=words))

    def _excerpt(self) -> str:
        entry = self.entry
        if entry.subtasks:
            return summary(entry.subtasks)
        if entry.outcome is None:
            if entry.message or entry.progress is not None:
                share = f"{entry.progress:g}" if entry.progress else ""
                if entry.total:
                    share = f"{entry.progress or 0:g}/{entry.total:g}"
                return " · ".join(filter(None, (entry.message, share, self._left())))
            return ", ".join(f"{k}: {short(v)}" for k, v in entry.arguments.items())[:300]
        texts = [b.text for b in entry.content if isinstance(b, Text)]
        return " ".join(texts[0][:400].split()) if texts else ""

    def _left(self) -> str:
        """How long it may still take; counts down between the reports."""
        if self._due is None:
            return ""
        left = max(1, round(self._due - time.monotonic()))
        return tr("chat.tool.left", time=f"{left} s" if left < 60 else duration(left))

    def _open(self) -> bool:
        """Whether the body shows the result, so that no excerpt is needed."""
        return self.fold_button.isChecked() and self.entry.outcome is not None and not self._narrow

    def _toggle(self, on: bool) -> None:
        set_icon(self.fold_button, "chevron-down" if on else "chevron-right", "muted", 16)
        self.raw_button.setVisible(on)
        if on and (self._body is None or self._shown is not self.entry):
            self._fill()
        if self._body is not None:
            self._body.setVisible(on)
        self._line.setVisible(bool(self._line.text()) and not self._open())

    def _fill(self) -> None:
        entry = self.entry
        self._shown = entry
        outer = self.layout()
        assert isinstance(outer, QVBoxLayout)
        if self._body is None:
            self._body = QWidget()
            self._inside = column(self._body, space=theme.px(Space.S))
            self._inside.setContentsMargins(theme.px(Space.M), 0, theme.px(Space.M), theme.px(Space.M))
            outer.addWidget(self._body)
        inner = self._inside
        clear(inner)
        if self._raw:
            inner.addWidget(
                json_frame(tr("chat.tool.raw"), self._raw_value(shorten=True), pretty(self._raw_value(shorten=False)))
            )
        else:
            if entry.arguments:
                inner.addWidget(json_frame(tr("chat.tool.arguments"), entry.arguments))
            repeated = entry.structured is not None and self._says_the_same()
            if entry.problem:
                inner.addWidget(label(problem_text(entry), "strong", selectable=True))
            for block in () if repeated else entry.content:
                inner.addWidget(annotated(block))
            if entry.structured is not None:
                inner.addWidget(label(tr("chat.tool.structured"), "caption"))
                inner.addWidget(structured_view(entry.structured))
            if entry.outcome is not None and not entry.content and entry.structured is None:
                inner.addWidget(label(tr("chat.tool.empty"), "muted"))
            if entry.server != BUILT_IN:
                for link in self._body.findChildren(LinkRow):
                    link.offer(partial(self.link_wanted.emit, entry.server))

    def _says_the_same(self) -> bool:
        """Servers repeat structured data as text; show it once, as data."""
        texts = [b for b in self.entry.content if isinstance(b, Text)]
        if len(texts) != 1 or len(self.entry.content) != 1:
            return False
        try:
            return bool(json.loads(texts[0].text) == thaw(self.entry.structured))
        except ValueError:
            return False

    def _swap_raw(self) -> None:
        self._raw = self.raw_button.isChecked()
        words = tr("chat.tool.typed") if self._raw else tr("chat.tool.raw")
        self.raw_button.setToolTip(words)
        self.raw_button.setAccessibleName(words)
        self._fill()

    def _raw_value(self, *, shorten: bool) -> object:
        entry = self.entry
        value: dict[str, object] = {
            "request": {"name": entry.tool, "arguments": thaw(entry.arguments)},
        }
        if entry.outcome is not None:
            result: dict[str, object] = {"content": [block_to_mcp(b) for b in entry.content]}
            if entry.structured is not None:
                result["structuredContent"] = thaw(entry.structured)
            result["isError"] = entry.outcome is not Outcome.OK
            value["result"] = result
        return cut(value) if shorten else value

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Where the room is short the state stands below the name."""
        super().resizeEvent(event)
        narrow = self.width() < theme.px(NARROW)
        if narrow != self._narrow:
            self._narrow = narrow
            self._show_state()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Enter and Space fold and unfold."""
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Space):
            self.fold_button.toggle()
        else:
            super().keyPressEvent(event)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """A click on the head folds and unfolds."""
        if event.button() is Qt.MouseButton.LeftButton and self._head.geometry().contains(event.position().toPoint()):
            self.fold_button.toggle()
        else:
            super().mousePressEvent(event)
