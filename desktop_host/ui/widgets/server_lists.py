"""The resources and prompts of a server: listed, read and shown to the person alone."""

from __future__ import annotations

from PySide6.QtWidgets import QLineEdit, QWidget

from desktop_host.core.errors import HostError
from desktop_host.core.exchange import ToolOutcome
from desktop_host.core.messages import Message
from desktop_host.core.servers import PromptSpec, ResourceSpec, ServerState
from desktop_host.core.values import FrozenDict
from desktop_host.i18n import tr
from desktop_host.ui.bridge import Bridge
from desktop_host.ui.theme import Space
from desktop_host.ui.viewmodels.servers import Servers
from desktop_host.ui.widgets.flow import Flow
from desktop_host.ui.widgets.page import Empty, ErrorCard, Page, told
from desktop_host.ui.widgets.pieces import Card, CodeBox, button, clear, column, icon_label, label, pill, row
from desktop_host.ui.widgets.server_contents import plain
from desktop_host.ui.widgets.server_words import size


class _ListTab(Page):
    """A list that is read when the server is ready, and again when it says that it changed."""

    kind = ""

    def __init__(self, bridge: Bridge, servers: Servers, name: str) -> None:
        super().__init__(inside=True)
        self._bridge, self._servers, self._name = bridge, servers, name
        self._list = column()
        self.rows: list[QWidget] = []
        self._state: ServerState | None = None
        self.add(self._list)
        servers.changed.connect(self._changed)
        servers.lists_changed.connect(self._lists_changed)
        self._changed(name)

    def refresh(self) -> None:
        """Read the list again."""
        raise NotImplementedError

    def _changed(self, name: str) -> None:
        status = self._servers.status(self._name) if name == self._name else None
        if status is None or status.state is self._state:
            return
        self._state = status.state
        if status.state is ServerState.READY:
            self.refresh()
        else:
            self._put([])
            start = (tr("action.start"), lambda: self._servers.start(self._name))
            self._list.addWidget(Empty("servers", tr("server.not_running"), tr("server.not_running.text"), start))

    def _lists_changed(self, name: str, lists: tuple[str, ...]) -> None:
        if name == self._name and self.kind in lists and self._state is ServerState.READY:
            self.refresh()

    def _put(self, rows: list[QWidget]) -> None:
        clear(self._list)
        self.rows = rows
        for one in rows:
            self._list.addWidget(one)

    def _fail(self, error: HostError) -> None:
        self._put([])
        self._list.addWidget(ErrorCard(error, self.refresh))


class ResourceRow(Card):
    """A resource, or a template whose address the person completes."""

    def __init__(self, bridge: Bridge, spec: ResourceSpec) -> None:
        super().__init__(margin=Space.M)
        self._bridge, self._spec = bridge, spec
        title = spec.title or spec.name
        self.setAccessibleName(title)
        pills = [pill(spec.mime_type)] if spec.mime_type else []
        if spec.size is not None:
            pills.append(pill(size(spec.size)))
        if spec.template:
            pills.append(pill(tr("resource.template"), "info"))
        self.read = button(tr("resource.read"), self._read, icon="eye")
        self.read.setAccessibleName(tr("resource.read_of", name=title))
        self.uri = QLineEdit(spec.uri)
        self.uri.setAccessibleName(tr("resource.uri"))
        self.uri.setReadOnly(not spec.template)
        self.uri.setCursorPosition(0)
        head = row(icon_label("document"), label(title, "strong"), self.read)
        head.setStretch(1, 1)
        self.add(head)
        if spec.description:
            self.add(label(spec.description, "muted", selectable=True))
        self.add(self.uri, Flow(*pills, space=Space.XS))
        self._result = column(space=Space.S)
        self.add(self._result)

    def _read(self) -> None:
        self.read.setEnabled(False)
        server, uri = self._spec.server, self.uri.text().strip()
        self._bridge.then(lambda host: host.servers.read_resource(server, uri), self._done, self._fail, self)

    def _done(self, outcome: ToolOutcome) -> None:
        self.read.setEnabled(True)
        clear(self._result)
        self._result.addWidget(CodeBox(plain(outcome.content), tr("resource.contents"), lines=18))

    def _fail(self, error: HostError) -> None:
        self.read.setEnabled(True)
        clear(self._result)
        self._result.addWidget(label(" ".join(told(error)), "danger"))


class ResourcesTab(_ListTab):
    """Resources and templates."""

    kind = "resources"

    def refresh(self) -> None:
        self._bridge.then(lambda host: host.servers.resources(self._name), self._show, self._fail, self)

    def _show(self, specs: tuple[ResourceSpec, ...]) -> None:
        self._put([ResourceRow(self._bridge, spec) for spec in specs])
        if not specs:
            self._list.addWidget(Empty("document", tr("resource.none"), ""))


class PromptRow(Card):
    """A prompt with its arguments."""

    def __init__(self, bridge: Bridge, spec: PromptSpec) -> None:
        super().__init__(margin=Space.M)
        self._bridge, self._spec = bridge, spec
        title = spec.title or spec.name
        self.setAccessibleName(title)
        self.show_it = button(tr("prompt.show"), self._show, icon="eye")
        self.show_it.setAccessibleName(tr("prompt.show_of", name=title))
        head = row(icon_label("prompt"), label(title, "strong"), self.show_it)
        head.setStretch(1, 1)
        self.add(head)
        if spec.description:
            self.add(label(spec.description, "muted", selectable=True))
        self.fields: dict[str, QLineEdit] = {}
        for argument in spec.arguments:
            field = QLineEdit()
            name = argument.title or argument.name
            field.setAccessibleName(name)
            field.setPlaceholderText(argument.description or "")
            mark = name if argument.required else tr("form.optional", name=name)
            self.add(label(mark, "caption"), field)
            self.fields[argument.name] = field
        self._result = column(space=Space.S)
        self.add(self._result)

    def _show(self) -> None:
        lacking = [a.title or a.name for a in self._spec.arguments if a.required and not self.fields[a.name].text()]
        clear(self._result)
        if lacking:
            self._result.addWidget(label(tr("form.missing", names=", ".join(lacking)), "danger"))
            return
        spec = self._spec
        values = FrozenDict({name: field.text() for name, field in self.fields.items() if field.text()})
        self._bridge.then(
            lambda host: host.servers.get_prompt(spec.server, spec.name, values), self._done, self._fail, self
        )

    def _done(self, messages: tuple[Message, ...]) -> None:
        clear(self._result)
        for message in messages:
            self._result.addWidget(label(tr(f"prompt.role.{message.role.value}"), "caption"))
            self._result.addWidget(CodeBox(plain(message.blocks), tr("prompt.message"), lines=14))

    def _fail(self, error: HostError) -> None:
        clear(self._result)
        self._result.addWidget(label(" ".join(told(error)), "danger"))


class PromptsTab(_ListTab):
    """Prompts."""

    kind = "prompts"

    def refresh(self) -> None:
        self._bridge.then(lambda host: host.servers.prompts(self._name), self._show, self._fail, self)

    def _show(self, specs: tuple[PromptSpec, ...]) -> None:
        self._put([PromptRow(self._bridge, spec) for spec in specs])
        if not specs:
            self._list.addWidget(Empty("prompt", tr("prompt.none"), ""))
