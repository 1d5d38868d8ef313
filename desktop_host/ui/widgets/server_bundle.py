"""A bundle before it is installed: what it is, what it would start, what it asks of the person."""

from __future__ import annotations

from typing import Any

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QPixmap
from PySide6.QtWidgets import QFileDialog, QLabel, QLineEdit, QWidget

from desktop_host.core.bundles import BundleField, BundlePreview
from desktop_host.core.errors import HostError
from desktop_host.core.servers import ServerConfig
from desktop_host.core.values import EMPTY, FrozenDict, freeze
from desktop_host.i18n import current, tr, trn
from desktop_host.ui.bridge import Bridge
from desktop_host.ui.theme import Space, theme
from desktop_host.ui.widgets.flow import Flow
from desktop_host.ui.widgets.forms import Field, Lines
from desktop_host.ui.widgets.page import told
from desktop_host.ui.widgets.pieces import Card, CodeBox, button, column, icon_label, label, pill, row
from desktop_host.ui.widgets.server_words import launch_lines, size
from desktop_host.ui.widgets.switch import Switch


def bundle_warning(code: str) -> str:
    """The text of a warning."""
    key = f"server.warning.{code}"
    return tr(key) if current().has(key) else code.replace("_", " ")


class Setting(QWidget):
    """One entry of a bundle's `user_config`."""

    def __init__(self, field: BundleField, kept: bool = False, value: Any = None) -> None:
        """`kept`: it has a value from before, and leaving it empty keeps that; `value`: that value, secrets aside."""
        super().__init__()
        self.field = field
        self._kept = kept
        before = field.default if value is None or field.secret else value
        title = field.title or field.key
        name = title if field.required else tr("form.optional", name=title)
        self.line = QLineEdit()
        self.lines = Lines(rows=3)
        self.switch = Switch(title, before is True)
        control: QWidget = self.lines if field.multiple else self.switch if field.type == "boolean" else self.line
        inner = column(self, space=Space.XS)
        self._row = Field(name, control, field.description)
        inner.addWidget(self._row)
        for other in (self.line, self.lines, self.switch):
            if other is not control:
                other.setParent(self)
                other.hide()
        if field.secret:
            self.line.setEchoMode(QLineEdit.EchoMode.Password)
            inner.addLayout(row(icon_label("key", "success", 14), label(tr("bundle.secret"), "caption")))
        elif before is not None and not field.multiple:
            self.line.setText(str(before))
        elif field.multiple and isinstance(before, (list, tuple)):
            self.lines.setPlainText("\n".join(map(str, before)))
        if kept:
            self.line.setPlaceholderText(tr("bundle.kept"))
        if field.type in ("directory", "file"):
            inner.addLayout(Flow(button(tr("bundle.browse"), self._browse, icon="folder")))

    def value(self) -> tuple[Any, bool]:
        """`(value or None, whether it is right)`; what is wrong is said in place."""
        field = self.field
        if field.type == "boolean":
            return self.switch.isChecked(), True
        raw: Any = self.lines.values() if field.multiple else self.line.text()
        self._row.complain("")
        if not raw:
            good = self._kept or not field.required
            self._row.complain("" if good else tr("form.needed"))
            return None, good
        if field.type != "number":
            return raw, True
        try:
            number = float(raw)
        except ValueError:
            self._row.complain(tr("chat.form.error.number"))
            return None, False
        if (field.low is not None and number < field.low) or (field.high is not None and number > field.high):
            self._row.complain(tr("bundle.range", low=field.low, high=field.high))
            return None, False
        return int(number) if number == int(number) else number, True

    def _browse(self) -> None:
        dialog = QFileDialog(self, self.field.title or self.field.key)
        folder = self.field.type == "directory"
        dialog.setFileMode(QFileDialog.FileMode.Directory if folder else QFileDialog.FileMode.ExistingFile)
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.filesSelected.connect(lambda names: self.choose([str(n) for n in names]))
        dialog.open()

    def choose(self, names: list[str]) -> None:
        """Take chosen files or a folder."""
        if self.field.multiple:
            self.lines.setPlainText("\n".join([*self.lines.values(), *names]))
        elif names:
            self.line.setText(names[0])


class BundleCard(Card):
    """See the module. Nothing was unpacked; Install does."""

    installed = Signal(str)
    """Alias of the server."""

    def __init__(self, bridge: Bridge, preview: BundlePreview, values: FrozenDict = EMPTY) -> None:
        super().__init__()
        self._bridge, self.preview = bridge, preview
        self.setAccessibleName(preview.title)
        head = row(self._icon(), label(f"{preview.title} {preview.version}", "strong"))
        head.setStretch(1, 1)
        self.add(head)
        if preview.author:
            self.add(label(tr("bundle.by", author=preview.author), "caption"))
        if preview.signer:
            self.add(label(tr("bundle.signer", signer=preview.signer), "caption", selectable=True))
        if preview.description:
            self.add(label(preview.description, selectable=True))
        facts = [pill(preview.kind), pill(f"{trn('bundle.files', preview.files)} · {size(preview.size)}")]
        if preview.tools:
            facts.append(pill(trn("server.tools", len(preview.tools))))
        self.add(Flow(*facts, space=Space.XS))
        for title, text in launch_lines(preview.config):
            self.add(label(title, "caption"), CodeBox(text, title, lines=12))
        self.add(row(icon_label("shield", "warning"), label(tr("add.runs"), "muted")))
        for code in preview.warnings:
            self.add(row(icon_label("warning", "warning"), label(bundle_warning(code), "warning")))
        updating = preview.installed is not None
        if updating:
            text = tr("bundle.update", old=preview.installed_version or "?", new=preview.version)
            self.add(row(icon_label("info", "info"), label(text)))
        self.settings = {f.key: Setting(f, f.key in values, values.get(f.key)) for f in preview.fields}
        for setting in self.settings.values():
            self.add(setting)
        self.go = button(tr("bundle.do_update" if updating else "bundle.install"), self._install, role="primary")
        self.said = label("", "danger", selectable=True)
        self.said.hide()
        self.add(self.said, Flow(self.go))

    def _icon(self) -> QLabel:
        if self.preview.icon:
            picture = QPixmap()
            side = theme.px(28)
            if picture.loadFromData(self.preview.icon, "PNG"):
                made = QLabel()
                made.setPixmap(picture.scaled(side, side))
                made.setFixedSize(side, side)
                return made
        return icon_label("tool", "muted", 28)

    def _install(self) -> None:
        values: dict[str, Any] = {}
        good = True
        for key, setting in self.settings.items():
            value, right = setting.value()
            good = good and right
            if value is not None:
                values[key] = value
        if not good:
            return
        self.go.setEnabled(False)
        path, given = self.preview.path, freeze(values)
        self._bridge.then(lambda host: host.bundles.install(path, given), self._done, self._fail, self)

    def _done(self, config: ServerConfig) -> None:
        for setting in self.settings.values():
            if setting.field.secret:
                setting.line.clear()  # It is in the vault now.
        self.installed.emit(config.name)

    def _fail(self, error: HostError) -> None:
        self.go.setEnabled(True)
        self.said.setText(" ".join(told(error)))
        self.said.show()
