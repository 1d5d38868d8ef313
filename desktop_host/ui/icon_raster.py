"""Pictures from outside as small images: any thread may call this, and nothing in the bytes is trusted.

PNG, JPEG, WebP and GIF go through Qt's readers, chosen by the first bytes, with limits on pixels and memory. SVG
goes through Qt's renderer (which fetches nothing and runs nothing) only if it consists of plain shapes.
"""

from __future__ import annotations

import re
from xml.parsers import expat

from PySide6.QtCore import QBuffer, QByteArray, QIODevice, QRectF, QSize, Qt
from PySide6.QtGui import QImage, QImageReader, QPainter
from PySide6.QtSvg import QSvgRenderer

MAX_SIDE = 2048
"""Pixels of a side that are still decoded."""
MAX_MEGABYTES = 32
"""Memory that a reader may take."""
MAX_SVG = 65_536
"""Bytes of an SVG."""
MAX_ELEMENTS = 1000
_SVG = "http://www.w3.org/2000/svg"
_SHAPES = frozenset({
    "svg", "g", "path", "rect", "circle", "ellipse", "line", "polyline", "polygon", "defs", "linearGradient",
    "radialGradient", "stop", "title", "desc", "metadata", "clipPath",
})  # fmt: skip
"""What may stand in an SVG: no text (fonts), no image, no use (bombs), no style sheet, no script, no filter."""
_MAGIC = {b"\x89PNG\r\n\x1a\n": b"png", b"\xff\xd8\xff": b"jpeg", b"GIF8": b"gif"}


def raster(data: bytes, side: int) -> QImage:
    """The picture fitted into `side` x `side` device pixels; a null image where it is none, or not to be drawn."""
    kind = next((k for magic, k in _MAGIC.items() if data.startswith(magic)), b"")
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        kind = b"webp"
    if kind:
        return _read(data, kind, side)
    return _drawn(data, side) if plain_svg(data) else QImage()


def _read(data: bytes, kind: bytes, side: int) -> QImage:
    buffer = QBuffer()
    buffer.setData(QByteArray(data))
    buffer.open(QIODevice.OpenModeFlag.ReadOnly)
    reader = QImageReader(buffer, QByteArray(kind))
    reader.setAutoTransform(True)
    size = reader.size()
    if not size.isValid() or max(size.width(), size.height()) > MAX_SIDE:
        return QImage()
    if size.width() * size.height() * 4 > MAX_MEGABYTES * 2**20:
        return QImage()
    fitted = size.scaled(QSize(side, side), Qt.AspectRatioMode.KeepAspectRatio).expandedTo(QSize(1, 1))
    reader.setScaledSize(fitted)
    return _centred(reader.read(), side)


def _drawn(data: bytes, side: int) -> QImage:
    renderer = QSvgRenderer(QByteArray(data))
    size = renderer.defaultSize()
    if not renderer.isValid() or size.isEmpty():
        return QImage()
    fitted = size.scaled(QSize(side, side), Qt.AspectRatioMode.KeepAspectRatio).expandedTo(QSize(1, 1))
    image = QImage(fitted, QImage.Format.Format_ARGB32_Premultiplied)
    image.fill(Qt.GlobalColor.transparent)
    painter = QPainter(image)
    renderer.render(painter, QRectF(0, 0, fitted.width(), fitted.height()))
    painter.end()
    return _centred(image, side)


def _centred(image: QImage, side: int) -> QImage:
    if image.isNull():
        return image
    whole = QImage(side, side, QImage.Format.Format_ARGB32_Premultiplied)
    whole.fill(Qt.GlobalColor.transparent)
    painter = QPainter(whole)
    painter.drawImage((side - image.width()) // 2, (side - image.height()) // 2, image)
    painter.end()
    return whole


def plain_svg(data: bytes) -> bool:
    """Whether this is an SVG of shapes alone: no reference outside, no entity, no script, and not too much of it."""
    if len(data) > MAX_SVG or b"<svg" not in data:
        return False
    parser = expat.ParserCreate(namespace_separator=" ")
    count = 0

    def refuse(*_: object) -> None:
        raise ValueError("not plain")

    def element(name: str, attributes: dict[str, str]) -> None:
        nonlocal count
        count += 1
        space, _, local = name.rpartition(" ")
        if count > MAX_ELEMENTS or (space == _SVG and local not in _SHAPES) or (count == 1 and local != "svg"):
            raise ValueError("not plain")
        for key, value in attributes.items():
            plain = key.rpartition(" ")[2].lower()
            if plain.startswith("on") or (plain == "href" and not value.startswith("#")):
                raise ValueError("not plain")
            if re.search(r"(?i)url\s*\(\s*['\"]?\s*[^#'\"\s]|@import|javascript:|expression", value):
                raise ValueError("not plain")
            if len(value) > MAX_SVG // 2 or re.search(r"\d{7,}", value):
                raise ValueError("not plain")

    parser.StartElementHandler = element
    parser.StartDoctypeDeclHandler = refuse
    parser.EntityDeclHandler = refuse
    parser.ProcessingInstructionHandler = refuse
    try:
        parser.Parse(data, True)
    except (expat.ExpatError, ValueError):
        return False
    return count > 0
