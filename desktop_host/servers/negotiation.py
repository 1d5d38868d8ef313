"""Which era to speak: remembered, or found out, with a fresh start for servers that die of being asked."""

from __future__ import annotations

from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from desktop_host.core.errors import PeerFault
from desktop_host.core.servers import FailureReport, ServerScope
from desktop_host.servers import failure
from desktop_host.servers.connect_failed import ConnectFailed
from desktop_host.servers.connection import Connection
from desktop_host.servers.wiring import Wiring


async def connect(wiring: Wiring, session: str | None = None) -> Connection:
    """Connect in the remembered era, or find out; a server that dies of the question is started afresh in the other.

    Raises:
        ConnectFailed: with the report of the last attempt.
    """
    config = wiring.config
    modes = {"legacy": ["legacy"], "2026-07-28": ["2026-07-28"]}.get(config.protocol.value, ["auto", "legacy"])
    remembered = wiring.eras.get(config)
    if len(modes) == 2 and remembered is not None and remembered not in MODERN_PROTOCOL_VERSIONS:
        modes.reverse()
    for n, mode in enumerate(modes):
        connection = Connection(wiring, session)
        try:
            await connection.open(mode)
        except ConnectFailed as failed:
            if n + 1 == len(modes) or not failed.era_suspect:
                raise
            wiring.log.add("host", f"no connection in mode {mode}; starting afresh in mode {modes[n + 1]}", "info")
            await wiring.eras.forget(config)
            continue
        if config.protocol.value == "auto":
            await wiring.eras.put(config, connection.era)
        return connection
    raise AssertionError("unreachable")


async def first_lists(connection: Connection) -> None:
    """Fetch what a server must show to be ready; the rest follows.

    Raises:
        ConnectFailed: it lets anybody in, but shows its tools only to who is signed in.
    """
    wiring, catalog = connection.wiring, connection.catalog
    if wiring.config.scope is ServerScope.CALL:
        await catalog.load(tell=False)
    else:
        await catalog.load(("tools",), tell=False)
    fault = connection.facts.fault
    if fault is not None and fault.code == "auth" and "tools" in catalog.errors:
        told = failure.report(wiring.config, fault, failure.Evidence(), wiring.log.lines(), wiring.redact)
        raise ConnectFailed(told, final=True, era_suspect=False)
    if wiring.config.scope is not ServerScope.CALL:
        connection.load_soon(("resources", "prompts"))


def list_failure(connection: Connection) -> FailureReport | None:
    """A report where the list of tools could not be fetched."""
    why = connection.catalog.errors.get("tools")
    if why is None:
        return None
    told = PeerFault(
        "protocol_error", f"the list of tools could not be fetched: {why}", what="no_list", detail=str(why)
    )
    wiring = connection.wiring
    return failure.report(wiring.config, told, failure.Evidence(), wiring.log.lines(), wiring.redact)


__all__ = ["ConnectFailed", "Connection", "connect", "first_lists", "list_failure"]
