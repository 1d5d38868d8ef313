"""The gateway used by foreign hosts: the SDK's own client and the npm inspector, over stdio and HTTP."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import sys
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import mcp_types as T
import pytest

from desktop_host.core.places import shipped
from tests.live.gateway_program import ERAS, bearing, env, over_http, over_stdio, program, words

pytestmark = pytest.mark.live

KNOWLEDGE = shipped("resources", "servers", "knowledge")


def tenants(file: Path, docs: Path, *tools: str) -> None:
    draft = file.with_suffix(".new")
    draft.write_text(json.dumps({"tenants": {"me": {"folders": [str(docs)], "tools": tools}}}))
    draft.replace(file)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A profile with two servers of the same tools; the tools of `notes` change with its tenants' file."""
    docs, more = tmp_path / "docs", tmp_path / "more"
    for folder, text in ((docs, "Steep green tea for two minutes."), (more, "Grind the beans.")):
        folder.mkdir()
        (folder / "a.md").write_text(f"# A\n\n{text}\n")
    tenants(tmp_path / "tenants.json", docs, "search_*", "list_*", "add_*")
    run = [str(KNOWLEDGE), "serve", "--cache", "memory"]
    servers = {
        "notes": {"command": sys.executable,
                  "args": [*run, "--tenants", str(tmp_path / "tenants.json"), "--tenant", "me"]},
        "coffee": {"command": sys.executable, "args": [*run, "--folder", str(more)]},
    }  # fmt: skip
    profile = tmp_path / "home" / "profiles" / "default"
    profile.mkdir(parents=True)
    (profile / "servers.json").write_text(json.dumps({"mcpServers": servers}))
    (tmp_path / "passphrase").write_text("correct horse\n")
    return tmp_path / "home"


@pytest.mark.parametrize("mode", ERAS)
async def test_a_foreign_host_uses_all_servers_through_one(mode: str, home: Path) -> None:
    """Hazard F68: the same tools on two servers stay apart."""
    async with over_stdio(home, mode, "--allow", "*.search_knowledge") as client:
        tools = {t.name: t for t in (await client.list_tools()).tools}
        assert {"notes__search_knowledge", "coffee__search_knowledge", "coffee__remove_folder"} <= set(tools)
        assert "notes__remove_folder" not in tools
        assert tools["coffee__search_knowledge"].annotations.read_only_hint is True
        assert tools["coffee__search_knowledge"].output_schema["type"] == "object"
        for server, text in (("notes", "two minutes"), ("coffee", "Grind")):
            found = await client.call_tool(f"{server}__search_knowledge", {"query": "tea beans"})
            assert text in found.content[0].text and found.structured_content["documents"] == 1
        wrong = await client.call_tool("notes__search_knowledge", {})
        assert wrong.is_error and "query" in wrong.content[0].text
        refused = await client.call_tool("coffee__list_documents", {})
        assert refused.is_error and "--allow 'coffee.list_documents'" in refused.content[0].text
        assert (await client.call_tool("nothing__here", {})).is_error
        uris = {r.uri for r in (await client.list_resources()).resources}
        assert uris == {"gateway://notes/knowledge://stats", "gateway://coffee/knowledge://stats"}
        stats = (await client.read_resource("gateway://coffee/knowledge://stats")).contents[0]
        assert json.loads(stats.text)["documents"] == 1
        templates = (await client.list_resource_templates()).resource_templates
        assert "gateway://notes/knowledge://doc/{id}" in {t.uri_template for t in templates}
        prompts = {p.name for p in (await client.list_prompts()).prompts}
        assert {"notes__summarize", "coffee__compare"} <= prompts
        made = await client.get_prompt("coffee__summarize", {"document": "a.md"})
        assert "Grind the beans" in made.messages[0].content.text
        from mcp import MCPError

        for uri in ("gateway://none/knowledge://stats", "knowledge://stats", "gateway://coffee/knowledge://no"):
            with pytest.raises(MCPError):
                await client.read_resource(uri)
    code, listed = await program(home, "sessions", "list", "--json")
    (kept,) = [json.loads(line) for line in listed.splitlines()]
    assert (code, kept["title"]) == (0, "Gateway: main")
    _code, told = await program(home, "sessions", "show", kept["session"], "--json")
    assert "notes__search_knowledge" in told and "coffee__list_documents" in told


