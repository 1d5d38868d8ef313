"""What a person does with a conversation from the list, the menu and the palette."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QFileDialog

from desktop_host.core.errors import HostError
from desktop_host.i18n import tr
from desktop_host.ui.viewmodels.sessions import Sessions
from desktop_host.ui.widgets.confirm import confirm
from desktop_host.ui.widgets.window import MainWindow


class SessionActs(QObject):
    """Rename, pin, delete, export, import, summarise."""

    elsewhere = Signal(str, str)
    """`(act, session)`: `window` (show it in another window too) or `move` (to another profile)."""

    def __init__(self, window: MainWindow, sessions: Sessions) -> None:
        super().__init__(window)
        self._window, self._sessions = window, sessions

    def do(self, act: str, session: str) -> None:
        """One act of the list's menu: `delete`, `pin`, `unpin`, `export_md`, `compact`, `move`, `window`."""
        match act:
            case "delete":
                self.ask_delete(session)
            case "pin" | "unpin":
                self._sessions.pin(session, act == "pin")
            case "window" | "move":
                self.elsewhere.emit(act, session)
            case "compact":
                self.summarise(session)
            case _:
                self.export(session, act.removeprefix("export_"))

    def rename(self, session: str) -> None:
        """Edit the title in the list."""
        if self._window.sidebar.folded:
            self._window.commands.run("view.sidebar")
        if self._window.sidebar.list is not None:
            self._window.sidebar.list.rename(session)

    def toggle_pin(self, session: str) -> None:
        """Pin, or take the pin out."""
        found = self._sessions.found(session)
        self._sessions.pin(session, not (found and found.pinned))

    def summarise(self, session: str) -> None:
        """Let a summary stand for what was said so far, for the model; the chat shows where, and how to undo it."""
        say = self._window.toasts.say
        say(tr("sessions.summarising"), "document")
        self._sessions.summarise(session, lambda done: None if done else say(tr("sessions.too_short"), "info"))

    def ask_delete(self, session: str) -> None:
        """Ask, then delete."""
        found = self._sessions.found(session)
        title = (found.title if found else "") or tr("sidebar.untitled")
        confirm(
            self._window, tr("sessions.delete.title", title=title), tr("sessions.delete.text"), tr("action.delete"),
            lambda: self._sessions.delete(session),
        )  # fmt: skip

    def export(self, session: str, form: str) -> None:
        """Ask for a file and write the conversation to it as `md`, `html` or `json`."""
        found = self._sessions.found(session)
        stem = (
            "".join(c if c.isalnum() or c in " -_" else "_" for c in (found.title if found else "")).strip() or "chat"
        )
        start = str(Path.home() / f"{stem}.{form}")
        dialog = QFileDialog(self._window, tr(f"action.export_{form}"), start)
        dialog.setAcceptMode(QFileDialog.AcceptMode.AcceptSave)
        dialog.selectFile(f"{stem}.{form}")
        dialog.fileSelected.connect(
            lambda path: self._sessions.export(session, form, lambda text: self.save(path, text))
        )
        dialog.finished.connect(dialog.deleteLater)
        dialog.open()

    def choose_import(self, show: Callable[[str], object]) -> None:
        """Ask for a file that a conversation was exported to as `json`, make a chat of it, and show that."""
        dialog = QFileDialog(self._window, tr("command.chat.import"))
        dialog.setFileMode(QFileDialog.FileMode.ExistingFile)
        dialog.setNameFilter(f"{tr('sessions.import.files')} (*.json)")

        def taken(session: str) -> None:
            show(session)
            self._window.toasts.say(tr("sessions.imported"), "check")

        dialog.fileSelected.connect(lambda path: self._sessions.take_in(Path(path), taken))
        dialog.finished.connect(dialog.deleteLater)
        dialog.open()

    def save(self, path: str, text: str) -> None:
        """Write an export and say so."""
        try:
            Path(path).write_text(text, "utf-8")
        except OSError as cause:
            self._sessions.failed.emit(HostError("usage", f"{path}: {cause.strerror}", path=path))
            return
        self._window.toasts.say(tr("sessions.exported", path=path), "check")
