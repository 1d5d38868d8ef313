"""The tools of a request in wire form, made once per set and kept from step to step."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from desktop_host.core.tools import ToolSpec
from desktop_host.core.values import FrozenDict, freeze
from desktop_host.providers.schemas import WireSchema, described, renamed, restored, wire_schema

Shape = Callable[[str, str, dict[str, Any]], dict[str, Any]]
"""`(wire name, description, schema)` to one entry of the vendor's list."""

_INDEX = re.compile(r"tools[.\[](\d+)")
_KEPT_SETS = 4


@dataclass(frozen=True, slots=True)
class ToolProfile:
    """What a wire asks of tool definitions."""

    shape: Shape
    rename: bool = False
    description_limit: int | None = None


@dataclass(frozen=True, slots=True)
class WireTools:
    """A set of tools as one JSON text."""

    text: str
    """The JSON array, empty where there are no tools."""
    specs: tuple[ToolSpec, ...] = ()
    """The tools that were sent, by their place on the wire."""
    renames: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    dropped: int = 0
    """How many were left out because the vendor takes no more."""

    @property
    def names(self) -> frozenset[str]:
        """Wire names that were sent."""
        return frozenset(spec.wire_name for spec in self.specs)

    def arguments(self, wire_name: str, arguments: Mapping[str, Any]) -> FrozenDict:
        """A call's arguments with the tool's own keys."""
        renames = self.renames.get(wire_name)
        frozen: FrozenDict = freeze(restored(arguments, renames) if renames else arguments)
        return frozen

    def wire_arguments(self, wire_name: str, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        """A kept call's arguments with the keys of the wire."""
        renames = self.renames.get(wire_name)
        return renamed(arguments, renames) if renames else arguments

    def culprit(self, text: str, param: str = "") -> ToolSpec | None:
        """The tool that a vendor's refusal names, by place or by name."""
        for said in (param, text):
            found = _INDEX.search(said)
            if found and int(found[1]) < len(self.specs):
                return self.specs[int(found[1])]
        named = [spec for spec in self.specs if re.search(rf"(?<![\w-]){re.escape(spec.wire_name)}(?![\w-])", text)]
        return max(named, key=lambda spec: len(spec.wire_name), default=None)


@dataclass(slots=True)
class Workshop:
    """Makes wire tools and keeps the latest sets."""

    profile: ToolProfile
    _made: list[tuple[tuple[Any, ...], WireTools]] = field(default_factory=list)

    def tools(
        self,
        specs: tuple[ToolSpec, ...],
        *,
        without: frozenset[str] = frozenset(),
        reduced: bool = False,
        limit: int | None = None,
    ) -> WireTools:
        """The wire form of `specs`: duplicates and quarantined names left out, at most `limit`."""
        if not specs:
            return WireTools("")
        key = (specs, without, reduced, limit)
        for known, made in self._made:
            if known == key:
                return made
        made = self._make(specs, without, reduced, limit)
        self._made = [(key, made), *self._made[: _KEPT_SETS - 1]]
        return made

    def _make(
        self, specs: tuple[ToolSpec, ...], without: frozenset[str], reduced: bool, limit: int | None
    ) -> WireTools:
        chosen: dict[str, ToolSpec] = {}
        for spec in specs:
            if spec.wire_name not in without:
                chosen.setdefault(spec.wire_name, spec)
        sent = list(chosen.values())[:limit]
        entries: list[dict[str, Any]] = []
        renames: dict[str, Mapping[str, str]] = {}
        for spec in sent:
            name = spec.wire_name
            made: WireSchema = wire_schema(spec.input_schema, rename=self.profile.rename, reduced=reduced)
            entries.append(
                self.profile.shape(name, described(spec, made.notes, self.profile.description_limit), made.schema)
            )
            if made.renames:
                renames[name] = made.renames
        text = json.dumps(entries, ensure_ascii=False, separators=(",", ":")) if entries else ""
        return WireTools(text, tuple(sent), renames, len(chosen) - len(sent))
