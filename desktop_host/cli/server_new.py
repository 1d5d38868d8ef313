"""The verb `servers new`: a small, tested server project to start from."""

from __future__ import annotations

import asyncio
import re
import sys
from pathlib import Path

from desktop_host.cli.context import Run, Verb
from desktop_host.core.errors import KnownFault, UserFault
from desktop_host.core.places import shipped
from desktop_host.core.servers import ServerConfig, Stdio
from desktop_host.core.tools import ALIAS
from desktop_host.i18n import tr

_MARK = re.compile(r"__(NAME|TITLE|MODULE)__")


async def new(run: Run) -> int:
    """Write the project and configure it, so that it can be tried at once."""
    name = run.ns.name
    if not ALIAS.fullmatch(name) or not name[0].isalpha():
        raise UserFault("usage", f"{name!r} is no name for a server: small letters, digits and -, a letter first",
                        reason="bad_server_name", name=name)  # fmt: skip
    if any(config.name == name for config in run.host.servers.configs()):
        raise UserFault("bad_config", f"a server of this name is there already: {name}", reason="name_taken",
                        server=name)  # fmt: skip
    folder = await asyncio.to_thread(write_project, name, run.ns.parent)
    launch = Stdio(sys.executable, (str(folder / "dev.py"),))
    await run.host.servers.add(ServerConfig(name, launch))
    run.out.item({"name": name, "folder": str(folder)}, tr("gateway.new.made", name=name, folder=str(folder)))
    return 0


def write_project(name: str, parent: str) -> Path:
    """Write the project's folder. Blocking.

    Raises:
        UserFault: `usage`, the folder is there already.
        KnownFault: `permission`, it cannot be written.
    """
    folder = (Path(parent).expanduser() / name).absolute()
    names = {"NAME": name, "TITLE": name.replace("-", " ").capitalize(), "MODULE": name.replace("-", "_")}
    template = shipped("resources", "templates", "server")
    try:
        folder.mkdir(parents=True)
        for source in sorted(p for p in template.rglob("*") if p.is_file() and "__pycache__" not in p.parts):
            target = folder / _filled(source.relative_to(template).as_posix(), names)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(_filled(source.read_text("utf-8"), names), "utf-8")
    except FileExistsError:
        raise UserFault("usage", f"{folder} is there already", reason="exists", file=str(folder)) from None
    except OSError as error:
        raise KnownFault("permission", f"{folder} cannot be written: {error.strerror}", reason="file",
                         file=str(folder), detail=error.strerror) from None  # fmt: skip
    return folder


def _filled(text: str, names: dict[str, str]) -> str:
    return _MARK.sub(lambda found: names[found[1]], text)


VERBS: dict[tuple[str, str | None], Verb] = {("servers", "new"): new}
