"""What is known of a server now, and why it does not work where it does not."""

from __future__ import annotations

import time
from collections.abc import Callable

from PySide6.QtCore import Qt, QTimer, QUrl
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import QGridLayout, QLabel, QPushButton, QWidget

from desktop_host.core.auth import SignInState
from desktop_host.core.servers import FailureReport, ServerState, ServerStatus
from desktop_host.i18n import tr
from desktop_host.ui.theme import Space
from desktop_host.ui.viewmodels.servers import Servers
from desktop_host.ui.widgets.flow import Flow
from desktop_host.ui.widgets.happened import happened
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

DOWNLOADS = {
    "node": "https://nodejs.org/en/download",
    "uv": "https://docs.astral.sh/uv/getting-started/installation/",
    "docker": "https://docs.docker.com/get-started/get-docker/",
    "bun": "https://bun.sh/docs/installation",
    "deno": "https://docs.deno.com/runtime/getting_started/installation/",
}
"""Where the makers of the programs that start servers tell how to install them."""


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
                shown.setContentsMargins(0, 1, 0, 0)  # text that can be marked stands a pixel higher
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
        self, servers: Servers, status: ServerStatus, report: FailureReport, edit: Callable[[], object]
    ) -> None:
        super().__init__("card-failure", space=Space.M)
        self._servers, self._name = servers, status.name
        self.setAccessibleName(f"{tr('server.why')}: {reason(report)}")
        self.add(row(icon_label("warning", "danger"), label(tr("server.why"), "heading"), space=Space.S))
        self.add(*happened(reason(report)))
        signing = report.remedy.startswith("remedy.server.sign_in.")  # The sentence above says all, in one language.
        if not signing and not report.what and report.message and report.message not in reason(report):
            self.add(label(report.message, selectable=True))
        if mend := cause(report):
            self.add(label(mend))
        self.edit = button(tr("server.edit"), edit, role="primary" if report.fix == "edit" else "", icon="edit")
        self.restart = button(
            tr("action.restart"), self._restart, role="primary" if report.fix in ("restart", "") else "", icon="restart"
        )
        self.fix = {"edit": self.edit, "restart": self.restart, "": self.restart}.get(report.fix) or self._fix(report)
        others = (b for b in (self.edit, self.restart) if b is not self.fix)
        self.add(Flow(self.fix, *others, copy_button(lambda: report_text(status, report))))
        facts = Facts()
        pairs = (
            (tr("server.exit_code"), "" if report.exit_code is None else str(report.exit_code)),
            (tr("server.cwd"), report.cwd or ""),
        )
        facts.put(tuple((n, v) for n, v in pairs if v))
        if any(v for _, v in pairs):
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

    def _restart(self) -> None:
        self._servers.restart(self._name)

    def _fix(self, report: FailureReport) -> QPushButton:
        """The one press that mends it, where that is more than starting it again."""
        if (page := DOWNLOADS.get(report.fix)) is not None:
            program = tr(f"server.program.{report.fix}")
            return button(
                tr("server.fix.get", program=program),
                lambda: QDesktopServices.openUrl(QUrl(page)),
                role="primary",
                icon="download",
            )
        if report.fix == "sign_in":
            return button(tr("server.sign_in"), lambda: self._servers.login(self._name), role="primary", icon="key")
        return button(
            tr(f"server.fix.{report.fix}"), lambda: self._servers.mend(self._name), role="primary", icon="check"
        )


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
                self._failure.addWidget(FailureCard(self._servers, status, status.error, self._edit))
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
