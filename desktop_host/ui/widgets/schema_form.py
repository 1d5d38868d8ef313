"""A form drawn from an elicitation schema: a widget for each kind of field, errors in place."""

from __future__ import annotations

from typing import Any

from PySide6.QtCore import QTimer, Signal
from PySide6.QtWidgets import QCheckBox, QComboBox, QLineEdit, QPlainTextEdit, QScrollArea, QVBoxLayout, QWidget

from desktop_host.core.places import shipped
from desktop_host.core.values import FrozenDict, freeze
from desktop_host.i18n import tr
from desktop_host.ui.theme import Space, theme
from desktop_host.ui.viewmodels.asks import pretty
from desktop_host.ui.viewmodels.forms import MISSING, Field, form_fields, read
from desktop_host.ui.widgets.checks import check_line
from desktop_host.ui.widgets.pieces import column, label


class SchemaForm(QWidget):
    """The fields of a schema, filled with its defaults. `values()` checks them."""

    changed = Signal()

    def __init__(self, schema: FrozenDict, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.rows = tuple(_Row(field) for field in form_fields(schema))
        layout = column(self, space=theme.px(Space.M))
        theme.changed.connect(self._restyle)
        self._restyle()
        for part in self.rows:
            part.changed.connect(self.changed)
            layout.addWidget(part)

    def _restyle(self) -> None:
        c, side = theme.colors, theme.px(16)
        tone = "dark" if theme.dark else "light"
        mark = shipped("resources", "icons", f"check-{tone}.svg").as_posix()
        self.setStyleSheet(
            f"QCheckBox::indicator {{ width: {side}px; height: {side}px; border: 1px solid {c.border_strong}; "
            f"border-radius: {theme.px(4)}px; background: {c.base}; }}"
            f"QCheckBox::indicator:checked {{ background: {c.accent}; border-color: {c.accent}; image: url({mark}); }}"
        )

    def row(self, name: str) -> _Row:
        """The row of one field."""
        return next(r for r in self.rows if r.field.name == name)

    def values(self) -> FrozenDict | None:
        """The values, or None where one is wrong: then it is marked and has the focus."""
        found: dict[str, Any] = {}
        first_bad: _Row | None = None
        for part in self.rows:
            value, wrong = part.check()
            if wrong and first_bad is None:
                first_bad = part
            if value is not MISSING:
                found[part.field.name] = value
        if first_bad is not None:
            first_bad.take_focus()
            QTimer.singleShot(0, first_bad, first_bad.reveal)  # once the complaints have found their room
            return None
        result: FrozenDict = freeze(found)
        return result


class _Row(QWidget):
    changed = Signal()

    def __init__(self, field: Field) -> None:
        super().__init__()
        self.field = field
        layout = column(self, space=theme.px(Space.XS))
        title = f"{field.title} *" if field.required and field.kind != "flag" else field.title
        self.widgets: tuple[QCheckBox | QComboBox | QLineEdit | QPlainTextEdit, ...] = ()
        self._touched = False
        if field.kind != "flag":
            layout.addWidget(label(title, "strong"))
            if field.description:
                layout.addWidget(label(field.description, "muted"))
        self._make(layout)
        if field.kind == "flag" and field.description:
            layout.addWidget(label(field.description, "muted"))
        widget: QWidget
        for widget in self.widgets:
            if not widget.accessibleName():
                widget.setAccessibleName(field.title)
            widget.setAccessibleDescription(" ".join(filter(None, (field.description, field.hint))))
        self.hint = label(field.hint, "caption")
        self.error = label("", "danger")
        layout.addWidget(self.hint)
        layout.addWidget(self.error)
        self.hint.setVisible(bool(field.hint))
        self.error.hide()

    def _make(self, layout: QVBoxLayout) -> None:
        field = self.field
        default = None if field.default is MISSING else field.default
        match field.kind:
            case "flag":
                box = QCheckBox()
                box.setAccessibleName(field.title)
                box.setChecked(default is True)
                box.toggled.connect(self._on_change)
                self.widgets = (box,)
            case "choice":
                combo = QComboBox()
                combo.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
                combo.setMinimumContentsLength(8)  # a long option must not widen the form
                if default is None:
                    combo.addItem(tr("chat.form.choose"), MISSING)
                for value, text in field.options:
                    combo.addItem(text, value)
                if default is not None:
                    combo.setCurrentIndex(
                        max(0, next((i for i, (v, _t) in enumerate(field.options) if v == default), 0))
                    )
                combo.currentIndexChanged.connect(self._on_change)
                self.widgets = (combo,)
            case "choices":
                boxes = []
                chosen = default if isinstance(default, tuple | list) else ()
                for value, text in field.options:
                    box = QCheckBox()
                    box.setAccessibleName(f"{field.title}: {text}")
                    box.setChecked(value in chosen)
                    box.toggled.connect(self._on_change)
                    boxes.append(box)
                self.widgets = tuple(boxes)
            case "json":
                area = QPlainTextEdit()
                area.setFixedHeight(theme.px(90))
                area.setTabChangesFocus(True)
                area.setPlainText("" if default is None else pretty(default))
                area.textChanged.connect(self._on_change)
                self.widgets = (area,)
            case _:
                line = QLineEdit("" if default is None else str(default))
                if field.format == "password":
                    line.setEchoMode(QLineEdit.EchoMode.Password)
                elif field.format == "date":
                    line.setPlaceholderText("2026-01-31")
                elif field.format == "date-time":
                    line.setPlaceholderText("2026-01-31T09:30:00Z")
                line.textChanged.connect(self._on_change)
                self.widgets = (line,)
        names = [field.title] if field.kind == "flag" else [text for _value, text in field.options]
        for at, widget in enumerate(self.widgets):
            if isinstance(widget, QCheckBox):
                layout.addLayout(check_line(widget, names[at]))
            else:
                layout.addWidget(widget)

    def raw(self) -> Any:
        """What was typed or chosen."""
        first = self.widgets[0]
        if isinstance(first, QCheckBox):
            boxes = [w for w in self.widgets if isinstance(w, QCheckBox)]
            if self.field.kind == "flag":
                return first.isChecked()
            chosen = tuple(v for (v, _t), box in zip(self.field.options, boxes, strict=True) if box.isChecked())
            left_out = not chosen and not self.field.required and self.field.default is MISSING and not self._touched
            return MISSING if left_out else chosen
        if isinstance(first, QComboBox):
            return first.currentData()
        if isinstance(first, QPlainTextEdit):
            return first.toPlainText()
        return first.text() if isinstance(first, QLineEdit) else MISSING

    def check(self) -> tuple[Any, str]:
        """The value and what is wrong with it; shows the latter."""
        value, wrong = read(self.field, self.raw())
        self._show(wrong)
        return value, wrong

    def take_focus(self) -> None:
        """Go to the field."""
        self.widgets[0].setFocus()

    def reveal(self) -> None:
        """Scroll so that the field, its name and its complaint are seen."""
        area = self.parentWidget()
        while area is not None and not isinstance(area, QScrollArea):
            area = area.parentWidget()
        if area is not None:
            area.ensureWidgetVisible(self, 0, theme.px(Space.M))

    def _on_change(self, *_a: object) -> None:
        self._touched = True
        if self.error.isVisible():
            self.check()
        self.changed.emit()

    def _show(self, wrong: str) -> None:
        self.error.setText(wrong)
        self.error.setVisible(bool(wrong))
        self.hint.setVisible(bool(self.field.hint) and not wrong)
        for widget in self.widgets:
            widget.setProperty("state", "error" if wrong else "")
            widget.style().unpolish(widget)
            widget.style().polish(widget)
