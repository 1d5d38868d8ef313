"""JSON values that nobody can change: what messages, events and schemas are made of."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NoReturn


class FrozenDict(dict[str, Any]):
    """A JSON object without mutators. A `dict` still, so `json.dumps` and `==` need no help."""

    __slots__ = ("_hash",)

    def _refuse(self, *_a: object, **_k: object) -> NoReturn:
        raise TypeError("a frozen JSON value cannot be changed; use thaw() to get a copy")

    __setitem__ = __delitem__ = clear = pop = popitem = setdefault = update = _refuse
    __ior__ = _refuse

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(json.dumps(self, sort_keys=True, ensure_ascii=False))

    def __reduce__(self) -> tuple[Any, ...]:
        return (FrozenDict, (dict(self),))

    def __copy__(self) -> FrozenDict:
        return self

    def __deepcopy__(self, _memo: object) -> FrozenDict:
        return self


Json = None | bool | int | float | str | tuple["Json", ...] | FrozenDict
"""A frozen JSON value: objects are `FrozenDict`, arrays are tuples."""

EMPTY = FrozenDict()


def freeze(value: Any) -> Any:
    """Return `value` (any JSON-like value) with every object and array made immutable.

    Raises:
        TypeError: `value` holds something that JSON has no word for.
    """
    if value is None or isinstance(value, (bool, int, float, str, FrozenDict)):
        return value
    if isinstance(value, Mapping):
        return FrozenDict({str(k): freeze(v) for k, v in value.items()})
    if isinstance(value, (list, tuple)):
        return tuple(freeze(v) for v in value)
    raise TypeError(f"not a JSON value: {type(value).__name__}")


_PLAIN = frozenset({str, int, float, bool, type(None)})


def thaw(value: Any) -> Any:
    """Return a mutable deep copy of a frozen JSON value: dicts and lists."""
    if type(value) in _PLAIN:  # before the abstract class, whose check is what costs: each event goes through here
        return value
    if isinstance(value, Mapping):
        return {k: thaw(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [thaw(v) for v in value]
    return value


def canonical(value: Any) -> str:
    """One text for equal JSON values: sorted keys, no spaces. Used for digests and argument patterns."""
    return json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
