"""Every kind of content is shown as what it is; nothing is fetched, nothing is cut for good."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import QBuffer, QIODevice, QObject, Qt, QUrl, Slot
from PySide6.QtGui import QColor, QDesktopServices, QGuiApplication, QImage
from PySide6.QtWidgets import QLabel, QPushButton, QWidget
from pytestqt.qtbot import QtBot

from desktop_host.core.messages import Audio, EmbeddedResource, Image, Outcome, ResourceLink, Text
from desktop_host.core.permissions import Effect
from desktop_host.core.transcript import ToolEntry, UserEntry
from desktop_host.core.values import freeze
from desktop_host.ui.theme import theme
from desktop_host.ui.widgets import image_view
from desktop_host.ui.widgets.code import CodeFrame
from desktop_host.ui.widgets.content_views import FoldedText, structured_view, view_of
from desktop_host.ui.widgets.image_view import ImageView
from desktop_host.ui.widgets.json_tree import JsonTable, JsonTree
from desktop_host.ui.widgets.links import link_menu
from desktop_host.ui.widgets.message import MarkdownView
from desktop_host.ui.widgets.prose import Prose
from desktop_host.ui.widgets.tool_card import ToolCard
from desktop_host.ui.widgets.user_message import UserMessage


class Opener(QObject):
    """Keeps what the platform was asked to open."""

    def __init__(self) -> None:
        super().__init__()
        self.urls: list[QUrl] = []

    @Slot(QUrl)
    def handle(self, url: QUrl) -> None:
        self.urls.append(url)


@pytest.fixture(autouse=True)
def _light(qapp: object) -> None:
    theme.apply("light")


@pytest.fixture
def opened() -> Iterator[list[QUrl]]:
    handler = Opener()
    for scheme in ("file", "https"):
        QDesktopServices.setUrlHandler(scheme, handler, "handle")
    yield handler.urls
    for scheme in ("file", "https"):
        QDesktopServices.unsetUrlHandler(scheme)


def png(width: int, height: int, noise: bool = False) -> str:
    image = QImage(width, height, QImage.Format.Format_RGB32)
    image.fill(QColor("teal"))
    if noise:
        for x in range(width):
            for y in range(height):
                image.setPixel(x, y, (x * 7919 + y * 104729 + x * y * 31) & 0xFFFFFF)
    buffer = QBuffer()
    buffer.open(QIODevice.OpenModeFlag.WriteOnly)
    image.save(buffer, "PNG")  # type: ignore[call-overload]
    return base64.b64encode(bytes(buffer.data().data())).decode()


def show(qtbot: QtBot, widget: QWidget, width: int = 600) -> QWidget:
    qtbot.addWidget(widget)
    widget.resize(width, 200)
    widget.show()
    qtbot.waitExposed(widget)
    return widget


def words(widget: QWidget) -> str:
    return "\n".join(label.text() for label in widget.findChildren(QLabel))


def test_two_megabytes_of_text_are_folded_and_one_click_away(qtbot: QtBot) -> None:
    """Hazard I92."""
    text = "line of text\n" * 160_000
    view = view_of(Text(text))
    assert isinstance(view, FoldedText)
    show(qtbot, view)
    assert view.height() < 600
    assert "2.0 MB" in words(view)
    assert len(view.frame.code) < 4000
    qtbot.mouseClick(view.frame.copy_button, Qt.MouseButton.LeftButton)
    assert len(QGuiApplication.clipboard().text()) == len(text)
    qtbot.mouseClick(view.whole_button, Qt.MouseButton.LeftButton)
    assert len(view.frame.code) == len(text)
    assert view.height() < 800


def test_json_is_a_tree_and_a_list_of_like_objects_a_table(qtbot: QtBot) -> None:
    assert isinstance(view_of(Text('{"a": {"b": [1, 2]}}')), JsonTree)
    assert isinstance(view_of(Text('[{"id": 1, "n": "a"}, {"id": 2, "n": "b"}]')), JsonTable)
    assert isinstance(structured_view(freeze({"rows": [{"id": 1}, {"id": 2}]})), JsonTable)
    assert isinstance(view_of(Text("[not json]")), QLabel)


def test_a_tree_fills_as_it_is_opened_and_copies_values(qtbot: QtBot) -> None:
    tree = structured_view(freeze({"many": list(range(2000)), "text": "x\ny", "b": {"c": 1}, "d": 1}))
    assert isinstance(tree, JsonTree)
    show(qtbot, tree)
    top = tree.topLevelItem(0)
    assert top is not None
    assert top.childCount() == 0
    top.setExpanded(True)
    assert top.childCount() == 501
    assert "1,500" in top.child(500).text(1) or "1500" in top.child(500).text(1)
    tree.setCurrentItem(tree.topLevelItem(1))
    tree.setFocus()
    qtbot.keyClick(tree, Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
    assert QGuiApplication.clipboard().text() == "x\ny"


def test_an_image_fits_its_column_and_keeps_its_shape(qtbot: QtBot) -> None:
    view = view_of(Image(png(1200, 300), "image/png"))
    assert isinstance(view, ImageView)
    show(qtbot, view, 400)
    assert view.pixmap().width() / view.pixmap().devicePixelRatio() == 400
    assert view.height() == 100
    assert "1200 × 300" in view.accessibleName()


def test_a_large_image_is_shown_and_a_broken_or_gigantic_one_is_told(qtbot: QtBot) -> None:
    data = png(560, 380, noise=True)
    assert len(base64.b64decode(data)) > 250_000
    assert isinstance(view_of(Image(data, "image/png")), ImageView)
    broken = view_of(Image(base64.b64encode(b"\x89PNG").decode(), "image/png"))
    assert isinstance(broken, QLabel)
    assert "image/png" in broken.text()
    bomb = b"P6 100000 100000 255\n"
    assert "cannot be shown" in view_of(Image(base64.b64encode(bomb).decode(), "image/x-portable-pixmap")).text()  # type: ignore[attr-defined]


def test_sound_is_handed_to_the_platform(qtbot: QtBot, opened: list[QUrl]) -> None:
    view = show(qtbot, view_of(Audio(base64.b64encode(b"RIFF....").decode(), "audio/wav")))
    button = view.findChildren(QPushButton)[0]
    qtbot.mouseClick(button, Qt.MouseButton.LeftButton)
    assert len(opened) == 1
    path = Path(opened[0].toLocalFile())
    assert path.suffix == ".wav"
    assert path.read_bytes() == b"RIFF...."
    image_view._opened.clear()
    assert not path.exists()


def test_an_embedded_resource_shows_uri_kind_and_content_even_with_an_empty_text(qtbot: QtBot) -> None:
    """Hazard I97."""
    text = show(qtbot, view_of(EmbeddedResource("note://one", "text/plain", text="hello")))
    assert "note://one · text/plain" in words(text)
    assert "hello" in words(text)
    blob = show(qtbot, view_of(EmbeddedResource("file:///x.bin", None, blob=base64.b64encode(b"123").decode())))
    assert "file:///x.bin" in words(blob)
    assert "3 B" in words(blob)
    assert isinstance(view_of(EmbeddedResource("r://i", "image/png", blob=png(2, 2))), ImageView)


def test_a_resource_link_keeps_name_title_kind_and_size_and_opens_only_web_addresses(qtbot: QtBot) -> None:
    """Hazard I98."""
    view = show(qtbot, view_of(ResourceLink("file:///etc/x", "x.pdf", "The X", "About X", "application/pdf", 2048)))
    said = words(view)
    for part in ("The X", "About X", "file:///etc/x", "application/pdf", "2.0 KB"):
        assert part in said
    assert [b.text() for b in view.findChildren(QPushButton)] == ["Copy address"]
    web = show(qtbot, view_of(ResourceLink("https://a.b/c", "c")))
    assert [b.text() for b in web.findChildren(QPushButton)] == ["Open", "Copy address"]


def entry(**changes: object) -> ToolEntry:
    base: dict[str, object] = {
        "key": "tool:1", "turn": 1, "call_id": "1", "server": "files", "tool": "read", "verdict": Effect.ALLOW,
        "arguments": freeze({"path": "/x"}), "started": True, "started_at": 0.0, "outcome": Outcome.OK,
        "content": (Text("done"),), "duration_ms": 12.0,
    }  # fmt: skip
    return ToolEntry(**(base | changes))  # type: ignore[arg-type]


def test_the_raw_json_is_one_click_away_with_long_data_cut_only_on_screen(qtbot: QtBot) -> None:
    data = "A" * 5000
    card = ToolCard(entry(content=(Image(data, "image/png"),)))
    show(qtbot, card)
    assert card.fold_button.isChecked(), "what is to be seen opens by itself"
    assert card.raw_button.accessibleName() == "Raw JSON"
    qtbot.mouseClick(card.raw_button, Qt.MouseButton.LeftButton)
    frame = next(f for f in card.findChildren(CodeFrame) if '"mimeType": "image/png"' in f.code)
    assert "(5000)" in frame.code
    qtbot.mouseClick(frame.copy_button, Qt.MouseButton.LeftButton)
    assert data in QGuiApplication.clipboard().text()


def test_structured_data_that_repeats_the_text_is_shown_once(qtbot: QtBot) -> None:
    card = ToolCard(entry(content=(Text('{"a": 1}'),), structured=freeze({"a": 1})))
    show(qtbot, card)
    card.fold_button.setChecked(True)
    assert len(card.findChildren(JsonTree)) == 1


@pytest.mark.parametrize("outcome", list(Outcome))
def test_every_outcome_has_its_words(qtbot: QtBot, outcome: Outcome) -> None:
    card = ToolCard(entry(outcome=outcome))
    show(qtbot, card)
    assert card.state_text
    assert "chat." not in card.accessibleName()


def test_prose_fetches_nothing(qtbot: QtBot) -> None:
    view = MarkdownView()
    show(qtbot, view)
    view.show_text(
        "![a](http://127.0.0.1:9/x.png) ![b](file:///etc/passwd) <img src='http://127.0.0.1:9/y.png'>", finished=True
    )
    (prose,) = view.segments
    assert isinstance(prose, Prose)
    assert "\ufffc" not in prose.toPlainText(), "no image object"
    assert "<img" in prose.toPlainText(), "HTML is text"
    assert prose.loadResource(2, QUrl("file:///etc/hostname")).isNull()


def test_a_link_is_shown_whole_and_only_web_and_mail_can_be_opened(qtbot: QtBot, opened: list[QUrl]) -> None:
    parent = QWidget()
    qtbot.addWidget(parent)
    menu = link_menu(QUrl("https://example.org/very?x=1"), parent)
    texts = [a.text() for a in menu.actions()]
    assert texts[0] == "https://example.org/very?x=1"
    menu.actions()[2].trigger()
    assert opened == [QUrl("https://example.org/very?x=1")]
    bad = [a.text() for a in link_menu(QUrl("javascript:alert(1)"), parent).actions()]
    assert "Open in the browser" not in bad


def test_a_long_message_of_the_person_is_folded_and_opens(qtbot: QtBot) -> None:
    text = "\n".join(f"line {n}" for n in range(500))
    bubble = UserMessage(UserEntry("user:1", 1, text))
    show(qtbot, bubble)
    assert bubble.sizeHint().height() < 700
    more = next(b for b in bubble.findChildren(QPushButton) if b.isVisible())
    qtbot.mouseClick(more, Qt.MouseButton.LeftButton)
    assert "line 499" in words(bubble)
