"""What is known of a server now, and why it does not work where it does not."""

from __future__ import annotations

import time
from collections.abc import Callable

from PySide6.QtCore import Qt, QTimer
from PySide6.QtWidgets import QGridLayout, QLabel, QWidget

from desktop_host.core.auth import SignInState
from desktop_host.core.servers import FailureReport, ServerState, ServerStatus
from desktop_host.i18n import tr
from desktop_host.ui.theme import Space
from desktop_host.ui.viewmodels.servers import Servers
from desktop_host.ui.widgets.flow import Flow
from desktop_host.ui.widgets.page import Page
from desktop_host.ui.widgets.pieces import (
    Card,
    CodeBox,
    button,
    clear,
    column,
    copy_button,
    icon_label,
    label,
    row,
)
from desktop_host.ui.widgets.server_words import cause, counts, duration, reason, report_text


class Facts(QWidget):
    """Names and values in two columns; values can be selected."""

    def __init__(self) -> None:
        super().__init__()
        self._grid = QGridLayout(self)
        self._grid.setContentsMargins(0, 0, 0, 0)
        self._grid.setHorizontalSpacing(Space.L)
        self._grid.setVerticalSpacing(Space.S)
        self._grid.setColumnStretch(1, 1)
        self._values: dict[str, QLabel] = {}

    def put(self, pairs: tuple[tuple[str, str], ...]) -> None:
        """Show these; the same names keep their labels, so a selection survives."""
        if [n for n, _ in pairs] != list(self._values):
            clear(self._grid)
            self._values = {}
            for at, (name, value) in enumerate(pairs):
                title = label(name, "muted", wrap=False)
                shown = label(value, selectable=True)
                shown.setAccessibleName(f"{name}: {value}")
                self._grid.addWidget(title, at, 0, Qt.AlignmentFlag.AlignTop)
                self._grid.addWidget(shown, at, 1)
                self._values[name] = shown
        for name, value in pairs:
            if self._values[name].text() != value:
                self._values[name].setText(value)


class FailureCard(Card):
    """Why a server does not work: all that is needed to mend it, and the buttons that do."""

    def __init__(
        self, status: ServerStatus, report: FailureReport, restart: Callable[[], None], edit: Callable[[], object]
    ) -> None:
        super().__init__("card-danger", space=Space.M)
        self.setAccessibleName(f"{tr('server.why')}: {reason(report)}")
        self.add(row(icon_label("warning", "danger"), label(tr("server.why"), "heading"), space=Space.S))
        self.add(label(reason(report), "strong", selectable=True))
        if report.message and report.message not in reason(report):
            self.add(label(report.message, selectable=True))
        if mend := cause(report):
            self.add(label(mend))
        self.restart = button(tr("action.restart"), restart, role="primary", icon="restart")
        self.edit = button(tr("server.edit"), edit, icon="edit")
        self.add(Flow(self.restart, self.edit, copy_button(lambda: report_text(status, report))))
        facts = Facts()
        pairs = (
            (tr("server.exit_code"), "" if report.exit_code is None else str(report.exit_code)),
            (tr("server.cwd"), report.cwd or ""),
        )
        facts.put(tuple((n, v) for n, v in pairs if v))
        facts.setVisible(any(v for _, v in pairs))
        self.add(facts)
        wells = (
            (tr("server.command_resolved"), " ".join(report.command)),
            (tr("server.path"), report.path),
            (tr("server.bad_stdout"), report.bad_stdout or ""),
            (tr("server.stderr"), "\n".join(report.stderr)),
        )
        for name, text in wells:
            if text:
                well = column(space=Space.XS)
                well.addWidget(label(name, "caption"))
                well.addWidget(CodeBox(text, name, lines=20))
                self.add(well)


class Overview(Page):
    """State, era, version, capabilities, pid, uptime, the last error."""

    def __init__(self, servers: Servers, name: str, edit: Callable[[], object]) -> None:
        super().__init__(inside=True)
        self._servers, self._name, self._edit = servers, name, edit
        self._failure = column()
        self._shown: FailureReport | None = None
        self.facts = Facts()
        card = Card()
        card.add(self.facts)
        self._words = label("", selectable=True)
        self._said = Card("well")
        self._said.add(label(tr("server.instructions"), "caption"), self._words)
        self.add(self._failure, card, self._said)
        self._tick = QTimer(self)
        self._tick.setInterval(1000)
        self._tick.timeout.connect(self.show_status)
        self._tick.start()
        servers.changed.connect(self._changed)
        self.show_status()

    def show_status(self) -> None:
        """Show how the server stands now."""
        status = self._servers.status(self._name)
        if status is None:
            return
        if status.error != self._shown:
            self._shown = status.error
            clear(self._failure)
            if status.error is not None:
                card = FailureCard(status, status.error, lambda: self._servers.restart(self._name), self._edit)
                self._failure.addWidget(card)
        self.facts.put(self._pairs(status))
        self._words.setText(status.instructions or "")
        self._said.setVisible(bool(status.instructions))

    def _changed(self, name: str) -> None:
        if name == self._name:
            self.show_status()

    def _pairs(self, s: ServerStatus) -> tuple[tuple[str, str], ...]:
        server = s.server
        ready = s.state is ServerState.READY
        name = str(server.get("title") or server.get("name") or "")
        version = str(server.get("version") or "")
        pairs = [
            (tr("server.transport"), tr(f"server.transport.{s.transport}")),
            (tr("server.target"), s.target),
            (tr("server.says"), f"{name} {version}".strip()),
            (tr("server.sign"), "" if s.sign_in is SignInState.NONE else tr(f"server.sign.{s.sign_in.value}")),
            (tr("server.era"), s.era or ""),
            (tr("server.capabilities"), ", ".join(sorted(s.capabilities))),
            (tr("server.offers"), counts(s) if ready else ""),
            (tr("server.pid"), str(s.pid) if s.pid else ""),
            (tr("server.uptime"), duration(time.time() - s.since) if s.since and ready else ""),
            (tr("server.restarts"), str(s.restarts) if s.restarts else ""),
        ]
        return tuple((n, v) for n, v in pairs if v)
