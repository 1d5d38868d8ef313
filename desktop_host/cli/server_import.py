"""The verbs `servers import`, `found`, `level` and `links`: servers from files, bundles, links, other hosts."""

from __future__ import annotations

import asyncio
import contextlib
import re
from pathlib import Path
from typing import Any

from desktop_host.cli.context import Run, read_text, text_of
from desktop_host.core.bundles import BundlePreview
from desktop_host.core.errors import UserFault
from desktop_host.core.server_ports import Clash, FoundConfig
from desktop_host.core.servers import ImportedServer, ServerConfig, Stdio
from desktop_host.core.values import EMPTY, FrozenDict, thaw
from desktop_host.i18n import current, tr

BUNDLES = (".mcpb", ".dxt")


async def taken_over(run: Run) -> tuple[ServerConfig, ...]:
    """Take over what `servers import` names: a file, pasted words, `-`, a bundle, a link, or `--from` another host.

    Raises:
        UserFault: `usage`, `bad_config`, `bad_bundle`, `not_found`.
    """
    ns = run.ns
    if ns.source_app:
        return await _from_app(run, ns.source_app)
    if ns.file is None:
        raise UserFault("usage", "servers import needs a file, - or --from APP", reason="no_source")
    if Path(ns.file).suffix.lower() in BUNDLES:
        return (await _bundle(run, Path(ns.file)),)
    if ns.values:
        raise UserFault("usage", "--set is for bundles", reason="not_for_file", options="--set")
    if re.match(r"(desktop-host|cursor|vscode(-insiders)?|lmstudio):", ns.file):
        link = run.host.servers.link(ns.file)
        return await _add(run, link.servers)
    text = await _given(run, ns.file)
    clash = Clash(ns.clash)
    rename = clash is Clash.RENAME
    return await _add(run, run.host.servers.parse(text) if rename else await run.host.servers.read_all(text))


async def _given(run: Run, source: str) -> str:
    """What a file holds, or the words themselves where they are no file: a pasted command line, URL or snippet."""
    if source == "-":
        return text_of(await run.stdin.data(), "stdin")
    words = source.strip()
    named = Path(words).suffix.lower() in (".json", ".jsonc") and " -" not in words
    if not named and re.match(r"https?://\S+$|[{\"]|\S+\s+\S", words):
        with contextlib.suppress(OSError):  # A snippet may be longer than any file's name.
            if await asyncio.to_thread(Path(source).is_file):
                return await asyncio.to_thread(read_text, source)
        return words
    return await asyncio.to_thread(read_text, source)


async def _add(run: Run, found: tuple[ImportedServer, ...]) -> tuple[ServerConfig, ...]:
    """Add what is new; what is there already is named and left as it is, unless another clash rule was asked for."""
    servers = run.host.servers
    there = await servers.twins(found) if Clash(run.ns.clash) is Clash.RENAME else EMPTY
    known = {c.name: c for c in servers.configs()}
    old = tuple(known[name] for name in dict.fromkeys(there.values()))
    for config in old:
        run.out.note(tr("cli.servers.already", name=config.name))
    found = tuple(one for one in found if one.config.name not in there)
    for server in found:
        for warning in server.warnings:
            run.out.note(f"{server.config.name}: {_warning(warning)}")
    configs = await servers.take_over(found, Clash(run.ns.clash))
    if found and not configs:
        run.out.note(tr("cli.servers.skipped"))
    return (*old, *configs)


async def _from_app(run: Run, app: str) -> tuple[ServerConfig, ...]:
    matching = [one for one in await run.host.servers.found() if one.app == app]
    if not matching:
        raise UserFault("not_found", f"no servers of {app} were found here", kind="app", name=app)
    for one in matching:
        if one.problem:
            run.out.note(f"{one.path}: {_problem(one.problem)}")
    return await _add(run, tuple(s for one in matching for s in one.servers))


async def _bundle(run: Run, path: Path) -> ServerConfig:
    preview = await run.host.bundles.preview(path)
    run.out.note(tr("cli.servers.bundle", title=preview.title, version=preview.version, author=preview.author,
                    command=preview.config.target))  # fmt: skip
    for warning in preview.warnings:
        run.out.note(f"{preview.name}: {_warning(warning)}")
    return await run.host.bundles.install(path, await _values(run, preview))


async def _values(run: Run, preview: BundlePreview) -> FrozenDict:
    """The values of `--set`; a field that takes several may be given several times."""
    many = {f.key for f in preview.fields if f.multiple}
    values: dict[str, Any] = {}
    for _option, key, value in run.ns.values or ():
        given = await run.stdin.secret(key) if value == "-" else value
        values[key] = (*values.get(key, ()), given) if key in many else given
    return FrozenDict(values)


def _warning(code: str) -> str:
    key = f"server.warning.{code}"
    return tr(key) if current().has(key) else code.replace("_", " ")


def _problem(code: str) -> str:
    key = f"found.problem.{'json' if code.startswith('json_') else code}"
    return tr(key) if current().has(key) else code


async def found(run: Run) -> int:
    """What other hosts on this computer have configured; nothing is taken over."""
    configs = await run.host.servers.found()
    for one in configs:
        run.out.item(_found_object(one))
        run.out.note(tr("cli.servers.found", title=one.title, path=str(one.path)))
        if one.problem:
            run.out.note(f"  {_problem(one.problem)}")
        run.out.table([[s.config.name, s.config.target, ", ".join(s.warnings)] for s in one.servers])
    if not configs:
        run.out.note(tr("cli.servers.found_none"))
    return 0


def _found_object(one: FoundConfig) -> dict[str, Any]:
    return {
        "app": one.app, "title": one.title, "path": str(one.path), "problem": one.problem,
        "servers": [
            {
                "name": s.config.name, "target": s.config.target, "transport": s.config.transport,
                "env": thaw(s.config.launch.env) if isinstance(s.config.launch, Stdio) else {},
                "warnings": list(s.warnings),
            }
            for s in one.servers
        ],
    }  # fmt: skip


async def level(run: Run) -> int:
    """Set from which level on a server's own messages are logged."""
    await run.host.servers.set_log_level(run.ns.name, run.ns.level)
    run.out.item(
        {"name": run.ns.name, "level": run.ns.level}, tr("cli.servers.level", name=run.ns.name, level=run.ns.level)
    )
    return 0


async def links(run: Run) -> int:
    """Whether the desktop opens `desktop-host://` links and bundles with this host; `on` and `off` change it."""
    desk = run.host.install_links
    state = await (desk.state() if run.ns.switch is None else desk.put(run.ns.switch == "on"))
    key = "cli.links.on" if state.on else "cli.links.off" if state.possible else "links.not_here"
    run.out.item(
        {"possible": state.possible, "on": state.on, "place": state.place, "program": state.program},
        tr(key, place=state.place, program=state.program),
    )
    return 0
