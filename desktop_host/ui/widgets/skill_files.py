"""The files of a skill, and what stands in them."""

from __future__ import annotations

import base64
import mimetypes
from collections.abc import Callable
from pathlib import PurePosixPath

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QHeaderView, QTreeWidget, QTreeWidgetItem, QWidget

from desktop_host.core.errors import HostError
from desktop_host.core.messages import Image
from desktop_host.core.skill_admin import SkillDetail, SkillFile
from desktop_host.i18n import current, tr
from desktop_host.ui.theme import Space, theme
from desktop_host.ui.viewmodels.lifetime import while_alive
from desktop_host.ui.viewmodels.skills import Skills
from desktop_host.ui.widgets.image_view import ImageView, save_bytes
from desktop_host.ui.widgets.message import MarkdownView
from desktop_host.ui.widgets.page import ErrorCard, Page
from desktop_host.ui.widgets.pieces import button, clear, column, label, row
from desktop_host.ui.widgets.server_words import size
from desktop_host.ui.widgets.skill_code import LONGEST, Listing

MOST_LINES = 12
"""Rows of the list before it scrolls by itself."""
LANGUAGES = {".py": "python", ".sh": "bash", ".js": "javascript", ".ts": "typescript", ".json": "json",
             ".toml": "toml", ".yaml": "yaml", ".yml": "yaml", ".html": "html", ".css": "css", ".sql": "sql",
             ".xml": "xml", ".ps1": "powershell", ".rb": "ruby", ".r": "r", ".go": "go", ".rs": "rust"}  # fmt: skip


Read = Callable[[str, Callable[[bytes], None], Callable[[HostError], None]], None]
"""Reads a file by its path and calls one of the two."""


class FileView(QWidget):
    """A list of files, and below it the chosen one."""

    def __init__(self, read: Read) -> None:
        super().__init__()
        self._read = read
        self._files: tuple[SkillFile, ...] = ()
        self._asked = ""
        self.tree = QTreeWidget()
        self.tree.setColumnCount(3)
        self.tree.setHeaderLabels([tr("skills.file.path"), tr("skills.file.kind"), tr("skills.file.size")])
        self.tree.setRootIsDecorated(False)
        self.tree.setUniformRowHeights(True)
        self.tree.setAllColumnsShowFocus(True)
        self.tree.setAccessibleName(tr("skills.files_name"))
        self.tree.setTextElideMode(Qt.TextElideMode.ElideMiddle)
        header = self.tree.header()
        header.setStretchLastSection(False)
        header.setSectionResizeMode(0, QHeaderView.ResizeMode.Stretch)
        for at in (1, 2):
            header.setSectionResizeMode(at, QHeaderView.ResizeMode.ResizeToContents)
        self.tree.currentItemChanged.connect(lambda item, _old: self._open(item))
        self._view = column(space=Space.S)
        self.shown: QWidget | None = None
        inner = column(self, space=Space.M)
        inner.addWidget(self.tree)
        inner.addLayout(self._view)
        theme.changed.connect(self._fit_tree)

    def show_files(self, files: tuple[SkillFile, ...]) -> None:
        """Show these files; the chosen one is read again where any changed."""
        if files == self._files:
            return
        self._files = files
        chosen = self._asked or "SKILL.md"
        blocked = self.tree.blockSignals(True)
        self.tree.clear()
        for file in files:
            key = f"skills.kind.{file.kind}"
            kind = tr(key) if current().has(key) else file.kind
            item = QTreeWidgetItem([file.path, kind, size(file.size)])
            item.setData(0, Qt.ItemDataRole.UserRole, file.path)
            item.setToolTip(0, f"{file.path}\nsha256 {file.sha256}")
            item.setTextAlignment(2, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
            self.tree.addTopLevelItem(item)
            if file.path == chosen:
                self.tree.setCurrentItem(item)
        self.tree.blockSignals(blocked)
        self._fit_tree()
        self._open(self.tree.currentItem())

    def choose(self, path: str) -> None:
        """Show this file."""
        for at in range(self.tree.topLevelItemCount()):
            item = self.tree.topLevelItem(at)
            if item is not None and item.data(0, Qt.ItemDataRole.UserRole) == path:
                self.tree.setCurrentItem(item)

    def _fit_tree(self) -> None:
        rows = min(MOST_LINES, max(1, self.tree.topLevelItemCount()))
        line = max(self.tree.sizeHintForRow(0), theme.px(24))
        self.tree.setFixedHeight(self.tree.header().sizeHint().height() + rows * line + theme.px(Space.S))

    def _open(self, item: QTreeWidgetItem | None) -> None:
        if item is None:
            clear(self._view)
            return
        path = self._asked = str(item.data(0, Qt.ItemDataRole.UserRole))
        self._read(
            path,
            while_alive(self, lambda data: self._show(path, data)),
            while_alive(self, lambda error: self._fail(path, error)),
        )

    def _fail(self, path: str, error: HostError) -> None:
        if path == self._asked:
            clear(self._view)
            self._view.addWidget(ErrorCard(error))

    def _show(self, path: str, data: bytes) -> None:
        if path != self._asked:
            return
        clear(self._view)
        save = button(tr("chat.save"), lambda: save_bytes(data, path, self), role="quiet", icon="download")
        self._view.addLayout(row(label(path, "strong", wrap=False, selectable=True), None, save))
        self.shown = viewer(path, data)
        self._view.addWidget(self.shown)


class FilesTab(Page):
    """The files of an installed skill."""

    def __init__(self, skills: Skills, name: str) -> None:
        super().__init__(inside=True)
        self._version: str | None = None

        def read(path: str, done: Callable[[bytes], None], failed: Callable[[HostError], None]) -> None:
            skills.ask(lambda host: host.skills.read_file(name, path, self._version), done, failed, self)

        self.view = FileView(read)
        self.tree, self.choose = self.view.tree, self.view.choose
        self.add(self.view)

    @property
    def shown(self) -> QWidget | None:
        """What shows the chosen file."""
        return self.view.shown

    def show_detail(self, detail: SkillDetail) -> None:
        """Show the files of a version."""
        self._version = detail.skill.version or ("-" if detail.row.versions else None)
        self.view.show_files(detail.files)


def viewer(path: str, data: bytes) -> QWidget:
    """What shows the contents of a file, by its kind."""
    mime = mimetypes.guess_type(path)[0] or ""
    if mime.startswith("image/") and mime != "image/svg+xml":
        return ImageView(Image(base64.b64encode(data).decode(), mime), max_height=480)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = ""
    if (data and not text) or "\0" in text[:4096]:
        return label(tr("skills.file.binary", size=size(len(data))), "muted")
    ending = PurePosixPath(path).suffix.lower()
    if ending == ".md" and PurePosixPath(path).name != "SKILL.md":
        view = MarkdownView()
        view.show_text(text[:LONGEST], finished=True)
        theme.changed.connect(view.restyle)
        return view
    return Listing(text, "markdown" if ending == ".md" else LANGUAGES.get(ending, ""), path)
