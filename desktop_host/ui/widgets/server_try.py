"""Running a tool by hand: a form of its schema, or JSON where the person prefers it or no form fits."""

from __future__ import annotations

import json

from PySide6.QtWidgets import QFrame, QPlainTextEdit

from desktop_host.core.errors import HostError
from desktop_host.core.exchange import ToolOutcome
from desktop_host.core.messages import Audio, Image, Outcome
from desktop_host.core.tools import ToolSpec
from desktop_host.core.values import EMPTY, FrozenDict, freeze, thaw
from desktop_host.i18n import tr
from desktop_host.ui.bridge import Bridge
from desktop_host.ui.theme import Space, set_role, theme
from desktop_host.ui.viewmodels.forms import form_fields
from desktop_host.ui.widgets.content_views import view_of
from desktop_host.ui.widgets.flow import Flow
from desktop_host.ui.widgets.page import told
from desktop_host.ui.widgets.pieces import CodeBox, button, clear, column, icon_label, label, row
from desktop_host.ui.widgets.schema_form import SchemaForm
from desktop_host.ui.widgets.server_contents import plain


def sample_arguments(schema: dict[str, object]) -> str:
    """A JSON object with the required fields of a schema, to be filled in."""
    blanks = {"string": "", "integer": 0, "number": 0, "boolean": False, "array": [], "object": {}, "null": None}
    fields = schema.get("properties")
    required = schema.get("required") or ()
    if not isinstance(fields, dict) or not isinstance(required, (list, tuple)):
        return "{}"
    made = {}
    for name in required:
        spec = fields.get(name)
        kind = spec.get("type") if isinstance(spec, dict) else None
        default = spec.get("default") if isinstance(spec, dict) else None
        made[name] = default if default is not None else blanks.get(kind if isinstance(kind, str) else "string", "")
    return json.dumps(made, indent=2, ensure_ascii=False)


def without(schema: FrozenDict, names: FrozenDict) -> FrozenDict:
    """A schema without the fields that are fixed."""
    plain_schema = thaw(schema)
    properties = plain_schema.get("properties")
    if isinstance(properties, dict):
        for name in names:
            properties.pop(name, None)
    if isinstance(required := plain_schema.get("required"), list):
        plain_schema["required"] = [n for n in required if n not in names]
    made: FrozenDict = freeze(plain_schema)
    return made


class TryIt(QFrame):
    """Run a tool by hand: the person's own act, so nothing asks. Fixed arguments are shown locked."""

    def __init__(self, bridge: Bridge, spec: ToolSpec, preset: FrozenDict = EMPTY) -> None:
        super().__init__()
        self._bridge, self._spec, self._preset = bridge, spec, preset
        open_schema = without(spec.input_schema, preset)
        self.form = SchemaForm(open_schema)
        self.arguments = QPlainTextEdit(sample_arguments(open_schema))
        set_role(self.arguments, "code")
        self.arguments.setAccessibleName(tr("tool.arguments"))
        self.arguments.setTabChangesFocus(True)
        self.arguments.setFixedHeight(theme.px(110))
        self.as_json = button(tr("tool.as_json"), role="filter")
        self.as_json.setCheckable(True)
        self.as_json.toggled.connect(self._switch)
        self.run = button(tr("tool.run"), self._run, icon="play")
        self._state = label("", "caption", wrap=False)
        self._result = column(space=Space.S)
        inner = column(self, space=Space.S)
        inner.addWidget(label(tr("tool.try"), "caption"))
        for name, value in preset.items():
            line = row(icon_label("shield", "muted", 14), space=Space.XS)
            shown = label(f"{name} = {json.dumps(value, ensure_ascii=False)}", "code", selectable=True)
            shown.setAccessibleName(tr("tool.fixed_of", name=name))
            line.addWidget(shown, 1)
            inner.addLayout(line)
        inner.addWidget(self.form)
        inner.addWidget(self.arguments)
        inner.addLayout(Flow(self.run, self.as_json, self._state))
        inner.addLayout(self._result)
        if form_fields(open_schema):
            self.arguments.hide()
        else:
            self.form.hide()
            self.as_json.hide()

    def _switch(self, on: bool) -> None:
        if on and (values := self.form.values()) is not None:
            self.arguments.setPlainText(json.dumps(thaw(values), indent=2, ensure_ascii=False))
        self.form.setVisible(not on)
        self.arguments.setVisible(on)

    def _values(self) -> FrozenDict | None:
        if not self.form.isHidden():
            return self.form.values()
        try:
            arguments = json.loads(self.arguments.toPlainText() or "{}")
            if not isinstance(arguments, dict):
                raise TypeError(tr("inspector.object_wanted"))
        except (ValueError, TypeError) as cause:
            self._result.addWidget(label(tr("tool.bad_json", reason=str(cause)), "danger"))
            return None
        made: FrozenDict = freeze(arguments)
        return made

    def _run(self) -> None:
        clear(self._result)
        values = self._values()
        if values is None:
            return
        arguments = FrozenDict({**values, **self._preset})
        self.run.setEnabled(False)
        self._state.setText(tr("tool.running"))
        spec = self._spec
        self._bridge.then(
            lambda host: host.call_by_hand(spec.server, spec.name, arguments), self._done, self._fail, self
        )

    def _done(self, outcome: ToolOutcome) -> None:
        self.run.setEnabled(True)
        good = outcome.outcome is Outcome.OK
        words = tr("tool.done" if good else f"tool.outcome.{outcome.outcome.value}")
        self._state.setText(f"{words} · {outcome.duration_ms:.0f} ms")
        seen = [b for b in outcome.content if isinstance(b, (Image, Audio))]
        if text := plain(b for b in outcome.content if b not in seen):
            self._result.addWidget(CodeBox(text, tr("tool.result"), lines=16))
        for block in seen:
            self._result.addWidget(view_of(block))
        if outcome.structured is not None:
            pretty = json.dumps(outcome.structured, indent=2, ensure_ascii=False)
            self._result.addWidget(CodeBox(pretty, tr("tool.structured"), lines=16))

    def _fail(self, error: HostError) -> None:
        self.run.setEnabled(True)
        self._state.setText("")
        self._result.addWidget(label(" ".join(told(error)), "danger"))
