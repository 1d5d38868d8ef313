"""An image of a conversation: fitted to the column, saved or opened on wish."""

from __future__ import annotations

import base64
import binascii
import mimetypes
from pathlib import Path

from PySide6.QtCore import QBuffer, QByteArray, QIODevice, QSize, QStandardPaths, Qt, QTemporaryDir, QUrl
from PySide6.QtGui import QContextMenuEvent, QDesktopServices, QGuiApplication, QImage, QImageReader, QPixmap
from PySide6.QtWidgets import QFileDialog, QLabel, QMenu, QSizePolicy, QWidget

from desktop_host.core.messages import Image
from desktop_host.i18n import tr

MAX_PIXELS = 40_000_000
"""Images with more pixels are not decoded: they could take gigabytes."""

_ENDINGS = {
    "audio/wav": ".wav", "audio/x-wav": ".wav", "audio/mpeg": ".mp3", "audio/ogg": ".ogg", "audio/flac": ".flac",
    "audio/mp4": ".m4a", "audio/webm": ".webm", "image/webp": ".webp", "image/jpeg": ".jpg",
}  # fmt: skip
"""What a bare system's table of types lacks."""

_opened: list[QTemporaryDir] = []


def human_size(size: int) -> str:
    """Bytes for reading: `300 B`, `1.4 KB`, `2.0 MB`."""
    value = float(size)
    for unit in ("B", "KB", "MB"):
        if value < 1024:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1024
    return f"{value:.1f} GB"


def decode(data: str) -> bytes:
    """The bytes of base64; what cannot be read gives none."""
    try:
        return base64.b64decode(data, validate=False)
    except (binascii.Error, ValueError):
        return b""


def save_bytes(data: bytes, name: str, parent: QWidget) -> None:
    """Ask where to, then write."""
    folder = QStandardPaths.writableLocation(QStandardPaths.StandardLocation.DownloadLocation)
    dialog = QFileDialog(parent, tr("chat.save"), folder)
    dialog.setAcceptMode(QFileDialog.AcceptMode.AcceptSave)
    dialog.selectFile(Path(name).name)
    dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    dialog.fileSelected.connect(lambda path: Path(path).write_bytes(data))
    dialog.open()


def open_bytes(data: bytes, mime_type: str, name: str = "") -> None:
    """Hand bytes to the platform's program for their kind, as a file that lives until the host ends."""
    folder = QTemporaryDir()
    _opened.append(folder)
    path = Path(folder.path()) / (Path(name).name or file_name(mime_type, "content"))
    path.write_bytes(data)
    QDesktopServices.openUrl(QUrl.fromLocalFile(str(path)))


def file_name(mime_type: str, stem: str = "image") -> str:
    """A name for bytes of a kind."""
    return f"{stem}{_ENDINGS.get(mime_type) or mimetypes.guess_extension(mime_type) or '.bin'}"


class ImageView(QLabel):
    """Shows a base64 image no larger than its column; says what is wrong with one it cannot show."""

    def __init__(self, image: Image, parent: QWidget | None = None, max_height: int = 480) -> None:
        super().__init__(parent)
        self._image = image
        self._bytes = decode(image.data)
        self._max_height = max_height
        self._whole = self._read()
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignTop)
        if self._whole is None:
            self.setText(tr("chat.image.broken", type=image.mime_type, size=human_size(len(self._bytes))))
            self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Preferred)
            return
        size = f"{self._whole.width()} × {self._whole.height()}"
        self.setAccessibleName(tr("chat.image", type=image.mime_type, size=size))
        self.setToolTip(f"{image.mime_type} · {size} · {human_size(len(self._bytes))}")
        self._fit(640)

    def _read(self) -> QImage | None:
        buffer = QBuffer()
        buffer.setData(QByteArray(self._bytes))
        buffer.open(QIODevice.OpenModeFlag.ReadOnly)
        reader = QImageReader(buffer)
        reader.setAutoTransform(True)
        size = reader.size()
        if size.isValid() and size.width() * size.height() > MAX_PIXELS:
            return None
        image = reader.read()
        return None if image.isNull() else image

    def _fit(self, width: int) -> None:
        if self._whole is None or width <= 0:
            return
        ratio = self.devicePixelRatio()
        natural = self._whole.size()
        bound = QSize(min(width, natural.width()), min(self._max_height, natural.height()))
        size = natural.scaled(bound, Qt.AspectRatioMode.KeepAspectRatio)
        if size.height() == self.height() and not self.pixmap().isNull():
            return
        pixmap = QPixmap.fromImage(self._whole.scaled(
            size * ratio, Qt.AspectRatioMode.KeepAspectRatio, Qt.TransformationMode.SmoothTransformation,
        ))  # fmt: skip
        pixmap.setDevicePixelRatio(ratio)
        self.setPixmap(pixmap)
        self.setFixedHeight(max(1, size.height()))

    def resizeEvent(self, event: object) -> None:
        """Fit the column."""
        self._fit(self.width())

    def minimumSizeHint(self) -> QSize:
        """An image never widens its column."""
        return QSize(1, self.height() if self._whole is not None else super().minimumSizeHint().height())

    def sizeHint(self) -> QSize:
        """As wide as it is drawn."""
        if self._whole is None:
            return super().sizeHint()
        drawn = self.pixmap()
        wide = round(drawn.width() / drawn.devicePixelRatio()) if not drawn.isNull() else self._whole.width()
        return QSize(min(640, wide), self.height())

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        """Copy, save or open."""
        if self._whole is None:
            return
        whole = self._whole
        menu = QMenu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        menu.addAction(tr("chat.copy"), lambda: QGuiApplication.clipboard().setImage(whole))
        menu.addAction(tr("chat.save"), lambda: save_bytes(self._bytes, file_name(self._image.mime_type), self))
        menu.addAction(tr("chat.open"), lambda: open_bytes(self._bytes, self._image.mime_type))
        menu.popup(event.globalPos())
