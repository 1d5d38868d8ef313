"""The values of an elicitation form: completed from its defaults and checked against its schema."""

from __future__ import annotations

from typing import Any

from desktop_host.core.errors import UserFault
from desktop_host.core.values import FrozenDict, freeze, thaw


def completed(values: FrozenDict, schema: FrozenDict) -> FrozenDict:
    """The values with the schema's defaults where the person left a field untouched (SEP-1034).

    Raises:
        UserFault: `usage`, a value that the schema does not allow; nothing was sent.
    """
    from jsonschema import Draft202012Validator

    properties = schema.get("properties") or {}
    filled: dict[str, Any] = {
        name: field["default"] for name, field in properties.items() if isinstance(field, dict) and "default" in field
    }
    filled |= values
    error = next(iter(Draft202012Validator(thaw(schema)).iter_errors(thaw(filled))), None)
    if error is not None:
        place = ".".join(str(p) for p in error.path) or "form"
        raise UserFault("usage", f"{place}: {error.message}", reason="bad_form_value", field=place)
    frozen: FrozenDict = freeze(filled)
    return frozen
