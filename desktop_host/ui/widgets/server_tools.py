"""The tools of a server: a switch each, what they say of themselves, what they cost, and a way to try them."""

from __future__ import annotations

import json

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QWidget

from desktop_host.core.errors import HostError
from desktop_host.core.servers import ServerState
from desktop_host.core.tools import ToolHints, ToolSpec
from desktop_host.engine.host import Host
from desktop_host.i18n import tr, trn
from desktop_host.ui.bridge import Bridge
from desktop_host.ui.theme import Space, set_icon
from desktop_host.ui.viewmodels.server_tools import ToolRules
from desktop_host.ui.viewmodels.servers import Servers
from desktop_host.ui.widgets.flow import Flow
from desktop_host.ui.widgets.page import Empty, ErrorCard, Page
from desktop_host.ui.widgets.pieces import (
    Card,
    CodeBox,
    clear,
    column,
    icon_button,
    icon_label,
    label,
    pill,
    row,
    set_pill,
)
from desktop_host.ui.widgets.search_field import SearchField
from desktop_host.ui.widgets.server_art import art
from desktop_host.ui.widgets.server_rules import GroupsCard, PermissionBox, ToolRulesForm
from desktop_host.ui.widgets.server_try import TryIt
from desktop_host.ui.widgets.switch import Switch
from desktop_host.ui.widgets.tool_group_form import WholeServer


def hint_words(hints: ToolHints) -> tuple[tuple[str, str], ...]:
    """`(text, tone)` of what a tool says of itself."""
    words = []
    if hints.read_only:
        words.append((tr("tool.read_only"), "success"))
    elif hints.destructive:
        words.append((tr("tool.destructive"), "warning"))
    if hints.idempotent and not hints.read_only:
        words.append((tr("tool.idempotent"), ""))
    if hints.open_world:
        words.append((tr("tool.open_world"), ""))
    return tuple(words)


class ToolRow(Card):
    """One tool; its body is made when it is first opened."""

    def __init__(self, bridge: Bridge, servers: Servers, rules: ToolRules, spec: ToolSpec) -> None:
        super().__init__(margin=Space.M)
        self._bridge, self._rules, self.spec = bridge, rules, spec
        self.setAccessibleName(spec.display_name)
        self.switch = Switch(tr("tool.enabled_of", name=spec.display_name), spec.enabled)
        self.switch.clicked.connect(
            lambda on: bridge.then(
                lambda host: host.servers.set_tool_enabled(spec.server, spec.name, on), lambda _: None,
                servers.failed.emit, self,
            )
        )  # fmt: skip
        self.fold = icon_button("chevron-down", tr("action.show_of", name=spec.display_name), self._toggle)
        title = label(spec.display_name, "strong")
        pills = [pill(words, tone) for words, tone in hint_words(spec.hints)]
        pills.append(pill(trn("tool.tokens", spec.tokens)))
        self.fixed = pill(tr("tool.has_fixed"), "info")
        self.grouped = pill("")
        config = servers.config(spec.server)
        self.permission = PermissionBox(rules, spec, config is not None and config.trusted)
        self.picture = icon_label("tool")
        art().put(self.picture, spec.server, "tool", spec.name, "tool")
        head = row(self.picture, title, self.switch, self.fold)
        head.setStretch(1, 1)
        self.add(head)
        if spec.description:
            self.add(label(spec.description, "muted", selectable=True))
        if spec.problem:
            self.add(row(icon_label("warning", "warning"), label(spec.problem, "warning", selectable=True)))
        self.add(Flow(*pills, self.grouped, self.fixed, space=Space.XS), Flow(self.permission))
        rules.changed.connect(self.show_rules)
        self.show_rules()
        self._body: QWidget | None = None

    def show_rules(self) -> None:
        """Show the group and whether arguments are fixed."""
        group = self._rules.group(self.spec)
        set_pill(self.grouped, tr("tool.in_group", name=group.name) if group else "", "" if group is None else "info")
        self.grouped.setHidden(group is None)
        self.fixed.setHidden(not self._rules.rule(self.spec).preset)

    def _toggle(self) -> None:
        if self._body is None:
            spec = self.spec
            self._body = QWidget()
            inner = column(self._body, space=Space.S)
            if spec.title and spec.title != spec.name:
                inner.addWidget(label(tr("tool.name", name=spec.full_name), "caption", selectable=True))
            inner.addWidget(label(tr("tool.schema"), "caption"))
            pretty = json.dumps(spec.input_schema, indent=2, ensure_ascii=False)
            inner.addWidget(CodeBox(pretty, tr("tool.schema"), lines=14))
            inner.addWidget(TryIt(self._bridge, spec, self._rules.rule(spec).preset))
            inner.addWidget(ToolRulesForm(self._rules, spec))
            self.add(self._body)
            self._body.hide()
        shown = self._body.isHidden()
        self._body.setVisible(shown)
        set_icon(self.fold, "chevron-up" if shown else "chevron-down", "muted")
        key = "action.hide_of" if shown else "action.show_of"
        self.fold.setToolTip(tr(key, name=self.spec.display_name))
        self.fold.setAccessibleName(tr(key, name=self.spec.display_name))

    @property
    def body(self) -> QWidget | None:
        """What unfolds, once it was opened."""
        return self._body


