"""Addresses that speak a vendor's protocol: add, change, test, remove."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QLineEdit, QWidget

from desktop_host.core.errors import HostError
from desktop_host.core.settings import Endpoint
from desktop_host.i18n import tr
from desktop_host.ui.theme import Space, set_role
from desktop_host.ui.viewmodels.lifetime import while_alive
from desktop_host.ui.viewmodels.models import WIRES, Models, endpoint_ref
from desktop_host.ui.viewmodels.settings import ProfileSettings
from desktop_host.ui.widgets.confirm import confirm
from desktop_host.ui.widgets.flow import Flow
from desktop_host.ui.widgets.forms import Field, Lines
from desktop_host.ui.widgets.key_row import secret_field, take
from desktop_host.ui.widgets.page import told
from desktop_host.ui.widgets.pieces import Card, Elided, button, clear, column, label, pill, row
from desktop_host.ui.widgets.server_form import choice


class EndpointForm(Card):
    """The fields of one address; its key goes to the vault under the address."""

    done = Signal()

    def __init__(self, models: Models, settings: ProfileSettings, old: Endpoint | None = None) -> None:
        super().__init__(space=Space.M)
        self._models, self._settings, self._old = models, settings, old
        self.url = QLineEdit(old.base_url if old else "")
        self.url.setPlaceholderText("http://localhost:11434/v1")
        self.name = QLineEdit(old.name if old else "")
        self.wire = choice([(w, tr(f"endpoint.wire.{w}")) for w in WIRES], old.wire if old else "compat")
        self.key = secret_field(tr("endpoint.key"))
        self.models = Lines(old.models if old else (), rows=3)
        self._url = Field(tr("endpoint.url"), self.url, tr("endpoint.url.help"))
        self._said = label("", "danger")
        self._said.hide()
        self.save = button(tr("action.save"), self._save, role="primary")
        for part in (
            self._url,
            Field(tr("endpoint.wire"), self.wire),
            Field(tr("endpoint.key"), self.key, tr("endpoint.key.help")),
            Field(tr("endpoint.models"), self.models, tr("endpoint.models.help")),
            Field(tr("endpoint.name"), self.name),
            self._said,
        ):
            self.add(part)
        self.add(Flow(self.save, button(tr("action.cancel"), self.done.emit)))

    def _save(self) -> None:
        url = self.url.text().strip().rstrip("/")
        good = url.startswith(("http://", "https://")) and len(url.split("//", 1)[1]) > 0
        self._url.complain("" if good else tr("form.bad_url"))
        if not good:
            return
        host = url.split("//", 1)[1].split("/", 1)[0]
        models = tuple(dict.fromkeys(m.strip() for m in self.models.values() if m.strip()))
        made = Endpoint(self.name.text().strip() or host, str(self.wire.currentData()), url, models)
        others = tuple(e for e in self._settings.current.endpoints if e != self._old and e.name != made.name)
        self.save.setEnabled(False)
        secret = take(self.key)
        failed = while_alive(self, self._failed)

        def keep() -> None:
            self._settings.put_endpoints((*others, made), while_alive(self, self._kept), failed)

        if secret:
            self._models.put_key(url, secret, keep, failed)
        else:
            keep()

    def _kept(self) -> None:
        self._models.refresh(ask_vendors=True)
        self.done.emit()

    def _failed(self, error: HostError) -> None:
        self.save.setEnabled(True)
        self._said.setText("\n".join(part for part in told(error) if part))
        self._said.show()


class EndpointRow(Card):
    """One address."""

    def __init__(
        self, models: Models, settings: ProfileSettings, one: Endpoint, edit: Callable[[Endpoint], None]
    ) -> None:
        super().__init__(margin=Space.M)
        self._models, self._settings, self.endpoint = models, settings, one
        self.setAccessibleName(one.name)
        self.test = button(tr("key.test"), self._test)
        self._said = label("", selectable=True)
        self._said.hide()
        change = button(tr("action.edit"), lambda: edit(one), icon="edit")
        remove = button(tr("action.remove"), self._remove, role="quiet", icon="trash")
        for made, key in (
            (self.test, "endpoint.test_of"),
            (change, "endpoint.edit_of"),
            (remove, "endpoint.remove_of"),
        ):
            made.setAccessibleName(tr(key, name=one.name))
        self.add(row(Elided(one.name, "strong", snug=True), pill(tr(f"endpoint.wire.{one.wire}")), None))
        self.add(Elided(one.base_url, "code"), Flow(self.test, change, remove), self._said)

    def _test(self) -> None:
        ref = self._models.check_ref(self.endpoint.name)
        if ref is None and self.endpoint.models:
            ref = endpoint_ref(self.endpoint, self.endpoint.models[0])
        if ref is None:
            self._say(tr("endpoint.no_model"), "warning")
            return
        self.test.setEnabled(False)
        self._say(tr("key.testing"), "muted")
        works = while_alive(self, lambda: self._tested(tr("endpoint.works"), "success"))
        self._models.check(ref, works, while_alive(self, self._failed))

    def _failed(self, error: HostError) -> None:
        self._tested("\n".join(part for part in told(error) if part), "danger")

    def _tested(self, text: str, role: str) -> None:
        self.test.setEnabled(True)
        self._say(text, role)

    def _say(self, text: str, role: str) -> None:
        self._said.setText(text)
        set_role(self._said, role)
        self._said.show()

    def _remove(self) -> None:
        one = self.endpoint

        def act() -> None:
            rest = tuple(e for e in self._settings.current.endpoints if e != one)
            self._settings.put_endpoints(rest, self._gone, while_alive(self, self._failed))

        confirm(
            self.window(), tr("endpoint.remove.title", name=one.name), tr("endpoint.remove.text"),
            tr("action.remove"), act,
        )  # fmt: skip

    def _gone(self) -> None:
        if self.endpoint.base_url in self._models.keys:
            self._models.delete_key(self.endpoint.base_url)
        self._models.refresh()


class Endpoints(QWidget):
    """All addresses, and the form that adds one."""

    def __init__(self, models: Models, settings: ProfileSettings) -> None:
        super().__init__()
        self._models, self._settings = models, settings
        self.rows: list[EndpointRow] = []
        self.form: EndpointForm | None = None
        self._shown: tuple[Endpoint, ...] | None = None
        self._list = column(space=Space.S)
        self._slot = column()
        self.add_one = button(tr("endpoint.add"), self.open_form, icon="plus")
        inner = column(self, space=Space.S)
        inner.addLayout(self._list)
        inner.addLayout(self._slot)
        inner.addLayout(row(self.add_one, None))
        settings.changed.connect(self._show)
        self._show()

    def open_form(self, old: Endpoint | None = None) -> None:
        """Show the fields, empty or with those of an address."""
        self._close_form()
        self.form = EndpointForm(self._models, self._settings, old)
        self.form.done.connect(self._close_form)
        self._slot.addWidget(self.form)
        self.add_one.hide()
        self.form.url.setFocus()

    def _close_form(self) -> None:
        clear(self._slot)
        self.form = None
        self.add_one.show()

    def _show(self, _key: str = "") -> None:
        endpoints = self._settings.current.endpoints
        if endpoints == self._shown:
            return
        self._shown = endpoints
        clear(self._list)
        self.rows = [EndpointRow(self._models, self._settings, one, self.open_form) for one in endpoints]
        for one in self.rows:
            self._list.addWidget(one)
