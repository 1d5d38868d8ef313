"""What the person decides about one tool, and about groups of tools."""

from __future__ import annotations

import json

from PySide6.QtWidgets import QComboBox, QPlainTextEdit, QWidget

from desktop_host.core.permissions import Effect
from desktop_host.core.tools import ToolGroup, ToolSpec
from desktop_host.core.values import FrozenDict, freeze, thaw
from desktop_host.i18n import tr, trn
from desktop_host.ui.theme import Space, set_role, theme
from desktop_host.ui.viewmodels.server_tools import ToolRules
from desktop_host.ui.widgets.flow import Flow
from desktop_host.ui.widgets.forms import Field
from desktop_host.ui.widgets.pieces import Card, button, clear, column, icon_button, label, row
from desktop_host.ui.widgets.switch import Switch
from desktop_host.ui.widgets.tool_group_form import GroupForm
from desktop_host.ui.widgets.tool_post import ToolPost

CHOICES = ("", "allow", "ask", "deny")


class PermissionBox(QComboBox):
    """Allow, ask or deny one tool; empty: as the rest, with what that comes to."""

    def __init__(self, rules: ToolRules, spec: ToolSpec, trusted: bool) -> None:
        super().__init__()
        self._rules, self.spec, self._trusted = rules, spec, trusted
        self.setAccessibleName(tr("tool.permission_of", name=spec.display_name))
        self.setToolTip(tr("tool.permission"))
        self.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToContents)
        for value in CHOICES:
            self.addItem(tr(f"tool.permission.{value or 'default'}"), value)
        self.activated.connect(self._picked)
        rules.changed.connect(self.show_now)
        self.show_now()

    def show_now(self) -> None:
        """Show what holds now."""
        own = self._rules.own(self.spec)
        self.setCurrentIndex(CHOICES.index(own.value if own else ""))
        effect = self._rules.verdict(self.spec, self._trusted).effect
        self.setItemText(0, tr("tool.permission.default_is", effect=tr(f"tool.permission.{effect.value}").lower()))

    def _picked(self, at: int) -> None:
        value = CHOICES[at]
        self._rules.allow(self.spec, Effect(value) if value else None)


class ToolRulesForm(QWidget):
    """A tool's group and its fixed arguments."""

    def __init__(self, rules: ToolRules, spec: ToolSpec) -> None:
        super().__init__()
        self._rules, self._spec = rules, spec
        self.group = QComboBox()
        self.group.setEditable(True)
        self.group.setInsertPolicy(QComboBox.InsertPolicy.NoInsert)
        self.group.activated.connect(lambda _at: self._grouped())
        line = self.group.lineEdit()
        if line is not None:
            line.setPlaceholderText(tr("tool.group.none"))
            line.returnPressed.connect(self._grouped)
        self.preset = QPlainTextEdit()
        set_role(self.preset, "code")
        self.preset.setTabChangesFocus(True)
        self.preset.setFixedHeight(theme.px(72))
        self.preset.setPlaceholderText('{"path": "/home/ada/notes"}')
        self._preset_field = Field(tr("tool.fixed"), self.preset, tr("tool.fixed.help"))
        self.fix = button(tr("tool.fix"), self._fix)
        inner = column(self, space=Space.S)
        inner.addWidget(Field(tr("tool.group"), self.group, tr("tool.group.help")))
        inner.addWidget(self._preset_field)
        inner.addLayout(Flow(self.fix))
        self.post = ToolPost(rules, spec)
        inner.addWidget(self.post)
        rules.changed.connect(self.show_now)
        self.show_now()

    def show_now(self) -> None:
        """Show what holds now, unless it is being changed."""
        own = self._rules.group(self._spec)
        if not self.group.hasFocus():
            self.group.clear()
            self.group.addItem(tr("tool.group.none"), "")
            for one in self._rules.toolkit.groups:
                self.group.addItem(one.name, one.name)
            self.group.setCurrentIndex(max(0, self.group.findData(own.name if own else "")))
        if not self.preset.hasFocus():
            preset = self._rules.rule(self._spec).preset
            self.preset.setPlainText(json.dumps(thaw(preset), indent=2, ensure_ascii=False) if preset else "")

    def _grouped(self) -> None:
        text = self.group.currentText().strip()
        self.group.clearFocus()
        self._rules.put_into(self._spec, "" if text == tr("tool.group.none") else text)

    def _fix(self) -> None:
        try:
            preset = json.loads(self.preset.toPlainText().strip() or "{}")
            if not isinstance(preset, dict):
                raise TypeError(tr("inspector.object_wanted"))
        except (ValueError, TypeError) as cause:
            self._preset_field.complain(tr("tool.bad_json", reason=str(cause)))
            return
        self._preset_field.complain("")
        self.preset.clearFocus()
        made: FrozenDict = freeze(preset)
        self._rules.fix(self._spec, made)


class GroupsCard(Card):
    """The groups that tools of a server are in, each with a switch."""

    def __init__(self, rules: ToolRules) -> None:
        super().__init__(margin=Space.M)
        self._rules = rules
        self.specs: tuple[ToolSpec, ...] = ()
        self.switches: dict[str, Switch] = {}
        self.forms: dict[str, GroupForm] = {}
        self._open: set[str] = set()
        self.model = Switch(tr("tool.groups.model"))
        self.model.clicked.connect(rules.let_model_switch)
        self._rows = column(space=Space.XS)
        title = label(tr("tool.groups"), "strong")
        lead = label(tr("tool.groups.lead"), "caption")
        last = row(label(tr("tool.groups.model"), "muted"), self.model)
        last.setStretch(0, 1)
        self.add(title, lead, self._rows, last)
        rules.changed.connect(self.show_now)
        self.hide()

    def show_now(self) -> None:
        """Show the groups as they are."""
        mine: dict[str, list[ToolSpec]] = {}
        for spec in self.specs:
            if (found := self._rules.group(spec)) is not None:
                mine.setdefault(found.name, []).append(spec)
        self.setVisible(bool(mine))
        self.model.put(self._rules.toolkit.model_switches)
        clear(self._rows)
        self.switches, self.forms = {}, {}
        for name, specs in mine.items():
            group = self._rules.toolkit.group(name)
            form = self.forms[name] = GroupForm(group, self._rules.change)
            form.setVisible(name in self._open)
            self._rows.addLayout(self._row(group, specs, form))
            self._rows.addWidget(form)

    def _row(self, group: ToolGroup, specs: list[ToolSpec], form: GroupForm) -> Flow:
        def edit() -> None:
            (self._open.discard if group.name in self._open else self._open.add)(group.name)
            form.setVisible(group.name in self._open)

        change = icon_button("edit", tr("tool.group.edit_of", name=group.name), edit)
        switch = Switch(tr("tool.group.enabled_of", name=group.name), group.enabled)
        switch.clicked.connect(lambda on: self._rules.switch(group, on))
        self.switches[group.name] = switch
        gone = icon_button("trash", tr("tool.group.remove_of", name=group.name), lambda: self._rules.remove(group.name))
        tokens = trn("tool.tokens", sum(s.tokens for s in specs))
        words = label(f"{trn('server.tools', len(specs))} · {tokens}", "caption", wrap=False)
        return Flow(switch, label(group.name, "strong", wrap=False), words, change, gone)
