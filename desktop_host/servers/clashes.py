"""Imported servers whose names are taken already: renamed, skipped, put in place of the old ones, or refused."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields, replace
from typing import Any

from desktop_host.core.errors import UserFault
from desktop_host.core.server_ports import Clash
from desktop_host.core.servers import ImportedServer
from desktop_host.core.tools import alias_for
from desktop_host.core.values import FrozenDict


def settled(
    servers: Iterable[ImportedServer], taken: frozenset[str], clash: Clash
) -> list[tuple[ImportedServer, bool]]:
    """What is to be added under which name, and whether it takes the place of a server that is there.

    Raises:
        UserFault: `bad_config` with `reason` `name_taken`: a name is taken and `clash` is REFUSE.
    """
    done: list[tuple[ImportedServer, bool]] = []
    names = set(taken)
    for one in servers:
        name = one.config.name
        if name in names:
            if clash is Clash.REFUSE:
                raise UserFault(
                    "bad_config", f"there is a server named {name!r} already", reason="name_taken", server=name
                )
            if clash is Clash.SKIP:
                continue
            if clash is Clash.RENAME or name not in taken:  # Two of one import never replace each other.
                one = _renamed(one, alias_for(name, frozenset(names)))
        names.add(one.config.name)
        done.append((one, one.config.name in taken))
    return done


def _renamed(one: ImportedServer, alias: str) -> ImportedServer:
    """The server under another name; its secrets too, so that they overwrite no other server's."""
    old, new = f"{one.config.name}/", f"{alias}/"

    def moved(value: Any) -> Any:
        if isinstance(value, str):
            return value.replace(f"${{keyring:{old}", f"${{keyring:{new}")
        if isinstance(value, tuple):
            return tuple(moved(v) for v in value)
        return FrozenDict({k: moved(v) for k, v in value.items()}) if isinstance(value, FrozenDict) else value

    launch = one.config.launch
    changed = {f.name: moved(getattr(launch, f.name)) for f in fields(launch)}
    secrets = FrozenDict({new + k.removeprefix(old) if k.startswith(old) else k: v for k, v in one.secrets.items()})
    config = replace(one.config, name=alias, title=one.config.title or one.config.name, launch=type(launch)(**changed))
    return ImportedServer(config, secrets, (*one.warnings, "renamed"))
