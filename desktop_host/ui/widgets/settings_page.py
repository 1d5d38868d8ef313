"""Settings: what the settings schema says, models and keys, costs and routes, and standing permissions."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtWidgets import QTabWidget, QWidget

from desktop_host.core.settings import SECTIONS
from desktop_host.i18n import current, tr
from desktop_host.ui.theme import Space
from desktop_host.ui.viewmodels.models import Models
from desktop_host.ui.viewmodels.settings import Permissions, ProfileSettings
from desktop_host.ui.widgets.costs_tab import SECTIONS as COSTS
from desktop_host.ui.widgets.costs_tab import CostsTab
from desktop_host.ui.widgets.flow import Flow
from desktop_host.ui.widgets.links_card import LinksCard
from desktop_host.ui.widgets.page import Centred, Page
from desktop_host.ui.widgets.permissions_page import PermissionsTab
from desktop_host.ui.widgets.pieces import button, label
from desktop_host.ui.widgets.providers_page import ProvidersTab
from desktop_host.ui.widgets.setting_row import SettingRow, keys_of, section_card

TABS = ("general", "models", "costs", "permissions")


class GeneralTab(Page):
    """Every key of the schema but those of costs, by section."""

    def __init__(self, settings: ProfileSettings, first_run: Callable[[], None]) -> None:
        super().__init__(inside=True)
        self._settings = settings
        self.rows: dict[str, SettingRow] = {}
        self.store = label("", "caption", selectable=True)
        """Which database is in use now, whatever the setting says of the next start."""
        for section in SECTIONS:
            # A section without words here is drawn by the page of its own part of the window.
            if section in COSTS or not keys_of((section,)) or not current().has(f"settings.{section}"):
                continue
            if self.rows:
                self.column.addSpacing(Space.S)
            self.add(label(tr(f"settings.{section}"), "heading"))
            card, rows = section_card(settings, section)
            self.rows |= rows
            if section == "storage":
                card.add(self.store)
            self.add(card)
        self.column.addSpacing(Space.S)
        self.links = LinksCard(settings.bridge)
        self.add(label(tr("links"), "heading"), self.links)
        self.add(Flow(button(tr("command.go.first_run"), first_run)))
        settings.changed.connect(self._changed)
        self._changed()

    def _changed(self, _key: str = "") -> None:
        used = self._settings.record
        self.store.setVisible(bool(used))
        if used:
            self.store.setText(tr("settings.storage.now", detail=used["detail"], place=used["place"]))


class SettingsPage(Centred):
    """Four tabs, and what is added to them."""

    def __init__(
        self, settings: ProfileSettings, models: Models, permissions: Permissions, first_run: Callable[[], None]
    ) -> None:
        super().__init__()
        self.column.addWidget(label(tr("nav.settings"), "title"))
        self.general = GeneralTab(settings, first_run)
        self.models = ProvidersTab(models, settings)
        self.costs = CostsTab(settings, models)
        self.permissions = PermissionsTab(permissions)
        self.tabs = QTabWidget()
        self.tabs.setDocumentMode(True)
        self._names: list[str] = []
        for name, tab in zip(TABS, (self.general, self.models, self.costs, self.permissions), strict=True):
            self.add_tab(name, tab)
        self.column.addWidget(self.tabs, 1)

    def add_tab(self, name: str, tab: QWidget) -> None:
        """Append a tab."""
        self._names.append(name)
        self.tabs.addTab(tab, tr(f"settings.tab.{name}"))

    def show_tab(self, name: str) -> None:
        """Show a tab."""
        self.tabs.setCurrentIndex(self._names.index(name))
