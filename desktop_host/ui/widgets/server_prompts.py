"""The prompts of a server: filled in, looked at, used in the chat."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from desktop_host.core.errors import HostError
from desktop_host.core.messages import Audio, Image, Message
from desktop_host.core.servers import PromptSpec
from desktop_host.i18n import tr
from desktop_host.ui.bridge import Bridge
from desktop_host.ui.theme import Space
from desktop_host.ui.viewmodels.servers import Servers
from desktop_host.ui.widgets.content_views import view_of
from desktop_host.ui.widgets.flow import Flow
from desktop_host.ui.widgets.page import Empty, told
from desktop_host.ui.widgets.pieces import Card, CodeBox, button, clear, column, icon_label, label, row
from desktop_host.ui.widgets.server_arguments import Arguments
from desktop_host.ui.widgets.server_art import art
from desktop_host.ui.widgets.server_contents import plain
from desktop_host.ui.widgets.server_lists import ListTab


class PromptRow(Card):
    """A prompt with its arguments."""

    def __init__(self, bridge: Bridge, servers: Servers, spec: PromptSpec) -> None:
        super().__init__(margin=Space.M)
        self._bridge, self._servers, self.spec = bridge, servers, spec
        title = spec.title or spec.name
        self.setAccessibleName(title)
        self.show_it = button(tr("prompt.show"), lambda: self._get(self._done), icon="eye")
        self.show_it.setAccessibleName(tr("prompt.show_of", name=title))
        self.use = button(tr("prompt.use"), lambda: self._get(self._used), role="quiet", icon="chat")
        self.use.setAccessibleName(tr("prompt.use_of", name=title))
        self.arguments = Arguments(bridge, spec.server, spec.name, spec.arguments)
        self.fields = self.arguments.fields
        picture = icon_label("prompt")
        art().put(picture, spec.server, "prompt", spec.name, "prompt")
        head = row(picture, label(title, "strong"))
        head.setStretch(1, 1)
        self.add(head)
        if spec.description:
            self.add(label(spec.description, "muted", selectable=True))
        self.add(self.arguments, Flow(self.show_it, self.use))
        self._result = column(space=Space.S)
        self.add(self._result)

    def _get(self, done: Callable[[tuple[Message, ...]], None]) -> None:
        values = self.arguments.values()
        if values is None:
            return
        spec = self.spec
        self._enable(False)
        self._bridge.then(lambda host: host.servers.get_prompt(spec.server, spec.name, values), done, self._fail, self)

    def _used(self, messages: tuple[Message, ...]) -> None:
        self._enable(True)
        self._servers.offer_prompt(messages)

    def _done(self, messages: tuple[Message, ...]) -> None:
        self._enable(True)
        clear(self._result)
        for message in messages:
            self._result.addWidget(label(tr(f"prompt.role.{message.role.value}"), "caption"))
            seen = [b for b in message.blocks if isinstance(b, (Image, Audio))]
            if text := plain(b for b in message.blocks if b not in seen):
                self._result.addWidget(CodeBox(text, tr("prompt.message"), lines=14))
            for block in seen:
                self._result.addWidget(view_of(block))

    def _enable(self, on: bool) -> None:
        self.show_it.setEnabled(on)
        self.use.setEnabled(on)

    def _fail(self, error: HostError) -> None:
        self._enable(True)
        clear(self._result)
        self._result.addWidget(label(" ".join(told(error)), "danger"))


class PromptsTab(ListTab):
    """Prompts."""

    kind = "prompts"

    def refresh(self) -> None:
        self._bridge.then(lambda host: host.servers.prompts(self._name), self._show, self._fail, self)

    def _show(self, specs: tuple[PromptSpec, ...]) -> None:
        self.put([(f"{s.name} {s.title} {s.description}", partial(self._row, s), s) for s in specs])
        if not specs:
            self._list.addWidget(Empty("prompt", tr("prompt.none"), ""))

    def _row(self, spec: PromptSpec) -> PromptRow:
        return PromptRow(self._bridge, self._servers, spec)
