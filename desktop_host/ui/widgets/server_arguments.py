"""The arguments of a prompt or a resource template, proposed by the server while they are typed."""

from __future__ import annotations

from PySide6.QtCore import QStringListModel, Qt, QTimer, Signal
from PySide6.QtWidgets import QCompleter, QLineEdit, QWidget

from desktop_host.core.server_ports import Completion
from desktop_host.core.servers import PromptArgument
from desktop_host.core.values import FrozenDict
from desktop_host.i18n import tr
from desktop_host.ui.bridge import Bridge
from desktop_host.ui.theme import Space
from desktop_host.ui.widgets.forms import Field
from desktop_host.ui.widgets.pieces import column

ASK_MS = 180
"""A pause in typing after which the server is asked."""


class Arguments(QWidget):
    """A field for each argument.

    Args:
        bridge: the host.
        server: alias of the server.
        ref: the prompt's name or the template's URI, as completion wants it.
        arguments: what is asked for.
    """

    changed = Signal()

    def __init__(self, bridge: Bridge, server: str, ref: str, arguments: tuple[PromptArgument, ...]) -> None:
        super().__init__()
        self._bridge, self._server, self._ref = bridge, server, ref
        self._arguments = arguments
        self.fields: dict[str, QLineEdit] = {}
        self._rows: dict[str, Field] = {}
        self._proposals: dict[str, QStringListModel] = {}
        self._typed = ""
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setInterval(ASK_MS)
        self._timer.timeout.connect(self._ask)
        inner = column(self, space=Space.S)
        for argument in arguments:
            line = QLineEdit()
            name = argument.title or argument.name
            title = name if argument.required else tr("form.optional", name=name)
            made = Field(title, line, argument.description or "")
            line.setAccessibleName(name)
            model = self._proposals[argument.name] = QStringListModel(line)
            completer = QCompleter(model, line)
            completer.setCaseSensitivity(Qt.CaseSensitivity.CaseInsensitive)
            completer.setFilterMode(Qt.MatchFlag.MatchContains)
            line.setCompleter(completer)
            line.textEdited.connect(lambda _text, n=argument.name: self._begin(n))
            line.textChanged.connect(self.changed)
            self.fields[argument.name] = line
            self._rows[argument.name] = made
            inner.addWidget(made)
        if not arguments:
            self.hide()

    @property
    def filled(self) -> FrozenDict:
        """What is filled in so far."""
        return FrozenDict({name: line.text() for name, line in self.fields.items() if line.text()})

    def values(self) -> FrozenDict | None:
        """What was filled in; None where something lacks, which then says so and has the focus."""
        lacking = None
        for argument in self._arguments:
            missing = argument.required and not self.fields[argument.name].text()
            self._rows[argument.name].complain(tr("form.needed") if missing else "")
            lacking = lacking or (argument.name if missing else None)
        if lacking:
            self.fields[lacking].setFocus()
            return None
        return self.filled

    def proposals(self, name: str) -> tuple[str, ...]:
        """What the server proposed last for an argument."""
        return tuple(self._proposals[name].stringList())

    # ---- inside

    def _begin(self, name: str) -> None:
        self._typed = name
        self._timer.start()

    def _ask(self) -> None:
        name, value = self._typed, self.fields[self._typed].text()
        others = FrozenDict({k: f.text() for k, f in self.fields.items() if k != name and f.text()})
        self._bridge.then(
            lambda host: host.servers.complete(self._server, self._ref, name, value, others),
            lambda got: self._propose(name, value, got), lambda _error: None, self,
        )  # fmt: skip

    def _propose(self, name: str, asked: str, got: Completion) -> None:
        line = self.fields[name]
        if line.text() != asked or got.values == self.proposals(name):
            return
        self._proposals[name].setStringList(list(got.values))
        if got.values and line.hasFocus() and got.values != (asked,):
            line.completer().complete()
