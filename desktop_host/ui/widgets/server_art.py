"""The pictures of servers and of what they offer, put where the window names them; our own icon until they are there.

Loading happens in the host, drawing (without trust in the bytes) in a thread of Qt's pool; the window only shows
finished images, which it keeps.
"""

from __future__ import annotations

import weakref
from functools import partial

from PySide6.QtCore import QObject, QRunnable, QThreadPool, Signal
from PySide6.QtGui import QImage, QPixmap
from PySide6.QtWidgets import QLabel
from shiboken6 import isValid

from desktop_host.core import events as ev
from desktop_host.core.errors import HostError
from desktop_host.ui.bridge import Bridge
from desktop_host.ui.icon_raster import raster
from desktop_host.ui.theme import set_icon, theme
from desktop_host.ui.tokens import BASE_ICON

Key = tuple[str, str, str, bool]
"""Server, kind, item, and whether it stands on a dark ground."""
KEPT = 500


class _Drawing(QRunnable):
    """One picture, drawn in the pool."""

    def __init__(self, art: ServerArt, key: Key, data: bytes, side: int) -> None:
        super().__init__()
        self._art, self._key, self._data, self._side = art, key, data, side

    def run(self) -> None:
        image = raster(self._data, self._side)
        if isValid(self._art):
            self._art.drawn.emit(self._key, self._side, image)


class ServerArt(QObject):
    """See the module. One for the window; `follow` the bridge of the profile that is open."""

    drawn = Signal(object, int, QImage)

    def __init__(self) -> None:
        super().__init__()
        self._bridge: Bridge | None = None
        self._images: dict[tuple[Key, int], QImage] = {}
        self._wanted: set[tuple[Key, int]] = set()
        self._places: weakref.WeakKeyDictionary[QLabel, tuple[str, str, str, str, int]] = weakref.WeakKeyDictionary()
        self.drawn.connect(self._drawn)
        theme.changed.connect(self._again)

    def follow(self, bridge: Bridge) -> None:
        """Take pictures from the host behind this bridge."""
        self._bridge = bridge
        self._images.clear()
        self._wanted.clear()
        bridge.batch.connect(self._on_batch)

    def put(
        self, place: QLabel, server: str, kind: str = "server", item: str = "", default: str = "", size: int = BASE_ICON
    ) -> None:
        """Show the picture of something in a label; `default` (an icon of ours) stands there where there is none.

        Args:
            place: the label.
            server: alias.
            kind: `server`, `tool`, `resource` or `prompt`.
            item: name or address within the server.
            default: name of our own icon; empty: the label is hidden until there is a picture.
            size: pixels a side at 100 %.
        """
        self._places[place] = (server, kind, item, default, size)
        self._show(place)

    # ---- inside
    def _show(self, place: QLabel) -> None:
        server, kind, item, default, size = self._places[place]
        ratio = place.devicePixelRatioF()
        key: Key = (server, kind, item, theme.dark)
        side = round(theme.px(size) * ratio)
        image = self._images.get((key, side))
        if image is not None and not image.isNull():
            pixmap = QPixmap.fromImage(image)
            pixmap.setDevicePixelRatio(ratio)
            place.setProperty("themeIcon", None)
            place.setPixmap(pixmap)
            place.setVisible(True)
            return
        if default:
            set_icon(place, default, "muted", size)
        else:
            place.hide()
        if image is None:
            self._load(key, side)

    def _load(self, key: Key, side: int) -> None:
        bridge = self._bridge
        if bridge is None or not isValid(bridge) or (key, side) in self._wanted or not key[0]:
            return
        self._wanted.add((key, side))
        server, kind, item, dark = key
        bridge.then(
            lambda host: host.servers.icon(server, kind, item, dark), partial(self._loaded, key, side),
            partial(self._failed, key, side), self,
        )  # fmt: skip

    def _loaded(self, key: Key, side: int, data: bytes | None) -> None:
        if data is None:
            self._drawn(key, side, QImage())
        else:
            QThreadPool.globalInstance().start(_Drawing(self, key, data, side))

    def _failed(self, key: Key, side: int, _error: HostError) -> None:
        self._drawn(key, side, QImage())  # The server is gone: our own icon says what there is to say.

    def _drawn(self, key: Key, side: int, image: QImage) -> None:
        self._wanted.discard((key, side))
        while len(self._images) >= KEPT:
            self._images.pop(next(iter(self._images)))
        self._images[key, side] = image
        if not image.isNull():
            for place in self._of(key[:3]):
                self._show(place)

    def _of(self, what: tuple[str, ...]) -> list[QLabel]:
        return [p for p, (*mine, _, _) in self._places.items() if isValid(p) and tuple(mine)[: len(what)] == what]

    def _again(self) -> None:
        for place in self._of(()):
            self._show(place)

    def _on_batch(self, batch: tuple[ev.Stamped, ...]) -> None:
        for stamped in batch:
            event = stamped.event
            if isinstance(event, ev.ServerChanged) and event.lists and event.state == "ready":
                for key in [k for k in self._images if k[0][0] == event.server]:
                    del self._images[key]
                for place in self._of((event.server,)):
                    self._show(place)


_art: ServerArt | None = None


def art() -> ServerArt:
    """The window's pictures."""
    global _art
    if _art is None or not isValid(_art):
        _art = ServerArt()
    return _art
