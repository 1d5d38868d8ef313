"""The buttons below the text: in a narrow window or at large type the least needed words give way to icons."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QSize, QTimer
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QPushButton, QWidget

from desktop_host.ui.theme import Space, redraw_icon, theme
from desktop_host.ui.widgets.choosers import ModelButton, ServersButton
from desktop_host.ui.widgets.pieces import row


class ComposerRow(QWidget):
    """Small buttons, the choosers, then what sends and stops."""

    def __init__(
        self, small: list[QWidget], choosers: list[ModelButton | ServersButton], acts: list[QPushButton]
    ) -> None:
        super().__init__()
        self._choosers, self._acts = choosers, acts
        self._words: dict[QPushButton, str] = {act: act.text() for act in acts}
        self._widths: dict[tuple[str, str, str], int] = {}
        self._space = theme.px(Space.XS)
        self.arranged = 0
        """How often it was laid out."""
        row(*small, *choosers, None, *acts, owner=self, space=self._space)
        self._parts: list[QWidget] = [*small, *choosers, *acts]
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setInterval(0)
        self._timer.timeout.connect(self.arrange)

    def say(self, act: QPushButton, words: str) -> None:
        """What an act says where there is room; always its name for a screen reader."""
        self._words[act] = words
        act.setAccessibleName(words)
        self._timer.start()

    def arrange(self) -> None:
        """Give up words from the right of the choosers on, until all fits."""
        self.arranged += 1
        said: dict[QPushButton, str] = {**{chooser: chooser.words for chooser in self._choosers}, **self._words}
        for part in (*reversed(self._choosers), *self._acts):
            if self._needed(said) <= self.width():
                break
            said[part] = ""
        for part, words in said.items():
            if part.text() != words:
                part.setText(words)
                redraw_icon(part)

    def _needed(self, said: dict[QPushButton, str]) -> int:
        shown = [part for part in self._parts if not part.isHidden()]
        wide = [self._wide(p, said[p]) if isinstance(p, QPushButton) else p.sizeHint().width() for p in shown]
        return sum(wide) + self._space * len(shown)

    def _wide(self, part: QPushButton, words: str) -> int:
        """How wide a button is with these words; measured once, since saying other words asks for a new layout."""
        key = (part.objectName() or str(id(part)), words, part.font().key())
        if key not in self._widths:
            before = part.text()
            part.setText(words)
            self._widths[key] = part.sizeHint().width()
            part.setText(before)
        return self._widths[key]

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.arrange()

    def event(self, event: QEvent) -> bool:
        """A button that says or is something else asks for a new layout."""
        if event.type() is QEvent.Type.LayoutRequest:
            self._timer.start()
        return super().event(event)

    def minimumSizeHint(self) -> QSize:
        return QSize(1, super().minimumSizeHint().height())
