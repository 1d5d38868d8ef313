"""The verb `profiles`: the tenants below one home."""

from __future__ import annotations

import asyncio
import sys
from argparse import Namespace
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeAlias

from desktop_host.cli.output import Output
from desktop_host.core.errors import HostError, UserFault
from desktop_host.core.profiles import ProfilesPort
from desktop_host.i18n import tr

ProfilesVerb: TypeAlias = Callable[[Namespace, Output, ProfilesPort], Awaitable[int]]


async def _list(ns: Namespace, out: Output, profiles: ProfilesPort) -> int:
    for name in await asyncio.to_thread(profiles.names):
        out.item({"name": name}, name)
    return 0


async def _create(ns: Namespace, out: Output, profiles: ProfilesPort) -> int:
    await asyncio.to_thread(profiles.create, ns.name)
    out.item({"name": ns.name}, tr("cli.profiles.created", name=ns.name))
    return 0


async def _delete(ns: Namespace, out: Output, profiles: ProfilesPort) -> int:
    if ns.name not in await asyncio.to_thread(profiles.names):
        raise UserFault("not_found", f"there is no profile {ns.name!r}", reason="profile", name=ns.name)
    if sys.stdin.isatty() and not out.json:
        # A script that names a profile means it; a person at a terminal is asked once.
        out.note(tr("cli.profiles.sure", name=ns.name))
        if (await asyncio.to_thread(sys.stdin.readline)).strip() != ns.name:
            raise UserFault("usage", "nothing was deleted", reason="not_confirmed", name=ns.name)
    await asyncio.to_thread(profiles.delete, ns.name)
    out.item({"name": ns.name, "removed": True}, tr("cli.profiles.deleted", name=ns.name))
    return 0


def _path(text: str) -> Path:
    return Path(text).expanduser().absolute()


async def _clone(ns: Namespace, out: Output, profiles: ProfilesPort) -> int:
    await asyncio.to_thread(profiles.clone, ns.name, ns.new)
    out.item({"name": ns.new}, tr("cli.profiles.created", name=ns.new))
    return 0


async def _export(ns: Namespace, out: Output, profiles: ProfilesPort) -> int:
    target = _path(ns.output or f"{ns.name}.zip")
    await asyncio.to_thread(profiles.export, ns.name, target)
    out.item({"name": ns.name, "file": str(target)}, str(target))
    return 0


async def _import(ns: Namespace, out: Output, profiles: ProfilesPort) -> int:
    name = await asyncio.to_thread(profiles.take_in, _path(ns.file), ns.name)
    out.item({"name": name}, tr("profiles.told.imported", name=name))
    return 0


VERBS: dict[str, ProfilesVerb] = {
    "list": _list, "create": _create, "delete": _delete, "clone": _clone, "export": _export, "import": _import,
}  # fmt: skip


async def profiles_verb(ns: Namespace, out: Output, profiles: ProfilesPort | None) -> int:
    """Do a verb of `profiles`; it opens no host."""
    if profiles is None:
        raise HostError("bug", "no place of profiles was given to the command line")
    return await VERBS[ns.action](ns, out, profiles)
