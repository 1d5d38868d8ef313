"""The first three steps: a model, tools, a first question. Each can be skipped; each can be done later."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

from PySide6.QtCore import QTimer, Signal
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QFileDialog, QStackedWidget

from desktop_host.core.errors import HostError
from desktop_host.core.places import shipped
from desktop_host.core.servers import ImportedServer, ServerConfig, Stdio
from desktop_host.core.tools import alias_for
from desktop_host.i18n import tr
from desktop_host.ui.theme import Space, set_role
from desktop_host.ui.viewmodels.lifetime import while_alive
from desktop_host.ui.viewmodels.models import VENDORS, Models
from desktop_host.ui.viewmodels.servers import Servers
from desktop_host.ui.viewmodels.settings import ProfileSettings
from desktop_host.ui.widgets.add_server import AddPanel
from desktop_host.ui.widgets.endpoints import Endpoints
from desktop_host.ui.widgets.flow import Flow
from desktop_host.ui.widgets.key_row import KeyRow
from desktop_host.ui.widgets.local_models import LocalModels
from desktop_host.ui.widgets.page import Centred, Page, keep_gutter, told
from desktop_host.ui.widgets.pieces import Card, TextButton, button, icon_label, label, pill, row, set_pill

STEPS = ("model", "tools", "ask")
QUESTIONS = ("first.question.folder", "first.question.tools", "first.question.plain")


def knowledge_server(folder: Path, taken: frozenset[str] = frozenset()) -> ServerConfig:
    """The bundled knowledge server over a folder."""
    command = (sys.executable, str(shipped("resources", "servers", "knowledge")), "serve", "--folder", str(folder))
    return ServerConfig(
        alias_for("knowledge", taken), Stdio(command[0], command[1:]), title=tr("first.knowledge.title"), trusted=True
    )


class ModelStep(Page):
    """Local, a key, or an address."""

    def __init__(self, models: Models, settings: ProfileSettings) -> None:
        super().__init__(tr("first.model.title"), tr("first.model.lead"), inside=True)
        self._models, self._settings = models, settings
        self.state = pill("")
        self.local = LocalModels(models)
        self.keys = {vendor: KeyRow(models, vendor) for vendor in VENDORS}
        self.endpoints = Endpoints(models, settings)
        self.add(row(self.state, None))
        for title, parts in (
            ("first.model.local", (self.local,)),
            ("first.model.keys", tuple(self.keys.values())),
            ("first.model.endpoint", (self.endpoints,)),
        ):
            self.column.addSpacing(Space.S)
            self.add(label(tr(title), "heading"), *parts)
        models.changed.connect(self._show)
        self._show()

    def _show(self) -> None:
        ready = self._models.ready()
        if ready:
            set_pill(self.state, tr("first.model.ready", name=ready[0].title), "success")
        else:
            set_pill(self.state, tr("first.model.none"))
        if not ready:
            return
        # A first choice of a ready model is better than a default that cannot answer.
        now = str(self._settings.value("model.default"))
        usable = {e.ref for e in ready} | ({"local"} if any(e.source == "local" for e in ready) else set())
        if self._settings.loaded and now not in usable:
            self._settings.set("model.default", ready[0].ref)


class ToolsStep(Page):
    """The bundled knowledge server on a folder, or anything pasted."""

    added = Signal()
    """A server is there now."""

    def __init__(self, servers: Servers) -> None:
        super().__init__(tr("first.tools.title"), tr("first.tools.lead"), inside=True)
        self._servers = servers
        card = Card()
        card.add(row(icon_label("folder", "accent", 22), label(tr("first.knowledge.title"), "heading"), space=Space.S))
        card.add(label(tr("first.knowledge.text"), "muted"))
        self.choose = button(tr("first.knowledge.choose"), self._ask, role="primary", icon="folder")
        card.add(Flow(self.choose))
        self._said = label("", "success")
        self._said.hide()
        card.add(self._said)
        self.panel = AddPanel(servers)
        self.panel.added.connect(self._pasted)
        self.pasted = label("", "success")
        self.pasted.hide()
        self.add(card)
        self.column.addSpacing(Space.S)
        self.add(label(tr("first.tools.paste"), "heading"), label(tr("add.lead"), "muted"), self.panel, self.pasted)

    def use_folder(self, folder: str) -> None:
        """Add the knowledge server over this folder."""
        self.choose.setEnabled(False)
        taken = frozenset(s.name for s in self._servers.statuses())
        found = ImportedServer(knowledge_server(Path(folder), taken))
        self._servers.add((found,), while_alive(self, self._added), while_alive(self, self._failed))

    def _ask(self) -> None:
        dialog = QFileDialog(self.window(), tr("first.knowledge.choose"), str(Path.home()))
        dialog.setFileMode(QFileDialog.FileMode.Directory)
        dialog.setOption(QFileDialog.Option.ShowDirsOnly)
        dialog.fileSelected.connect(self.use_folder)
        dialog.finished.connect(dialog.deleteLater)
        dialog.open()

    def _added(self, names: tuple[str, ...]) -> None:
        self.choose.setEnabled(True)
        self._say(tr("server.added", name=", ".join(names)), "success")
        self.added.emit()

    def _pasted(self, names: tuple[str, ...]) -> None:
        self.pasted.setText(tr("server.added", name=", ".join(names)))
        self.pasted.show()
        self.added.emit()

    def _failed(self, error: HostError) -> None:
        self.choose.setEnabled(True)
        self._say(" ".join(told(error)), "danger")

    def _say(self, text: str, role: str) -> None:
        self._said.setText(text)
        set_role(self._said, role)
        self._said.show()


class AskStep(Page):
    """A first question."""

    chosen = Signal(str)

    def __init__(self) -> None:
        super().__init__(tr("first.ask.title"), tr("first.ask.lead"), inside=True)
        self.questions = []
        for key in QUESTIONS:
            text = tr(key)
            made = TextButton(text, partial(self.chosen.emit, text), icon="chat")
            self.questions.append(made)
            self.add(made)


class FirstRun(Centred):
    """Three steps with a way forward, back and out."""

    done = Signal(str)
    """Through with it; the text is the first question, or empty."""

    def __init__(self, models: Models, servers: Servers, settings: ProfileSettings) -> None:
        super().__init__()
        self.model = ModelStep(models, settings)
        self.tools = ToolsStep(servers)
        self.ask = AskStep()
        self.ask.chosen.connect(self.done)
        self.tools.added.connect(self._forward)
        self.stack = QStackedWidget()
        for page in (self.model, self.tools, self.ask):
            self.stack.addWidget(page)
        self._pills = [pill(f"{n}  {tr(f'first.step.{step}')}") for n, step in enumerate(STEPS, 1)]
        self.back = button(tr("first.back"), lambda: self._go(-1), icon="chevron-left")
        self.next = button("", lambda: self._go(1), role="primary")
        self.skip = button(tr("first.skip_all"), lambda: self.done.emit(""), role="quiet")
        self.column.addLayout(Flow(*self._pills))
        self.column.addWidget(self.stack, 1)
        foot = row(self.skip, None, self.back, self.next)
        foot.setContentsMargins(0, Space.S, 0, Space.L)
        keep_gutter(foot)
        self.column.addLayout(foot)
        models.changed.connect(self._show)
        servers.loaded.connect(self._show)
        self._models, self._servers = models, servers
        self._show()

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._forward()

    def _forward(self) -> None:
        """What leads on has the focus, so that Enter goes through the steps."""
        QTimer.singleShot(0, self.next, self.next.setFocus)

    def _go(self, by: int) -> None:
        at = self.stack.currentIndex() + by
        if at >= len(STEPS):
            self.done.emit("")
            return
        self.stack.setCurrentIndex(max(0, at))
        self._show()

    def _show(self) -> None:
        at = self.stack.currentIndex()
        for number, one in enumerate(self._pills):
            set_pill(one, one.text(), "info" if number == at else "")
        finished = bool(self._models.ready()) if at == 0 else bool(self._servers.statuses()) if at == 1 else True
        last = at == len(STEPS) - 1
        set_role(self.next, "primary" if finished or last else "")
        self.next.setText(tr("first.finish" if last else "first.next" if finished else "first.skip"))
        self.back.setEnabled(at > 0)
