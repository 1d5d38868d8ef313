"""A server that wants pages visited before it does its work (error -32042): asked for, opened, and tried again."""

from __future__ import annotations

import asyncio

from mcp import MCPError, UrlElicitationRequiredError
from pydantic import ValidationError

from desktop_host.core.exchange import Origin, UrlRequest
from desktop_host.servers.connection import Connection


async def opened(connection: Connection, error: MCPError, origin: Origin) -> bool:
    """Ask the person for each page; whether the call is worth another try.

    A page that was opened already during this call is asked for again, in other words, since the server still waits
    for what the person does there. That question answers itself as soon as the server tells that it is done
    (`notifications/elicitation/complete`, revision 2025-11-25).
    """
    try:
        wanted = UrlElicitationRequiredError.from_error(error.error).elicitations
    except ValidationError:
        return False
    if not wanted:
        return False
    with connection.floor.asking():
        for one in wanted:
            if not await _visited(connection, UrlRequest(one.message, one.url, one.elicitation_id), origin):
                return False
    return True


async def _visited(connection: Connection, request: UrlRequest, origin: Origin) -> bool:
    finished = connection.floor.finished
    if request.elicitation_id in finished:
        return True
    asking = asyncio.ensure_future(connection.wiring.reviewer.elicit(origin, request))
    try:
        while not asking.done() and request.elicitation_id not in finished:
            news = asyncio.ensure_future(connection.floor.finishing.wait())
            await asyncio.wait({asking, news}, return_when=asyncio.FIRST_COMPLETED)
            news.cancel()
            connection.floor.finishing.clear()
        if asking.done():
            return (await asking).action == "accept"
        return True
    finally:
        asking.cancel()  # Closes the question, if it is still open.
        await asyncio.wait({asking})
