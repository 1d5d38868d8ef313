"""What stands below a message: copy, ask again, thumbs, more, and what the answer cost."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QAbstractButton, QLabel, QPushButton, QToolButton, QWidget

from desktop_host.core.transcript import AssistantEntry
from desktop_host.i18n import tr
from desktop_host.ui.theme import Space, set_icon, set_role, theme
from desktop_host.ui.widgets.flow import Flow
from desktop_host.ui.widgets.pieces import icon_button

FLUSH = "padding-left: 1px; padding-right: 4px;"
"""For quiet buttons that stand in line with text."""


def small(icon: str, name: str) -> QToolButton:
    """A quiet icon of the size of a caption."""
    made = icon_button(icon, name)
    set_icon(made, icon, "muted", 14)
    return made


class MessageFoot(QWidget):
    """The foot of a reply. Asking again and thumbs are made when they are first wanted: forty feet must be cheap."""

    acted = Signal(str)
    """What is wanted: copy, regenerate, good, bad, unjudged, more."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._entry = AssistantEntry("", 0)
        self.copy_button = QPushButton(tr("chat.copy"))
        set_role(self.copy_button, "quiet")
        self.copy_button.setStyleSheet(FLUSH)
        set_icon(self.copy_button, "copy", "muted", 14)
        self.copy_button.setAccessibleName(tr("chat.message.copy"))
        self.more = small("more", tr("composer.more"))
        self.more.setAccessibleDescription(tr("composer.more.hint"))
        self.caption = QLabel()
        set_role(self.caption, "caption")
        self.again: QPushButton | None = None
        self.regenerate: QToolButton | None = None
        self.up: QToolButton | None = None
        self.down: QToolButton | None = None
        self._flow = Flow(self.copy_button, self.more, self.caption, space=theme.px(Space.XS))
        self.setLayout(self._flow)
        self._means(self.copy_button, "copy")
        self._means(self.more, "more")

    def show_entry(self, entry: AssistantEntry) -> None:
        """Show what the reply is and cost."""
        self._entry = entry
        if entry.cached and self.again is None:
            self.again = QPushButton(tr("composer.ask_again"))
            set_role(self.again, "quiet")
            set_icon(self.again, "restart", "accent", 14)
            self._means(self.again, "regenerate")
            self._flow.addWidget(self.again)
        if entry.good is not None or self.up is not None:
            self.unfold()
        words = [entry.model] if entry.model else []
        if entry.cached:
            words.append(tr("chat.message.cached"))
        if entry.input_tokens or entry.output_tokens:
            tokens = {"read": f"{entry.input_tokens:,}", "written": f"{entry.output_tokens:,}"}
            words.append(tr("composer.meter", **tokens))
            self.caption.setToolTip(tr("chat.message.tokens", **tokens))
            words.append(cost_words(entry.cost_usd))
        if entry.partial:
            words.append(tr("chat.message.partial"))
        self.caption.setText(" · ".join(words))

    def unfold(self) -> None:
        """Offer to ask again and to judge."""
        if self.up is None or self.down is None:
            if not self._entry.cached:
                self.regenerate = small("restart", tr("composer.regenerate"))
                self._means(self.regenerate, "regenerate")
                self._flow.addWidget(self.regenerate)
            self.up = self._thumb("thumb-up", tr("composer.good"), "good")
            self.down = self._thumb("thumb-down", tr("composer.bad"), "bad")
        for thumb, mark, value in ((self.up, "thumb-up", True), (self.down, "thumb-down", False)):
            on = self._entry.good is value
            thumb.setChecked(on)
            set_icon(thumb, mark, "accent" if on else "muted", 14)

    def _thumb(self, mark: str, name: str, verb: str) -> QToolButton:
        made = small(mark, name)
        made.setCheckable(True)
        made.clicked.connect(lambda on: self.acted.emit(verb if on else "unjudged"))
        self._flow.addWidget(made)
        return made

    def _means(self, which: QAbstractButton, verb: str) -> None:
        which.clicked.connect(lambda _c=False: self.acted.emit(verb))


def cost_words(cost_usd: float | None) -> str:
    """A price as people read it. Unknown is said, never 0."""
    if cost_usd is None:
        return tr("composer.cost.unknown")
    if cost_usd == 0:
        return tr("composer.cost.free")
    return f"${cost_usd:.4f}" if cost_usd < 1 else f"${cost_usd:,.2f}"
