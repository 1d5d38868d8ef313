"""Proposals for the arguments of prompts and resource templates while a person types them."""

from __future__ import annotations

import asyncio

from desktop_host.core.server_ports import Completion
from desktop_host.core.servers import ServerScope
from desktop_host.core.values import FrozenDict
from desktop_host.servers.keeper import Keeper

PATIENCE_S = 5.0
MOST = 100
"""Values that a server may send at once, by the specification."""


async def complete(keeper: Keeper, ref: str, argument: str, value: str, context: FrozenDict) -> Completion:
    """Ask a server for proposals; nothing where it does not complete, refuses or is slow.

    Raises:
        KnownFault: the server cannot be used.
    """
    from mcp import MCPError
    from mcp_types import PromptReference, ResourceTemplateReference
    from pydantic import ValidationError

    if keeper.wiring.config.scope is ServerScope.CALL:
        return Completion()
    connection = await keeper.current()
    if "completions" not in connection.capabilities:
        return Completion()
    reference = (
        ResourceTemplateReference(type="ref/resource", uri=ref)
        if "://" in ref
        else PromptReference(type="ref/prompt", name=ref)
    )
    filled = {k: str(v) for k, v in context.items() if k != argument}
    try:
        async with asyncio.timeout(PATIENCE_S):
            result = await connection.client.complete(reference, {"name": argument, "value": value}, filled or None)
    except (MCPError, ValidationError, TimeoutError) as error:
        keeper.wiring.log.add("host", f"no proposals for {argument!r} of {ref!r}: {error}", "info")
        return Completion()
    got = result.completion
    return Completion(tuple(got.values[:MOST]), got.total, bool(got.has_more) or len(got.values) > MOST)
