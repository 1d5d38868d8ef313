"""`servers login` and `servers logout`."""

from __future__ import annotations

import asyncio

from desktop_host.cli.context import Run, Verb
from desktop_host.cli.servers import config_of, failure_of, told
from desktop_host.core.asks import Allow, OpenUrl
from desktop_host.core.events import AskRaised
from desktop_host.core.servers import ServerState
from desktop_host.engine.host import Reader
from desktop_host.i18n import tr


async def login(run: Run) -> int:
    """Sign in: the address to open goes to standard error, then the browser is waited for."""
    name = run.ns.name
    config_of(run, name)
    reader = run.host.subscribe(lossless=True)
    asking = asyncio.create_task(_show(run, name, reader))
    try:
        status = await run.host.servers.login(name)
    finally:
        reader.close()
        await asking
    if status.state is not ServerState.READY:
        raise failure_of(name, status.error)
    told(run, name)
    return 0


async def _show(run: Run, name: str, reader: Reader) -> None:
    async for batch in reader:
        for ask in (s.event.ask for s in batch if isinstance(s.event, AskRaised)):
            if isinstance(ask, OpenUrl) and ask.server == name:
                run.out.note(tr("cli.login.open", name=name, url=ask.url))
                await run.host.answer(ask.ask_id, Allow())


async def logout(run: Run) -> int:
    """Sign out."""
    name = run.ns.name
    config_of(run, name)
    revoked = await run.host.servers.logout(name)
    key = "cli.logout.revoked" if revoked else "cli.logout.here"
    run.out.item({"name": name, "signed_out": True, "revoked": revoked}, tr(key, name=name))
    return 0


VERBS: dict[tuple[str, str | None], Verb] = {("servers", "login"): login, ("servers", "logout"): logout}
