"""The SDK's client as the host wants it: who we are, what we can do, no cache of its own."""

from __future__ import annotations

import mcp_types as T
from mcp import Client, MCPError
from pydantic import ValidationError

import desktop_host
from desktop_host.core.errors import PeerFault
from desktop_host.servers.callbacks import Callbacks
from desktop_host.servers.tap import Tap
from desktop_host.servers.wiring import Wiring


def make_client(wiring: Wiring, tap: Tap, mode: str, answers: Callbacks) -> Client:
    """A client over `tap`, not yet entered. A callback is the declaration of the capability."""
    sampling = wiring.config.sampling.mode != "off"
    return Client(
        tap,
        mode=mode,
        client_info=T.Implementation(name="desktop-host", version=desktop_host.__version__),
        sampling_callback=answers.sampling if sampling else None,
        sampling_capabilities=T.SamplingCapability(tools=T.SamplingToolsCapability()) if sampling else None,
        elicitation_callback=answers.elicitation,
        list_roots_callback=answers.roots,
        logging_callback=answers.logging,
        log_level="info",
        message_handler=answers.message,
        cache=None,  # The catalog is the cache; a second one would hide what the person refreshes.
    )


async def introduce(client: Client, version: str) -> None:
    """A pinned connection sends nothing by itself: ask who the server is; one that will not say is used as it is."""
    try:
        raw = await client.session.send_discover(version)
        client.session.adopt(T.DiscoverResult.model_validate(raw))
    except (MCPError, ValidationError):
        return
    except RuntimeError as error:
        raise PeerFault("protocol_error", str(error)) from error
