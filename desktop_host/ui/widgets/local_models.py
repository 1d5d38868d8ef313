"""The embedded models: size, honest limits, fetch after a question, progress, cancel, remove."""

from __future__ import annotations

from PySide6.QtWidgets import QMessageBox, QProgressBar, QWidget

from desktop_host.core.models import ModelEntry, ModelProgress
from desktop_host.i18n import current, tr
from desktop_host.ui.theme import Space
from desktop_host.ui.viewmodels.models import Models
from desktop_host.ui.widgets.confirm import confirm
from desktop_host.ui.widgets.flow import Flow
from desktop_host.ui.widgets.page import Empty
from desktop_host.ui.widgets.pieces import Card, Elided, button, clear, column, label, pill, row, set_pill
from desktop_host.ui.widgets.server_words import size


def local_name(ref: str) -> str:
    """The name of an embedded model from its REF."""
    return ref.partition("/")[2] or ref


class LocalModelRow(Card):
    """One embedded model."""

    def __init__(self, models: Models, entry: ModelEntry) -> None:
        super().__init__(margin=Space.M)
        self._models, self.entry = models, entry
        self.name = local_name(entry.ref)
        self.setAccessibleName(entry.title)
        self.state = pill("")
        weighs = "local.size_here" if entry.ready else "local.size"
        facts = [tr(weighs, size=size(entry.size_bytes))] if entry.size_bytes else []
        if entry.licence:
            facts.append(tr("local.licence", licence=entry.licence))
        if entry.context_window:
            facts.append(tr("local.window", tokens=entry.context_window))
        self.fetch = button(tr("local.fetch"), self._ask, role="primary", icon="download")
        self.fetch.setAccessibleName(tr("local.fetch_of", name=entry.title))
        self.remove = button(tr("action.remove"), self._remove, icon="trash")
        self.remove.setAccessibleName(tr("local.remove_of", name=entry.title))
        self.cancel = button(tr("action.cancel"), models.cancel_fetch)
        self.bar = QProgressBar()
        self.bar.setTextVisible(False)
        self.bar.setAccessibleName(tr("local.progress_of", name=entry.title))
        self.done = label("", "caption")
        self.add(row(Elided(entry.title, "strong", snug=True), self.state, None), label(" · ".join(facts), "caption"))
        if entry.note and current().has(entry.note):
            self.add(label(tr(entry.note), "muted"))
        self.why = label("", "warning")
        self.add(self.why, self.bar, self.done, Flow(self.fetch, self.cancel, self.remove))
        models.progress.connect(self._progress)
        models.fetching_changed.connect(self._show)
        self._show()

    def _show(self) -> None:
        entry = self.entry
        mine = self._models.fetching == self.name
        lacking = entry.reason not in (None, "no_weights")
        if mine:
            set_pill(self.state, tr("local.fetching"), "info")
        elif entry.ready:
            set_pill(self.state, tr("local.ready"), "success")
        else:
            set_pill(self.state, tr("local.not_here"))
        key = f"model.reason.{entry.reason}"
        self.why.setText(tr(key) if lacking and current().has(key) else "")
        self.why.setVisible(bool(self.why.text()))
        self.fetch.setVisible(not mine and entry.reason == "no_weights")
        self.fetch.setEnabled(self._models.fetching is None)
        self.remove.setVisible(entry.ready and not mine)
        for widget in (self.cancel, self.bar, self.done):
            widget.setVisible(mine)
        if mine:
            self.bar.setRange(0, 0)
            self.done.setText(tr("local.starting"))
            if self._models.last is not None:
                self._progress(self._models.last)

    def _progress(self, p: ModelProgress) -> None:
        # One fetch at a time; `p.name` is the file's own name where the REF is the default's (`local`).
        if self._models.fetching != self.name:
            return
        self.bar.setRange(0, 1000)
        self.bar.setValue(int(1000 * p.done_bytes / p.total_bytes) if p.total_bytes else 0)
        if p.phase == "verify":
            self.done.setText(tr("local.verifying"))
        else:
            self.done.setText(tr("local.progress", done=size(p.done_bytes), total=size(p.total_bytes)))

    def _ask(self) -> None:
        entry = self.entry
        box = QMessageBox(self.window())
        box.setIcon(QMessageBox.Icon.NoIcon)
        box.setWindowTitle(tr("local.ask.title", name=entry.title))
        box.setText(tr("local.ask.title", name=entry.title))
        told = [tr("local.ask.text", size=size(entry.size_bytes or 0))]
        if entry.licence:
            told.append(tr("local.ask.licence", licence=entry.licence))
        box.setInformativeText("\n\n".join(told))
        yes = box.addButton(tr("local.fetch"), QMessageBox.ButtonRole.AcceptRole)
        box.addButton(tr("action.cancel"), QMessageBox.ButtonRole.RejectRole)
        box.setDefaultButton(yes)
        box.buttonClicked.connect(lambda clicked: self._models.fetch(self.name) if clicked is yes else None)
        box.finished.connect(box.deleteLater)
        box.open()

    def _remove(self) -> None:
        confirm(
            self.window(), tr("local.remove.title", name=self.entry.title), tr("local.remove.text"),
            tr("action.remove"), lambda: self._models.remove(self.name),
        )  # fmt: skip


class LocalModels(QWidget):
    """All embedded models."""

    def __init__(self, models: Models) -> None:
        super().__init__()
        self._models = models
        self.rows: list[LocalModelRow] = []
        self._shown: tuple[ModelEntry, ...] | None = None
        self._list = column(self, space=Space.S)
        models.changed.connect(self._show)
        self._show()

    def _show(self) -> None:
        entries = self._models.local()
        if entries == self._shown:
            return
        self._shown = entries
        clear(self._list)
        self.rows = [LocalModelRow(self._models, entry) for entry in entries]
        for one in self.rows:
            self._list.addWidget(one)
        if not entries and self._models.loaded:
            self._list.addWidget(Empty("model", tr("local.none"), tr("local.none.text")))
