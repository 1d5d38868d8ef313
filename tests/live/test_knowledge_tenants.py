"""Tenants of the knowledge server: own documents, own tools, changed while it runs, and no leak between them."""

from __future__ import annotations

import asyncio
import json
import os
import random
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import mcp_types as T
import pytest

from desktop_host.core.places import shipped

pytestmark = pytest.mark.live

KNOWLEDGE = shipped("resources", "servers", "knowledge")
REQUESTS = 1_000


class House:
    """A server for two tenants."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.file = folder / "tenants.json"
        self.keys: dict[str, str] = {}
        self.entries: dict[str, dict[str, Any]] = {}
        self.url = ""

    async def program(self, *argv: str) -> str:
        process = await asyncio.create_subprocess_exec(
            sys.executable, str(KNOWLEDGE), *argv, stdout=asyncio.subprocess.PIPE
        )
        out, _ = await asyncio.wait_for(process.communicate(), 30)
        return out.decode()

    async def tenant(self, name: str, *tools: str, secret: str) -> None:
        made = json.loads(await self.program("key"))
        docs = self.folder / name
        docs.mkdir()
        (docs / "secret.md").write_text(f"# Secret\n\nThe password of the shared kettle is {secret}.\n")
        self.keys[name] = made["key"]
        self.entries[name] = {"key_sha256": made["key_sha256"], "folders": [name], "tools": tools,
                              "may_add": [f"{name}-more"]}  # fmt: skip
        self.write()

    def write(self) -> None:
        draft = self.file.with_suffix(".new")
        draft.write_text(json.dumps({"tenants": self.entries}))
        draft.replace(self.file)

    @asynccontextmanager
    async def client(self, name: str, mode: str = "auto", **callbacks: Any) -> AsyncIterator[Any]:
        import httpx2
        from mcp import Client
        from mcp.client.streamable_http import streamable_http_client

        async with (
            httpx2.AsyncClient(headers={"X-API-Key": self.keys[name]}, trust_env=False) as http,
            Client(streamable_http_client(self.url, http_client=http), mode=mode, **callbacks) as client,  # type: ignore[arg-type]
        ):
            yield client


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    house = House(tmp_path)
    await house.tenant("ada", "search_*", "list_*", "read_*", "add_*", secret="alder")
    await house.tenant("bob", "search_*", "query_*", secret="birch")
    process = await asyncio.create_subprocess_exec(
        sys.executable, str(KNOWLEDGE), "serve", "--http", "127.0.0.1:0", "--tenants", str(house.file),
        "--cache", str(tmp_path / "cache"), stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    try:
        assert process.stderr is not None
        house.url = (await asyncio.wait_for(process.stderr.readline(), 30)).decode().split()[-1]
        yield house
    finally:
        process.terminate()
        await process.wait()


TOOLS = {"ada": {"search_knowledge", "list_documents", "read_document", "add_folder"},
         "bob": {"search_knowledge", "query_database"}}  # fmt: skip
SECRETS = {"ada": "alder", "bob": "birch"}


async def test_a_thousand_mixed_requests_of_two_tenants_leak_nothing(house: House) -> None:
    rng = random.Random(7)
    counted = {"ada": 0, "bob": 0}

    async def one(client: Any, name: str) -> None:
        other = "bob" if name == "ada" else "ada"
        match rng.randrange(5):
            case 0:
                said = str({t.name for t in (await client.list_tools(cache_mode="bypass")).tools} ^ TOOLS[name])
                assert said == "set()"
            case 1:
                made = await client.call_tool("search_knowledge", {"query": "password shared kettle"})
                said = str(made)
                assert SECRETS[name] in said and made.structured_content["documents"] == 1
            case 2:
                said = str((await client.read_resource("knowledge://stats", cache_mode="bypass")).contents)
                assert f"/{name}" in said
            case 3:
                tool = rng.choice(sorted(TOOLS[other] - TOOLS[name]))
                made = await client.call_tool(tool, {"path": "secret.md", "sql": "SELECT body FROM passages"})
                said = str(made)
                assert made.is_error and "no tool" in said
            case _:
                said = str(await client.get_prompt("answer_with_sources", {"question": "password"}))
                assert SECRETS[name] in said
        assert SECRETS[other] not in said and f"/{other}" not in said
        counted[name] += 1

    async with AsyncExitStack() as stack:
        clients = [
            (await stack.enter_async_context(house.client(name, mode)), name)
            for name in ("ada", "bob") for mode in ("auto", "legacy")
        ]  # fmt: skip

        async def worker(share: int) -> None:
            for _ in range(share):
                await one(*rng.choice(clients))

        async with asyncio.timeout(150):
            await asyncio.gather(*(worker(REQUESTS // 10) for _ in range(10)))
    assert sum(counted.values()) == REQUESTS and min(counted.values()) > 300


async def test_without_a_key_or_with_a_wrong_one_nobody_comes_in(house: House) -> None:
    import httpx2

    body = {"jsonrpc": "2.0", "id": 1, "method": "initialize",
            "params": {"protocolVersion": "2025-11-25", "capabilities": {},
                       "clientInfo": {"name": "t", "version": "0"}}}  # fmt: skip
    accept = {"Accept": "application/json, text/event-stream"}
    async with httpx2.AsyncClient(trust_env=False) as http:
        for headers in (
            {},
            {"X-API-Key": ""},
            {"X-API-Key": "wrong"},
            {"X-API-Key": house.entries["ada"]["key_sha256"]},
        ):
            assert (await http.post(house.url, json=body, headers={**accept, **headers})).status_code == 401
        mine = {**accept, "X-API-Key": house.keys["ada"]}
        session = (await http.post(house.url, json=body, headers=mine)).headers["mcp-session-id"]
        theirs = {**accept, "X-API-Key": house.keys["bob"], "Mcp-Session-Id": session}
        ask = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}
        assert (await http.post(house.url, json=ask, headers=theirs)).status_code == 404
        bearer = {**accept, "Authorization": f"Bearer {house.keys['bob']}"}
        assert (await http.post(house.url, json=body, headers=bearer)).status_code == 200
        evil = {**mine, "Origin": "https://evil.example"}
        assert (await http.post(house.url, json=body, headers=evil)).status_code == 403


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_the_tools_of_a_tenant_change_while_it_runs_and_only_its_clients_are_told(
    mode: str, house: House
) -> None:
    told: dict[str, asyncio.Queue[str]] = {"ada": asyncio.Queue(), "bob": asyncio.Queue()}

    def listener(name: str) -> Any:
        async def message(received: Any) -> None:
            if isinstance(received, T.ToolListChangedNotification):
                told[name].put_nowait("tools")

        return message

    async with AsyncExitStack() as stack:
        clients = {}
        for name in ("ada", "bob"):
            clients[name] = await stack.enter_async_context(house.client(name, mode, message_handler=listener(name)))
            await clients[name].list_tools()
            if mode == "auto":
                await stack.enter_async_context(clients[name].listen(tools_list_changed=True))
        house.entries["bob"]["tools"] = ["search_*", "verify_*"]
        await asyncio.to_thread(house.write)
        assert await asyncio.wait_for(told["bob"].get(), 15) == "tools"
        names = {t.name for t in (await clients["bob"].list_tools(cache_mode="refresh")).tools}
        assert names == {"search_knowledge", "verify_answer"}
        assert {t.name for t in (await clients["ada"].list_tools(cache_mode="refresh")).tools} == TOOLS["ada"]
        assert told["ada"].empty()


async def test_tenants_come_and_go_and_a_broken_file_changes_nothing(house: House) -> None:
    await house.tenant("cy", "search_*", secret="cedar")
    async with asyncio.timeout(20):
        while True:
            try:
                async with house.client("cy") as client:
                    made = await client.call_tool("search_knowledge", {"query": "kettle"})
                    assert "cedar" in str(made)
                break
            except BaseExceptionGroup:
                continue  # Not let in yet.
    house.file.write_text("{")
    async with house.client("ada") as client:
        assert {t.name for t in (await client.list_tools()).tools} == TOOLS["ada"]
        for folder in (house.folder / "bob", Path("/etc"), house.folder / "ada-more" / ".." / "bob"):
            made = await client.call_tool("add_folder", {"folder": str(folder)})
            assert made.is_error and "may not be added" in str(made)
        (house.folder / "ada-more").mkdir()
        (house.folder / "ada-more" / "new.md").write_text("quince")
        made = await client.call_tool("add_folder", {"folder": str(house.folder / "ada-more")})
        assert made.structured_content["documents"] == 2


async def test_over_stdio_the_tenant_is_chosen_by_name(tmp_path: Path) -> None:
    from mcp import Client, StdioServerParameters

    house = House(tmp_path)
    await house.tenant("ada", "search_*", secret="alder")
    await house.tenant("bob", "*", secret="birch")
    argv = [str(KNOWLEDGE), "serve", "--tenants", str(house.file), "--cache", "memory", "--tenant"]
    async with Client(StdioServerParameters(command=sys.executable, args=[*argv, "ada"])) as client:
        assert [t.name for t in (await client.list_tools()).tools] == ["search_knowledge"]
        assert "alder" in str(await client.call_tool("search_knowledge", {"query": "kettle"}))
    process = await asyncio.create_subprocess_exec(
        sys.executable, *argv, "none", stderr=asyncio.subprocess.PIPE, stdin=asyncio.subprocess.DEVNULL,
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path)},
    )  # fmt: skip
    _, err = await asyncio.wait_for(process.communicate(), 30)
    assert process.returncode == 2 and b"ada, bob" in err
