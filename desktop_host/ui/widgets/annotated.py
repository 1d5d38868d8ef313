"""A block of a result with what its server says of it: for whom it is, and how much it matters."""

from __future__ import annotations

from PySide6.QtWidgets import QWidget

from desktop_host.core.messages import ContentBlock
from desktop_host.ui.theme import Space, theme
from desktop_host.ui.viewmodels.annotations import annotation_words
from desktop_host.ui.widgets.content_views import view_of
from desktop_host.ui.widgets.pieces import column, label


def annotated(block: ContentBlock) -> QWidget:
    """The view of a block, below its annotations where it has any."""
    view = view_of(block)
    words = annotation_words(getattr(block, "annotations", None))
    if not words:
        return view
    box = QWidget()
    inner = column(box, space=theme.px(Space.XS))
    inner.addWidget(label(" · ".join(words), "caption"))
    inner.addWidget(view)
    return box
