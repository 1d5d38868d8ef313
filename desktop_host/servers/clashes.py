"""Imported servers whose names are taken already: renamed, skipped, put in place of the old ones, or refused."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from dataclasses import fields, replace
from typing import Any

from desktop_host.core.errors import UserFault
from desktop_host.core.server_ports import Clash
from desktop_host.core.servers import ImportedServer, ServerConfig
from desktop_host.core.tools import alias_for
from desktop_host.core.values import FrozenDict
from desktop_host.servers.entries import OURS, to_json
from desktop_host.servers.hiding import Hidden, hide


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


async def twin(one: ImportedServer, there: Iterable[ServerConfig], kept: Callable[[str], Awaitable[str | None]]) -> str:
    """The name of the server that an imported one already is; empty where it is a new one.

    The same program or address with the same environment, headers and secrets, under its name or that name with
    a number. What the person has set since (title, switches, limits) makes no other server of it.

    Args:
        one: the imported server, by its own name or renamed since that is taken.
        there: the servers that are configured.
        kept: reads a secret of the vault.
    """
    for old in there:
        if _plain(old.name) != _plain(one.config.name):
            continue
        new = one if old.name == one.config.name else _renamed(one, old.name)
        config, hidden = hide(old)
        theirs, ours = to_json(new.config), to_json(config)
        wanted, has = theirs.pop(OURS, {}), ours.pop(OURS, {})
        same = theirs == ours and all(has.get(k) == v for k, v in wanted.items() if k not in ("title", "enabled"))
        if same and [v async for v in _values(new, hidden, kept)] == list(new.secrets.values()):
            return old.name
    return ""


async def _values(
    new: ImportedServer, hidden: Hidden, kept: Callable[[str], Awaitable[str | None]]
) -> AsyncIterator[str | None]:
    for name in new.secrets:
        plain = hidden.secrets.get(name)
        yield await kept(name) if plain is None else plain


def _plain(name: str) -> str:
    return re.sub(r"(-\d+)+$", "", name)


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
