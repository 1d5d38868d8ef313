"""A file's text as coloured code that is whole from the start."""

from __future__ import annotations

from PySide6.QtGui import QShowEvent

from desktop_host.ui.theme import theme
from desktop_host.ui.widgets.code import CodeFrame

LONGEST = 200_000
"""Characters of a file that are drawn."""


class Listing(CodeFrame):
    """Code that was not streamed; fits itself once it is shown, when its font is known."""

    def __init__(self, text: str, language: str, title: str, *, max_lines: int = 0) -> None:
        super().__init__(language, title=title, max_lines=max_lines)
        self.add_lines(text[:LONGEST].rstrip("\n"))
        self.close_block()
        self.source = text
        theme.changed.connect(self.restyle)

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self.text.fit()
