"""What becomes of a tool's result before the model gets it, and what the model is told of the tool."""

from __future__ import annotations

from PySide6.QtWidgets import QCheckBox, QLineEdit, QPlainTextEdit, QWidget

from desktop_host.core.errors import HostError
from desktop_host.core.toolkit import PostRule
from desktop_host.core.tools import ToolSpec
from desktop_host.i18n import error_text, tr
from desktop_host.ui.theme import Space, set_role, theme
from desktop_host.ui.viewmodels.server_tools import ToolRules
from desktop_host.ui.widgets.flow import Flow
from desktop_host.ui.widgets.forms import Field, NumberBox
from desktop_host.ui.widgets.pieces import button, column

LONGEST = 10_000_000


class ToolPost(QWidget):
    """Select by JMESPath, cut, drop images; another description. The person still sees the raw result."""

    def __init__(self, rules: ToolRules, spec: ToolSpec) -> None:
        super().__init__()
        self._rules, self._spec = rules, spec
        self.select = QLineEdit()
        set_role(self.select, "code")
        self.select.setPlaceholderText("items[*].{name: name, url: html_url}")
        self.select_field = Field(tr("tool.post.select"), self.select, tr("tool.post.select.help"))
        self.most = NumberBox(0, LONGEST, step=500)
        self.most.setSpecialValueText(tr("tool.post.no_limit"))
        self.images = QCheckBox(tr("tool.post.images"))
        self.about = QPlainTextEdit()
        self.about.setTabChangesFocus(True)
        self.about.setFixedHeight(theme.px(72))
        self.about.setPlaceholderText(spec.description)
        self.apply = button(tr("tool.post.apply"), self._apply)
        inner = column(self, space=Space.S)
        inner.addWidget(self.select_field)
        inner.addWidget(Field(tr("tool.post.most"), self.most, tr("tool.post.most.help")))
        inner.addWidget(self.images)
        inner.addWidget(Field(tr("tool.post.about"), self.about, tr("tool.post.about.help")))
        inner.addLayout(Flow(self.apply))
        rules.changed.connect(self.show_now)
        self.show_now()

    def show_now(self) -> None:
        """Show what holds now, unless it is being changed."""
        rule = self._rules.rule(self._spec)
        if not self.select.hasFocus():
            self.select.setText(rule.post.select)
        if not self.most.hasFocus():
            self.most.setValue(rule.post.max_chars)
        if not self.images.hasFocus():
            self.images.setChecked(rule.post.drop_images)
        if not self.about.hasFocus():
            self.about.setPlainText(rule.description)

    def _apply(self) -> None:
        self.select_field.complain("")
        post = PostRule(self.select.text().strip(), self.images.isChecked(), self.most.value())
        self._rules.reshape(self._spec, post, self.about.toPlainText().strip(), self._refused)

    def _refused(self, error: HostError) -> None:
        self.select_field.complain(error_text(error)[0])
