"""Form parts: a labelled field with help and an error in place, and texts that stand for lists and pairs."""

from __future__ import annotations

from collections.abc import Iterable

from PySide6.QtWidgets import QAbstractSpinBox, QDoubleSpinBox, QPlainTextEdit, QSpinBox, QWidget

from desktop_host.core.values import FrozenDict
from desktop_host.i18n import tr
from desktop_host.ui.theme import Space, set_role, theme
from desktop_host.ui.widgets.pieces import column, label


class Field(QWidget):
    """A control with its name above, help below, and room for what is wrong with it."""

    def __init__(self, name: str, control: QWidget, help_text: str = "") -> None:
        super().__init__()
        self.control = control
        title = label(name, "strong")
        title.setBuddy(control)
        control.setAccessibleName(name)
        if isinstance(control, QAbstractSpinBox):
            control.lineEdit().setAccessibleName(name)
        if help_text:
            control.setAccessibleDescription(help_text)
        self._error = label("", "danger")
        self._error.hide()
        inner = column(self, space=Space.XS)
        inner.addWidget(title)
        inner.addWidget(control)
        if help_text:
            inner.addWidget(label(help_text, "caption"))
        inner.addWidget(self._error)

    @property
    def error(self) -> str:
        """What is wrong, empty where nothing is."""
        return self._error.text()

    def complain(self, text: str) -> None:
        """Say what is wrong; empty: nothing."""
        self._error.setText(text)
        self._error.setVisible(bool(text))
        self.control.setProperty("state", "error" if text else "")
        style = self.control.style()
        style.unpolish(self.control)
        style.polish(self.control)


class NumberBox(QSpinBox):
    """A whole number; the value counts when it is finished, not at each key."""

    def __init__(self, low: int, high: int, *, step: int = 1, suffix: str = "") -> None:
        super().__init__()
        self.setRange(low, high)
        self.setSingleStep(step)
        self.setSuffix(suffix)
        self.setKeyboardTracking(False)
        self.setGroupSeparatorShown(True)
        self.setMinimumWidth(theme.px(130))
        # The style sheet's padding does not reach the editor inside.
        self.lineEdit().setTextMargins(Space.S, 0, 0, 0)


class SecondsBox(QDoubleSpinBox):
    """A time limit in seconds; with `unset`, the words for none of its own, its lowest value is that."""

    def __init__(self, value: float | None, *, unset: str = "") -> None:
        super().__init__()
        self.setRange(0.0 if unset else 0.1, 86_400)
        self.setSpecialValueText(unset)
        self.setDecimals(1)
        self.setSuffix(" s")
        self.setValue(value or 0.0)
        self.lineEdit().setTextMargins(Space.S, 0, 0, 0)

    def limit(self) -> float | None:
        """The seconds; None where none are set."""
        return self.value() or None


class MoneyBox(QDoubleSpinBox):
    """An amount in US dollars; 0 is no limit, unless `least` is more."""

    def __init__(self, usd: float = 0.0, *, least: float = 0.0) -> None:
        super().__init__()
        self.setRange(least, 10_000)
        self.setDecimals(2)
        self.setPrefix("$ ")
        self.setSpecialValueText("" if least else tr("sampling.no_limit"))
        self.setValue(usd)
        self.setMinimumWidth(theme.px(150))
        self.lineEdit().setTextMargins(Space.S, 0, 0, 0)


class Lines(QPlainTextEdit):
    """A list of texts, one a line; a line may be empty or hold spaces, nothing is split or quoted."""

    def __init__(self, values: Iterable[str] = (), *, rows: int = 4) -> None:
        super().__init__()
        set_role(self, "code")
        self.setTabChangesFocus(True)
        self.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
        self.setFixedHeight(theme.px(18) * rows + 14)
        self.setPlainText("\n".join(values))

    def values(self) -> tuple[str, ...]:
        """The lines; none where the field is empty."""
        text = self.toPlainText()
        return tuple(text.split("\n")) if text else ()


class Pairs(Lines):
    """Names with values, one pair a line: `NAME=value` or `Name: value`."""

    def __init__(self, values: FrozenDict, *, sign: str = "=", rows: int = 4) -> None:
        gap = " " if sign == ":" else ""
        super().__init__((f"{name}{sign}{gap}{value}" for name, value in values.items()), rows=rows)
        self._sign = sign

    def pairs(self) -> FrozenDict:
        """Names to values.

        Raises:
            ValueError: a line without the sign; the message names the line.
        """
        found: dict[str, str] = {}
        for number, line in enumerate(self.values(), 1):
            if not line.strip():
                continue
            name, sign, value = line.partition(self._sign)
            if not sign or not name.strip():
                raise ValueError(tr("form.bad_pair", line=number, sign=self._sign))
            found[name.strip()] = value.strip() if self._sign == ":" else value
        return FrozenDict(found)
