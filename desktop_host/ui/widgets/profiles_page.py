"""The profiles: open, make, copy, move and delete them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QFileDialog, QLineEdit

from desktop_host.core.errors import HostError
from desktop_host.i18n import tr
from desktop_host.ui.theme import Space
from desktop_host.ui.viewmodels.lifetime import while_alive
from desktop_host.ui.viewmodels.profiles import ProfileList
from desktop_host.ui.widgets.confirm import confirm
from desktop_host.ui.widgets.flow import Flow
from desktop_host.ui.widgets.forms import Field
from desktop_host.ui.widgets.page import ErrorCard, Page, told
from desktop_host.ui.widgets.pieces import Card, Elided, button, clear, column, label, pill, row

ARCHIVE = "Zip (*.zip)"


class NameForm(Card):
    """Asks for the name of a profile that is made."""

    named = Signal(str)
    cancelled = Signal()

    def __init__(self, title: str, lead: str, name: str, action: str) -> None:
        super().__init__("card-info")
        self.name = QLineEdit(name)
        self._field = Field(tr("profiles.name"), self.name, tr("profiles.name.help"))
        self.ok = button(action, self._done, role="primary")
        self.add(label(title, "strong"), label(lead), self._field)
        self.add(Flow(self.ok, button(tr("action.cancel"), self.cancelled.emit)))
        self.name.returnPressed.connect(self._done)

    @property
    def error(self) -> str:
        """What is wrong with the name."""
        return self._field.error

    def failed(self, error: HostError) -> None:
        """Say why it was not made."""
        self.ok.setEnabled(True)
        self._field.complain(" ".join(told(error)))
        self.name.setFocus()

    def _done(self) -> None:
        name = self.name.text().strip()
        if not name:
            self._field.complain(tr("profiles.name.missing"))
            return
        self._field.complain("")
        self.ok.setEnabled(False)
        self.named.emit(name)


class ProfileCard(Card):
    """One profile."""

    def __init__(self, page: ProfilesPage, name: str, current: bool) -> None:
        super().__init__()
        self.name = name
        self.setAccessibleName(tr("profiles.card.current", name=name) if current else name)
        head = row(Elided(name, "strong", snug=True))
        if current:
            head.addWidget(pill(tr("profiles.here"), "info"))
        head.addStretch(1)
        acts = [
            ("open", "external", "", partial(page.profiles.open_window, name, page.fail)),
            ("clone", "copy", "", partial(page.ask_clone, name)),
            ("export", "download", "", partial(page.choose_export, name)),
            ("delete", "trash", "quiet", partial(page.ask_delete, name)),
        ]
        self.buttons = {}
        for verb, mark, role, act in acts:
            if current and verb in ("open", "delete"):
                continue
            made = button(tr(f"profiles.{verb}"), act, icon=mark, role=role)
            made.setAccessibleName(tr(f"profiles.{verb}.of", name=name))
            self.buttons[verb] = made
        self.add(head, Flow(*self.buttons.values()))


class ProfilesPage(Page):
    """See the module."""

    def __init__(self, profiles: ProfileList) -> None:
        super().__init__(tr("profiles.title"), tr("profiles.lead"))
        self.profiles = profiles
        self.create_button = button(tr("profiles.create"), self.ask_create, role="primary", icon="plus")
        self.import_button = button(tr("profiles.import"), self.choose_import, icon="folder")
        self.add(Flow(self.create_button, self.import_button))
        self._form = column(space=0)
        self._list = column(space=Space.M)
        self.add(self._form, self._list)
        self.form: NameForm | None = None
        profiles.changed.connect(self._fill)
        profiles.told.connect(lambda _what, _name: self.close_form())
        self._fill()

    @property
    def cards(self) -> dict[str, ProfileCard]:
        """The profiles that are listed, by name."""
        items = (self._list.itemAt(i) for i in range(self._list.count()))
        return {w.name: w for i in items if i is not None and isinstance(w := i.widget(), ProfileCard)}

    def ask_create(self) -> None:
        """Ask for the name of a new profile."""
        self._ask("create", "", lambda name, failed: self.profiles.create(name, failed))

    def ask_clone(self, source: str) -> None:
        """Ask for the name of a copy."""
        self._ask("clone", f"{source} 2", lambda name, failed: self.profiles.clone(source, name, failed))

    def ask_import(self, path: Path) -> None:
        """Ask for the name of the profile that a file becomes."""
        self._ask("import", path.stem, lambda name, failed: self.profiles.take_in(path, name, failed))

    def ask_delete(self, name: str) -> None:
        """Delete after a question."""
        confirm(
            self.window(), tr("profiles.delete.title", name=name), tr("profiles.delete.text"), tr("profiles.delete"),
            lambda: self.profiles.delete(name, while_alive(self, self.fail)),
        )  # fmt: skip

    def choose_export(self, name: str) -> None:
        """Ask where a profile is written to."""
        dialog = QFileDialog(self, tr("profiles.export.of", name=name), f"{name}.zip", ARCHIVE)
        dialog.setAcceptMode(QFileDialog.AcceptMode.AcceptSave)
        dialog.setDefaultSuffix("zip")
        dialog.fileSelected.connect(lambda path: self.profiles.export(name, Path(path), while_alive(self, self.fail)))
        dialog.open()

    def choose_import(self) -> None:
        """Ask which file becomes a profile."""
        dialog = QFileDialog(self, tr("profiles.import"), "", ARCHIVE)
        dialog.setFileMode(QFileDialog.FileMode.ExistingFile)
        dialog.fileSelected.connect(lambda path: self.ask_import(Path(path)))
        dialog.open()

    def fail(self, error: HostError) -> None:
        """Show what went wrong."""
        self.close_form()
        self._form.addWidget(ErrorCard(error))

    def close_form(self) -> None:
        """Take form and failures away."""
        clear(self._form)
        self.form = None

    def _ask(self, verb: str, name: str, act: Callable[[str, Callable[[HostError], None]], None]) -> None:
        self.close_form()
        form = NameForm(tr(f"profiles.{verb}"), tr(f"profiles.{verb}.lead"), name, tr(f"profiles.{verb}"))
        form.named.connect(lambda given: act(given, while_alive(form, form.failed)))
        form.cancelled.connect(self.close_form)
        self._form.addWidget(form)
        self.form = form
        form.name.setFocus()
        form.name.selectAll()

    def _fill(self) -> None:
        clear(self._list)
        for name in self.profiles.names:
            self._list.addWidget(ProfileCard(self, name, name == self.profiles.current))
