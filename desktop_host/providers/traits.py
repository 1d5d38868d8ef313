"""How fast and how capable models are, where somebody said: the person, else the table that ships with the host."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path

from desktop_host.core.errors import UserFault
from desktop_host.core.models import ModelEntry
from desktop_host.core.places import shipped
from desktop_host.core.settings_costs import Trait


@dataclass(frozen=True, slots=True)
class TraitTable:
    """The traits of `resources/models.toml`."""

    traits: tuple[Trait, ...] = ()
    kin: tuple[tuple[str, ...], ...] = ()
    """Words that name models of one kind across vendors."""

    def dressed(self, entry: ModelEntry, own: Sequence[Trait] = ()) -> ModelEntry:
        """An entry with what is known of its model; the first name that fits wins, the person's own before ours."""
        name = entry.ref.rsplit("#", 1)[-1].rsplit("/", 1)[-1].lower()
        for trait in (*own, *self.traits):
            if fnmatchcase(name, trait.model.lower()) or fnmatchcase(entry.ref, trait.model):
                return replace(entry, speed=trait.speed, intelligence=trait.intelligence)
        return entry


def read_traits(path: Path | None = None) -> TraitTable:
    """The table as it ships.

    Raises:
        UserFault: `bad_config`, the file is not what it should be.
    """
    source = path or shipped("resources", "models.toml")
    try:
        with source.open("rb") as file:
            whole = tomllib.load(file)
        traits = tuple(Trait(str(r["model"]), int(r["speed"]), int(r["intelligence"])) for r in whole["trait"])
        return TraitTable(traits, tuple(tuple(str(w) for w in row["words"]) for row in whole["kin"]))
    except (OSError, tomllib.TOMLDecodeError, KeyError, TypeError, ValueError) as error:
        raise UserFault("bad_config", f"{source}: {error}", file=str(source), reason=str(error)) from error
