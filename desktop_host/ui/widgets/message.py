"""What the model says: a column of segments that grows as it streams."""

from __future__ import annotations

from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtGui import QEnterEvent, QGuiApplication
from PySide6.QtWidgets import QHBoxLayout, QLabel, QPushButton, QSizePolicy, QVBoxLayout, QWidget

from desktop_host.core.transcript import AssistantEntry
from desktop_host.i18n import tr
from desktop_host.ui.markdown import CloseCode, CodeLines, Commit, OpenCode, Splitter, Step, Tail
from desktop_host.ui.theme import Space, set_icon, set_role, theme
from desktop_host.ui.widgets.code import CodeFrame, copied
from desktop_host.ui.widgets.formula import FormulaView
from desktop_host.ui.widgets.message_foot import FLUSH, MessageFoot
from desktop_host.ui.widgets.prose import Prose

SEGMENT = 4000
"""After so many characters prose goes on in a new widget, so that none grows without bound."""
SLOW_TAIL = 1500
"""A longer open block (characters) is rendered at most every `SLOW_MS`, so that it costs no more per token."""
SLOW_MS = 80


class MarkdownView(QWidget):
    """Markdown as segments. `show_text` may be called with ever longer text; finished segments stay as they are."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.setSpacing(theme.px(Space.S))
        self._splitter = Splitter()
        self._text = ""
        self._done = False
        self._prose: Prose | None = None
        self._code: CodeFrame | None = None
        self._waiting: Tail | None = None
        self._slow = QTimer(self)
        self._slow.setSingleShot(True)
        self._slow.setInterval(SLOW_MS)
        self._slow.timeout.connect(self._show_waiting)

    @property
    def segments(self) -> tuple[Prose | CodeFrame, ...]:
        """The segments from top to bottom."""
        items = (self._column.itemAt(i) for i in range(self._column.count()))
        found = (item.widget() for item in items if item is not None)
        return tuple(w for w in found if isinstance(w, Prose | CodeFrame))

    def show_text(self, text: str, *, finished: bool) -> None:
        """Show `text`; what was shown before is kept where `text` only goes on with it."""
        if not text.startswith(self._text) or (self._done and text != self._text):
            self._restart()
        if not self._done:
            self._apply(self._splitter.feed(text[len(self._text) :]))
            self._text = text
            if finished:
                self._done = True
                self._apply(self._splitter.finish())

    def restyle(self) -> None:
        """Colours anew after a change of theme."""
        for segment in self.segments:
            segment.restyle()

    def _restart(self) -> None:
        while (item := self._column.takeAt(0)) is not None:
            widget = item.widget()
            if widget is not None:
                widget.hide()
                widget.deleteLater()
        self._splitter, self._text, self._done = Splitter(), "", False
        self._prose = self._code = self._waiting = None

    def _apply(self, steps: list[Step]) -> None:
        for step in steps:
            match step:
                case Tail(text=text):
                    if len(text) > SLOW_TAIL:
                        self._waiting = step
                        if not self._slow.isActive():
                            self._slow.start()
                    else:
                        self._open_prose().set_tail(text)
                case Commit(text=text):
                    self._waiting = None
                    prose = self._open_prose()
                    prose.commit(text)
                    if prose.size_hint_chars > SEGMENT:
                        self._prose = None
                case OpenCode(language=language):
                    self._waiting = None
                    if self._prose is not None:
                        self._prose.set_tail("")
                    self._prose = None
                    self._code = CodeFrame(language)
                    self._column.addWidget(self._code)
                case CodeLines(text=text):
                    if self._code is not None:
                        self._code.add_lines(text)
                case CloseCode():
                    if self._code is not None:
                        self._code.close_block()
                        if self._code.language == "latex":
                            FormulaView(self._code)
                    self._code = None

    def _show_waiting(self) -> None:
        if self._waiting is not None:
            waiting, self._waiting = self._waiting, None
            self._open_prose().set_tail(waiting.text)

    def _open_prose(self) -> Prose:
        if self._prose is None:
            self._prose = Prose()
            self._column.addWidget(self._prose)
        return self._prose


class ThinkingBlock(QWidget):
    """What the model chose to show of its reasoning, folded."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(theme.px(Space.XS))
        self.button = QPushButton()
        self.button.setCheckable(True)
        set_role(self.button, "quiet")
        self.button.setStyleSheet(FLUSH)
        set_icon(self.button, "chevron-right", "muted", 14)
        self.button.toggled.connect(self._toggle)
        row = QHBoxLayout()
        row.setContentsMargins(0, 0, 0, 0)
        row.addWidget(self.button)
        row.addStretch()
        column.addLayout(row)
        self._body: QLabel | None = None
        self._text = ""

    def show_text(self, text: str, *, streaming: bool) -> None:
        """Show the reasoning so far."""
        self._text = text
        self.button.setText(tr("chat.thinking.now") if streaming else tr("chat.thinking"))
        self.button.setAccessibleName(self.button.text())
        if self._body is not None and self.button.isChecked():
            self._body.setText(text)

    def _toggle(self, on: bool) -> None:
        set_icon(self.button, "chevron-down" if on else "chevron-right", "muted", 14)
        if self._body is None:
            self._body = QLabel()
            self._body.setTextFormat(Qt.TextFormat.PlainText)
            self._body.setWordWrap(True)
            self._body.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
            self._body.setContentsMargins(theme.px(Space.L), 0, 0, 0)
            set_role(self._body, "muted")
            layout = self.layout()
            assert layout is not None
            layout.addWidget(self._body)
        self._body.setText(self._text)
        self._body.setVisible(on)


