"""The gateway that a window serves: key, switch, what is offered, and who came."""

from __future__ import annotations

import asyncio
import json
import socket
import sys
from pathlib import Path

import pytest

from desktop_host.app.compose import open_host
from desktop_host.core.asks import Allow, ApproveTool
from desktop_host.core.errors import UserFault
from desktop_host.engine.host import HeadlessPolicy, HostSpec
from tests.fakes.servers.stage import HERE, until
from tests.live.gateway_program import bearing

pytestmark = pytest.mark.live


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DBUS_SESSION_BUS_ADDRESS", "/dev/null")
    (tmp_path / "passphrase").write_text("correct horse\n")
    monkeypatch.setenv("DESKTOP_HOST_PASSPHRASE_FILE", str(tmp_path / "passphrase"))
    entry = {"command": sys.executable, "args": [str(HERE / "dual.py")]}
    profile = tmp_path / "home" / "profiles" / "default"
    profile.mkdir(parents=True)
    (profile / "servers.json").write_text(json.dumps({"mcpServers": {"shelf": entry, "private": entry}}))
    return tmp_path / "home"


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port: int = probe.getsockname()[1]
        return port


async def test_it_is_switched_on_asks_the_person_and_tells_who_came(home: Path) -> None:
    port = free_port()
    async with open_host(HostSpec(home)) as host:
        sharing = host.sharing
        assert sharing is not None
        state = await sharing.turn(True)
        assert not state.on and isinstance(state.fault, UserFault) and state.fault.params["reason"] == "no_token"
        key = await sharing.new_key()
        assert len(key) >= 32 and not (await sharing.state()).on
        await host.settings.set("gateway.port", port)
        await host.settings.set("gateway.hidden", "private")
        await host.settings.set("gateway.allow", "shelf.find")
        state = await sharing.turn(True)
        assert (state.on, state.url, state.fault) == (True, f"http://127.0.0.1:{port}/mcp", None)
        async with bearing(state.url, key) as client:
            names = {t.name for t in (await client.list_tools()).tools}
            assert "shelf__find" in names and not any(n.startswith("private") for n in names)
            found = await client.call_tool("shelf__find", {"word": "steep"})
            assert found.structured_content == {"names": ["tea"]}

            asked = asyncio.create_task(client.call_tool("shelf__keep", {"name": "oat", "text": "Soak."}))
            await until(lambda: host.asks())
            (ask,) = host.asks()
            assert isinstance(ask, ApproveTool) and (ask.server, ask.tool) == ("shelf", "keep")
            await host.answer(ask.ask_id, Allow(tool_digest=ask.tool_digest))
            assert (await asked).content[0].text == "kept oat"
        told = await sharing.state()
        (guest,) = told.guests
        assert guest.caller == "main" and guest.client.startswith("mcp ") and guest.requests >= 3
        assert [(h.method, h.what, h.ok) for h in told.heard[:1]] == [("tools/call", "shelf__keep", True)]
        newer = await sharing.new_key()
        assert newer != key and (await sharing.state()).on
        with pytest.raises(BaseExceptionGroup):
            async with bearing(state.url, key):
                pass
        async with bearing(state.url, newer) as client:
            assert client.server_info is not None
        await host.settings.set("gateway.hidden", "")
    async with open_host(HostSpec(home)) as host:  # It is on again with the next start; a command line run has none.
        assert host.sharing is not None
        state = await host.sharing.turn(True)
        assert state.on
        async with bearing(state.url, newer, "legacy") as client:
            assert any(t.name.startswith("private") for t in (await client.list_tools()).tools)
        with socket.create_server(("127.0.0.1", free_port())) as taken:
            await host.settings.set("gateway.port", taken.getsockname()[1])
            state = await host.sharing.turn(True)
            assert not state.on and state.fault is not None and state.fault.code == "network"
        off = await host.sharing.turn(False)
        assert (off.on, off.fault) == (False, None) and not host.settings.current().gateway.on
    async with open_host(HostSpec(home, headless=HeadlessPolicy())) as host:
        assert host.sharing is None