async def test_what_was_granted_or_denied_in_the_profile_holds_for_callers_from_outside(home: Path) -> None:
    (home / "profiles" / "default" / "settings.toml").write_text(
        '[[rules]]\neffect = "allow"\npattern = "coffee.search_*"\n\n'
        '[[rules]]\neffect = "deny"\npattern = "coffee.query_*"\n'
    )
    async with over_stdio(home, "auto", "--allow", "coffee.*") as client:
        names = {t.name for t in (await client.list_tools()).tools}
        assert "coffee__search_knowledge" in names and "coffee__query_database" not in names
        denied = await client.call_tool("coffee__query_database", {"sql": "SELECT 1"})
        assert denied.is_error
    async with over_stdio(home, "auto") as client:
        found = await client.call_tool("coffee__search_knowledge", {"query": "beans"})
        assert not found.is_error


@pytest.mark.parametrize(("mode", "way"), [("auto", "stdio"), ("legacy", "stdio"), ("legacy", "http")])
async def test_changed_tools_and_resources_are_passed_on(mode: str, way: str, home: Path) -> None:
    """Hazard E58: tools that change at run time, in both eras, through two servers."""
    from mcp import MCPError

    told: asyncio.Queue[str] = asyncio.Queue()

    async def message(received: Any) -> None:
        if isinstance(received, T.ToolListChangedNotification):
            told.put_nowait("tools")
        elif isinstance(received, T.ResourceUpdatedNotification):
            told.put_nowait(received.params.uri)

    stats = "gateway://notes/knowledge://stats"
    hidden = ["gateway://nobody/knowledge://stats", "knowledge://stats"]
    async with AsyncExitStack() as stack:
        if way == "http":
            assert (await program(home, "secrets", "set", "gateway", given="main-token-1"))[0] == 0
            url = await stack.enter_async_context(over_http(home))
            using: Any = bearing(url, "main-token-1", mode, message_handler=message)
        else:
            using = over_stdio(home, mode, message_handler=message)
        client = await stack.enter_async_context(using)
        if mode == "legacy":
            with pytest.warns(UserWarning, match="listen"):
                await client.subscribe_resource(stats)
            for uri in hidden:
                with pytest.raises(MCPError), pytest.warns(UserWarning, match="listen"):
                    await client.subscribe_resource(uri)
            await _changes(home, client, told, stats)
        else:
            async with client.listen(tools_list_changed=True, resource_subscriptions=[stats, *hidden]) as stream:
                assert list(stream.honored.resource_subscriptions) == [stats]
                await _changes(home, client, told, stats)


async def _changes(home: Path, client: Any, told: asyncio.Queue[str], stats: str) -> None:
    docs = home.parent / "docs"
    await asyncio.to_thread(tenants, home.parent / "tenants.json", docs, "search_*", "read_*")
    async with asyncio.timeout(30):
        while await told.get() != "tools":
            continue
        while True:
            listed = await client.list_tools(cache_mode="refresh")
            names = {t.name for t in listed.tools if t.name.startswith("notes")}
            if names == {"notes__search_knowledge", "notes__read_document"}:
                break
            await told.get()
        await asyncio.to_thread((docs / "b.md").write_text, "# B\n\nNew.\n")
        while await told.get() != stats:
            continue


