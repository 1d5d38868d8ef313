"""Resources that a tool's result links to: read through their server, then opened by the platform or kept."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QStandardPaths, Qt, QUrl
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import QFileDialog

from desktop_host.core.errors import HostError, KnownFault
from desktop_host.core.server_ports import SavedResource
from desktop_host.engine.host import Host
from desktop_host.i18n import error_text, tr
from desktop_host.ui.bridge import Bridge
from desktop_host.ui.widgets.app_place import AppDesk

if TYPE_CHECKING:
    from desktop_host.ui.widgets.chat import ChatPage


class LinkDesk(QObject):
    """Serves the links of a chat page's results."""

    def __init__(self, bridge: Bridge, page: ChatPage) -> None:
        super().__init__(page)
        self._bridge, self._page = bridge, page
        page.view.link_wanted.connect(self._take)
        self.apps = AppDesk(bridge, page)
        page.view.card_made.connect(self.apps.attach)

    def _take(self, server: str, uri: str, keep: bool) -> None:
        def read(saved: SavedResource) -> None:
            if keep:
                self._ask_where(saved.path)
            else:
                QDesktopServices.openUrl(QUrl.fromLocalFile(str(saved.path)))

        self._bridge.then(lambda host: host.servers.save_resource(server, uri), read, self._fail, self)

    def _ask_where(self, made: Path) -> None:
        folder = QStandardPaths.writableLocation(QStandardPaths.StandardLocation.DownloadLocation)
        dialog = QFileDialog(self._page, tr("chat.save"), folder)
        dialog.setAcceptMode(QFileDialog.AcceptMode.AcceptSave)
        dialog.selectFile(made.name)
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.fileSelected.connect(lambda path: self._copy(made, Path(path)))
        dialog.open()

    def _copy(self, made: Path, wanted: Path) -> None:
        async def copy(_host: Host) -> None:
            try:
                await asyncio.to_thread(shutil.copyfile, made, wanted)
            except OSError as error:
                raise KnownFault(
                    "permission", f"{wanted} cannot be written: {error.strerror}", file=str(wanted)
                ) from error

        def done(_none: None) -> None:
            self._page.told.emit(tr("chat.saved", path=str(wanted)))

        self._bridge.then(copy, done, self._fail, self)

    def _fail(self, error: HostError) -> None:
        self._page.say(*error_text(error))
