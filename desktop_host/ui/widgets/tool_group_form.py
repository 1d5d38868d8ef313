"""What a group of tools is for and what holds for it; and a way to put a whole server into one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from PySide6.QtWidgets import QComboBox, QLineEdit, QPlainTextEdit, QWidget

from desktop_host.core.permissions import Effect
from desktop_host.core.tools import ToolGroup
from desktop_host.i18n import tr
from desktop_host.ui.theme import Space, theme
from desktop_host.ui.viewmodels.server_tools import ToolRules
from desktop_host.ui.widgets.flow import Flow
from desktop_host.ui.widgets.forms import Field
from desktop_host.ui.widgets.pieces import button, column

EFFECTS = ("", "allow", "ask", "deny")


class GroupForm(QWidget):
    """The words and the permission of one group."""

    def __init__(self, group: ToolGroup, save: Callable[[ToolGroup], object]) -> None:
        super().__init__()
        self._group, self._save = group, save
        self.about = QLineEdit(group.description)
        self.notes = QPlainTextEdit(group.notes)
        self.notes.setTabChangesFocus(True)
        self.notes.setFixedHeight(theme.px(64))
        self.permission = QComboBox()
        for value in EFFECTS:
            self.permission.addItem(tr(f"tool.permission.{value or 'default'}"), value)
        self.permission.setCurrentIndex(EFFECTS.index(group.default.value if group.default else ""))
        self.keep = button(tr("tool.group.keep"), self._keep)
        inner = column(self, space=Space.S)
        inner.addWidget(Field(tr("tool.group.about"), self.about, tr("tool.group.about.help")))
        inner.addWidget(Field(tr("tool.group.notes"), self.notes, tr("tool.group.notes.help")))
        inner.addWidget(Field(tr("tool.permission"), self.permission, tr("tool.group.permission.help")))
        inner.addLayout(Flow(self.keep))

    def _keep(self) -> None:
        value = str(self.permission.currentData())
        self._save(replace(
            self._group, description=self.about.text().strip(), notes=self.notes.toPlainText().strip(),
            default=Effect(value) if value else None,
        ))  # fmt: skip


class WholeServer(QWidget):
    """All tools of a server, those to come as well, into a group."""

    def __init__(self, rules: ToolRules, server: str) -> None:
        super().__init__()
        self._rules, self._server = rules, server
        self.name = QComboBox()
        self.name.setEditable(True)
        self.name.setInsertPolicy(QComboBox.InsertPolicy.NoInsert)
        self.name.setAccessibleName(tr("tool.group.whole"))
        self.name.setMinimumWidth(theme.px(200))
        self.put = button(tr("tool.group.put"), self._put)
        line = self.name.lineEdit()
        if line is not None:
            line.setPlaceholderText(tr("tool.group.whole"))
            line.returnPressed.connect(self._put)
        self.setLayout(Flow(self.name, self.put))
        rules.changed.connect(self.show_now)
        self.show_now()

    def show_now(self) -> None:
        """Offer the groups there are."""
        if not self.name.hasFocus():
            self.name.clear()
            self.name.addItems([g.name for g in self._rules.toolkit.groups])
            self.name.setCurrentIndex(-1)
            self.name.setEditText("")

    def _put(self) -> None:
        name = self.name.currentText().strip()
        if name:
            self.name.clearFocus()
            self._rules.put_server_into(self._server, name)