async def test_over_http_each_token_sees_its_own_tools_and_nobody_else_comes_in(home: Path) -> None:
    import httpx2

    code, told = await program(home, "serve", "--http", "127.0.0.1:0")
    assert code == 2 and "secrets set gateway" in told
    for name, token in (("gateway", "main-token-1"), ("gateway-tea", "tea-token-2")):
        assert (await program(home, "secrets", "set", name, given=token))[0] == 0
    async with over_http(home, "--allow", "*", "--key", "tea=notes.search_*") as url:
        for mode in ERAS:
            async with bearing(url, "main-token-1", mode) as client:
                assert len((await client.list_tools()).tools) > 5
            async with bearing(url, "tea-token-2", mode) as client:
                assert [t.name for t in (await client.list_tools()).tools] == ["notes__search_knowledge"]
                found = await client.call_tool("notes__search_knowledge", {"query": "tea"})
                assert "two minutes" in found.content[0].text
                assert (await client.call_tool("coffee__search_knowledge", {"query": "beans"})).is_error
                assert {r.uri for r in (await client.list_resources()).resources} == {
                    "gateway://notes/knowledge://stats"
                }
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
        port = url.split(":")[2].partition("/")[0]
        right = {"Authorization": "Bearer main-token-1", "Accept": "application/json, text/event-stream"}
        async with httpx2.AsyncClient(trust_env=False) as http:
            for headers, status in [
                ({}, 401), ({"Authorization": "Bearer wrong"}, 401), ({"Authorization": "Basic main-token-1"}, 401),
                ({**right, "Host": "evil.example"}, 421), ({**right, "Host": f"evil.example:{port}"}, 421),
                ({**right, "Origin": "https://evil.example"}, 403), ({**right, "Origin": "null"}, 403),
            ]:  # fmt: skip
                assert (await http.post(url, json=body, headers=headers)).status_code == status, headers
            opened = await http.post(url, json={
                "jsonrpc": "2.0", "id": 1, "method": "initialize",
                "params": {"protocolVersion": "2025-11-25", "capabilities": {},
                           "clientInfo": {"name": "t", "version": "0"}},
            }, headers=right)  # fmt: skip
            session = opened.headers["mcp-session-id"]
            other = {**right, "Authorization": "Bearer tea-token-2", "Mcp-Session-Id": session}
            assert (await http.post(url, json=body, headers=other)).status_code == 404


async def test_wrong_use_is_told(home: Path) -> None:
    for argv in (["serve"], ["serve", "--stdio", "--http", "127.0.0.1:0"], ["serve", "--http", "nowhere"],
                 ["serve", "--stdio", "--key", "a=*"]):  # fmt: skip
        code, told = await program(home, *argv)
        assert code == 2 and "Traceback" not in told, argv


def inspector() -> str:
    where = os.environ.get("DESKTOP_HOST_TEST_NODE_BIN", "")
    found = shutil.which("mcp-inspector", path=where)
    if found is None:
        pytest.skip("the npm package @modelcontextprotocol/inspector is not installed")
    return found


async def inspected(home: Path, server: str, *argv: str) -> Any:
    """What the inspector's command line prints for one of the servers of `other.json`."""
    own = {**env(home), "NO_PROXY": "127.0.0.1"}
    own["PATH"] = f"{Path(inspector()).parent}{os.pathsep}{own['PATH']}"
    process = await asyncio.create_subprocess_exec(
        inspector(), "--cli", "--config", str(home.parent / "other.json"), "--server", server, *argv, env=own,
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    out, err = await asyncio.wait_for(process.communicate(), 90)
    assert process.returncode == 0, err.decode()
    return json.loads(out)


async def test_the_npm_inspector_uses_the_gateway_and_the_knowledge_server(home: Path) -> None:
    gateway = words(home, "serve", "--stdio", "--allow", "coffee.*")
    plain = [sys.executable, str(KNOWLEDGE), "serve", "--folder", str(home.parent / "docs"), "--cache", "memory"]
    entries = {
        name: {"command": line[0], "args": line[1:], "env": env(home)}
        for name, line in (("gateway", gateway), ("knowledge", plain))
    }
    (home.parent / "other.json").write_text(json.dumps({"mcpServers": entries}))
    listed = await inspected(home, "gateway", "--method", "tools/list")
    assert "coffee__search_knowledge" in {t["name"] for t in listed["tools"]}
    call = ("--method", "tools/call", "--tool-name", "coffee__search_knowledge", "--tool-arg", "query=beans")
    assert "Grind" in (await inspected(home, "gateway", *call))["content"][0]["text"]
    read = await inspected(home, "knowledge", "--method", "resources/read", "--uri", "knowledge://stats")
    assert json.loads(read["contents"][0]["text"])["documents"] == 1
