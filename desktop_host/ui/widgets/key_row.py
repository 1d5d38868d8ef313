"""A key field: what is typed goes to the vault and is forgotten here; it is never shown again."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLineEdit

from desktop_host.core.errors import HostError
from desktop_host.i18n import tr
from desktop_host.ui.theme import Space, set_role
from desktop_host.ui.viewmodels.lifetime import while_alive
from desktop_host.ui.viewmodels.models import Models
from desktop_host.ui.widgets.flow import Flow
from desktop_host.ui.widgets.page import told
from desktop_host.ui.widgets.pieces import Card, Elided, button, label, pill, row, set_pill


def secret_field(name: str) -> QLineEdit:
    """A field whose contents are hidden, not learnt by input methods, and not to be undone back."""
    field = QLineEdit()
    field.setEchoMode(QLineEdit.EchoMode.Password)
    field.setAccessibleName(name)
    field.setInputMethodHints(
        Qt.InputMethodHint.ImhHiddenText
        | Qt.InputMethodHint.ImhSensitiveData
        | Qt.InputMethodHint.ImhNoPredictiveText
        | Qt.InputMethodHint.ImhNoAutoUppercase
    )
    return field


def take(field: QLineEdit) -> str:
    """The field's text; the field forgets it (`setText` drops the undo history, `clear` would not)."""
    text = field.text().strip()
    field.setText("")
    return text


class KeyRow(Card):
    """The key of a vendor: set or not, save, test, remove."""

    def __init__(self, models: Models, vendor: str) -> None:
        super().__init__(margin=Space.M)
        self._models, self.vendor = models, vendor
        self._testing = False
        title = tr(f"vendor.{vendor}")
        self.setAccessibleName(title)
        self.state = pill("")
        self.field = secret_field(tr("key.field", vendor=title))
        self.field.returnPressed.connect(self._save)
        self.field.textChanged.connect(lambda _text: self._enable())
        self.save = button(tr("key.save"), self._save, role="primary")
        self.test = button(tr("key.test"), self._test)
        self.remove = button(tr("key.remove"), self._remove, role="quiet")
        self.said = label("", selectable=True)
        self.said.hide()
        self.add(
            row(Elided(title, "strong", snug=True), self.state, None),
            self.field,
            Flow(self.save, self.test, self.remove),
        )
        self.add(self.said)
        models.changed.connect(self._show)
        self._show()

    # ---- inside

    def _show(self) -> None:
        known = self.vendor in self._models.keys
        set_pill(self.state, tr("key.set" if known else "key.not_set"), "success" if known else "")
        self.field.setPlaceholderText(tr("key.replace" if known else f"key.hint.{self.vendor}"))
        self.remove.setVisible(known)
        self.test.setVisible(known)
        self._enable()

    def _enable(self) -> None:
        self.save.setEnabled(bool(self.field.text().strip()))
        self.test.setEnabled(not self._testing)

    def _save(self) -> None:
        value = take(self.field)
        if value:
            self._say(tr("key.saving"), "muted")
            self._models.put_key(self.vendor, value, while_alive(self, self._saved), while_alive(self, self._failed))

    def _saved(self) -> None:
        self._say(tr("key.saved"), "success")
        self._test()

    def _test(self) -> None:
        ref = self._models.check_ref(self.vendor)
        if ref is None:
            return
        self._testing = True
        self._enable()
        self._say(tr("key.testing"), "muted")
        self._models.check(ref, while_alive(self, self._works), while_alive(self, self._failed))

    def _works(self) -> None:
        self._testing = False
        self._enable()
        self._say(tr("key.works"), "success")

    def _failed(self, error: HostError) -> None:
        self._testing = False
        self._enable()
        self._say("\n".join(part for part in told(error) if part), "danger")

    def _remove(self) -> None:
        self._models.delete_key(self.vendor)
        self.said.hide()

    def _say(self, text: str, role: str) -> None:
        self.said.setText(text)
        set_role(self.said, role)
        self.said.show()
