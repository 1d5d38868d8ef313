"""What a tool gave, each kind as what it is: text, image, sound, resource, structured data."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import Any

from PySide6.QtCore import QUrl
from PySide6.QtGui import QDesktopServices, QGuiApplication
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QPushButton, QVBoxLayout, QWidget

from desktop_host.core.codec import block_to_mcp
from desktop_host.core.messages import (
    Audio,
    ContentBlock,
    EmbeddedResource,
    Image,
    ResourceLink,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from desktop_host.i18n import tr
from desktop_host.ui.theme import Space, set_icon, set_role, theme
from desktop_host.ui.widgets.code import CodeFrame
from desktop_host.ui.widgets.image_view import ImageView, decode, file_name, human_size, open_bytes, save_bytes
from desktop_host.ui.widgets.json_tree import JsonTable, JsonTree, table_columns
from desktop_host.ui.widgets.pieces import label

FOLD_LINES = 16
FOLD_CHARS = 3000
"""Longer text is folded; its size is shown and the whole is one click away."""
WHOLE_LIMIT = 4_000_000
"""Longer text (characters) is opened by another program, not here."""
SHORT = 240
"""Shorter text stands without a frame."""
JSON_LIMIT = 400_000
Action = tuple[str, Callable[[QWidget], object]]
"""The text of a button, and what it does with the widget it belongs to."""


def view_of(block: ContentBlock) -> QWidget:
    """The view of one block."""
    match block:
        case Text(text=text):
            return text_view(text)
        case Thinking(text=text):
            return text_view(text)
        case Image():
            return ImageView(block)
        case Audio(data=data, mime_type=mime):
            content = decode(data)
            return file_row("audio", tr("chat.audio"), f"{mime} · {human_size(len(content))}", [
                (tr("chat.play"), lambda _w: open_bytes(content, mime)),
                (tr("chat.save"), lambda w: save_bytes(content, file_name(mime, "audio"), w)),
            ])  # fmt: skip
        case ResourceLink():
            return LinkRow(block)
        case EmbeddedResource():
            return _resource_view(block)
        case ToolCall() | ToolResult():
            return text_view(json.dumps(block_to_mcp(block), indent=2, ensure_ascii=False), "json")


def structured_view(value: Any) -> QWidget:
    """Structured data: a table where it is one, else a tree."""
    inner = value
    if isinstance(value, dict) and len(value) == 1:
        (only,) = value.values()
        if table_columns(only):
            inner = only
    columns = table_columns(inner)
    if columns:
        return JsonTable(inner, columns)
    if isinstance(value, dict | tuple | list) and value:
        return JsonTree(value)
    return text_view(json.dumps(value, ensure_ascii=False), "json")


def text_view(text: str, language: str = "") -> QWidget:
    """Text; JSON as a tree; long text folded."""
    stripped = text.strip()
    if not language and stripped[:1] in ("{", "[") and len(text) <= JSON_LIMIT:
        try:
            value = json.loads(stripped)
        except ValueError:
            value = None
        if isinstance(value, dict | list) and value:
            return structured_view(value)
    if not language and len(text) <= SHORT and text.count("\n") <= 2:
        return label(text, selectable=True)
    return FoldedText(text, language)


class FoldedText(QWidget):
    """Text whose first lines are shown, with its size and ways to the whole."""

    def __init__(self, text: str, language: str = "", parent: QWidget | None = None, title: str = "") -> None:
        super().__init__(parent)
        self._text = text
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(theme.px(Space.XS))
        lines = text.count("\n") + 1
        self.folded = lines > FOLD_LINES or len(text) > FOLD_CHARS
        excerpt = "\n".join(text[:FOLD_CHARS].split("\n")[:FOLD_LINES]) if self.folded else text
        self.frame = CodeFrame(language, title=title or tr("chat.text"), max_lines=FOLD_LINES + 8)
        self.frame.add_lines(excerpt)
        self.frame.source = text
        column.addWidget(self.frame)
        if not self.folded:
            return
        row = QHBoxLayout()
        size = QLabel(tr("chat.folded", size=human_size(len(text.encode())), lines=lines))
        set_role(size, "caption")
        row.addWidget(size)
        row.addStretch()
        self.whole_button = QPushButton(tr("chat.show_all") if len(text) <= WHOLE_LIMIT else tr("chat.open"))
        self.whole_button.clicked.connect(self._show_all)
        save = QPushButton(tr("chat.save"))
        save.clicked.connect(lambda: save_bytes(text.encode(), "result.txt", self))
        for button in (self.whole_button, save):
            set_role(button, "quiet")
            row.addWidget(button)
        column.addLayout(row)

    def restyle(self) -> None:
        """Colours anew after a change of theme."""
        self.frame.restyle()

    def _show_all(self) -> None:
        if len(self._text) > WHOLE_LIMIT:
            open_bytes(self._text.encode(), "text/plain", "result.txt")
            return
        self.frame.replace(self._text)
        self.whole_button.hide()


def file_row(icon: str, title: str, detail: str, actions: list[Action], frame: QFrame | None = None) -> QFrame:
    """Something that opens elsewhere: icon, name, kind and buttons."""
    frame = frame or QFrame()
    set_role(frame, "well")
    row = QHBoxLayout(frame)
    row.setContentsMargins(theme.px(Space.M), theme.px(Space.XS), theme.px(Space.XS), theme.px(Space.XS))
    picture = QLabel()
    set_icon(picture, icon, "muted")
    row.addWidget(picture)
    words = QVBoxLayout()
    words.setSpacing(0)
    words.addWidget(label(title))
    words.addWidget(label(detail, "caption"))
    row.addLayout(words, 1)
    for text, act in actions:
        row.addWidget(_action(text, title, partial(act, frame)))
    return frame


def _action(text: str, title: str, act: Callable[[], object]) -> QPushButton:
    button = QPushButton(text)
    set_role(button, "quiet")
    button.setAccessibleName(f"{text}: {title}")
    button.clicked.connect(lambda _checked=False: act())
    return button


class LinkRow(QFrame):
    """A link that a server gave. What lies behind an address of its own is read through the server, if `offer`ed."""

    def __init__(self, link: ResourceLink) -> None:
        super().__init__()
        self.link = link
        kinds = [link.mime_type] if link.mime_type else []
        sizes = [human_size(link.size)] if link.size else []
        title = link.title or link.name
        if link.description:
            title = f"{title} — {link.description}"
        self._title = title
        actions: list[Action] = []
        if self._of_the_web:
            actions.append((tr("chat.open"), lambda _w: QDesktopServices.openUrl(QUrl(link.uri))))
        actions.append((tr("chat.link.copy"), lambda _w: QGuiApplication.clipboard().setText(link.uri)))
        file_row("link", title, " · ".join([link.uri, *kinds, *sizes]), actions, self)

    def offer(self, read: Callable[[str, bool], object]) -> None:
        """Let the person open the resource or keep a copy: `read(uri, keep)`."""
        line = self.layout()
        if self._of_the_web or not isinstance(line, QHBoxLayout):
            return
        for text, keep in ((tr("chat.open"), False), (tr("chat.save"), True)):
            line.insertWidget(line.count() - 1, _action(text, self._title, partial(read, self.link.uri, keep)))

    @property
    def _of_the_web(self) -> bool:
        return self.link.uri.startswith(("https://", "http://"))


def _resource_view(resource: EmbeddedResource) -> QWidget:
    kind = resource.mime_type or ""
    if resource.text is not None:
        box = QWidget()
        column = QVBoxLayout(box)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(theme.px(Space.XS))
        column.addWidget(label(" · ".join(filter(None, (resource.uri, kind))), "caption"))
        column.addWidget(text_view(resource.text))
        return box
    if kind.startswith("image/") and resource.blob:
        return ImageView(Image(resource.blob, kind))
    content = decode(resource.blob or "")
    name = resource.uri.rsplit("/", 1)[-1] or "resource"
    return file_row("document", resource.uri, " · ".join(filter(None, (kind, human_size(len(content))))), [
        (tr("chat.open"), lambda _w: open_bytes(content, kind or "application/octet-stream", name)),
        (tr("chat.save"), lambda w: save_bytes(content, name, w)),
    ])  # fmt: skip
