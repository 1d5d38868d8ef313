"""Where the person writes: text that grows, files, the model and the tools of this chat, Send and Stop."""

from __future__ import annotations

import mimetypes
from functools import partial
from pathlib import Path

from PySide6.QtCore import QBuffer, QByteArray, QIODevice, Qt, Signal
from PySide6.QtGui import QDragEnterEvent, QDropEvent, QImage, QImageWriter
from PySide6.QtWidgets import QFileDialog, QFrame, QWidget

from desktop_host.engine.host import InputFile
from desktop_host.i18n import tr
from desktop_host.ui.theme import Space, set_icon, set_role, theme
from desktop_host.ui.viewmodels.chat import Chat
from desktop_host.ui.viewmodels.composer import ResourceFile
from desktop_host.ui.widgets.choosers import ModelButton, ServersButton
from desktop_host.ui.widgets.composer_edit import MessageEdit, local_files
from desktop_host.ui.widgets.composer_row import ComposerRow
from desktop_host.ui.widgets.flow import Flow
from desktop_host.ui.widgets.image_view import human_size
from desktop_host.ui.widgets.pieces import button, clear, column, icon_button

MAX_FILE = 20 * 1024 * 1024
"""Largest file (bytes) that goes with a message."""


class Composer(QFrame):
    """The writing place. Knows the chat's view-model; says only what the person wants."""

    send = Signal(str, object)
    """`(text, tuple[InputFile, ...])`."""
    stop = Signal()
    needs_model = Signal()
    problem = Signal(str)
    """Words about a file that cannot be attached."""

    def __init__(self, chat: Chat, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._chat = chat
        self._files: list[InputFile] = []
        self.setObjectName("composer")
        self.setAcceptDrops(True)
        layout = column(self, space=theme.px(Space.XS))
        pad = theme.px(Space.S)
        layout.setContentsMargins(pad, pad, pad, pad)
        self._chips = QWidget()
        self._chips_flow = Flow(space=theme.px(Space.XS))
        self._chips.setLayout(self._chips_flow)
        self._chips.hide()
        layout.addWidget(self._chips)
        self.edit = MessageEdit(self)
        layout.addWidget(self.edit)
        self.attach_button = icon_button("attach", tr("chat.attach"), self._choose_files)
        self.model_button = ModelButton(chat.choices)
        self.model_button.needs_model.connect(self.needs_model)
        self.servers_button = ServersButton(chat.choices)
        self.insert_button = icon_button("slash", tr("composer.insert"))
        self.stop_button = button(tr("chat.stop"), self.stop.emit, icon="stop")
        self.stop_button.setToolTip(tr("chat.stop.key"))
        self.send_button = button(tr("chat.send"), self._submit, role="primary", icon="send")
        self.send_button.setToolTip(tr("chat.send.key"))
        self.row = ComposerRow(
            [self.attach_button, self.insert_button],
            [self.model_button, self.servers_button],
            [self.stop_button, self.send_button],
        )
        layout.addWidget(self.row)
        self.edit.submitted.connect(self._submit)
        self.edit.focused.connect(self.restyle)
        self.edit.files.connect(self.attach)
        self.edit.picture.connect(self._attach_picture)
        self.edit.textChanged.connect(self._typed)
        self.restyle()
        self.show_status()

    @property
    def text(self) -> str:
        """What is typed."""
        return self.edit.toPlainText()

    @property
    def files(self) -> tuple[InputFile, ...]:
        """What is attached."""
        return tuple(self._files)

    def put(self, text: str, files: tuple[InputFile, ...] = ()) -> None:
        """Replace what is typed and attached."""
        self._files = list(files)
        self._show_chips()
        if text != self.text:
            self.edit.setPlainText(text)
            cursor = self.edit.textCursor()
            cursor.movePosition(cursor.MoveOperation.End)
            self.edit.setTextCursor(cursor)
        self.show_status()

    def show_status(self) -> None:
        """Send or Stop, and how many messages wait."""
        status = self._chat.transcript
        running = status.running
        has = bool(self.text.strip() or self._files)
        self.stop_button.setVisible(running)
        self.send_button.setVisible(not running or has)
        self.row.say(self.send_button, tr("chat.queue") if running else tr("chat.send"))
        self.send_button.setEnabled(has and not self._chat.busy)

    def add_files(self, files: tuple[InputFile, ...]) -> None:
        """Attach what is read already."""
        self._files += files
        self._show_chips()

    def attach(self, paths: list[Path]) -> None:
        """Add files; says which of them cannot go along."""
        for path in paths:
            try:
                size = path.stat().st_size
                if not path.is_file():
                    self.problem.emit(tr("chat.attach.folder", name=path.name))
                    continue
                if size > MAX_FILE:
                    self.problem.emit(tr("chat.attach.large", name=path.name, limit=human_size(MAX_FILE)))
                    continue
                data = path.read_bytes()
            except OSError as cause:
                self.problem.emit(tr("chat.attach.unreadable", name=path.name, reason=cause.strerror or ""))
                continue
            mime = mimetypes.guess_type(path.name)[0] or (
                "text/plain" if _is_text(data) else "application/octet-stream"
            )
            self._files.append(InputFile(path.name, mime, data))
        self._show_chips()

    def restyle(self) -> None:
        """Say where the focus is, as its text has no edge of its own."""
        set_role(self, "composer-focused" if self.edit.hasFocus() else "composer")

    def _attach_picture(self, picture: QImage) -> None:
        if not isinstance(picture, QImage) or picture.isNull():
            return
        buffer = QBuffer()
        buffer.open(QIODevice.OpenModeFlag.WriteOnly)
        QImageWriter(buffer, QByteArray(b"png")).write(picture)
        name = f"{tr('chat.attach.picture')} {len(self._files) + 1}.png"
        self._files.append(InputFile(name, "image/png", bytes(buffer.data().data())))
        self._show_chips()

    def _show_chips(self) -> None:
        clear(self._chips_flow)
        for at, file in enumerate(self._files):
            more = f"@{file.server}" if isinstance(file, ResourceFile) else human_size(len(file.data))
            chip = button(f"{file.name} · {more}", partial(self._remove, at))
            set_icon(chip, "close", "muted", 12)
            chip.setLayoutDirection(Qt.LayoutDirection.RightToLeft)
            chip.setToolTip(tr("chat.attach.remove", name=file.name))
            chip.setAccessibleName(chip.toolTip())
            self._chips_flow.addWidget(chip)
        self._chips.setVisible(bool(self._files))
        self.show_status()

    def _remove(self, at: int) -> None:
        del self._files[at]
        self._show_chips()
        self.edit.setFocus()

    def _choose_files(self) -> None:
        dialog = QFileDialog(self, tr("chat.attach"))
        dialog.setFileMode(QFileDialog.FileMode.ExistingFiles)
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.filesSelected.connect(lambda names: self.attach([Path(n) for n in names]))
        dialog.open()

    def _typed(self) -> None:
        self._chat.set_draft(self.text)
        self.show_status()

    def _submit(self) -> None:
        text = self.text.strip()
        if (not text and not self._files) or self._chat.busy:
            return
        if not self._chat.choices.can_answer:
            self.needs_model.emit()
            return
        files = self.files
        self.put("")
        self.send.emit(text, files)

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        """Files may be dropped anywhere on the composer."""
        if event.mimeData().hasUrls():
            event.acceptProposedAction()

    def dropEvent(self, event: QDropEvent) -> None:
        """Attach what was dropped."""
        self.attach(local_files(event.mimeData()))
        event.acceptProposedAction()


def _is_text(data: bytes) -> bool:
    if b"\0" in data[:4096]:
        return False
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True
