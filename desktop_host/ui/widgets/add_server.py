"""Adding a server: paste anything, see exactly what would run, then decide. Nothing starts before Add."""

from __future__ import annotations

from dataclasses import replace

from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtWidgets import QCheckBox, QLineEdit, QPlainTextEdit, QWidget

from desktop_host.core.errors import HostError
from desktop_host.core.servers import ImportedServer
from desktop_host.core.tools import ALIAS
from desktop_host.i18n import current, tr, trn
from desktop_host.ui.theme import Space, set_role, theme
from desktop_host.ui.viewmodels.lifetime import while_alive
from desktop_host.ui.viewmodels.servers import Servers
from desktop_host.ui.widgets.flow import Flow
from desktop_host.ui.widgets.forms import Field
from desktop_host.ui.widgets.page import Page, told
from desktop_host.ui.widgets.pieces import (
    Card,
    CodeBox,
    button,
    clear,
    column,
    icon_button,
    icon_label,
    label,
    pill,
    row,
)
from desktop_host.ui.widgets.server_words import launch_lines

PARSE_MS = 250


def warning_text(code: str) -> str:
    """The text of a parser's warning."""
    key = f"server.warning.{code}"
    return tr(key) if current().has(key) else code.replace("_", " ")


class FoundCard(Card):
    """One server as it would be added: the whole command, its surroundings, and what is odd about it."""

    def __init__(self, found: ImportedServer) -> None:
        super().__init__()
        self.found = found
        config = found.config
        self.take = QCheckBox(tr("add.take", name=config.name))
        self.take.setChecked(True)
        self.name = Field(tr("add.name"), QLineEdit(config.name), tr("add.name.help"))
        self.add(row(self.take, None, pill(tr(f"server.transport.{config.transport}"))), self.name)
        for title, text in launch_lines(config):
            self.add(label(title, "caption"), CodeBox(text, title, lines=12))
        if config.transport == "stdio":
            self.add(row(icon_label("shield", "warning"), label(tr("add.runs"), "muted")))
        for code in found.warnings:
            self.add(row(icon_label("warning", "warning"), label(warning_text(code), "warning")))
        for secret in found.secrets:
            self.add(row(icon_label("key", "success"), label(tr("add.secret", name=secret), "muted")))

    def value(self) -> ImportedServer | None:
        """What to add; None where the name is wrong (which then says so)."""
        control = self.name.control
        assert isinstance(control, QLineEdit)
        name = control.text().strip()
        good = bool(ALIAS.fullmatch(name)) and name != "host"
        self.name.complain("" if good else tr("add.bad_name"))
        return replace(self.found, config=replace(self.found.config, name=name)) if good else None


class AddPanel(QWidget):
    """The paste box with its preview and the button that adds."""

    added = Signal(object)
    """`tuple[str, ...]`: names of what was added."""

    def __init__(self, servers: Servers) -> None:
        super().__init__()
        self._servers = servers
        self.cards: list[FoundCard] = []
        self._asked = ""
        self.paste = QPlainTextEdit()
        set_role(self.paste, "code")
        self.paste.setAccessibleName(tr("add.paste"))
        self.paste.setPlaceholderText(tr("add.examples"))
        self.paste.setTabChangesFocus(True)
        self.paste.setFixedHeight(theme.px(132))
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setInterval(PARSE_MS)
        self._timer.timeout.connect(self._parse)
        self.paste.textChanged.connect(self._timer.start)
        self.problem = label("", "danger", selectable=True)
        self.problem.hide()
        self._found = column()
        self.go = button(tr("add.add"), self._add, role="primary", icon="plus")
        self.go.setEnabled(False)
        self.buttons = Flow(self.go)
        inner = column(self, space=Space.M)
        inner.addWidget(self.paste)
        inner.addWidget(self.problem)
        inner.addLayout(self._found)
        inner.addLayout(self.buttons)

    def begin(self, text: str = "") -> None:
        """Start with a text, maybe none."""
        if text:
            self.paste.setPlainText(text)
            self._parse()
        self.paste.setFocus(Qt.FocusReason.OtherFocusReason)

    def _parse(self) -> None:
        self._timer.stop()
        text = self.paste.toPlainText().strip()
        self._asked = text
        if not text:
            self._show((), "")
            return
        self._servers.parse(
            text,
            while_alive(self, lambda found: self._show(found, "") if self._asked == text else None),
            while_alive(self, lambda e: self._show((), " ".join(told(e))) if self._asked == text else None),
        )

    def _show(self, found: tuple[ImportedServer, ...], problem: str) -> None:
        clear(self._found)
        self.problem.setText(problem)
        self.problem.setVisible(bool(problem))
        self.cards = [FoundCard(one) for one in found]
        for card in self.cards:
            card.take.toggled.connect(lambda _on: self._count())
            card.take.setVisible(len(found) > 1)
            self._found.addWidget(card)
        self._count()

    def _count(self) -> None:
        chosen = [c for c in self.cards if c.take.isChecked()]
        self.go.setEnabled(bool(chosen))
        self.go.setText(trn("add.add_n", len(chosen)) if len(self.cards) > 1 else tr("add.add"))

    def _add(self) -> None:
        values = [c.value() for c in self.cards if c.take.isChecked()]
        good = [v for v in values if v is not None]
        if len(good) < len(values) or not good:
            return
        self.go.setEnabled(False)
        self._servers.add(tuple(good), while_alive(self, self._added), while_alive(self, self._failed))

    def _added(self, names: tuple[str, ...]) -> None:
        self.paste.setPlainText("")  # it may hold secrets, which are in the vault now
        self._show((), "")
        self.added.emit(names)

    def _failed(self, error: HostError) -> None:
        self.go.setEnabled(True)
        self.problem.setText(" ".join(told(error)))
        self.problem.show()


class AddServer(Page):
    """The page around the panel."""

    back = Signal()
    added = Signal(object)

    def __init__(self, servers: Servers) -> None:
        super().__init__()
        self.panel = AddPanel(servers)
        self.panel.added.connect(self.added)
        self.panel.buttons.addWidget(button(tr("action.cancel"), self.back.emit))
        head = row(icon_button("chevron-left", tr("servers.back"), self.back.emit), label(tr("add.title"), "title"))
        self.add(head, label(tr("add.lead"), "muted"), self.panel)

    def begin(self, text: str = "") -> None:
        """Start with a text, maybe none."""
        self.panel.begin(text)