class AssistantMessage(QWidget):
    """What the model said: reasoning, text, and what can be done with it once it is whole."""

    acted = Signal(str, str)
    """`(verb, key of the entry)`; verbs as of `MessageFoot`."""

    def __init__(self, entry: AssistantEntry, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(theme.px(Space.XS))
        self._thinking: ThinkingBlock | None = None
        self._last = True
        self.text = MarkdownView(self)
        column.addWidget(self.text)
        self._foot = MessageFoot(self)
        self._foot.acted.connect(self._act)
        self.copy_button = self._foot.copy_button
        column.addWidget(self._foot)
        self.show_entry(entry)

    def show_entry(self, entry: AssistantEntry) -> None:
        """Show the message as it now is."""
        self._entry = entry
        if entry.thinking:
            if self._thinking is None:
                self._thinking = ThinkingBlock(self)
                layout = self.layout()
                assert isinstance(layout, QVBoxLayout)
                layout.insertWidget(0, self._thinking)
            self._thinking.show_text(entry.thinking, streaming=entry.streaming and not entry.text)
        self.text.show_text(entry.text, finished=not entry.streaming)
        self.text.setVisible(bool(entry.text))
        self._show_foot()
        self._foot.show_entry(entry)

    def set_last(self, last: bool, newest: bool = False) -> None:
        """Only the last message of a turn has a foot; the newest of all has it unfolded."""
        self._last = last
        self._show_foot()
        if newest and last:
            self._foot.unfold()

    def enterEvent(self, event: QEnterEvent) -> None:
        """All that can be done with it is offered where the mouse is."""
        super().enterEvent(event)
        if self._foot.isVisible():
            self._foot.unfold()

    def _show_foot(self) -> None:
        shown = self._last and not self._entry.streaming and bool(self._entry.text)
        self._foot.setVisible(shown or (self._entry.partial and bool(self._entry.text)))

    def restyle(self) -> None:
        """Colours anew after a change of theme."""
        self.text.restyle()

    @property
    def foot(self) -> MessageFoot:
        """What stands below it."""
        return self._foot

    def _act(self, verb: str) -> None:
        if verb == "copy":
            QGuiApplication.clipboard().setText(self._entry.text)
            copied(self.copy_button)
        else:
            self.acted.emit(verb, self._entry.key)
