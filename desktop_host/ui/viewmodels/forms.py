"""Forms from the flat JSON schemas of MCP elicitation: fields, defaults, limits and what is wrong with a value."""

from __future__ import annotations

import importlib
import json
import math
import re
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any
from urllib.parse import urlsplit

from desktop_host.core.values import FrozenDict, freeze
from desktop_host.i18n import tr, trn

MATCH_S = 0.02
"""Seconds that a match of a server's pattern may take here."""
MISSING = object()
"""A value that was not given."""

_EMAIL = re.compile(r"[^@\s]+@[^@\s.]+(\.[^@\s.]+)+")


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a form."""

    name: str
    kind: str
    """`text`, `integer`, `number`, `flag`, `choice`, `choices` or `json` (what no widget fits)."""
    title: str
    description: str = ""
    required: bool = False
    default: Any = MISSING
    options: tuple[tuple[Any, str], ...] = ()
    """Value and label of each choice."""
    format: str = ""
    low: float | None = None
    high: float | None = None
    """Limits of a number, of a text's length or of how many are chosen."""
    above: float | None = None
    below: float | None = None
    pattern: str = ""

    @property
    def hint(self) -> str:
        """The limits in words; empty where there are none."""
        if self.format in ("email", "uri", "date", "date-time"):
            return tr(f"chat.form.format.{self.format}")
        low, high = _number(self.low), _number(self.high)
        if self.kind in ("integer", "number"):
            if low and high:
                return tr("chat.form.range", low=low, high=high)
            return tr("chat.form.min", low=low) if low else tr("chat.form.max", high=high) if high else ""
        if self.kind in ("text", "choices") and (low or high):
            what = "length" if self.kind == "text" else "items"
            if low and high:
                return tr(f"chat.form.{what}", low=low, high=high)
            return tr(f"chat.form.{what}.min", low=low) if low else tr(f"chat.form.{what}.max", high=high)
        return ""


def form_fields(schema: FrozenDict) -> tuple[Field, ...]:
    """The fields of an elicitation schema, in its order."""
    properties = schema.get("properties")
    required = schema.get("required") or ()
    if not isinstance(properties, dict):
        return ()
    return tuple(_field(name, spec, name in required) for name, spec in properties.items() if isinstance(spec, dict))


def _field(name: str, spec: dict[str, Any], required: bool) -> Field:
    kinds = spec.get("type")
    if isinstance(kinds, tuple):
        kinds = next((k for k in kinds if k != "null"), "string")
    title = str(spec.get("title") or name)
    text = str(spec.get("description") or "")
    default = spec.get("default", MISSING)
    options = _options(spec)
    if options:
        return Field(name, "choice", title, text, required, default, options)
    if kinds == "array" and isinstance(spec.get("items"), dict):
        options = _options(spec["items"])
        if options:
            low, high = spec.get("minItems"), spec.get("maxItems")
            return Field(name, "choices", title, text, required, default, options, low=low, high=high)
    if kinds == "boolean":
        return Field(name, "flag", title, text, required, default)
    if kinds in ("integer", "number"):
        return Field(
            name, kinds, title, text, required, default, low=spec.get("minimum"), high=spec.get("maximum"),
            above=spec.get("exclusiveMinimum"), below=spec.get("exclusiveMaximum"),
        )  # fmt: skip
    if kinds in ("string", None):
        return Field(
            name, "text", title, text, required, default, format=str(spec.get("format") or ""),
            low=spec.get("minLength"), high=spec.get("maxLength"), pattern=str(spec.get("pattern") or ""),
        )  # fmt: skip
    return Field(name, "json", title, text, required, default)


def _options(spec: dict[str, Any]) -> tuple[tuple[Any, str], ...]:
    for key in ("oneOf", "anyOf"):
        named = spec.get(key)
        if isinstance(named, tuple) and named and all(isinstance(o, dict) and "const" in o for o in named):
            return tuple((o["const"], str(o.get("title") or o["const"])) for o in named)
    values = spec.get("enum")
    if not isinstance(values, tuple):
        return ()
    names = spec.get("enumNames")
    labels = names if isinstance(names, tuple) and len(names) == len(values) else values
    return tuple((value, str(label)) for value, label in zip(values, labels, strict=True))


def read(field: Field, raw: Any) -> tuple[Any, str]:
    """The value of what was typed or chosen, and what is wrong with it ("" where nothing is).

    `raw` is a text, a bool, a chosen value or a tuple of chosen values; an empty one is `MISSING`.
    """
    if raw is MISSING or raw is None or (isinstance(raw, str) and not raw.strip() and field.kind != "choice"):
        return MISSING, tr("chat.form.error.required") if field.required else ""
    match field.kind:
        case "integer" | "number":
            return _read_number(field, str(raw))
        case "choices":
            return raw, _bad_count(field, len(raw), "items")
        case "json":
            try:
                return freeze(json.loads(str(raw))), ""
            except ValueError as bad:
                return MISSING, tr("chat.form.error.json", reason=str(bad))
        case "text":
            return raw, _bad_text(field, str(raw))
        case _:
            return raw, ""


def _read_number(field: Field, raw: str) -> tuple[Any, str]:
    text = raw.strip().replace(",", ".") if field.kind == "number" else raw.strip()
    value: float
    try:
        value = int(text) if field.kind == "integer" else float(text)
    except ValueError:
        return MISSING, tr(f"chat.form.error.{field.kind}")
    if not math.isfinite(value):
        return MISSING, tr("chat.form.error.number")
    low, high = field.low, field.high
    if (low is not None and value < low) or (high is not None and value > high):
        return MISSING, field.hint
    if field.above is not None and value <= field.above:
        return MISSING, tr("chat.form.error.above", low=_number(field.above))
    if field.below is not None and value >= field.below:
        return MISSING, tr("chat.form.error.below", high=_number(field.below))
    if field.kind == "number" and value == int(value) and "." not in text and "e" not in text.lower():
        value = int(value)
    return value, ""


def _bad_count(field: Field, n: int, what: str) -> str:
    if field.low is not None and n < field.low:
        return trn(f"chat.form.error.{what}.min", int(field.low))
    if field.high is not None and n > field.high:
        return trn(f"chat.form.error.{what}.max", int(field.high))
    return ""


def _bad_text(field: Field, text: str) -> str:
    wrong = _bad_count(field, len(text), "length")
    if wrong:
        return wrong
    if field.format and not _fits(field.format, text):
        return tr(f"chat.form.error.{field.format}")
    if field.pattern:
        regex: Any = importlib.import_module("regex")
        try:  # The window must not wait: a server can write a pattern that takes `re` for ever.
            if regex.search(field.pattern, text, timeout=MATCH_S) is None:
                return tr("chat.form.error.pattern", pattern=field.pattern)
        except (TimeoutError, regex.error):
            return ""  # Too slow, or of another dialect: the server checks it itself.
    return ""


def _fits(form: str, text: str) -> bool:
    try:
        match form:
            case "email":
                return _EMAIL.fullmatch(text) is not None
            case "uri":
                parts = urlsplit(text)
                return bool(parts.scheme and (parts.netloc or parts.path))
            case "date":
                return len(text) == 10 and bool(date.fromisoformat(text))
            case "date-time":
                moment = datetime.fromisoformat(text)
                return "T" in text.upper() and moment.tzinfo is not None
    except ValueError:
        return False
    return True


def _number(value: float | None) -> str:
    if value is None:
        return ""
    return str(int(value)) if value == int(value) else str(value)
