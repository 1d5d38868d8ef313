"""Servers start with the window, not with the first message, where the person wants it so."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from desktop_host.app.compose import open_host
from desktop_host.core.servers import ServerConfig, ServerState, Stdio
from desktop_host.core.values import FrozenDict
from desktop_host.engine.host import Host, HostSpec

SMALL = Stdio(sys.executable, (str(Path(__file__).parents[1] / "fakes" / "servers" / "small.py"),))


async def fill(home: Path) -> None:
    async with open_host(HostSpec(home)) as host:
        await host.servers.add(ServerConfig("on", SMALL))
        await host.servers.add(ServerConfig("off", SMALL, enabled=False))
        assert host.servers.status("on").state is ServerState.STOPPED


async def until(host: Host, name: str, state: ServerState) -> None:
    news = host.subscribe()
    async with asyncio.timeout(30):
        while host.servers.status(name).state is not state:
            await anext(news)
    news.close()


async def test_a_window_s_host_starts_what_is_enabled_and_from_then_on_what_is_added_or_switched_on(
    tmp_path: Path,
) -> None:
    await fill(tmp_path)
    async with open_host(HostSpec(tmp_path, autostart=True)) as host:
        await until(host, "on", ServerState.READY)
        assert host.servers.status("off").state is ServerState.DISABLED
        await host.servers.enable("off", True)
        await until(host, "off", ServerState.READY)
        await host.servers.add(ServerConfig("new", SMALL))
        await host.servers.start("new")  # as the page does: one process, whoever is first
        assert host.servers.status("new").state is ServerState.READY
        assert host.servers.status("new").restarts == 0


async def test_whoever_wants_a_server_at_once_gets_the_same_process(tmp_path: Path) -> None:
    """The window, a press of "Start" and a first message come together. Hazard D55."""
    notes = tmp_path / "starts"
    code = "import runpy, sys; open(sys.argv[1], 'a').write('x'); runpy.run_path(sys.argv[2], run_name='__main__')"
    counted = ServerConfig("counted", Stdio(sys.executable, ("-c", code, str(notes), SMALL.args[0])))
    async with open_host(HostSpec(tmp_path)) as host:
        await host.servers.add(counted)
    async with open_host(HostSpec(tmp_path, autostart=True)) as host:
        await asyncio.gather(
            host.servers.start("counted"), host.servers.autostart(), host.servers.start("counted"),
            host.servers.call_tool("counted", "echo", FrozenDict({"text": "hi"})),
        )  # fmt: skip
        assert host.servers.status("counted").state is ServerState.READY
    assert notes.read_text() == "x"


async def test_a_person_who_switched_it_off_and_the_command_line_start_nothing_unasked(tmp_path: Path) -> None:
    await fill(tmp_path)
    async with open_host(HostSpec(tmp_path, autostart=True)) as host:
        await host.settings.set("servers.autostart", False)
    for spec in (HostSpec(tmp_path, autostart=True), HostSpec(tmp_path)):
        async with open_host(spec) as host:
            await asyncio.gather(*(t for t in asyncio.all_tasks() if t.get_name() == "autostart"))
            assert host.servers.status("on").state is ServerState.STOPPED
            assert host.servers.status("on").pid is None
