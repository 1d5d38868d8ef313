"""What a server's prompt put into a message besides its text: the model has it, so the person sees it, too."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QWidget

from desktop_host.core.messages import Image
from desktop_host.core.transcript import UserEntry
from desktop_host.i18n import tr, trn
from desktop_host.ui.theme import Space, set_icon, theme
from desktop_host.ui.widgets.annotated import annotated
from desktop_host.ui.widgets.message_foot import FLUSH
from desktop_host.ui.widgets.pieces import button, column, label

SOURCE = "prompt:"
LEAST = 180
"""Pixels at 100 %: content is not squeezed below a short text."""


class PromptParts(QWidget):
    """Resources and other content of the prompt, the messages that go before, and where it came from."""

    def __init__(self, entry: UserEntry) -> None:
        super().__init__()
        inner = column(self, space=theme.px(Space.XS))
        if entry.blocks:
            self.setMinimumWidth(theme.px(LEAST))
        for block in entry.blocks:
            if not isinstance(block, Image):  # Pictures have their place in the bubble already.
                inner.addWidget(annotated(block))
        self.before = button("", self._unfold, role="quiet", icon="chevron-right")
        self.before.setStyleSheet(FLUSH)
        self._prelude = QWidget()
        self._prelude.hide()
        self._made = False
        self._messages = entry.prelude
        if not entry.prelude:
            self.before.hide()
        self.before.setText(trn("composer.prompt_before", len(entry.prelude)))
        inner.addWidget(self.before, 0, Qt.AlignmentFlag.AlignLeft)
        inner.addWidget(self._prelude)
        server, _, name = entry.source.removeprefix(SOURCE).partition(".")
        inner.addWidget(label(tr("composer.from_prompt", server=server, name=name), "caption"))

    def _unfold(self) -> None:
        if not self._made:
            self._made = True
            inner = column(self._prelude, space=theme.px(Space.XS))
            for message in self._messages:
                inner.addWidget(label(tr(f"prompt.role.{message.role.value}"), "caption"))
                for block in message.blocks:
                    inner.addWidget(annotated(block))
        self._prelude.setVisible(self._prelude.isHidden())
        set_icon(self.before, "chevron-right" if self._prelude.isHidden() else "chevron-down")
