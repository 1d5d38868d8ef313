"""The tools of a server: a switch each, what they say of themselves, what they cost, and a way to try them."""

from __future__ import annotations

import json

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFrame, QPlainTextEdit, QWidget

from desktop_host.core.errors import HostError
from desktop_host.core.exchange import ToolOutcome
from desktop_host.core.messages import Outcome
from desktop_host.core.servers import ServerState
from desktop_host.core.tools import ToolHints, ToolSpec
from desktop_host.core.values import freeze
from desktop_host.engine.host import Host
from desktop_host.i18n import tr, trn
from desktop_host.ui.bridge import Bridge
from desktop_host.ui.theme import Space, set_icon, set_role, theme
from desktop_host.ui.viewmodels.servers import Servers
from desktop_host.ui.widgets.flow import Flow
from desktop_host.ui.widgets.page import Empty, ErrorCard, Page, told
from desktop_host.ui.widgets.pieces import (
    Card,
    CodeBox,
    SearchField,
    button,
    clear,
    column,
    icon_button,
    icon_label,
    label,
    pill,
    row,
)
from desktop_host.ui.widgets.server_contents import plain
from desktop_host.ui.widgets.switch import Switch


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


def sample_arguments(schema: dict[str, object]) -> str:
    """A JSON object with the required fields of a schema, to be filled in."""
    blanks = {"string": "", "integer": 0, "number": 0, "boolean": False, "array": [], "object": {}, "null": None}
    fields = schema.get("properties")
    required = schema.get("required") or ()
    if not isinstance(fields, dict) or not isinstance(required, (list, tuple)):
        return "{}"
    made = {}
    for name in required:
        spec = fields.get(name)
        kind = spec.get("type") if isinstance(spec, dict) else None
        default = spec.get("default") if isinstance(spec, dict) else None
        made[name] = default if default is not None else blanks.get(kind if isinstance(kind, str) else "string", "")
    return json.dumps(made, indent=2, ensure_ascii=False)


class TryIt(QFrame):
    """Run a tool by hand: the person's own act, so nothing asks."""

    def __init__(self, bridge: Bridge, spec: ToolSpec) -> None:
        super().__init__()
        self._bridge, self._spec = bridge, spec
        self.arguments = QPlainTextEdit(sample_arguments(spec.input_schema))
        set_role(self.arguments, "code")
        self.arguments.setAccessibleName(tr("tool.arguments"))
        self.arguments.setTabChangesFocus(True)
        self.arguments.setFixedHeight(theme.px(96))
        self.run = button(tr("tool.run"), self._run, icon="play")
        self._state = label("", "caption", wrap=False)
        self._result = column(space=Space.S)
        inner = column(self, space=Space.S)
        inner.addWidget(label(tr("tool.try"), "caption"))
        inner.addWidget(self.arguments)
        inner.addLayout(row(self.run, self._state, None))
        inner.addLayout(self._result)

    def _run(self) -> None:
        clear(self._result)
        try:
            arguments = json.loads(self.arguments.toPlainText() or "{}")
            if not isinstance(arguments, dict):
                raise TypeError("an object is wanted")
        except (ValueError, TypeError) as cause:
            self._result.addWidget(label(tr("tool.bad_json", reason=str(cause)), "danger"))
            return
        self.run.setEnabled(False)
        self._state.setText(tr("tool.running"))
        spec = self._spec
        self._bridge.then(
            lambda host: host.servers.call_tool(spec.server, spec.name, freeze(arguments)), self._done, self._fail, self
        )

    def _done(self, outcome: ToolOutcome) -> None:
        self.run.setEnabled(True)
        good = outcome.outcome is Outcome.OK
        words = tr("tool.done" if good else f"tool.outcome.{outcome.outcome.value}")
        self._state.setText(f"{words} · {outcome.duration_ms:.0f} ms")
        if text := plain(outcome.content):
            self._result.addWidget(CodeBox(text, tr("tool.result"), lines=16))
        if outcome.structured is not None:
            pretty = json.dumps(outcome.structured, indent=2, ensure_ascii=False)
            self._result.addWidget(CodeBox(pretty, tr("tool.structured"), lines=16))

    def _fail(self, error: HostError) -> None:
        self.run.setEnabled(True)
        self._state.setText("")
        self._result.addWidget(label(" ".join(told(error)), "danger"))


class ToolRow(Card):
    """One tool; its body is made when it is first opened."""

    def __init__(self, bridge: Bridge, servers: Servers, spec: ToolSpec) -> None:
        super().__init__(margin=Space.M)
        self._bridge, self.spec = bridge, spec
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
        self.add(row(title, self.switch, self.fold))
        if spec.description:
            self.add(label(spec.description, "muted", selectable=True))
        if spec.problem:
            self.add(row(icon_label("warning", "warning"), label(spec.problem, "warning", selectable=True)))
        self.add(Flow(*pills, space=Space.XS))
        self._body: QWidget | None = None

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
            inner.addWidget(TryIt(self._bridge, spec))
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
        self._specs: tuple[ToolSpec, ...] = ()
        self.filter = SearchField(tr("tool.filter"))
        self.filter.textChanged.connect(self._narrow)
        self._sum = label("", "caption")
        self._list = column()
        self.add(self.filter, self._sum, self._list)
        servers.lists_changed.connect(self._lists_changed)
        servers.changed.connect(self._changed)
        self.refresh()

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
            self.rows = [ToolRow(self._bridge, self._servers, spec) for spec in specs]
            for one in self.rows:
                self._list.addWidget(one)
            if not specs:
                self._list.addWidget(self._nothing())
        self._specs = specs
        on = [s for s in specs if s.enabled]
        self._sum.setText(tr("tool.sum", on=len(on), all=len(specs), tokens=sum(s.tokens for s in on)) if specs else "")
        self._sum.setVisible(bool(specs))
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
