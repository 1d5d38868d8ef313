"""What happened, in our words, and another program's words below it."""

from __future__ import annotations

from PySide6.QtWidgets import QLabel

from desktop_host.ui.widgets.pieces import label


def happened(text: str, role: str = "strong") -> list[QLabel]:
    """What happened; the words of another program, which stand in further lines of `text`, in a quiet label below."""
    what, _, quoted = text.partition("\n")
    made = [label(what, role, selectable=True)]
    return [*made, label(quoted, "muted", selectable=True)] if quoted else made
