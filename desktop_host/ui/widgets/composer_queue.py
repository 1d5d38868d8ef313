"""What waits behind the running turn: each message with its place, up, down and away."""

from __future__ import annotations

from PySide6.QtCore import Qt, QTimer
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QFrame, QWidget

from desktop_host.core.session_events import QueuedMessage
from desktop_host.i18n import tr, trn
from desktop_host.ui.theme import Space, set_role, theme
from desktop_host.ui.viewmodels.retelling import Retelling
from desktop_host.ui.widgets.message_foot import small
from desktop_host.ui.widgets.pieces import Elided, clear, column, label, row


class QueueRow(QFrame):
    """One message that waits. Alt+Up and Alt+Down move it, Delete takes it back."""

    def __init__(self, at: int, of: int, message: QueuedMessage, telling: Retelling) -> None:
        super().__init__()
        self.message = message
        self._at, self._of, self._telling = at, of, telling
        set_role(self, "well")
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        words = " ".join(message.text.split()) or tr("composer.queue.resume")
        if message.attachments:
            words += f"  ·  {trn('composer.queue.files', message.attachments)}"
        self.setAccessibleName(tr("composer.queue.row", at=at + 1, of=of, text=words))
        self.setAccessibleDescription(tr("composer.queue.keys"))
        self.up = small("chevron-up", tr("composer.queue.up"))
        self.down = small("chevron-down", tr("composer.queue.down"))
        self.away = small("close", tr("composer.queue.cancel"))
        self.up.setEnabled(at > 0)
        self.down.setEnabled(at < of - 1)
        self.up.clicked.connect(lambda _c=False: self._move(-1))
        self.down.clicked.connect(lambda _c=False: self._move(1))
        self.away.clicked.connect(lambda _c=False: telling.cancel_queued(message.id))
        number = label(str(at + 1), "caption", wrap=False)
        text = Elided(words)
        line = row(number, space=theme.px(Space.S), owner=self)
        line.addWidget(text, 1)
        for made in (self.up, self.down, self.away):
            line.addWidget(made)
        line.setContentsMargins(theme.px(Space.S), 0, theme.px(Space.XS), 0)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Move or take back by key."""
        alt = bool(event.modifiers() & Qt.KeyboardModifier.AltModifier)
        match event.key():
            case Qt.Key.Key_Up if alt and self._at > 0:
                self._move(-1)
            case Qt.Key.Key_Down if alt and self._at < self._of - 1:
                self._move(1)
            case Qt.Key.Key_Delete | Qt.Key.Key_Backspace:
                self._telling.cancel_queued(self.message.id)
            case _:
                super().keyPressEvent(event)

    def _move(self, by: int) -> None:
        self._telling.move_queued(self.message.id, self._at + by)


class QueueList(QWidget):
    """The messages that wait; hidden while there are none."""

    def __init__(self, telling: Retelling) -> None:
        super().__init__()
        self._telling = telling
        self.setAccessibleName(tr("composer.queue"))
        outer = column(self, space=theme.px(Space.XS))
        self._title = label("", "caption")
        outer.addWidget(self._title)
        self._column = column(space=theme.px(Space.XS))
        outer.addLayout(self._column)
        telling.queue_changed.connect(self._fill)
        self._fill()

    @property
    def rows(self) -> tuple[QueueRow, ...]:
        """The rows, the next one first."""
        items = (self._column.itemAt(i) for i in range(self._column.count()))
        return tuple(w for i in items if i is not None and isinstance(w := i.widget(), QueueRow))

    def _fill(self) -> None:
        held = next((r.message.id for r in self.rows if r.hasFocus()), None)
        clear(self._column)
        queue = self._telling.queue
        for at, message in enumerate(queue):
            made = QueueRow(at, len(queue), message, self._telling)
            self._column.addWidget(made)
            if message.id == held:
                QTimer.singleShot(0, made, made.setFocus)
        self._title.setText(trn("chat.queued", len(queue)) if queue else "")
        self.setVisible(bool(queue))
