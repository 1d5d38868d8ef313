"""The gateway before the suite's fixtures server: `python tests/conformance/gateway_fixtures.py URL ERA HOME`.

The suite asks for tools, prompts and resources by names of its own and bears no token. So the one server's
namespace is left out, and the token is put in, here; lists, calls, questions, notifications, the door and the gate
are those that ship. The address is told on stderr.
"""

import asyncio
import hashlib
import json
import sys
from pathlib import Path
from typing import Any

from starlette.types import Receive, Scope, Send

from desktop_host.app.compose import open_host
from desktop_host.core.host_calls import Caller, GatewayKey, GatewaySpec
from desktop_host.engine.host import HeadlessPolicy, HostSpec
from desktop_host.engine.host_calls import outside
from desktop_host.servers import gateway, gateway_http, gateway_wire

ALIAS, TOKEN = "suite", "the-suite-bears-none"


def without_namespace() -> None:
    """Tools, prompts and resources go by the names and addresses that their one server gave them."""
    tool, find = gateway_wire.tool, gateway.Desk._find

    def plain_tool(spec: Any) -> Any:
        return tool(spec).model_copy(update={"name": spec.name})

    async def plain_find(self: gateway.Desk, name: str) -> Any:
        return await find(self, f"{ALIAS}.{name}")

    patched: Any = gateway_wire
    patched.tool, patched.address = plain_tool, lambda _server, uri: uri
    patched.wire_name = lambda _server, name: name
    patched = gateway
    patched.Desk._find, patched.parted = plain_find, lambda uri: (ALIAS, uri)
    patched.wire_name = lambda _server, name: name


class Bearing(gateway_http.Door):
    """The door, for a client that was handed the token."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            scope = {**scope, "headers": [*scope["headers"], (b"authorization", f"Bearer {TOKEN}".encode())]}
        await super().__call__(scope, receive, send)


async def main(url: str, era: str, home: Path) -> None:
    """Serve until ended."""
    profile = home / "profiles" / "default"
    profile.mkdir(parents=True, exist_ok=True)
    entry = {"url": url, "desktopHost": {"protocol": era}}
    (profile / "servers.json").write_text(json.dumps({"mcpServers": {ALIAS: entry}}))
    without_namespace()
    door: Any = gateway_http
    door.Door = Bearing
    key = GatewayKey(Caller("main", allow=("*",)), hashlib.sha256(TOKEN.encode()).hexdigest())

    def ready(address: str) -> None:
        print(f"gateway: serving {address}", file=sys.stderr, flush=True)

    async with open_host(HostSpec(home, headless=HeadlessPolicy())) as host:
        await gateway.serve(outside(host), GatewaySpec(address=("127.0.0.1", 0), keys=(key,), ready=ready))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], Path(sys.argv[3])))
