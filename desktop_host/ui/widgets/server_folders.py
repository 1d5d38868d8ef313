"""The folders of a knowledge server: taken in and out, reading told, its documents, and a question to try."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from PySide6.QtCore import Qt
from PySide6.QtGui import QHideEvent, QShowEvent
from PySide6.QtWidgets import QFileDialog, QProgressBar

from desktop_host.core.errors import HostError
from desktop_host.core.servers import ServerState
from desktop_host.i18n import tr, trn
from desktop_host.ui.bridge import Bridge
from desktop_host.ui.theme import Space
from desktop_host.ui.viewmodels.folders import Folders
from desktop_host.ui.viewmodels.servers import Servers
from desktop_host.ui.widgets.flow import Flow
from desktop_host.ui.widgets.page import ErrorCard, Page
from desktop_host.ui.widgets.pieces import (
    Card,
    Elided,
    button,
    clear,
    column,
    icon_label,
    label,
    row,
    rule,
)
from desktop_host.ui.widgets.search_field import SearchField
from desktop_host.ui.widgets.server_words import size


class FoldersTab(Page):
    """See the module. It is looked at while it is shown and the server runs."""

    def __init__(self, bridge: Bridge, servers: Servers, name: str) -> None:
        super().__init__(inside=True)
        self._servers, self._name = servers, name
        self.model = Folders(bridge, name, self)
        self.summary = label("", "strong")
        self.reading = label("", "muted")
        self.bar = QProgressBar()
        self.bar.setTextVisible(False)
        self.bar.setAccessibleName(tr("folders.progress"))
        self.add_folder = button(tr("folders.add"), self._ask, role="primary", icon="folder")
        self._error = column(space=0)
        self._folders = column(space=Space.S)
        top = Card(space=Space.M)
        top.add(self.summary, self.reading, self.bar, self._folders, Flow(self.add_folder))
        self.query = SearchField(tr("folders.try.hint"))
        self.query.returnPressed.connect(self._search)
        self.search = button(tr("folders.try.go"), self._search)
        self.passages = column(space=Space.S)
        self._documents = Card(space=Space.S)
        self.more = button(tr("folders.more"), self._more, role="link")
        self.add(
            self._error, top, label(tr("folders.try"), "heading"), row(self.query, self.search), self.passages,
            label(tr("folders.documents"), "heading"), self._documents, self.more,
        )  # fmt: skip
        self.removers: dict[str, Any] = {}
        self.model.changed.connect(self._show)
        self.model.documents_changed.connect(self._show_documents)
        self.model.found.connect(self._show_passages)
        self.model.failed.connect(self._failed)
        servers.changed.connect(self._server_changed)
        self._show()
        self._show_documents()

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._server_changed(self._name)

    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        self.model.watch(False)

    def take_in(self, folder: str) -> None:
        """Add a folder that was chosen."""
        clear(self._error)
        self.model.add(folder)

    # ---- inside
    def _ready(self) -> bool:
        status = self._servers.status(self._name)
        return status is not None and status.state is ServerState.READY

    def _server_changed(self, name: str) -> None:
        if name == self._name:
            self.model.watch(self._ready() and self.isVisible())
            self._show()

    def _show(self) -> None:
        model, ready = self.model, self._ready()
        held = model.held
        if not ready:
            words = tr("folders.stopped")
        elif not model.known:
            words = tr("folders.looking")
        else:
            words = trn("folders.sum", held.documents, passages=held.passages, size=size(held.size))
        self.summary.setText(words)
        at_work = bool(held.of) or bool(model.busy)
        self.bar.setVisible(at_work and ready)
        self.bar.setRange(0, held.of)  # 0 to 0: busy without an end in sight
        self.bar.setValue(held.done)
        told = tr("folders.reading", done=held.done, of=held.of) if held.of else tr("folders.busy")
        skipped = trn("folders.skipped", held.skipped) if held.skipped else ""
        self.reading.setText(told if at_work else skipped)
        self.reading.setVisible(ready and bool(self.reading.text()))
        for part in (self.add_folder, self.search, self.query):
            part.setEnabled(ready and not model.busy)
        if list(self.removers) != list(held.folders):
            clear(self._folders)
            self.removers = {}
            for folder in held.folders:
                out = self.removers[folder] = button(tr("action.remove"), partial(self._take_out, folder),
                                                     role="quiet", icon="trash")  # fmt: skip
                out.setAccessibleName(tr("folders.remove", folder=folder))
                line = row(icon_label("folder"), Elided(folder, mode=Qt.TextElideMode.ElideMiddle), out)
                line.setStretch(1, 1)
                self._folders.addLayout(line)
        for out in self.removers.values():
            out.setEnabled(ready and not model.busy)

    def _take_out(self, folder: str) -> None:
        clear(self._error)
        self.model.remove(folder)

    def _ask(self) -> None:
        dialog = QFileDialog(self.window(), tr("folders.add"), str(Path.home()))
        dialog.setFileMode(QFileDialog.FileMode.Directory)
        dialog.setOption(QFileDialog.Option.ShowDirsOnly)
        dialog.fileSelected.connect(self.take_in)
        dialog.finished.connect(dialog.deleteLater)
        dialog.open()

    def _search(self) -> None:
        if text := self.query.text().strip():
            clear(self._error)
            self.model.search(text)

    def _show_passages(self, passages: tuple[Any, ...]) -> None:
        clear(self.passages)
        for one in passages:
            card = Card(margin=Space.M)
            place = f"{one.get('path')}:{one.get('first_line')}"
            head = row(Elided(str(one.get("heading") or one.get("title") or ""), "strong"),
                       label(f"{float(one.get('score') or 0):.2f}", "caption", wrap=False))  # fmt: skip
            head.setStretch(0, 1)
            card.add(head, Elided(place, "caption", Qt.TextElideMode.ElideMiddle),
                     label(str(one.get("text") or ""), selectable=True))  # fmt: skip
            self.passages.addWidget(card)
        if not passages:
            self.passages.addWidget(label(tr("folders.try.none"), "muted"))

    def _show_documents(self) -> None:
        clear(self._documents.column)
        for at, one in enumerate(self.model.documents):
            if at:
                self._documents.add(rule())
            line = row(Elided(str(one.get("title") or one.get("path"))),
                       label(size(int(one.get("bytes") or 0)), "caption", wrap=False))  # fmt: skip
            line.setStretch(0, 1)
            self._documents.add(line, Elided(str(one.get("path")), "caption", Qt.TextElideMode.ElideMiddle))
        if not self.model.documents:
            self._documents.add(label(tr("folders.none"), "muted"))
        self.more.setVisible(self.model.more_from is not None)

    def _more(self) -> None:
        if self.model.more_from is not None:
            self.model.list_documents(self.model.more_from)

    def _failed(self, error: HostError) -> None:
        clear(self._error)
        self._error.addWidget(ErrorCard(error))
