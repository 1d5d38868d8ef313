"""Models and keys: the default model, vendors' keys, compatible addresses, embedded models, the vault."""

from __future__ import annotations

from PySide6.QtWidgets import QComboBox, QWidget

from desktop_host.core.models import ModelEntry
from desktop_host.i18n import current, tr
from desktop_host.ui.theme import Space
from desktop_host.ui.viewmodels.models import VENDORS, Models
from desktop_host.ui.viewmodels.settings import ProfileSettings
from desktop_host.ui.widgets.endpoints import Endpoints
from desktop_host.ui.widgets.flow import Flow
from desktop_host.ui.widgets.key_row import KeyRow
from desktop_host.ui.widgets.local_models import LocalModels
from desktop_host.ui.widgets.page import Page, told
from desktop_host.ui.widgets.pieces import Card, button, label, pill, row, set_pill


def model_text(entry: ModelEntry) -> str:
    """A model as a list names it: its title, where it comes from, and why it cannot be used."""
    key = f"vendor.{entry.source}"
    source = tr(key) if current().has(key) else entry.source
    text = f"{entry.title} · {source}"
    why = f"model.short.{entry.reason}"
    return f"{text} ({tr(why)})" if not entry.ready and current().has(why) else text


class DefaultModel(Card):
    """Which model answers in new chats."""

    def __init__(self, models: Models, settings: ProfileSettings) -> None:
        super().__init__(margin=Space.M)
        self._models, self._settings = models, settings
        self.box = QComboBox()
        self.box.setAccessibleName(tr("settings.model.default"))
        self.box.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        self.box.setMinimumContentsLength(18)
        self.box.activated.connect(lambda _at: settings.set("model.default", self.box.currentData()))
        self.add(
            label(tr("settings.model.default"), "strong"), self.box, label(tr("settings.model.default.help"), "caption")
        )
        models.changed.connect(self._show)
        settings.changed.connect(self._changed)
        self._show()

    def _changed(self, key: str) -> None:
        if key in ("", "model.default"):
            self._show()

    def _show(self) -> None:
        now = str(self._settings.value("model.default"))
        self.box.clear()
        for entry in sorted(self._models.entries, key=lambda e: not e.ready):
            self.box.addItem(model_text(entry), entry.ref)
        if self.box.findData(now) < 0:
            self.box.insertItem(0, tr("model.local_default") if now == "local" else now, now)
        self.box.setCurrentIndex(self.box.findData(now))


class VaultCard(Card):
    """Where keys are kept, and what to do where they cannot be."""

    def __init__(self, models: Models) -> None:
        super().__init__(margin=Space.M)
        self._models = models
        self.state = pill("")
        self.detail = label("", "caption", selectable=True)
        self.remedy = label("", "warning", selectable=True)
        self.again = button(tr("vault.probe"), models.probe_store, icon="restart")
        self.add(row(label(tr("vault.title"), "strong"), self.state, None), self.detail, self.remedy, Flow(self.again))
        models.store_changed.connect(self._show)
        self._show()

    def _show(self) -> None:
        error, store = self._models.store_error, self._models.store
        detail = remedy = ""
        if error is not None:
            set_pill(self.state, tr("vault.bad"), "danger")
            detail, remedy = told(error)
        elif store is None:
            set_pill(self.state, tr("vault.unknown"))
        else:
            ok = bool(store.get("ok"))
            set_pill(self.state, tr("vault.ok" if ok else "vault.bad"), "success" if ok else "danger")
            name = str(store.get("store") or "")
            named = f"vault.store.{name}"
            detail = tr(named) if current().has(named) else name
            extra = str(store.get("detail") or "")
            detail = detail if ok or not extra else f"{detail}: {extra}"
            keys = (str(store.get("remedy") or ""), "remedy.vault_unavailable")
            remedy = "" if ok else tr(next(k for k in keys if current().has(k)))
        self.detail.setText(detail)
        self.detail.setVisible(bool(detail))
        self.remedy.setText("" if store is not None and store.get("ok") and error is None else remedy)
        self.remedy.setVisible(bool(self.remedy.text()))


class ProvidersTab(Page):
    """See the module."""

    def __init__(self, models: Models, settings: ProfileSettings) -> None:
        super().__init__(inside=True)
        self.default = DefaultModel(models, settings)
        self.keys = {vendor: KeyRow(models, vendor) for vendor in VENDORS}
        self.endpoints = Endpoints(models, settings)
        self.local = LocalModels(models)
        self.vault = VaultCard(models)
        self._models = models
        sections: tuple[tuple[str, str, tuple[QWidget, ...]], ...] = (
            ("", "", (self.default,)),
            ("providers.keys", "providers.keys.lead", tuple(self.keys.values())),
            ("providers.endpoints", "providers.endpoints.lead", (self.endpoints,)),
            ("providers.local", "providers.local.lead", (self.local,)),
            ("providers.vault", "", (self.vault,)),
        )
        for title, lead, parts in sections:
            if title:
                self.column.addSpacing(Space.S)
                self.add(label(tr(title), "heading"))
            if lead:
                self.add(label(tr(lead), "muted"))
            self.add(*parts)
        if models.store is None:
            models.probe_store()
