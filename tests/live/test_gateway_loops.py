"""Chains that go through the gateway, and a profile that has its own gateway among its servers."""

from __future__ import annotations

import json
import socket
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.servers.stage import HERE
from tests.live.gateway_program import ERAS, bearing, env, over_http, over_stdio, program, words
from tests.live.test_gateway_hosts import KNOWLEDGE

pytestmark = pytest.mark.live


def made(folder: Path, **servers: Any) -> Path:
    profile = folder / "home" / "profiles" / "default"
    profile.mkdir(parents=True)
    (profile / "servers.json").write_text(json.dumps({"mcpServers": servers}))
    (folder / "passphrase").write_text("correct horse\n")
    return folder / "home"


SHELF = {"command": sys.executable, "args": [str(HERE / "dual.py")]}


async def test_a_chain_that_comes_back_through_the_gateway_ends_as_a_loop(tmp_path: Path) -> None:
    """knowledge asks the gateway, which asks knowledge."""
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.md").write_text("# A\n\nThe kettle leaks.\n")
    chain = tmp_path / "chain.json"
    papers = {"command": sys.executable, "args": [
        str(KNOWLEDGE), "serve", "--cache", "memory", "--name", "papers", "--folder", str(tmp_path / "docs"),
        "--chain", str(chain),
    ]}  # fmt: skip
    home = made(tmp_path, papers=papers)
    line = words(home, "serve", "--stdio", "--allow", "*")
    child = {"command": line[0], "args": line[1:], "env": env(home), "tool": "papers__search_everywhere"}
    chain.write_text(json.dumps({"mcpServers": {"host": child}}))
    async with over_stdio(home, "auto", "--allow", "*") as client:
        found = await client.call_tool("papers__search_everywhere", {"query": "kettle"})
    states = {r["source"]: r["state"] for r in found.structured_content["sources"]}
    assert states["documents"] == "ok"
    assert states == {"documents": "ok", "host": "loop"}


async def test_a_gateway_among_its_own_servers_starts_nothing_twice(tmp_path: Path) -> None:
    home = made(tmp_path, shelf=SHELF)
    line = words(home, "serve", "--stdio")
    own = {"command": line[0], "args": line[1:], "env": env(home)}
    (home / "profiles" / "default" / "servers.json").write_text(
        json.dumps({"mcpServers": {"shelf": SHELF, "itself": own}})
    )
    async with over_stdio(home, "auto", "--allow", "*") as client:
        servers = {t.name.partition("__")[0] for t in (await client.list_tools()).tools}
    assert servers == {"shelf"}


async def test_a_gateway_that_is_its_own_server_over_http_says_so(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    own = {"url": f"http://127.0.0.1:{port}/mcp", "headers": {"Authorization": "Bearer main-token-1"}}
    home = made(tmp_path, shelf=SHELF, itself=own)
    assert (await program(home, "secrets", "set", "gateway", given="main-token-1"))[0] == 0
    async with over_http(home, "--allow", "*", at=f"127.0.0.1:{port}") as url:
        for mode in ERAS:
            async with bearing(url, "main-token-1", mode) as client:
                for _ in range(3):
                    listed = await client.list_tools(cache_mode="refresh")
                    assert {t.name.partition("__")[0] for t in listed.tools} == {"shelf"}