class ToolsTab(Page):
    """All tools of a server, with a filter."""

    def __init__(self, bridge: Bridge, servers: Servers, name: str) -> None:
        super().__init__(inside=True)
        self._bridge, self._servers, self._name = bridge, servers, name
        self.rows: list[ToolRow] = []
        self.rules = ToolRules(bridge, self)
        self.rules.failed.connect(servers.failed)
        self.groups = GroupsCard(self.rules)
        self._specs: tuple[ToolSpec, ...] = ()
        self.filter = SearchField(tr("tool.filter"))
        self.filter.textChanged.connect(self._narrow)
        self._sum = label("", "caption")
        self._list = column()
        self.whole = WholeServer(self.rules, name)
        self.add(self.groups, self.filter, self._sum, self._list, self.whole)
        servers.lists_changed.connect(self._lists_changed)
        servers.changed.connect(self._changed)
        self.refresh()
        self.rules.refresh()

    def refresh(self) -> None:
        """Read the tools again."""

        async def read(host: Host) -> tuple[ToolSpec, ...]:
            return host.servers.tools(self._name)

        self._bridge.then(read, self._show, self._fail, self)

    def _changed(self, name: str) -> None:
        if name == self._name:
            self.refresh()

    def _lists_changed(self, name: str, lists: tuple[str, ...]) -> None:
        if name == self._name and "tools" in lists:
            self.refresh()

    def _show(self, specs: tuple[ToolSpec, ...]) -> None:
        if specs == self._specs and self._list.count():
            return
        if [s.digest for s in specs] == [s.digest for s in self._specs] and self.rows:
            for one, spec in zip(self.rows, specs, strict=True):
                one.spec = spec
                one.switch.put(spec.enabled)
        else:
            clear(self._list)
            self.rows = [ToolRow(self._bridge, self._servers, self.rules, spec) for spec in specs]
            for one in self.rows:
                self._list.addWidget(one)
            if not specs:
                self._list.addWidget(self._nothing())
        self._specs = specs
        self.groups.specs = specs
        self.groups.show_now()
        on = [s for s in specs if s.enabled]
        self._sum.setText(tr("tool.sum", on=len(on), all=len(specs), tokens=sum(s.tokens for s in on)) if specs else "")
        self._sum.setVisible(bool(specs))
        self.whole.setVisible(bool(specs))
        self.filter.setVisible(len(specs) > 4)
        self._narrow(self.filter.text())

    def _nothing(self) -> QWidget:
        status = self._servers.status(self._name)
        if status is not None and status.state is ServerState.READY:
            return Empty("tool", tr("tool.none"), "")
        start = (tr("action.start"), lambda: self._servers.start(self._name))
        return Empty("tool", tr("server.not_running"), tr("server.not_running.text"), start)

    def _narrow(self, text: str) -> None:
        wanted = text.casefold()
        for one in self.rows:
            one.setVisible(wanted in f"{one.spec.name} {one.spec.title} {one.spec.description}".casefold())

    def _fail(self, error: HostError) -> None:
        clear(self._list)
        self.rows, self._specs = [], ()
        self._list.addWidget(ErrorCard(error, self.refresh), 0, Qt.AlignmentFlag.AlignTop)
