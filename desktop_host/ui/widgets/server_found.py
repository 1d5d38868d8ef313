"""One server as it would be added, before anything of it is kept or started."""

from __future__ import annotations

from dataclasses import replace

from PySide6.QtWidgets import QCheckBox, QLineEdit, QWidget

from desktop_host.core.servers import ImportedServer
from desktop_host.core.tools import ALIAS
from desktop_host.i18n import current, tr
from desktop_host.ui.widgets.forms import Field
from desktop_host.ui.widgets.pieces import Card, CodeBox, icon_label, label, pill, row
from desktop_host.ui.widgets.server_words import launch_lines


def warning_text(code: str) -> str:
    """The text of a parser's warning."""
    key = f"server.warning.{code}"
    return tr(key) if current().has(key) else code.replace("_", " ")


class FoundCard(Card):
    """One server as it would be added: the whole command, its surroundings, and what is odd about it."""

    def __init__(self, found: ImportedServer) -> None:
        super().__init__()
        self.found = found
        config = found.config
        self.take = QCheckBox(tr("add.take", name=config.name))
        self.take.setChecked(True)
        self.name = Field(tr("add.name"), QLineEdit(config.name), tr("add.name.help"))
        self.add(row(self.take, pill(tr(f"server.transport.{config.transport}")), None), self.name)
        self._there = label("", "muted")
        self._there_row = QWidget()
        self._there_row.setLayout(row(icon_label("check", "success"), self._there))
        self._there_row.hide()
        self.add(self._there_row)
        for title, text in launch_lines(config):
            self.add(label(title, "caption"), CodeBox(text, title, lines=12))
        if config.transport == "stdio":
            self.add(row(icon_label("shield", "warning"), label(tr("add.runs"), "muted")))
        for code in found.warnings:
            self.add(row(icon_label("warning", "warning"), label(warning_text(code), "warning")))
        for secret in found.secrets:
            self.add(row(icon_label("key", "success"), label(tr("add.secret", name=secret), "muted")))

    def there(self, name: str) -> None:
        """The same server is configured already: it is added again only if the person wants that."""
        self.take.setChecked(False)
        self.take.show()
        self._there.setText(tr("add.already", name=name))
        self._there_row.show()

    @property
    def wanted(self) -> str:
        """The name as it is typed."""
        control = self.name.control
        return control.text().strip() if isinstance(control, QLineEdit) else ""

    def value(self) -> ImportedServer | None:
        """What to add; None where the name is wrong (which then says so)."""
        name = self.wanted
        good = bool(ALIAS.fullmatch(name)) and name != "host"
        self.name.complain("" if good else tr("add.bad_name"))
        return replace(self.found, config=replace(self.found.config, name=name)) if good else None
