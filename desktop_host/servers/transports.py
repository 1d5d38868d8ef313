"""A configured launch to the SDK's transport: placeholders filled, PATH and command resolved, environment scrubbed."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import sys
from collections.abc import Callable
from typing import Any

from mcp.client.streamable_http import streamable_http_client

from desktop_host.core.servers import Http, Sse, Stdio
from desktop_host.servers import environment
from desktop_host.servers.failure import Evidence
from desktop_host.servers.http import EVENT_LIMIT, HttpFacts, http_client
from desktop_host.servers.loading import sdk
from desktop_host.servers.profile_values import ready_launch
from desktop_host.servers.records import ServerLog
from desktop_host.servers.sign_in import wants_sign_in
from desktop_host.servers.sse import SseTransport
from desktop_host.servers.stdio import StdioTransport
from desktop_host.servers.wiring import Floor, Wiring


async def make_transport(
    wiring: Wiring,
    stack: contextlib.AsyncExitStack,
    seen: Evidence,
    facts: HttpFacts,
    floor: Floor,
    *,
    on_start: Callable[[int], None],
    on_line: Callable[[str, str], None],
    on_signed_out: Callable[[], None],
) -> Any:
    """The transport for a server; what must be closed with it is put on `stack`, what was resolved into `seen`.

    `on_signed_out` is told when the server takes our tokens no more and no other can be had.

    Raises:
        HostError: a placeholder, the vault, the command or the working folder.
    """
    configured = wiring.config.launch
    launch, secrets = await ready_launch(wiring.config, wiring.values(), wiring.secrets, wiring.environ)
    wiring.redact.learn(secrets)
    if isinstance(launch, (Http, Sse)):
        sign = None
        if wants_sign_in(launch):
            oauth = await sdk("oauth")
            sign = functools.partial(
                oauth.Signed, launch=launch, wiring=wiring, floor=floor, facts=facts, lost=on_signed_out
            )

        def note(line: str, level: str) -> None:
            wiring.log.add("network", line, level)

        client = await asyncio.to_thread(http_client, launch, facts, sign, note)
        await stack.enter_async_context(client)
        if isinstance(launch, Sse):
            return SseTransport(launch.url, client)
        return streamable_http_client(launch.url, http_client=client, max_sse_event_size=EVENT_LIMIT)
    assert isinstance(configured, Stdio)
    path = launch.env.get("PATH") or await environment.login_path(wiring.environ)
    seen.command, seen.path, seen.cwd = (configured.command, *configured.args), path, launch.cwd
    command = await asyncio.to_thread(environment.resolve_command, launch.command, path, launch.cwd)
    seen.command = (command, *configured.args)
    env = environment.child_environment(launch.env, path, wiring.environ)
    if sys.platform == "win32":
        return _windows(command, launch, env, stack, wiring.log)
    return StdioTransport(
        (command, *launch.args),
        env=env,
        cwd=launch.cwd,
        encoding=launch.encoding,
        errors=launch.encoding_errors,
        on_line=on_line,
        on_start=on_start,
    )


def _windows(command: str, launch: Stdio, env: dict[str, str], stack: contextlib.AsyncExitStack, log: ServerLog) -> Any:
    """The SDK's own transport, with its job object; standard error goes to the log file. Windows, not run."""
    from mcp import StdioServerParameters
    from mcp.client.stdio import stdio_client

    log.path.parent.mkdir(parents=True, exist_ok=True)
    errors = stack.enter_context(log.path.open("a", encoding="utf-8"))
    handling: Any = launch.encoding_errors
    return stdio_client(
        StdioServerParameters(
            command=command, args=list(launch.args), env=env, cwd=launch.cwd,
            encoding=launch.encoding, encoding_error_handler=handling,
        ),
        errlog=errors,
    )  # fmt: skip
