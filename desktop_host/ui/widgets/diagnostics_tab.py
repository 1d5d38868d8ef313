"""Diagnostics: every check with its finding and remedy, run together or one at a time, and the report to send."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import Signal
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QProgressBar
from shiboken6 import isValid

from desktop_host.core.diagnosis import ReportPart
from desktop_host.core.errors import HostError
from desktop_host.i18n import tr, trn
from desktop_host.ui.theme import Space
from desktop_host.ui.viewmodels.diagnostics import Diagnostics
from desktop_host.ui.widgets.check_row import CheckRow
from desktop_host.ui.widgets.flow import Flow
from desktop_host.ui.widgets.page import ErrorCard, Page
from desktop_host.ui.widgets.pieces import Card, button, clear, column, label
from desktop_host.ui.widgets.report_card import ReportCard

OWN = frozenset({"mend", "unlock"})
"""What the app does itself; every other act leads to a page."""


class DiagnosticsTab(Page):
    """See the module. The checks run when it is first shown."""

    place_wanted = Signal(str)
    """The person wants to go where a check is mended (`Finding.act`)."""

    def __init__(self, model: Diagnostics, say: Callable[[str, str], object]) -> None:
        super().__init__(inside=True)
        self._model, self._say = model, say
        self.rows: dict[str, CheckRow] = {}
        self.summary = label("", "heading")
        self.bar = QProgressBar()
        self.bar.setTextVisible(False)
        self.bar.setAccessibleName(tr("diagnostics.progress"))
        self.run_button = button(tr("diagnostics.run"), self._run_or_stop, role="primary", icon="restart")
        self.report_button = button(tr("diagnostics.report"), self._report, icon="document")
        self.report: ReportCard | None = None
        self._above = column(space=Space.M)
        self._error: ErrorCard | None = None
        self._ill = column(space=Space.S)
        self._well = Card(margin=Space.S, space=0)
        self.add(
            self.summary, label(tr("diagnostics.lead"), "muted"), self.bar, Flow(self.run_button, self.report_button),
            self._above, self._ill, self._well,
        )  # fmt: skip
        model.listed.connect(self._arrange)
        model.changed.connect(self._changed)
        model.finished.connect(self._arrange)
        self._arrange()

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        if not self._model.found:
            self._model.run_all()

    # ---- filling

    def _arrange(self) -> None:
        """What is ill first; a row that is run again alone stays where it is."""
        model = self._model
        for name in [n for n in self.rows if n not in model.found]:
            self.rows.pop(name).deleteLater()
        for name, found in model.found.items():
            if name not in self.rows:
                made = self.rows[name] = CheckRow(name)
                made.again.connect(model.run)
                made.act.connect(self._act)
            line = self.rows[name]
            line.show_finding(found, name in model.running)
            (self._ill if found is not None and not found.ok else self._well.column).addWidget(line)
        self._well.setVisible(any(f is None or f.ok for f in model.found.values()))
        self._head()

    def _changed(self, name: str) -> None:
        if name in self.rows:
            self.rows[name].show_finding(self._model.found.get(name), name in self._model.running)
        self._head()

    def _head(self) -> None:
        model = self._model
        count, ill = len(model.found), len(model.ill)
        self.bar.setVisible(model.all_running)
        self.bar.setRange(0, max(1, count))
        self.bar.setValue(model.done)
        if model.all_running:
            words = tr("diagnostics.sum.running", done=model.done, count=count)
        elif not count:
            words = ""
        else:
            words = trn("diagnostics.sum.ill", ill, count=count) if ill else tr("diagnostics.sum.well", count=count)
        self.summary.setText(words)
        self.run_button.setText(tr("diagnostics.stop" if model.all_running else "diagnostics.run"))
        self.report_button.setEnabled(bool(count) and not model.all_running)

    # ---- acting

    def _run_or_stop(self) -> None:
        if self._model.all_running:
            self._model.stop()
        else:
            clear(self._above)
            self.report = None
            self._model.run_all()

    def _act(self, check: str, act: str) -> None:
        if act in OWN:
            self._model.mend(check, self._failed)
        else:
            self.place_wanted.emit(act)

    def _report(self) -> None:
        self._model.report(self._preview, self._failed)

    def _preview(self, parts: tuple[ReportPart, ...]) -> None:
        clear(self._above)
        stamp = datetime.datetime.now().strftime("%Y%m%d-%H%M")
        self.report = ReportCard(parts, f"desktop-host-report-{stamp}.zip")
        self.report.wanted.connect(self.save_report)
        self.report.closed.connect(self._close_report)
        self._above.addWidget(self.report)
        self.report.save_button.setFocus()

    def save_report(self, path: Path) -> None:
        """Write the report that is shown."""
        if self.report is not None:
            self._model.save(path, self.report.parts, self._saved, self._failed)

    def _saved(self, path: Path) -> None:
        self._say(tr("diagnostics.report.saved", name=path.name), "check")
        self._close_report()

    def _close_report(self) -> None:
        clear(self._above)
        self.report = None
        self.report_button.setFocus()

    def _failed(self, error: HostError) -> None:
        if self._error is not None and isValid(self._error):
            self._error.deleteLater()
        self._error = ErrorCard(error)
        self._above.insertWidget(0, self._error)
