"""A request sent again by the person, as the inspector shows it."""

from __future__ import annotations

import asyncio
from typing import Any

from desktop_host.core.errors import KnownFault, PeerFault, UserFault
from desktop_host.core.servers import ServerScope
from desktop_host.core.values import FrozenDict, freeze, thaw
from desktop_host.servers.keeper import Keeper
from desktop_host.servers.wiring import idle_s

REFUSED = frozenset({"initialize", "subscriptions/listen"})
"""What opens or holds a connection: the host alone sends it."""


async def resend(keeper: Keeper, method: str, params: FrozenDict) -> FrozenDict:
    """Send one request over the server's connection and give its result as it came.

    Raises:
        UserFault: `usage`, the method belongs to the connection itself, or there is no connection that lasts.
        PeerFault: `protocol_error`, the server refused it.
        KnownFault: `tool_timed_out`, or the server cannot be used.
    """
    import mcp_types as T
    from mcp import MCPError
    from pydantic import TypeAdapter, ValidationError

    from desktop_host.servers.tap import WHOLE

    config = keeper.wiring.config
    if method in REFUSED or config.scope is ServerScope.CALL:
        raise UserFault("usage", f"{method} cannot be sent again by hand", reason="cannot_resend", server=config.name)
    connection = await keeper.current()
    everything: Any = TypeAdapter(dict[str, Any])
    request: Any = T.Request[Any, Any](method=method, params=thaw(params) or None)
    try:
        async with asyncio.timeout(idle_s(keeper.wiring.timeouts)):
            got = await connection.client.session.send_request(request, everything)
    except TimeoutError:
        raise KnownFault(
            "tool_timed_out", f"{config.name} did not answer {method} in time", server=config.name
        ) from None
    except (MCPError, ValidationError) as error:
        first = keeper.wiring.redact(str(error)).splitlines()[0]
        raise PeerFault("protocol_error", f"{config.name}: {method}: {first}", server=config.name) from error
    whole = (got.get("_meta") or {}).get(WHOLE)
    made: FrozenDict = freeze(whole if isinstance(whole, dict) else got)
    return made
