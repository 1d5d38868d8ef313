"""Pictures from outside: drawn small and without trust, by size, theme and default."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import QBuffer, QByteArray, QIODevice
from PySide6.QtGui import QColor, QImage
from PySide6.QtWidgets import QLabel
from pytestqt.qtbot import QtBot

from desktop_host.ui.icon_raster import MAX_SVG, plain_svg, raster
from desktop_host.ui.theme import theme
from desktop_host.ui.widgets.server_art import ServerArt
from tests.fakes.shell_host import ShellHost
from tests.ui.shell_kit import Shell

SVG = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 8 8">{}</svg>'
RED = SVG.format('<rect width="8" height="8" fill="#ff0000"/>').encode()
BLUE = SVG.format('<rect width="8" height="8" fill="#0000ff"/>').encode()


@pytest.fixture
def shell(qtbot: QtBot, tmp_path: Path) -> Iterator[Shell]:
    made = Shell(qtbot, tmp_path, ShellHost())
    yield made
    made.close()


def encoded(kind: str, width: int = 8, height: int = 8, color: str = "#00ff00") -> bytes:
    image = QImage(width, height, QImage.Format.Format_RGB32)
    image.fill(QColor(color))
    data = QByteArray()
    buffer = QBuffer(data)
    buffer.open(QIODevice.OpenModeFlag.WriteOnly)
    assert image.save(buffer, kind)
    return bytes(data.data())


def png_that_says(width: int, height: int) -> bytes:
    """A PNG whose header promises more than it holds."""

    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    head = struct.pack(">IIBBBBB", width, height, 8, 6, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(b"\0" * 100)) + chunk(b"IEND", b"")
    )


@pytest.mark.parametrize("kind", ["png", "jpeg", "webp"])
def test_usual_pictures_are_fitted_and_centred(qtbot: QtBot, kind: str) -> None:
    image = raster(encoded(kind, 40, 20), 16)
    assert (image.width(), image.height()) == (16, 16)
    assert image.pixelColor(8, 8).green() > 240
    assert image.pixelColor(8, 0).alpha() == 0


def test_plain_shapes_of_svg_are_drawn(qtbot: QtBot) -> None:
    assert raster(RED, 16).pixelColor(8, 8) == QColor("#ff0000")


@pytest.mark.parametrize(
    "inside",
    [
        "<script>alert(1)</script>",
        '<image href="file:///etc/passwd" width="8" height="8"/>',
        '<image href="https://tracker.example/x.png" width="8" height="8"/>',
        '<rect width="8" height="8" onload="x()"/>',
        '<rect width="8" height="8" fill="url(https://tracker.example/x)"/>',
        "<style>@import url(https://tracker.example/x.css)</style>",
        '<foreignObject><p xmlns="http://www.w3.org/1999/xhtml">x</p></foreignObject>',
        '<g id="a"/><use href="#a"/>',
        '<a xmlns:xlink="http://www.w3.org/1999/xlink" xlink:href="https://x.example"/>',
        '<rect width="99999999999" height="8"/>',
        '<filter id="f"/>',
        "<g>" * 1001 + "</g>" * 1001,
    ],
)
def test_an_svg_with_more_than_shapes_is_not_drawn(qtbot: QtBot, inside: str) -> None:
    data = SVG.format(inside).encode()
    assert not plain_svg(data)
    assert raster(data, 16).isNull()


@pytest.mark.parametrize(
    "data",
    [
        b"", b"<html><svg/></html>", b"GIF8", b"\x89PNG\r\n\x1a\nbroken", b"\xff\xd8\xff\x00", b"RIFF\0\0\0\0WEBPVP8 ",
        b'<!DOCTYPE svg [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]><svg xmlns="http://www.w3.org/2000/svg">&b;</svg>',
        RED + b" " * MAX_SVG, png_that_says(60_000, 60_000), png_that_says(2048, 2_000_000),
    ],
)  # fmt: skip
def test_what_is_no_picture_or_too_large_a_one_gives_nothing(qtbot: QtBot, data: bytes) -> None:
    assert raster(data, 16).isNull()


def test_servers_and_tools_show_their_pictures_and_follow_the_theme(shell: Shell, qtbot: QtBot) -> None:
    shell.host.servers.pictures = {
        ("files", "server", "", False): RED,
        ("files", "server", "", True): BLUE,
        ("broken", "server", "", False): b"<svg><script/></svg>",
    }
    art = ServerArt()
    art.follow(shell.bridge)
    theme.apply("light")
    files, broken, plain = QLabel(), QLabel(), QLabel()
    for label in (files, broken, plain):
        qtbot.addWidget(label)
    art.put(files, "files", default="servers")
    art.put(broken, "broken", default="servers")
    art.put(plain, "nothing")

    def middle(label: QLabel) -> QColor:
        image = label.pixmap().toImage()
        return image.pixelColor(image.width() // 2, image.height() // 2)

    qtbot.waitUntil(lambda: middle(files) == QColor("#ff0000"), timeout=30_000)
    theme.apply("dark")
    qtbot.waitUntil(lambda: middle(files) == QColor("#0000ff"), timeout=30_000)
    theme.apply("light")
    qtbot.waitUntil(lambda: middle(files) == QColor("#ff0000"), timeout=30_000)
    assert broken.property("themeIcon") is not None, "our own icon stands where theirs cannot be drawn"
    assert plain.isHidden()
