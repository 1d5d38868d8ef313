"""An elicitation form on the terminal, field by field, each value checked as it is typed."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from desktop_host.cli.output import visible
from desktop_host.core.values import FrozenDict, freeze
from desktop_host.i18n import tr

DECLINE = "!"
_FORMATS = {
    "email": re.compile(r"[^@\s]+@[^@\s]+"),
    "uri": re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:\S+"),
    "date": re.compile(r"\d{4}-\d{2}-\d{2}"),
    "date-time": re.compile(r"\d{4}-\d{2}-\d{2}[Tt ]\d{2}:\d{2}(:\d{2}(\.\d+)?)?([Zz]|[+-]\d{2}:\d{2})?"),
}
_YES = frozenset({"y", "yes", "true", "1", "on", "是"})
_NO = frozenset({"n", "no", "false", "0", "off", "否"})


async def fill(
    schema: FrozenDict, say: Callable[[str], None], type_: Callable[[str], Awaitable[str | None]]
) -> FrozenDict | None:
    """The values a person typed; None: they declined. A field left empty takes its default or stays out."""
    required = schema.get("required") or ()
    properties: Mapping[str, Any] = schema.get("properties") or {}
    values: dict[str, Any] = {}
    say(tr("cli.form.how", mark=DECLINE))
    for name, field in properties.items():
        spec: Mapping[str, Any] = field if isinstance(field, Mapping) else {}
        if spec.get("description"):
            say("  " + visible(str(spec["description"])))
        if options(spec):
            say("  " + visible(", ".join(f"{value}" if value == title else f"{value} ({title})"
                                         for value, title in options(spec))))  # fmt: skip
        while True:
            line = await type_(_label(name, spec, name in required))
            if line is None or line.strip() == DECLINE:
                return None
            if not line.strip():
                if "default" in spec:
                    values[name] = spec["default"]
                elif name in required:
                    say("  " + tr("cli.form.required"))
                    continue
                break
            try:
                values[name] = value_of(line, spec)
                break
            except ValueError as error:
                say("  " + str(error))
    frozen: FrozenDict = freeze(values)
    return frozen


def _label(name: str, spec: Mapping[str, Any], required: bool) -> str:
    title = visible(str(spec.get("title") or name))
    default = f" [{spec['default']}]" if "default" in spec else ""
    return f"  {title}{'*' if required else ''}{visible(default)}: "


def options(spec: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The choices of a field as `(value, title)`; of a multiple choice those of its items."""
    if spec.get("type") == "array":
        items = spec.get("items")
        return options(items) if isinstance(items, Mapping) else []
    for key in ("oneOf", "anyOf"):
        found = [o for o in spec.get(key) or () if isinstance(o, Mapping) and "const" in o]
        if found:
            return [(str(o["const"]), str(o.get("title") or o["const"])) for o in found]
    enum = spec.get("enum") or ()
    names = spec.get("enumNames") or ()
    return [(str(value), str(names[i]) if i < len(names) else str(value)) for i, value in enumerate(enum)]


def value_of(line: str, spec: Mapping[str, Any]) -> Any:
    """The value behind a typed line.

    Raises:
        ValueError: with a sentence that says what is wanted.
    """
    kind = spec.get("type", "string")
    text = line.strip()
    if kind == "array":
        picked = [_choice(part.strip(), spec) for part in re.split(r"[,，]", text) if part.strip()]
        _within(len(picked), spec.get("minItems"), spec.get("maxItems"), "cli.form.items")
        return picked
    if options(spec):
        return _choice(text, spec)
    if kind == "boolean":
        if text.lower() in _YES:
            return True
        if text.lower() in _NO:
            return False
        raise ValueError(tr("cli.form.boolean"))
    if kind in ("integer", "number"):
        try:
            number: int | float = int(text) if kind == "integer" else float(text)
        except ValueError:
            raise ValueError(tr(f"cli.form.{kind}")) from None
        _within(number, spec.get("minimum"), spec.get("maximum"), "cli.form.range")
        return number
    return _string(line, spec)


def _choice(text: str, spec: Mapping[str, Any]) -> str:
    for value, title in options(spec):
        if text in (value, title):
            return value
    raise ValueError(tr("cli.form.choice", choices=", ".join(value for value, _ in options(spec))))


def _string(text: str, spec: Mapping[str, Any]) -> str:
    _within(len(text), spec.get("minLength"), spec.get("maxLength"), "cli.form.length")
    form = _FORMATS.get(str(spec.get("format")))
    if form is not None and not form.fullmatch(text):
        raise ValueError(tr("cli.form.format", form=spec.get("format")))
    return text


def _within(number: float, low: Any, high: Any, key: str) -> None:
    if (low is not None and number < low) or (high is not None and number > high):
        raise ValueError(tr(key, low="" if low is None else low, high="∞" if high is None else high))
