"""A chat before its first message: a greeting, things to try, or the one step that is missing."""

from __future__ import annotations

from functools import partial

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QWidget

from desktop_host.i18n import tr
from desktop_host.ui.theme import Space, theme
from desktop_host.ui.tokens import TEXT_WIDTH
from desktop_host.ui.viewmodels.choices import Choices
from desktop_host.ui.widgets.pieces import button, clear, column, icon_label, label, row


class Welcome(QWidget):
    """The empty state."""

    picked = Signal(str)
    """A suggestion, as text for the composer."""
    needs_model = Signal()

    def __init__(self, choices: Choices, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._choices = choices
        self._state: tuple[object, ...] | None = None
        outer = column(self, space=0)
        outer.addStretch(2)
        self._inner = column(space=theme.px(Space.M))
        box = QWidget()
        box.setLayout(self._inner)
        box.setMaximumWidth(theme.px(TEXT_WIDTH))
        line = row(space=0)
        line.setContentsMargins(theme.px(Space.XL), 0, theme.px(Space.XL), 0)
        line.addStretch(1)
        line.addWidget(box, 1000)
        line.addStretch(1)
        outer.addLayout(line)
        outer.addStretch(3)
        choices.servers_changed.connect(self.show_state)

    def show_state(self) -> None:
        """Draw what fits the moment."""
        state = (
            self._choices.can_answer,
            any(s.on and (s.tools or s.state in ("starting", "stopped", "waiting")) for s in self._choices.servers),
        )
        if state == self._state:
            return
        self._state = state
        clear(self._inner)
        ready, tools = state
        if ready:
            self._greet(bool(tools))
        else:
            self._ask_for_model()

    def _greet(self, tools: bool) -> None:
        title = label(tr("chat.welcome.title"), "title")
        title.setAlignment(Qt.AlignmentFlag.AlignHCenter)
        self._inner.addWidget(title)
        lead = label(tr("chat.welcome.tools") if tools else tr("chat.welcome.plain"), "muted")
        lead.setAlignment(Qt.AlignmentFlag.AlignHCenter)
        self._inner.addWidget(lead)
        self._inner.addSpacing(theme.px(Space.S))
        names = ("tools", "files", "explain") if tools else ("explain", "write", "plan")
        for name in names:
            text = tr(f"chat.suggest.{name}")
            suggestion = button(text, partial(self.picked.emit, text))
            self._inner.addLayout(row(None, suggestion, None))

    def _ask_for_model(self) -> None:
        mark = icon_label("key", "accent", 32)
        self._inner.addWidget(mark, 0, Qt.AlignmentFlag.AlignHCenter)
        for key, role in (("chat.no_model.title", "title"), ("chat.no_model.text", "muted")):
            words = label(tr(key), role)
            words.setAlignment(Qt.AlignmentFlag.AlignHCenter)
            self._inner.addWidget(words)
        step = button(tr("chat.no_model.step"), self.needs_model.emit, role="primary")
        self._inner.addLayout(row(None, step, None))
