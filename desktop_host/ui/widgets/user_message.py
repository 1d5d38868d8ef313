"""What the person said: a bubble at the right."""

from __future__ import annotations

from PySide6.QtCore import QRect, Qt, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QPushButton, QSizePolicy, QVBoxLayout, QWidget

from desktop_host.core.messages import Image
from desktop_host.core.transcript import UserEntry
from desktop_host.i18n import tr
from desktop_host.ui.theme import Space, set_role, theme
from desktop_host.ui.widgets.image_view import ImageView, human_size
from desktop_host.ui.widgets.message_foot import FLUSH, small
from desktop_host.ui.widgets.pieces import button, label
from desktop_host.ui.widgets.prompt_parts import SOURCE, PromptParts
from desktop_host.ui.widgets.skill_chips import SkillChips

USER_LINES = 24
USER_CHARS = 3000
"""A longer message of the person's is folded."""


class UserMessage(QWidget):
    """What the person said: a bubble at the right, with what they attached and the skills it woke."""

    acted = Signal(str, str)
    """`(verb, key of the entry)`: more, and those of `SkillChips`."""

    def __init__(self, entry: UserEntry, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._unfolded = False
        self._key = entry.key
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(theme.px(Space.XS))
        row.addStretch(1)
        self.more = small("more", tr("composer.more"))
        self.more.clicked.connect(lambda _c=False: self.acted.emit("more", self._key))
        row.addWidget(self.more, 0, Qt.AlignmentFlag.AlignBottom)
        self._bubble = QFrame()
        self._bubble.setObjectName("userBubble")
        self._bubble.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Preferred)
        self._column = QVBoxLayout(self._bubble)
        self._column.setContentsMargins(theme.px(Space.M), theme.px(Space.S), theme.px(Space.M), theme.px(Space.S))
        self._column.setSpacing(theme.px(Space.XS))
        row.addWidget(self._bubble)
        self._text = QLabel()
        self._text.setTextFormat(Qt.TextFormat.PlainText)
        self._text.setWordWrap(True)
        self._text.setTextInteractionFlags(
            Qt.TextInteractionFlag.TextSelectableByMouse | Qt.TextInteractionFlag.TextSelectableByKeyboard
        )
        self._column.addWidget(self._text)
        self._more = QPushButton()
        set_role(self._more, "quiet")
        self._more.setStyleSheet(FLUSH)
        self._more.clicked.connect(self._show_all)
        self._more.hide()
        self._whole = ""
        self._column.addWidget(self._more, 0, Qt.AlignmentFlag.AlignLeft)
        self.skills = SkillChips()
        self.skills.acted.connect(lambda verb: self.acted.emit(verb, self._key))
        self._column.addWidget(self.skills)
        for image in [b for b in entry.blocks if isinstance(b, Image)][:8]:
            self._column.addWidget(ImageView(image, max_height=180))
        if entry.source.startswith(SOURCE):
            self._column.addWidget(PromptParts(entry))
        for attached in entry.attachments:
            self._column.addWidget(label(f"{attached.name}  ·  {human_size(attached.size)}", "caption", wrap=False))
        if entry.source.startswith("subtask:"):
            above = button(tr("chat.part.above"), lambda: self.acted.emit("above", self._key), role="link")
            self._column.addWidget(above, 0, Qt.AlignmentFlag.AlignLeft)
        self.restyle()
        self.show_entry(entry)

    def show_entry(self, entry: UserEntry) -> None:
        """Show the message as it now is."""
        self._whole = entry.text
        excerpt = "\n".join(entry.text[:USER_CHARS].split("\n")[:USER_LINES])
        folded = len(excerpt) < len(entry.text) and not self._unfolded
        self._text.setText(f"{excerpt}…" if folded else entry.text)
        self._more.setText(tr("chat.show_all"))
        self._more.setVisible(folded)
        self._fit()
        self._text.setVisible(bool(entry.text))
        self._text.setAccessibleName(tr("chat.message.yours"))
        self.skills.show_skills(entry.skills, entry.suggested)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """The bubble is as wide as its longest line, up to the column."""
        super().resizeEvent(event)
        self._fit()

    def _show_all(self) -> None:
        self._unfolded = True
        self._more.hide()
        self._text.setText(self._whole)
        self._fit()

    def _fit(self) -> None:
        self._text.ensurePolished()
        bounds = self._text.fontMetrics().boundingRect(
            QRect(0, 0, 1_000_000, 1_000_000), int(Qt.AlignmentFlag.AlignLeft.value), self._text.text()
        )
        room = self.width() - self.more.sizeHint().width() - theme.px(Space.XS) - 2 * theme.px(Space.M)
        self._text.setFixedWidth(max(theme.px(24), min(bounds.width() + 4, room)))

    def restyle(self) -> None:
        """Colours anew after a change of theme."""
        radius = theme.px(12)
        self._bubble.setStyleSheet(
            f"#userBubble {{ background: {theme.colors.accent_soft}; border-radius: {radius}px; "
            f"border-bottom-right-radius: {theme.px(4)}px; }}"
        )
