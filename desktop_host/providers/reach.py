"""Whether the addresses of models answer: each is asked for its list, which costs nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

from desktop_host.core.diagnosis import Reach
from desktop_host.core.errors import HostError
from desktop_host.core.settings import Settings
from desktop_host.providers.clients import Connection
from desktop_host.providers.keys import Keys
from desktop_host.providers.listing import LIST_S
from desktop_host.providers.refs import ANTHROPIC_URL, OPENAI_URL, Remote, parse, remote

Connect = Callable[[Remote, str], tuple[Connection, Any]]
_VENDORS = (
    Remote("anthropic", ANTHROPIC_URL, "", ("anthropic",)), Remote("responses", OPENAI_URL, "", ("openai",)),
)  # fmt: skip


async def look(settings: Settings, keys: Keys, connect: Connect) -> tuple[Reach, ...]:
    """Ask all addresses in use, side by side: those of the settings and routes, and vendors with a key."""
    wanted: dict[tuple[str, str], Remote] = {}
    bad: list[Reach] = []
    for name, named, always in _named(settings):
        if isinstance(named, HostError):
            bad.append(Reach(name, name, named))
        elif always or await keys.has(named):
            wanted.setdefault((named.wire, named.base_url), named)
    return (*bad, *await asyncio.gather(*(_ask(named, keys, connect) for named in wanted.values())))


def _named(settings: Settings) -> Iterator[tuple[str, Remote | HostError, bool]]:
    """`(name, place or why it is none, whether it is asked without a key too)`."""
    for endpoint in settings.endpoints:
        try:
            yield endpoint.name, remote(endpoint.wire, endpoint.base_url, "-"), True
        except HostError as fault:
            yield endpoint.name, fault, True
    routes = {route.name for route in settings.routes}
    chains = [link.model for route in settings.routes for link in route.chain]
    for ref in (settings.model.default, *chains):
        if ref in routes:
            continue
        try:
            named = parse(ref)
        except HostError as fault:
            yield ref, fault, True
            continue
        if isinstance(named, Remote):
            # A route goes on with its next model, and a model without a key is told of by the check `model`.
            yield named.provider, named, False
    for vendor in _VENDORS:
        yield vendor.provider, vendor, False


async def _ask(named: Remote, keys: Keys, connect: Connect) -> Reach:
    try:
        connection, _ = connect(named, await keys.need(named))
    except HostError as fault:
        return Reach(named.provider, named.base_url, fault)
    connection.skew_s = None
    fault_found: HostError | None = None
    try:
        await connection.get("/v1/models?limit=1" if named.wire.startswith("anthropic") else "/models", LIST_S)
    except HostError as fault:
        # Gateways that speak Anthropic's protocol often have no list; every other API has one.
        listless = named.wire == "anthropic-compat" and fault.params.get("status") in (404, 405)
        fault_found = None if listless else fault
    return Reach(named.provider, named.base_url, fault_found, connection.skew_s)
