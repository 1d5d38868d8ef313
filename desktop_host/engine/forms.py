"""The values of an elicitation form: completed from its defaults and checked against its schema."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from desktop_host.core.errors import UserFault
from desktop_host.core.values import FrozenDict, freeze

FormCheck: TypeAlias = Callable[[FrozenDict, FrozenDict], tuple[str, str] | None]
"""By schema and values: the place of the first that does not fit, and why."""


def completed(values: FrozenDict, schema: FrozenDict, check: FormCheck, *, whole: bool = False) -> FrozenDict:
    """The values with the schema's defaults where nothing was said of a field (SEP-1034).

    Args:
        values: what was filled in.
        schema: the server's.
        check: what judges the values.
        whole: the form was shown with its defaults: what is missing was left out by the person, and stays out.

    Raises:
        UserFault: `usage`, a value that the schema does not allow; nothing was sent.
    """
    properties = schema.get("properties") or {}
    filled: dict[str, Any] = (
        {}
        if whole
        else {
            name: field["default"]
            for name, field in properties.items()
            if isinstance(field, dict) and "default" in field
        }
    )
    frozen: FrozenDict = freeze(filled | values)
    wrong = check(schema, frozen)
    if wrong is not None:
        raise UserFault("usage", f"{wrong[0]}: {wrong[1]}", reason="bad_form_value", field=wrong[0])
    return frozen
