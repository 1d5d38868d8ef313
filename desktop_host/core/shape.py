"""Whether a decoded value is made of what its class says: a journal from elsewhere may hold anything."""

from __future__ import annotations

import math
import types
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache
from typing import Any, ClassVar, Literal, Union, get_args, get_origin, get_type_hints

from desktop_host.core.values import FrozenDict, Json

DEEPEST = 60
"""Levels of values within values; JSON inside them included."""
_BIGGEST = 2**53


def misfit(value: Any, hint: Any, at: str = "") -> str | None:
    """Where `value` is not what `hint` says, as a path; None where it fits.

    Args:
        value: as `codec.decode` gave it.
        hint: a class, or any annotation that the journal's classes use.
        at: the path so far.
    """
    return _misfit(value, hint, at, 0)


def _misfit(value: Any, hint: Any, at: str, depth: int) -> str | None:
    if depth > DEEPEST:
        return f"{at}: nested too deeply"
    if hint == Json or hint is Any:
        return _json(value, at, depth)
    if hint is FrozenDict:
        return _json(value, at, depth) if isinstance(value, FrozenDict) else f"{at}: no object"
    origin = get_origin(hint)
    if origin in (Union, types.UnionType):
        first = None
        for member in get_args(hint):
            found = _misfit(value, member, at, depth)
            if found is None:
                return None
            # The member that it comes from tells most.
            if isinstance(member, type) and type(value) is member:
                first = found
        return first or f"{at}: {type(value).__name__} does not belong here"
    if origin is tuple:
        if not isinstance(value, tuple):
            return f"{at}: no list"
        inner = get_args(hint)
        if len(inner) == 2 and inner[1] is Ellipsis:
            return _first(_misfit(v, inner[0], f"{at}[{i}]", depth + 1) for i, v in enumerate(value))
        if len(inner) != len(value):
            return f"{at}: {len(value)} items"
        return _first(_misfit(v, h, f"{at}[{i}]", depth + 1) for i, (v, h) in enumerate(zip(value, inner, strict=True)))
    if origin is Literal:
        return None if value in get_args(hint) else f"{at}: {value!r:.40}"
    return _plain(value, hint, at, depth)


def _plain(value: Any, hint: Any, at: str, depth: int) -> str | None:
    if hint is None or hint is type(None):
        return None if value is None else f"{at}: not empty"
    if isinstance(hint, type) and issubclass(hint, Enum):
        return None if isinstance(value, hint) else f"{at}: no {hint.__name__}"
    if hint in (int, float):
        kinds = (int,) if hint is int else (int, float)
        sound = isinstance(value, kinds) and not isinstance(value, bool) and math.isfinite(value)
        return None if sound and abs(value) < _BIGGEST else f"{at}: no number that fits"
    if hint in (str, bool):
        return None if isinstance(value, hint) else f"{at}: no {hint.__name__}"
    cls: Any = hint
    if isinstance(hint, type) and is_dataclass(hint):
        if type(value) is not hint:
            return f"{at}: no {hint.__name__}"
        return _first(_misfit(getattr(value, n), h, f"{at}.{n}", depth + 1) for n, h in _hints(cls))
    raise TypeError(f"no check for {hint!r}")


@cache
def _hints(cls: type) -> tuple[tuple[str, Any], ...]:
    hints = get_type_hints(cls)
    return tuple((f.name, hints[f.name]) for f in fields(cls) if get_origin(hints[f.name]) is not ClassVar)


def _first(found: Any) -> str | None:
    return next((one for one in found if one is not None), None)


def _json(value: Any, at: str, depth: int) -> str | None:
    if depth > DEEPEST:
        return f"{at}: nested too deeply"
    if isinstance(value, FrozenDict):
        return _first(_json(v, f"{at}.{k}"[:200], depth + 1) for k, v in value.items())
    if isinstance(value, tuple):
        return _first(_json(v, f"{at}[{i}]", depth + 1) for i, v in enumerate(value))
    if isinstance(value, float) and not math.isfinite(value):
        return f"{at}: no number that fits"
    return None if value is None or isinstance(value, (bool, int, float, str)) else f"{at}: no JSON"
