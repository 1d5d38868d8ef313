"""The folders that servers may know of in the open chat."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFileDialog

from desktop_host.i18n import tr
from desktop_host.ui.theme import Space
from desktop_host.ui.viewmodels.choices import Choices
from desktop_host.ui.widgets.flow import Flow
from desktop_host.ui.widgets.pieces import Card, Elided, button, clear, column, icon_button, icon_label, label, row


class ChatFolders(Card):
    """A list with a way to add and remove; without any, the profile's folders hold."""

    def __init__(self, choices: Choices) -> None:
        super().__init__(margin=Space.M)
        self._choices = choices
        self._rows = column(space=Space.XS)
        self._note = label("", "caption")
        self.plus = button(tr("inspector.folders.add"), self._add, icon="plus")
        self.add(label(tr("inspector.folders"), "caption"), self._rows, self._note, Flow(self.plus))
        choices.options_changed.connect(self.show_now)
        self.show_now()

    def show_now(self) -> None:
        """Show what holds now."""
        clear(self._rows)
        folders = self._choices.options.roots
        for folder in folders:
            name = Elided(folder, mode=Qt.TextElideMode.ElideMiddle)
            gone = icon_button("close", tr("inspector.folders.remove", folder=folder), partial(self._remove, folder))
            line = row(icon_label("folder", "muted", 16), name, gone)
            line.setStretch(1, 1)
            self._rows.addLayout(line)
        self._note.setText(tr("inspector.folders.own" if folders else "inspector.folders.none"))

    def put(self, folder: str) -> None:
        """Let this chat's servers know of a folder."""
        if folder not in self._choices.options.roots:
            self._choices.pick_roots((*self._choices.options.roots, folder))

    def _add(self) -> None:
        found = QFileDialog.getExistingDirectory(self, tr("inspector.folders.add"), str(Path.home()))
        if found:
            self.put(str(Path(found)))

    def _remove(self, folder: str) -> None:
        self._choices.pick_roots(tuple(f for f in self._choices.options.roots if f != folder))
