"""JSON Schemas that servers wrote, without letting their regular expressions stall the host.

A pattern like `^(a+)+$` takes the standard library's `re` longer than anybody lives, with the interpreter held
meanwhile. Here each match has a limit; what cannot be judged in time is let through, as the server judges it too.
Nothing is fetched.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from desktop_host.core.values import FrozenDict, thaw

MATCH_S = 0.1
"""Seconds that one match of a server's pattern may take."""


def matches(pattern: str, text: str) -> bool:
    """Whether a pattern is found in a text; True where that cannot be told in time, or the pattern is none."""
    regex: Any = importlib.import_module("regex")
    try:
        return regex.search(pattern, text, timeout=MATCH_S) is not None
    except (TimeoutError, regex.error):
        return True


def validator_of(schema: Any) -> Any:
    """A validator of a schema, JSON Schema 2020-12 unless `$schema` says otherwise; None where it is broken itself.

    Blocking for about 0.1 s at first: the library is loaded.
    """
    validators: Any = importlib.import_module("jsonschema.validators")
    exceptions: Any = importlib.import_module("jsonschema.exceptions")
    referencing: Any = importlib.import_module("referencing")
    cls = validators.validator_for(schema, default=validators.Draft202012Validator)
    try:
        cls.check_schema(schema)
    except (exceptions.SchemaError, RecursionError):
        return None
    return _guarded(cls)(schema, registry=referencing.Registry())


def misfit(schema: FrozenDict, value: Any) -> tuple[str, str] | None:
    """The place of the first value that does not fit, and why; None where all fit, or the schema cannot judge."""
    referencing: Any = importlib.import_module("referencing.exceptions")
    validator = validator_of(thaw(schema))
    if validator is None:
        return None
    try:
        error = next(iter(validator.iter_errors(thaw(value))), None)
    except (referencing.Unresolvable, RecursionError):
        return None
    return None if error is None else (".".join(str(p) for p in error.path) or "form", str(error.message))


@cache
def _guarded(cls: Any) -> Any:
    validators: Any = importlib.import_module("jsonschema.validators")
    fault: Any = importlib.import_module("jsonschema.exceptions").ValidationError

    def pattern(validator: Any, wanted: str, instance: Any, _schema: Any) -> Iterator[Any]:
        if validator.is_type(instance, "string") and not matches(wanted, instance):
            yield fault(f"{instance!r} does not match {wanted!r}")

    def pattern_properties(validator: Any, wanted: Mapping[str, Any], instance: Any, _schema: Any) -> Iterator[Any]:
        if validator.is_type(instance, "object"):
            for expression, below in wanted.items():
                for name, item in instance.items():
                    if matches(expression, name):
                        yield from validator.descend(item, below, path=name, schema_path=expression)

    def additional(validator: Any, wanted: Any, instance: Any, schema: Mapping[str, Any]) -> Iterator[Any]:
        if not validator.is_type(instance, "object"):
            return
        known, patterns = schema.get("properties", {}), schema.get("patternProperties", {})
        extra = [n for n in instance if n not in known and not any(matches(p, n) for p in patterns)]
        if validator.is_type(wanted, "object"):
            for name in extra:
                yield from validator.descend(instance[name], wanted, path=name)
        elif wanted is False and extra:
            names, verb = ", ".join(repr(name) for name in extra), "was" if len(extra) == 1 else "were"
            yield fault(f"Additional properties are not allowed ({names} {verb} unexpected)")

    return validators.extend(
        cls, {"pattern": pattern, "patternProperties": pattern_properties, "additionalProperties": additional}
    )
