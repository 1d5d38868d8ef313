"""What a person gives for a bundle's `user_config`: checked, completed, secrets apart."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from desktop_host.core.bundles import BundleField
from desktop_host.core.errors import UserFault
from desktop_host.servers.bundle_archive import bad
from desktop_host.servers.manifest import Secret, filled


def checked(
    path: Path, fields: Sequence[BundleField], given: Mapping[str, Any], kept: Mapping[str, Any], alias: str, home: Path
) -> tuple[dict[str, Any], dict[str, str]]:
    """The values by key (secrets as `Secret`) and the secrets to put into the vault, by name.

    A field that is left out keeps its value of before (`kept`), else takes its default.

    Raises:
        UserFault: `bad_bundle` with `field` and `reason` (`value_missing`, `value_wrong`, `value_unknown`).
    """
    if unknown := sorted(set(given) - {f.key for f in fields}):
        raise bad(path, "value_unknown", f"it asks for no value named {unknown[0]!r}", field=unknown[0])
    values: dict[str, Any] = {}
    secrets: dict[str, str] = {}
    for field in fields:
        name = f"{alias}/{field.key}"
        value = given.get(field.key)
        if value in (None, "", ()) and field.key in kept:
            old = kept[field.key]
            values[field.key] = Secret(old) if field.secret and isinstance(old, str) else old
            continue
        if value in (None, "", ()):
            value = default_of(field, home)
        if value in (None, "", ()):
            if field.required:
                raise bad(path, "value_missing", f"{field.title!r} needs a value", field=field.key, title=field.title)
            continue
        one = _right(path, field, value)
        if field.secret:
            secrets[name] = str(one)
            values[field.key] = Secret(f"${{keyring:{name}}}")
        else:
            values[field.key] = one
    return values, secrets


def default_of(field: BundleField, home: Path) -> Any:
    """The default of a field with `${HOME}` and the like filled in."""

    def one(value: Any) -> Any:
        return "".join(filled(value, home, home, {})).replace("$${", "${") if isinstance(value, str) else value

    return tuple(one(v) for v in field.default) if isinstance(field.default, tuple) else one(field.default)


def _right(path: Path, field: BundleField, value: Any) -> Any:
    if field.multiple:
        listed = list(value) if isinstance(value, (list, tuple)) else [value]
        return [_single(path, field, v) for v in listed]
    if isinstance(value, (list, tuple)):
        raise _wrong(path, field, "one value")
    return _single(path, field, value)


def _single(path: Path, field: BundleField, value: Any) -> Any:
    if field.type == "boolean":
        if isinstance(value, bool):
            return value
        if str(value).lower() in ("true", "false"):
            return str(value).lower() == "true"
        raise _wrong(path, field, "true or false")
    if field.type == "number":
        try:
            number = math.nan if isinstance(value, bool) else float(value)
        except (TypeError, ValueError):
            number = math.nan
        low = -math.inf if field.low is None else field.low
        high = math.inf if field.high is None else field.high
        if not low <= number <= high:
            raise _wrong(path, field, f"a number from {low:g} to {high:g}")
        return int(number) if number.is_integer() else number
    if not isinstance(value, str):
        raise _wrong(path, field, "a text")
    if "\0" in value:
        raise _wrong(path, field, "a text without NUL")
    return str(Path(value).expanduser()) if field.type in ("directory", "file") else value


def _wrong(path: Path, field: BundleField, wanted: str) -> UserFault:
    return bad(path, "value_wrong", f"{field.title!r} must be {wanted}", field=field.key, title=field.title,
               wanted=wanted)  # fmt: skip
