"""The groups of tools in the open chat, each with a switch for this chat alone."""

from __future__ import annotations

from collections.abc import Callable

from desktop_host.core.errors import HostError
from desktop_host.core.tools import ToolGroup
from desktop_host.engine.host import Host
from desktop_host.i18n import tr
from desktop_host.ui.bridge import Bridge
from desktop_host.ui.theme import Space
from desktop_host.ui.viewmodels.chat import Chat
from desktop_host.ui.widgets.pieces import Card, clear, column, label, row
from desktop_host.ui.widgets.switch import Switch


class ChatGroups(Card):
    """Hidden where there are no groups; a new chat begins as the server's page says."""

    def __init__(self, bridge: Bridge, chat: Chat, failed: Callable[[HostError], None]) -> None:
        super().__init__(margin=Space.M)
        self._bridge, self._chat, self._failed = bridge, chat, failed
        self.switches: dict[str, Switch] = {}
        self._rows = column(space=Space.XS)
        self.add(label(tr("inspector.groups"), "caption"), self._rows, label(tr("inspector.groups.note"), "caption"))
        self.hide()

    def refresh(self) -> None:
        """Show what holds in the open chat now."""
        session = self._chat.session
        if session is None:
            self.hide()
            return

        def done(found: tuple[tuple[ToolGroup, bool], ...]) -> None:
            if self._chat.session == session:
                self._show(found)

        self._bridge.then(lambda host: host.toolkit.groups(session), done, self._failed, self)

    def _show(self, found: tuple[tuple[ToolGroup, bool], ...]) -> None:
        self.setVisible(bool(found))
        if {g.name for g, _on in found} == set(self.switches):
            for group, on in found:
                self.switches[group.name].put(on)
            return
        clear(self._rows)
        self.switches = {}
        for group, on in found:
            switch = Switch(tr("inspector.group.switch", name=group.name), on)
            switch.clicked.connect(lambda now, name=group.name: self._switch(name, now))
            self.switches[group.name] = switch
            words = column(space=0)
            words.addWidget(label(group.name, "strong"))
            if group.description:
                words.addWidget(label(group.description, "caption"))
            line = row(switch, words)
            line.setStretch(1, 1)
            self._rows.addLayout(line)

    def _switch(self, name: str, on: bool) -> None:
        session = self._chat.session
        if session is None:
            return

        async def act(host: Host) -> None:
            await host.switch_group(session, name, on)

        def failed(error: HostError) -> None:
            self._failed(error)
            self.refresh()

        self._bridge.then(act, lambda _ok: self.refresh(), failed, self)
