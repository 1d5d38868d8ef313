"""The report before it is saved: every file of it can be read here first."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QComboBox, QFileDialog

from desktop_host.core.diagnosis import ReportPart
from desktop_host.i18n import tr, trn
from desktop_host.ui.theme import Space
from desktop_host.ui.widgets.flow import Flow
from desktop_host.ui.widgets.pieces import Card, CodeBox, button, label
from desktop_host.ui.widgets.server_words import size

SHOWN = 60_000
"""Characters of a file that are shown; the end of a log is what matters."""
LINES = 14


class ReportCard(Card):
    """See the module."""

    wanted = Signal(object)
    """`Path` to save to."""
    closed = Signal()

    def __init__(self, parts: tuple[ReportPart, ...], name: str) -> None:
        super().__init__("card-info", margin=Space.L)
        self.parts = parts
        self._name = name
        self.picker = QComboBox()
        for part in parts:
            self.picker.addItem(f"{part.name} · {size(len(part.text.encode()))}")
        self.picker.setAccessibleName(tr("diagnostics.report.files"))
        self.picker.activated.connect(self.show_part)
        self.text = CodeBox("", tr("diagnostics.report.text"), lines=LINES)
        self.save_button = button(tr("diagnostics.report.save"), self._choose, role="primary", icon="download")
        self.add(
            label(tr("diagnostics.report.title"), "heading"),
            label(tr("diagnostics.report.lead", files=trn("diagnostics.report.count", len(parts)))),
            self.picker, self.text,
            Flow(self.save_button, button(tr("action.cancel"), self.closed.emit)),
        )  # fmt: skip
        self.show_part(0)

    def show_part(self, at: int) -> None:
        """Show a file of the report."""
        whole = self.parts[at].text
        cut = whole if len(whole) <= SHOWN else tr("diagnostics.report.cut") + "\n" + whole[-SHOWN:]
        self.text.put(cut)

    def _choose(self) -> None:
        dialog = QFileDialog(self, tr("diagnostics.report.save"), self._name, "ZIP (*.zip)")
        dialog.setAcceptMode(QFileDialog.AcceptMode.AcceptSave)
        dialog.setDefaultSuffix("zip")
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.fileSelected.connect(lambda name: self.wanted.emit(Path(name)))
        dialog.open()
