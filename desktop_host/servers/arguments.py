"""Arguments against the tool's own schema, before anything is sent."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from typing import Any

from desktop_host.core.exchange import ToolOutcome
from desktop_host.core.messages import Outcome
from desktop_host.core.tools import ToolSpec
from desktop_host.core.values import FrozenDict, thaw
from desktop_host.servers.json_schema import misfit, validator_of

SHOWN_ERRORS = 5
SHOWN_SCHEMA = 2_000
"""Characters of the right form that the answer quotes."""


@dataclass(frozen=True, slots=True)
class Misfit:
    """What is wrong with arguments."""

    text: str
    """For a model: what is wrong, and the form it should have."""
    field: str = "$"
    """Where the first fault is, as a path from `$`."""
    faults: str = ""
    """All faults, each with its place, by `; `."""
    form: str = ""
    """The JSON Schema, cut where it is long."""


class ArgumentCheck:
    """Compiled validators, one per tool. JSON Schema 2020-12 unless `$schema` says otherwise; nothing is fetched."""

    def __init__(self) -> None:
        self._compiled: dict[str, tuple[FrozenDict, Any]] = {}

    async def problem(self, spec: ToolSpec, arguments: FrozenDict) -> Misfit | None:
        """What is wrong with the arguments and what they should be; None if they fit.

        A schema that is broken itself, or points at something outside it, cannot judge: the server will.
        """
        try:
            json.dumps(thaw(arguments), ensure_ascii=False).encode()
        except UnicodeEncodeError:
            half = "hold half a character (a lone surrogate), which JSON cannot carry"
            return Misfit(f"The arguments {half}; nothing was sent.", faults=f"they {half}")
        validator = await self._validator(spec)
        if validator is None:
            return None
        from referencing.exceptions import Unresolvable

        try:
            errors = sorted(validator.iter_errors(thaw(arguments)), key=lambda e: list(map(str, e.absolute_path)))
        except (Unresolvable, RecursionError):
            return None
        if not errors:
            return None
        told = [f"{_place(e)}: {_clip(e.message, 300)}" for e in errors[:SHOWN_ERRORS]]
        if len(errors) > SHOWN_ERRORS:
            told.append(f"and {len(errors) - SHOWN_ERRORS} more")
        form = _clip(json.dumps(spec.input_schema, ensure_ascii=False), SHOWN_SCHEMA)
        listed = "\n".join(f"- {one}" for one in told)
        text = (
            f"The arguments do not fit the schema of {spec.name!r}; nothing was sent to the server.\n{listed}\n"
            f"The arguments must match this JSON Schema: {form}"
        )
        return Misfit(text, _place(errors[0]), "; ".join(told), form)

    async def unlike_announced(self, spec: ToolSpec, outcome: ToolOutcome) -> str | None:
        """For the server's log: where a result is not what `outputSchema` announced; None if it is.

        The result counts all the same: the tool has run, and what it did would be done twice if it were asked again.
        """
        if spec.output_schema is None or outcome.outcome is not Outcome.OK:
            return None
        if outcome.structured is None:
            return f"{spec.name}: the result has no structuredContent, which its outputSchema announces"
        wrong = await asyncio.to_thread(misfit, spec.output_schema, outcome.structured)
        if wrong is None:
            return None
        return f"{spec.name}: the result does not fit its outputSchema ({wrong[0]}): {_clip(wrong[1], 300)}"

    async def _validator(self, spec: ToolSpec) -> Any:
        known = self._compiled.get(spec.full_name)
        if known is not None and known[0] is spec.input_schema:
            return known[1]
        validator = await asyncio.to_thread(validator_of, thaw(spec.input_schema))
        self._compiled[spec.full_name] = (spec.input_schema, validator)
        return validator


def without_nulls(spec: ToolSpec, arguments: FrozenDict) -> FrozenDict:
    """The arguments less those that are null where the schema has an optional property that takes no null.

    Models write null for "not given"; servers refuse it, and HTTP headers mirrored from it must be left out.
    """
    properties, needed = spec.input_schema.get("properties"), spec.input_schema.get("required") or ()

    def empty(name: str) -> bool:
        schema = properties.get(name) if isinstance(properties, FrozenDict) else None
        kind = schema.get("type") if isinstance(schema, FrozenDict) else None
        kinds = (kind,) if isinstance(kind, str) else kind or ()
        return name not in needed and bool(kinds) and "null" not in kinds

    if all(value is not None for value in arguments.values()):
        return arguments
    return FrozenDict({k: v for k, v in arguments.items() if v is not None or not empty(k)})


def _place(error: Any) -> str:
    path = "".join(f"[{p}]" if isinstance(p, int) else f".{p}" for p in error.absolute_path)
    return f"${path}"


def _clip(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[:limit]}…"
