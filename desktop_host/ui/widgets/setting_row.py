"""One setting as a row: its name and help, and the control that its metadata asks for."""

from __future__ import annotations

from collections.abc import Iterable

from PySide6.QtCore import QEvent, QObject, Qt, QTimer
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import (
    QBoxLayout,
    QComboBox,
    QDoubleSpinBox,
    QLineEdit,
    QPlainTextEdit,
    QSpinBox,
    QWidget,
)

from desktop_host.core.errors import HostError
from desktop_host.core.settings import Setting, schema
from desktop_host.i18n import current, tr
from desktop_host.ui.theme import Space, theme
from desktop_host.ui.viewmodels.lifetime import while_alive
from desktop_host.ui.viewmodels.settings import ProfileSettings
from desktop_host.ui.widgets.forms import NumberBox
from desktop_host.ui.widgets.page import told
from desktop_host.ui.widgets.pieces import Card, column, label, rule
from desktop_host.ui.widgets.switch import Switch

HIDDEN = frozenset({"general.onboarded", "model.default"})
"""Not drawn from the schema: a mark of ours, and what the models page chooses."""
TYPING_MS = 700


class AmountBox(QDoubleSpinBox):
    """US dollars; the value counts when it is finished, not at each key."""

    def __init__(self, low: float, high: float) -> None:
        super().__init__()
        self.setRange(low, high)
        self.setDecimals(2)
        self.setPrefix("$")
        self.setKeyboardTracking(False)
        self.setMinimumWidth(theme.px(130))
        self.lineEdit().setTextMargins(Space.S, 0, 0, 0)


class SettingRow(QWidget):
    """One key: name and help, and the control its metadata asks for; beside or below, as the room is."""

    def __init__(self, settings: ProfileSettings, spec: Setting) -> None:
        super().__init__()
        self.spec = spec
        self._settings = settings
        name = tr(f"settings.{spec.key}")
        self._line = QBoxLayout(QBoxLayout.Direction.LeftToRight, self)
        self._line.setContentsMargins(0, 0, 0, 0)
        self._line.setSpacing(Space.M)
        words = column(space=2)
        words.addWidget(label(name))
        help_key = f"settings.{spec.key}.help"
        if current().has(help_key):
            words.addWidget(label(tr(help_key), "caption"))
        self._error = label("", "danger")
        self._error.hide()
        words.addWidget(self._error)
        self.control = self._make()
        self.control.setAccessibleName(name)
        if isinstance(self.control, NumberBox | AmountBox):
            self.control.lineEdit().setAccessibleName(name)
        self._line.addLayout(words, 1)
        self._line.addWidget(self.control, 0, Qt.AlignmentFlag.AlignVCenter)
        settings.changed.connect(self._changed)
        self._show()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        below = (
            isinstance(self.control, QPlainTextEdit)
            or self.spec.widget == "address"
            or (self.width() < theme.px(430) and not isinstance(self.control, Switch))
        )
        way = QBoxLayout.Direction.TopToBottom if below else QBoxLayout.Direction.LeftToRight
        if way != self._line.direction():
            self._line.setDirection(way)
            align = Qt.AlignmentFlag(0) if below else Qt.AlignmentFlag.AlignVCenter
            self._line.setAlignment(self.control, align)

    def _make(self) -> QWidget:
        spec = self.spec
        match spec.widget:
            case "choice":
                box = QComboBox()
                for one in spec.choices:
                    box.addItem(tr(f"settings.{spec.key}.{one}"), one)
                box.activated.connect(lambda _at: self._set(box.currentData()))
                box.setMinimumWidth(theme.px(190))
                return box
            case "number":
                low, high = spec.range or (0, 1_000_000)
                scale = spec.key == "general.font_scale"
                spin = NumberBox(int(low), int(high), step=10 if scale else 1, suffix=" %" if scale else "")
                spin.valueChanged.connect(self._set)
                return spin
            case "amount":
                low, high = spec.range or (0, 1_000_000)
                amount = AmountBox(low, high)
                amount.valueChanged.connect(self._set)
                return amount
            case "flag":
                switch = Switch(tr(f"settings.{spec.key}"))
                switch.clicked.connect(self._set)
                return switch
            case "multiline":
                text = QPlainTextEdit()
                text.setFixedHeight(theme.px(96))
                text.setTabChangesFocus(True)
                timer = QTimer(self)
                timer.setSingleShot(True)
                timer.setInterval(TYPING_MS)
                timer.timeout.connect(lambda: self._set(text.toPlainText()))
                text.textChanged.connect(timer.start)
                text.installEventFilter(self)
                self._typing = timer
                return text
            case _:
                line = QLineEdit()
                line.setMinimumWidth(theme.px(220))
                line.editingFinished.connect(lambda: self._set(line.text().strip()))
                return line

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() is QEvent.Type.FocusOut and isinstance(self.control, QPlainTextEdit):
            self._typing.stop()
            self._set(self.control.toPlainText())
        return False

    def _set(self, value: object) -> None:
        if value == self._settings.value(self.spec.key):
            return
        self._error.hide()
        self._settings.set(self.spec.key, value, while_alive(self, self._failed))

    def _failed(self, error: HostError) -> None:
        self._error.setText(" ".join(told(error)))
        self._error.show()

    def _changed(self, key: str) -> None:
        if key in ("", self.spec.key):
            self._show()

    def _show(self) -> None:
        value, control = self._settings.value(self.spec.key), self.control
        blocked = control.blockSignals(True)
        match control:
            case QComboBox():
                control.setCurrentIndex(control.findData(value))
            case QSpinBox():
                control.setValue(int(value))
            case QDoubleSpinBox():
                control.setValue(float(value))
            case Switch():
                control.put(bool(value))
            case QPlainTextEdit() if control.toPlainText() != value:
                control.setPlainText(str(value))
            case QLineEdit() if control.text() != value:
                control.setText(str(value))
                control.setCursorPosition(0)
        control.blockSignals(blocked)


def section_card(settings: ProfileSettings, section: str) -> tuple[Card, dict[str, SettingRow]]:
    """All settings of a section, one below the other."""
    card = Card(space=Space.M)
    rows: dict[str, SettingRow] = {}
    for spec in keys_of((section,)):
        if rows:
            card.add(rule())
        rows[spec.key] = SettingRow(settings, spec)
        card.add(rows[spec.key])
    return card, rows


def keys_of(sections: Iterable[str]) -> list[Setting]:
    """The settings of some sections that are drawn from the schema."""
    wanted = tuple(f"{section}." for section in sections)
    return [s for s in schema() if s.key.startswith(wanted) and s.key not in HIDDEN]
