"""Which era to speak: remembered, or found out, with a fresh start for servers that die of being asked."""

from __future__ import annotations

from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from desktop_host.core.errors import PeerFault
from desktop_host.core.servers import FailureReport
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


def list_failure(connection: Connection) -> FailureReport | None:
    """A report where the list of tools could not be fetched."""
    why = connection.catalog.errors.get("tools")
    if why is None:
        return None
    told = PeerFault("protocol_error", f"the list of tools could not be fetched: {why}")
    wiring = connection.wiring
    return failure.report(wiring.config, told, failure.Evidence(), wiring.log.lines(), wiring.redact)


__all__ = ["ConnectFailed", "Connection", "connect", "list_failure"]
