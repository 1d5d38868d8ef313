"""The SDK's client as the host wants it: who we are, what we can do, no cache of its own."""

from __future__ import annotations

import secrets
from typing import Any

import mcp_types as T
from mcp import Client, MCPError
from mcp.client import advertise
from pydantic import ValidationError

import desktop_host
from desktop_host.core import apps
from desktop_host.core.errors import PeerFault
from desktop_host.servers.callbacks import Callbacks
from desktop_host.servers.http import HTTP_FAILED, HTTP_STATUS
from desktop_host.servers.modern_tasks import Tasks
from desktop_host.servers.served_skills import EXTENSION
from desktop_host.servers.tap import Tap
from desktop_host.servers.wiring import Wiring

INSTANCE = "desktop-host/instance"
INSTANCE_ID = secrets.token_hex(8)
"""Another one for each process: by it the gateway knows a host that has come to itself."""
_WIRE = (T.CONNECTION_CLOSED, T.REQUEST_TIMEOUT, HTTP_FAILED, HTTP_STATUS)
"""Codes that tell of the way to the server, not of what it speaks."""


def make_client(wiring: Wiring, tap: Tap, mode: str, answers: Callbacks) -> Client:
    """A client over `tap`, not yet entered. A callback is the declaration of the capability."""
    sampling = wiring.config.sampling.mode != "off"
    log_level: Any = wiring.config.log_level
    return Client(
        tap,
        mode=mode,
        client_info=T.Implementation(name="desktop-host", version=desktop_host.__version__),
        sampling_callback=answers.sampling if sampling else None,
        sampling_capabilities=T.SamplingCapability(tools=T.SamplingToolsCapability()) if sampling else None,
        elicitation_callback=answers.elicitation,
        list_roots_callback=answers.roots,
        logging_callback=answers.logging,
        log_level=log_level,
        message_handler=answers.message,
        extensions=[Tasks(), advertise(EXTENSION), advertise(INSTANCE, {"id": INSTANCE_ID}), *_pages(wiring)],
        cache=None,  # The catalog is the cache; a second one would hide what the person refreshes.
    )


def _pages(wiring: Wiring) -> list[Any]:
    return [advertise(apps.EXTENSION, {"mimeTypes": [apps.MIME]})] if wiring.apps else []


async def introduce(client: Client, version: str) -> None:
    """A pinned connection sends nothing by itself: ask who the server is.

    Raises:
        PeerFault: `protocol_error`, it does not speak this revision.
    """
    try:
        raw = await client.session.send_discover(version)
        client.session.adopt(T.DiscoverResult.model_validate(raw))
    except (MCPError, ValidationError, RuntimeError) as error:
        if isinstance(error, MCPError) and error.code in _WIRE:
            raise
        first = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise PeerFault("protocol_error", f"the server does not speak {version}: {first}") from error
